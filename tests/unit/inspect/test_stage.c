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
#include "inspect/stages_body.c"

static char seen[512];
static enum stage_result says; /* of the stage that answers */
static struct exchange the_exchange;

/* -- the exchange ------------------------------------------------------------------------ */

static char passed[512];
static size_t room; /* bytes that it still takes */
static char stopped[128];

static void note(const char *text)
{
	strncat(seen, text, sizeof(seen) - strlen(seen) - 1);
}

enum stage_result exchange_pass(struct exchange *ex, enum stage_way way, const struct piece *piece)
{
	(void)way;
	snprintf(passed + strlen(passed), sizeof(passed) - strlen(passed), "%.*s%s%s",
		 piece->len < 64 ? (int)piece->len : 0, piece->len ? piece->data : "",
		 piece->end   ? "."
		 : piece->len ? "|"
			      : "",
		 piece->trailers ? "+" : "");
	room -= piece->len < room ? piece->len : room;
	if (way == WAY_REQUEST && !ex->at_origin.upstream) {
		buf_append(&ex->pending, piece->data, piece->len);
		ex->request = piece->end ? REQUEST_WHOLE : REQUEST_COMES;
	}
	return STAGE_NEXT;
}

bool exchange_has_room(const struct exchange *ex, enum stage_way way)
{
	(void)ex, (void)way;
	return room;
}

void exchange_stop(struct exchange *ex, enum np_reason reason, const struct verdict *verdict, const char *words)
{
	(void)ex, (void)verdict;
	snprintf(stopped, sizeof(stopped), "%u: %s", reason, words);
}

/* -- the stages --------------------------------------------------------------------------- */

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

static enum stage_result watch_body(struct exchange *ex, struct piece *piece)
{
	(void)ex;
	note("watch:");
	strncat(seen, piece->len ? piece->data : "", piece->len);
	note(" ");
	piece->used = 0;
	piece->end = false;
	return STAGE_OVER;
}

static enum stage_result watch_response(struct exchange *ex, struct head *head)
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

static enum stage_result gate_rejudge(struct exchange *ex, enum np_reason by)
{
	(void)ex;
	note(by == NP_R_ENDED_BY_RAISE ? "gate:raise " : "gate:reload ");
	return says;
}

static enum stage_result (*gate_does)(struct piece *piece); /* NULL: as it says */

static enum stage_result gate_body(struct exchange *ex, struct piece *piece)
{
	(void)ex;
	note("gate:");
	strncat(seen, piece->len ? piece->data : "", piece->len < 64 ? piece->len : 0);
	note(piece->end ? ". " : " ");
	return gate_does ? gate_does(piece) : says;
}

static enum stage_result gate_response(struct exchange *ex, struct head *head)
{
	(void)ex, (void)head;
	note("gate:response ");
	return says;
}

static enum stage_result gate_connect(struct tunnel *tunnel)
{
	(void)tunnel;
	note("gate:connect ");
	return says;
}

static enum stage_result last_start(struct exchange *ex)
{
	(void)ex;
	note("last ");
	return STAGE_NEXT;
}

static enum stage_result last_says;

static enum stage_result last_body(struct exchange *ex, struct piece *piece)
{
	(void)ex;
	note("last:");
	strncat(seen, piece->len ? piece->data : "", piece->len < 64 ? piece->len : 0);
	note(" ");
	return last_says;
}

static enum stage_result last_response(struct exchange *ex, struct head *head)
{
	(void)ex, (void)head;
	note("last:response ");
	return STAGE_NEXT;
}

static enum stage_result last_rejudge(struct exchange *ex, enum np_reason by)
{
	(void)ex, (void)by;
	note("last:rejudge ");
	return STAGE_NEXT;
}

