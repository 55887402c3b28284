/* SPDX-License-Identifier: MIT */
/* How an exchange goes through its stages, with stages that write down what they see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <string.h>

#include "inspect/stage.c"

static char seen[256];
static enum stage_result says; /* of the stage that answers */

static void note(const char *text)
{
	strncat(seen, text, sizeof(seen) - strlen(seen) - 1);
}

static enum stage_result first_start(struct exchange *ex)
{
	(void)ex;
	note("first ");
	return STAGE_NEXT;
}

static enum stage_result watch_start(struct exchange *ex)
{
	(void)ex;
	note("watch ");
	return STAGE_OVER; /* it has no say */
}

static enum stage_result watch_body(struct exchange *ex, const char *data, size_t len)
{
	(void)ex, (void)len;
	note("watch:");
	note(data);
	note(" ");
	return STAGE_OVER;
}

static enum stage_result watch_response(struct exchange *ex, const struct head *head)
{
	(void)ex, (void)head;
	note("watch:response ");
	return STAGE_OVER;
}

static enum stage_result gate_start(struct exchange *ex)
{
	(void)ex;
	note("gate ");
	return says;
}

static enum stage_result gate_body(struct exchange *ex, const char *data, size_t len)
{
	(void)ex, (void)len;
	note("gate:");
	note(data);
	note(" ");
	return says;
}

static enum stage_result gate_response(struct exchange *ex, const struct head *head)
{
	(void)ex, (void)head;
	note("gate:response ");
	return says;
}

static enum stage_result last_start(struct exchange *ex)
{
	(void)ex;
	note("last ");
	return STAGE_NEXT;
}

static enum stage_result last_body(struct exchange *ex, const char *data, size_t len)
{
	(void)ex, (void)data, (void)len;
	note("last:body ");
	return STAGE_NEXT;
}

static enum stage_result last_response(struct exchange *ex, const struct head *head)
{
	(void)ex, (void)head;
	note("last:response ");
	return STAGE_NEXT;
}

static void watch_over(struct exchange *ex)
{
	(void)ex;
	note("watch:over ");
}

static void last_over(struct exchange *ex)
{
	(void)ex;
	note("last:over ");
}

static const struct stage first = { .role = STAGE_MODIFIES, .start = first_start };
static const struct stage watch = { .role = STAGE_OBSERVES,
				    .start = watch_start,
				    .request_body = watch_body,
				    .response = watch_response,
				    .response_body = watch_body,
				    .over = watch_over };
static const struct stage gate = { .role = STAGE_ANSWERS,
				   .start = gate_start,
				   .request_body = gate_body,
				   .response = gate_response,
				   .response_body = gate_body };
static const struct stage last = { .role = STAGE_ANSWERS,
				   .start = last_start,
				   .request_body = last_body,
				   .response = last_response,
				   .response_body = last_body,
				   .over = last_over };
const struct stage *const stages[] = { &first, &watch, &gate, &last, NULL };

static struct exchange *fresh(enum stage_result gate_says)
{
	static struct exchange ex;

	ex = (struct exchange){ 0 };
	seen[0] = '\0';
	says = gate_says;
	return &ex;
}

static void test_all(void **state)
{
	(void)state;
	assert_int_equal(stages_go_on(fresh(STAGE_NEXT)), STAGE_NEXT);
	assert_string_equal(seen, "first watch gate last ");
}

/* Nothing behind the one that answered is called. */
static void test_answered(void **state)
{
	(void)state;
	assert_int_equal(stages_go_on(fresh(STAGE_OVER)), STAGE_OVER);
	assert_string_equal(seen, "first watch gate ");
}

/* Who is held goes on behind the stage that held it, once. */
static void test_held(void **state)
{
	struct exchange *ex = fresh(STAGE_HELD);

	(void)state;
	assert_int_equal(stages_go_on(ex), STAGE_HELD);
	assert_string_equal(seen, "first watch gate ");
	assert_int_equal(stages_go_on(ex), STAGE_NEXT);
	assert_string_equal(seen, "first watch gate last ");
	assert_int_equal(stages_go_on(ex), STAGE_NEXT);
	assert_string_equal(seen, "first watch gate last ");
}

static void test_bodies(void **state)
{
	(void)state;
	assert_int_equal(stages_request_body(fresh(STAGE_NEXT), "a", 1), STAGE_NEXT);
	assert_string_equal(seen, "watch:a gate:a last:body ");
	assert_int_equal(stages_request_body(fresh(STAGE_OVER), "a", 1), STAGE_OVER);
	assert_string_equal(seen, "watch:a gate:a ");
	assert_int_equal(stages_response_body(fresh(STAGE_NEXT), "b", 1), STAGE_NEXT);
	assert_string_equal(seen, "watch:b gate:b last:body ");
	assert_int_equal(stages_response_body(fresh(STAGE_OVER), "b", 1), STAGE_OVER);
	assert_string_equal(seen, "watch:b gate:b ");
}

static void test_response(void **state)
{
	struct head head = { .status = 200 };

	(void)state;
	assert_int_equal(stages_response(fresh(STAGE_NEXT), &head), STAGE_NEXT);
	assert_string_equal(seen, "watch:response gate:response last:response ");
	assert_int_equal(stages_response(fresh(STAGE_OVER), &head), STAGE_OVER);
	assert_string_equal(seen, "watch:response gate:response ");
}

/* Whatever answered it, all are told of the end. */
static void test_over(void **state)
{
	struct exchange *ex = fresh(STAGE_OVER);

	(void)state;
	stages_go_on(ex);
	seen[0] = '\0';
	stages_over(ex);
	assert_string_equal(seen, "watch:over last:over ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),    cmocka_unit_test(test_answered), cmocka_unit_test(test_held),
		cmocka_unit_test(test_bodies), cmocka_unit_test(test_response), cmocka_unit_test(test_over),
	};

	return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
