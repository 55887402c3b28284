/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/ask_model.c"

static struct ask_model ask;

static int start(void **state)
{
	(void)state;
	ask = (struct ask_model){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	ask_model_free(&ask);
	return 0;
}

#define QUESTION(id, session, state) \
	"{\"id\":\"" id "\",\"session\":\"" session "\",\"state\":\"" state "\",\"domain\":\"x.test\"}"

static void shows(const char *id)
{
	assert_string_equal(ask.shown ? ask_id(ask.shown) : "", id);
}

static void test_sessions_take_turns(void **state)
{
	(void)state;
	ask_take_line(&ask, QUESTION("1", "a/x", "pending"));
	ask_take_line(&ask, QUESTION("2", "a/x", "pending"));
	ask_take_line(&ask, QUESTION("3", "b/y", "pending"));
	shows("1");
	assert_int_equal(ask_key(&ask, 'n'), ASK_NOTHING);
	shows("3");
	ask_key(&ask, 'n');
	shows("1");
	ask_take_line(&ask, QUESTION("3", "b/y", "expired"));
	ask_key(&ask, '\t');
	shows("2");
}

static void test_what_is_over_goes_and_is_said(void **state)
{
	(void)state;
	ask_take_line(&ask, QUESTION("1", "a/x", "pending"));
	ask_take_line(&ask, QUESTION("2", "a/x", "pending"));
	ask_take_line(&ask, QUESTION("1", "a/x", "expired"));
	assert_string_equal(ask.message, "1 is over: nobody answered in time");
	shows("2");
	ask_take_line(&ask, "{\"id\":\"2\",\"state\":\"denied\",\"answer\":\"deny\",\"answered_by\":\"bob\"}");
	assert_string_equal(ask.message, "2 was answered deny by bob");
	assert_null(ask.shown);
	assert_int_equal(ask.n, 0);
}

/* While a reason is written nothing takes its place: sending it says what became of it. */
static void test_what_is_being_answered_stays(void **state)
{
	(void)state;
	ask_take_line(&ask, QUESTION("1", "a/x", "pending"));
	ask_take_line(&ask, QUESTION("2", "b/y", "pending"));
	ask_key(&ask, 'h');
	ask_key(&ask, 'w');
	assert_true(ask.stage == ASK_REASON && !strcmp(ask.answer, "host") && !strcmp(ask.reason, "w"));
	ask_take_line(&ask, QUESTION("1", "a/x", "expired"));
	shows("1");
	ask_take_line(&ask, "+");
	shows("1");
	assert_int_equal(ask_key(&ask, '\r'), ASK_SEND);
	assert_int_equal(ask_key(&ask, KEY_ESCAPE), ASK_RENEW);
	assert_true(ask.stage == ASK_LOOK && !ask.reason_len);
}

static void test_each_key(void **state)
{
	static const struct {
		char key;
		const char *of_request, *of_run;
	} keys[] = { { 'd', "deny", "deny" },	{ 'o', "once", "once" }, { 'h', "host", NULL }, { 'm', "domain", NULL },
		     { 'a', "always", "once" }, { 'r', NULL, "deny" },	 { 'x', NULL, NULL },	{ 'D', NULL, NULL } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		for (int run = 0; run < 2; run++) {
			const char *wanted = run ? keys[i].of_run : keys[i].of_request;

			ask_model_free(&ask);
			ask = (struct ask_model){ 0 };
			ask_take_line(&ask, run ? "{\"id\":\"run-1\",\"state\":\"pending\",\"run\":1}"
						: QUESTION("1", "a/x", "pending"));
			assert_int_equal(ask_key(&ask, keys[i].key), ASK_NOTHING);
			assert_int_equal(ask.stage, wanted ? ASK_REASON : ASK_LOOK);
			if (wanted)
				assert_string_equal(ask.answer, wanted);
		}
	}
	/* A host that has no domain of one owner gets no answer for its domain. */
	ask_model_free(&ask);
	ask = (struct ask_model){ 0 };
	ask_take_line(&ask, "{\"id\":\"1\",\"state\":\"pending\"}");
	ask_key(&ask, 'm');
	assert_true(ask.stage == ASK_LOOK && strstr(ask.message, "no domain"));
}

static void test_without_a_question_no_key_answers(void **state)
{
	(void)state;
	for (int key = 0; key < 128; key++) {
		ask.over = false;
		assert_int_equal(ask_key(&ask, (char)key), ASK_NOTHING);
		assert_int_equal(ask.stage, ASK_LOOK);
		assert_int_equal(ask.over, key == 'q' || key == 3 || key == 4);
	}
}

static void test_a_reason_is_bounded_and_printable(void **state)
{
	char prompt[1024];

	(void)state;
	ask_take_line(&ask, QUESTION("1", "a/x", "pending"));
	ask_key(&ask, 'd');
	for (int i = 0; i < 2 * NP_REASON_TEXT_MAX; i++) {
		ask_key(&ask, (char)('a' + i % 26));
		ask_key(&ask, '\t');
		ask_key(&ask, (char)0x9b);
	}
	assert_int_equal(strlen(ask.reason), NP_REASON_TEXT_MAX - 1);
	assert_null(strpbrk(ask.reason, "\t\x9b"));
	/* Its end is seen, whatever the width. */
	for (size_t columns = 1; columns < 200; columns++) {
		ask_prompt_text(&ask, columns, prompt, sizeof(prompt));
		assert_int_equal(prompt[strlen(prompt) - 1], ask.reason[ask.reason_len - 1]);
		if (columns > 60)
			assert_true(strlen(prompt) < columns);
	}
	for (int i = 0; i < 2 * NP_REASON_TEXT_MAX; i++)
		ask_key(&ask, 127);
	assert_int_equal(ask.reason_len, 0);
	assert_int_equal(ask.stage, ASK_REASON);
}

static void test_the_clock(void **state)
{
	(void)state;
	ask_take_line(&ask, "{\"id\":\"1\",\"state\":\"pending\",\"waiting\":2,\"expires\":\"1970-01-01T00:10:00Z\","
			    "\"held_until\":\"1970-01-01T00:00:20Z\"}");
	ask_set_clock(&ask, 8);
	assert_string_equal(ask.clock, "9:52 left to answer; 2 wait, the first for 12 s more");
	ask_set_clock(&ask, 25);
	assert_string_equal(ask.clock, "9:35 left to answer; 2 wait");
	ask_set_clock(&ask, 5000);
	assert_string_equal(ask.clock, "0:00 left to answer; 2 wait");
	ask_key(&ask, 'd'); /* stands still while somebody answers */
	ask_set_clock(&ask, 8);
	assert_string_equal(ask.clock, "0:00 left to answer; 2 wait");
	ask_key(&ask, KEY_ESCAPE);
	ask_take_line(&ask, QUESTION("1", "a/x", "void"));
	ask_set_clock(&ask, 8);
	assert_string_equal(ask.clock, "");
}

static void test_lines_of_the_stream(void **state)
{
	(void)state;
	ask_take_line(&ask, QUESTION("1", "a/x", "pending"));
	ask_take_line(&ask, "-Connection refused");
	assert_true(ask.away && strstr(ask.message, "went away (Connection refused)"));
	ask_take_line(&ask, "+");
	assert_true(!ask.away && ask.n == 0);
	assert_false(ask.over);
	/* What is no question changes nothing. */
	ask_take_line(&ask, "{\"id\":");
	ask_take_line(&ask, "[]");
	ask_take_line(&ask, "");
	assert_int_equal(ask.n, 0);
	ask_take_line(&ask, "!{\"error\":\"forbidden\"}");
	assert_true(ask.over && ask.refused);
	assert_string_equal(ask.message, "{\"error\":\"forbidden\"}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sessions_take_turns),
		TEST(test_what_is_over_goes_and_is_said),
		TEST(test_what_is_being_answered_stays),
		TEST(test_each_key),
		TEST(test_without_a_question_no_key_answers),
		TEST(test_a_reason_is_bounded_and_printable),
		TEST(test_the_clock),
		TEST(test_lines_of_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