static enum stage_result last_connect(struct tunnel *tunnel)
{
	(void)tunnel;
	note("last:connect ");
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

static void last_forget(struct exchange *ex)
{
	(void)ex;
	note("last:forget ");
}

static const struct stage first = { .name = "first", .role = STAGE_MODIFIES, .start = first_start };
static const struct stage watch = { .name = "watch",
				    .role = STAGE_OBSERVES,
				    .start = watch_start,
				    .request_body = watch_body,
				    .response = watch_response,
				    .response_body = watch_body,
				    .over = watch_over };
static const struct stage gate = { .name = "gate",
				   .role = STAGE_MODIFIES,
				   .start = gate_start,
				   .connect = gate_connect,
				   .request_body = gate_body,
				   .response = gate_response,
				   .response_body = gate_body,
				   .rejudge = gate_rejudge };
static const struct stage last = { .name = "last",
				   .role = STAGE_ANSWERS,
				   .start = last_start,
				   .connect = last_connect,
				   .request_body = last_body,
				   .response = last_response,
				   .response_body = last_body,
				   .rejudge = last_rejudge,
				   .over = last_over,
				   .forget = last_forget };
const struct stage *const stages[] = { &first, &watch, &gate, &last, NULL };

static struct exchange *fresh(enum stage_result gate_says)
{
	the_exchange = (struct exchange){ .head.has_body = true, .pending = BUF_INIT(2 * NP_BACKLOG_HIGH) };
	seen[0] = passed[0] = stopped[0] = '\0';
	says = gate_says;
	gate_does = NULL;
	last_says = STAGE_NEXT;
	room = SIZE_MAX;
	return &the_exchange;
}

/* All of them were started, and all want all of it. */
static struct exchange *fresh_bodies(enum stage_result gate_says)
{
	struct exchange *ex = fresh(gate_says);

	ex->stage = 4;
	ex->at_origin.upstream = (void *)"there is one";
	for (enum stage_way way = 0; way < WAYS; way++) {
		stage_wants(ex, &watch, way, WANT_LOOK);
		stage_wants(ex, &gate, way, WANT_REPLACE);
		stage_wants(ex, &last, way, WANT_LOOK);
	}
	return ex;
}

static void forget(struct exchange *ex)
{
	stages_forget(ex);
	buf_free(&ex->pending);
	assert_int_equal(stages_body_withheld(ex), 0);
}

static enum stage_result body(struct exchange *ex, enum stage_way way, const char *text, bool end)
{
	return stages_body(ex, way, &(struct piece){ .data = text, .len = strlen(text), .end = end });
}

/* -- heads --------------------------------------------------------------------------------- */

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

/* From the origin's side to the client's. */
static void test_response(void **state)
{
	struct head head = { .status = 200 };

	(void)state;
	assert_int_equal(stages_response(fresh(STAGE_NEXT), &head), STAGE_NEXT);
	assert_string_equal(seen, "last:response gate:response watch:response ");
	assert_int_equal(stages_response(fresh(STAGE_OVER), &head), STAGE_OVER);
	assert_string_equal(seen, "last:response gate:response ");
}

/* Only those that have judged it judge it again. */
static void test_rejudge(void **state)
{
	struct exchange *ex = fresh(STAGE_HELD);

	(void)state;
	stages_go_on(ex);
	says = STAGE_NEXT;
	seen[0] = '\0';
	assert_int_equal(stages_rejudge(ex, NP_R_ENDED_BY_RAISE), STAGE_NEXT);
	assert_string_equal(seen, "gate:raise ");
	stages_go_on(ex);
	seen[0] = '\0';
	assert_int_equal(stages_rejudge(ex, NP_R_ENDED_BY_RELOAD), STAGE_NEXT);
	assert_string_equal(seen, "gate:reload last:rejudge ");
	says = STAGE_OVER;
	seen[0] = '\0';
	assert_int_equal(stages_rejudge(ex, NP_R_ENDED_BY_RELOAD), STAGE_OVER);
	assert_string_equal(seen, "gate:reload ");
}

static void test_connect(void **state)
{
	unsigned at = 0;

	(void)state;
	fresh(STAGE_HELD);
	assert_int_equal(stages_connect(NULL, &at), STAGE_HELD);
	assert_string_equal(seen, "gate:connect ");
	assert_int_equal(stages_connect(NULL, &at), STAGE_NEXT);
	assert_string_equal(seen, "gate:connect last:connect ");
}

/* Whatever answered it, all are told of the end. */
static void test_over(void **state)
{
	struct exchange *ex = fresh(STAGE_OVER);

	(void)state;
	stages_go_on(ex);
	seen[0] = '\0';
	stages_over(ex);
	stages_forget(ex);
	assert_string_equal(seen, "watch:over last:over last:forget ");
}

/* -- bodies -------------------------------------------------------------------------------- */

/* What nobody wants goes on as it is: the very same bytes. */
static void test_unwanted(void **state)
{
	struct exchange *ex = fresh(STAGE_OVER);

	(void)state;
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_NEXT);
	assert_string_equal(seen, "");
	assert_string_equal(passed, "a|");
	forget(ex);
}

static void test_bodies(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_NEXT);

	(void)state;
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_NEXT);
	assert_string_equal(seen, "watch:a gate:a last:a ");
	assert_string_equal(passed, "a|");
	forget(ex);
	ex = fresh_bodies(STAGE_OVER);
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_OVER);
	assert_string_equal(seen, "watch:a gate:a ");
	assert_string_equal(passed, "");
	forget(ex);
	/* The other way round. */
	ex = fresh_bodies(STAGE_NEXT);
	assert_int_equal(body(ex, WAY_RESPONSE, "b", true), STAGE_NEXT);
	assert_string_equal(seen, "last:b gate:b. watch:b ");
	assert_string_equal(passed, "b.");
	forget(ex);
}

static enum stage_result does_double(struct piece *piece)
{
	for (size_t i = 0; i < piece->len; i++)
		for (int twice = 0; twice < 2; twice++)
			buf_append(piece->out, piece->data + i, 1);
	return STAGE_REPLACED;
}

/* Who stands behind sees what was made of it; who stands before does not. */
static void test_replaced(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_NEXT);

	(void)state;
	gate_does = does_double;
	assert_int_equal(body(ex, WAY_REQUEST, "abc", false), STAGE_NEXT);
	assert_int_equal(body(ex, WAY_REQUEST, "d", true), STAGE_NEXT);
	assert_string_equal(passed, "aabbcc|dd.");
	assert_string_equal(seen, "watch:abc gate:abc last:aabbcc watch:d gate:d. last:dd ");
	assert_true(ex->bodies[WAY_REQUEST].resized);
	forget(ex);
}

static enum stage_result does_drop(struct piece *piece)
{
	(void)piece;
	return STAGE_REPLACED;
}

/* The end comes through, whatever becomes of the bytes. */
static void test_dropped(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_NEXT);
	struct fields trailers = { 0 };

	(void)state;
	gate_does = does_drop;
	assert_int_equal(body(ex, WAY_REQUEST, "abc", false), STAGE_NEXT);
	assert_string_equal(passed, "");
	assert_int_equal(stages_body(ex, WAY_REQUEST, &(struct piece){ .end = true, .trailers = &trailers }),
			 STAGE_NEXT);
	assert_string_equal(passed, ".+");
	forget(ex);
}

/* Passes words with their space, and wants to see the rest with what comes. */
static enum stage_result does_words(struct piece *piece)
{
	while (piece->used && piece->data[piece->used - 1] != ' ')
		piece->used--;
	return STAGE_NEXT;
}

static void test_withheld(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_NEXT);

	(void)state;
	gate_does = does_words;
	assert_int_equal(body(ex, WAY_RESPONSE, "one tw", false), STAGE_NEXT);
	assert_int_equal(stages_body_withheld(ex), 2);
	assert_int_equal(body(ex, WAY_RESPONSE, "o", false), STAGE_NEXT);
	assert_int_equal(body(ex, WAY_RESPONSE, " th", false), STAGE_NEXT);
	assert_string_equal(passed, "one |two |");
	/* At the end it is done with all of it. */
	assert_int_equal(body(ex, WAY_RESPONSE, "ree", true), STAGE_NEXT);
	assert_string_equal(passed, "one |two |three.");
	assert_string_equal(seen, "last:one tw gate:one tw watch:one  last:o gate:two last: th gate:two th watch:two  "
				  "last:ree gate:three. watch:three ");
	assert_int_equal(stages_body_withheld(ex), 0);
	forget(ex);
}

static enum stage_result does_keep(struct piece *piece)
{
	piece->used = 0;
	return STAGE_NEXT;
}

/* Nobody keeps back more than there is room for, and what nobody has seen does not pass. */
static void test_withheld_bound(void **state)
{
	static char much[NP_WITHHELD_BYTES];
	struct exchange *ex = fresh_bodies(STAGE_NEXT);

	(void)state;
	gate_does = does_keep;
	ex->bodies[WAY_REQUEST].wanted = 1u << 2;
	assert_int_equal(stages_body(ex, WAY_REQUEST, &(struct piece){ .data = much, .len = sizeof(much) }),
			 STAGE_NEXT);
	assert_int_equal(stages_body_withheld(ex), sizeof(much));
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_OVER);
	assert_string_equal(stopped, "46: the body does not fit into stage gate");
	assert_string_equal(passed, "");
	ex->response = RESPONSE_GOES;
	forget(ex);
}

static enum stage_result does_too_much(struct piece *piece)
{
	static char much[NP_BACKLOG_HIGH];

	for (int i = 0; i < 3; i++)
		buf_append(piece->out, much, sizeof(much));
	return STAGE_REPLACED;
}

static enum stage_result does_nothing(struct piece *piece)
{
	piece->used = 0;
	return STAGE_MORE;
}

static void test_failed(void **state)
{
	static enum stage_result (*const ways[])(struct piece *) = { does_too_much, does_nothing };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct exchange *ex = fresh_bodies(STAGE_NEXT);

		gate_does = ways[i];
		ex->response = RESPONSE_GOES;
		assert_int_equal(body(ex, WAY_RESPONSE, "a", false), STAGE_OVER);
		assert_string_equal(stopped, "94: the body does not fit into stage gate");
		assert_string_equal(passed, "");
		forget(ex);
	}
}

/* One that may only answer has no way to change it; and who has begun to pass a body cannot hold it. */
static void test_role(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_HELD);

	(void)state;
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_OVER);
	assert_string_equal(stopped, "46: the body does not fit into stage gate");
	forget(ex);
	ex = fresh_bodies(STAGE_NEXT);
	last_says = STAGE_REPLACED;
	assert_int_equal(body(ex, WAY_REQUEST, "a", false), STAGE_OVER);
	assert_string_equal(stopped, "46: the body does not fit into stage last");
	assert_string_equal(passed, "");
	forget(ex);
}

/* A byte at a time, eight of each. */
static enum stage_result does_inflate(struct piece *piece)
{
	if (!piece->len)
		return STAGE_REPLACED;
	for (int i = 0; i < 8; i++)
		buf_append(piece->out, piece->data, 1);
	piece->used = 1;
	return piece->len > 1 ? STAGE_MORE : STAGE_REPLACED;
}

/* What it makes is taken at the other side's pace; what comes meanwhile waits behind it, and so does the end. */
static void test_more(void **state)
{
	struct exchange *ex = fresh_bodies(STAGE_NEXT);
	struct fields trailers = { 0 };

	(void)state;
	gate_does = does_inflate;
	room = 10;
	assert_int_equal(body(ex, WAY_RESPONSE, "abcd", false), STAGE_NEXT);
	assert_string_equal(passed, "aaaaaaaa|bbbbbbbb|");
	assert_true(stages_body_due(ex, WAY_RESPONSE));
	assert_int_equal(stages_body(ex, WAY_RESPONSE,
				     &(struct piece){ .data = "e", .len = 1, .end = true, .trailers = &trailers }),
			 STAGE_NEXT);
	assert_int_equal(stages_body_withheld(ex), 3);
	assert_int_equal(stages_body_more(ex, WAY_RESPONSE), STAGE_NEXT); /* there is no room */
	assert_string_equal(passed, "aaaaaaaa|bbbbbbbb|");
	room = 1;
	assert_int_equal(stages_body_more(ex, WAY_RESPONSE), STAGE_NEXT);
	assert_string_equal(passed, "aaaaaaaa|bbbbbbbb|cccccccc|");
	room = SIZE_MAX;
	assert_int_equal(stages_body_more(ex, WAY_RESPONSE), STAGE_NEXT);
	assert_string_equal(passed, "aaaaaaaa|bbbbbbbb|cccccccc|dddddddd|eeeeeeee.+");
	assert_false(stages_body_due(ex, WAY_RESPONSE));
	forget(ex);
}

/* A stage that comes to see the request late, because another one held it, sees all of it from its beginning. */
static void test_late(void **state)
{
	struct exchange *ex = fresh(STAGE_HELD);

	(void)state;
	stage_wants(ex, &gate, WAY_REQUEST, WANT_LOOK);
	stage_wants(ex, &last, WAY_REQUEST, WANT_LOOK);
	assert_int_equal(stages_go_on(ex), STAGE_HELD);
	says = STAGE_NEXT;
	assert_int_equal(body(ex, WAY_REQUEST, "ab", false), STAGE_NEXT);
	assert_int_equal(body(ex, WAY_REQUEST, "c", true), STAGE_NEXT);
	assert_string_equal(seen, "first watch gate gate:ab gate:c. "); /* who holds it sees what comes */
	passed[0] = '\0';
	assert_int_equal(stages_go_on(ex), STAGE_NEXT);
	assert_string_equal(seen, "first watch gate gate:ab gate:c. last last:abc ");
	assert_string_equal(passed, "abc.");
	forget(ex);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),	 cmocka_unit_test(test_answered),	cmocka_unit_test(test_held),
		cmocka_unit_test(test_response), cmocka_unit_test(test_rejudge),	cmocka_unit_test(test_connect),
		cmocka_unit_test(test_over),	 cmocka_unit_test(test_unwanted),	cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_replaced), cmocka_unit_test(test_dropped),	cmocka_unit_test(test_withheld),
		cmocka_unit_test(test_failed),	 cmocka_unit_test(test_role),		cmocka_unit_test(test_more),
		cmocka_unit_test(test_late),	 cmocka_unit_test(test_withheld_bound),
	};

	return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
