/* SPDX-License-Identifier: MIT */
/* Frames of deciders: what is one, and all that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decider/frame.c"

static struct frame frame;

static const char *problem_of(const char *line)
{
	const char *problem = NULL;

	return frame_read(line, strlen(line), &frame, &problem) < 0 ? problem : NULL;
}

#define ANSWER(rest) "{\"type\":\"answer\",\"id\":7," rest "}"

static void test_frames_that_are(void **state)
{
	(void)state;
	assert_null(problem_of("{\"type\":\"hello\",\"version\":1}"));
	assert_int_equal(frame.type, FRAME_HELLO);
	assert_null(problem_of(" " ANSWER("\"answer\":\"allow\"") "\r"));
	assert_int_equal(frame.type, FRAME_ANSWER);
	assert_int_equal(frame.decision.id, 7);
	assert_int_equal(frame.decision.kind, DECISION_ALLOW);
	assert_int_equal(frame.decision.remember, REMEMBER_NONE);
	assert_null(problem_of(ANSWER("\"answer\":\"deny\",\"reason\":\"n\\u00f6\",\"remember\":\"host\",\"ttl\":60")));
	assert_int_equal(frame.decision.remember, REMEMBER_HOST);
	assert_int_equal(frame.decision.ttl_s, 60);
	assert_string_equal(frame.decision.words, "n\u00f6");
	assert_null(problem_of(ANSWER("\"answer\":\"ask\"")));
	assert_null(problem_of(ANSWER("\"answer\":\"raise\",\"level\":\"SECRET\",\"reason\":\"r\"")));
	assert_int_equal(frame.decision.level, LEVEL_SECRET);
	assert_int_equal(frame.decision.max, 0);
	assert_null(problem_of(ANSWER("\"answer\":\"need_body\",\"max\":4096")));
	assert_int_equal(frame.decision.kind, DECISION_NEED_BODY);
	assert_int_equal(frame.decision.max, NP_DECIDE_BODY);
	assert_true(decision_is_valid(&frame.decision));
}

static void test_frames_that_are_not(void **state)
{
	static const char *const lines[] = {
		"",
		"allow",
		"[]",
		"{}",
		"null",
		"{\"type\":\"hello\"}",
		"{\"type\":\"hello\",\"version\":2}",
		"{\"type\":\"hello\",\"version\":\"1\"}",
		"{\"type\":\"hello\",\"version\":1,\"more\":1}",
		"{\"type\":\"hello\",\"version\":1}{}",
		"{\"type\":\"decide\",\"id\":7}",
		"{\"type\":7}",
		ANSWER("\"answer\":\"yes\""),
		ANSWER("\"answer\":true"),
		ANSWER("\"answer\":null"),
		ANSWER("\"answer\":\"ALLOW\""),
		ANSWER("\"answer\":\"allow\",\"answer\":\"allow\""),
		ANSWER("\"answer\":\"allow\",\"surprise\":0"),
		ANSWER("\"answer\":\"allow\",\"reason\":null"),
		ANSWER("\"answer\":\"allow\",\"reason\":\"\\u0000\""),
		ANSWER("\"answer\":\"allow\",\"level\":\"SECRET\""),
		ANSWER("\"answer\":\"raise\""),
		ANSWER("\"answer\":\"raise\",\"level\":\"HIGH\""),
		ANSWER("\"answer\":\"raise\",\"level\":\"SECRET\",\"remember\":\"host\""),
		ANSWER("\"answer\":\"ask\",\"remember\":\"host\""),
		ANSWER("\"answer\":\"deny\",\"remember\":\"ever\""),
		ANSWER("\"answer\":\"deny\",\"ttl\":5"),
		ANSWER("\"answer\":\"need_body\""),
		ANSWER("\"answer\":\"need_body\",\"max\":0"),
		ANSWER("\"answer\":\"need_body\",\"max\":-1"),
		ANSWER("\"answer\":\"need_body\",\"max\":4097"),
		ANSWER("\"answer\":\"need_body\",\"max\":\"64\""),
		ANSWER("\"answer\":\"need_body\",\"max\":64,\"reason\":\"r\""),
		ANSWER("\"answer\":\"need_body\",\"max\":64,\"remember\":\"host\""),
		ANSWER("\"answer\":\"need_body\",\"max\":64,\"level\":\"SECRET\""),
		ANSWER("\"answer\":\"allow\",\"max\":64"),
		ANSWER("\"answer\":\"deny\",\"remember\":\"none\",\"ttl\":5"),
		ANSWER("\"answer\":\"deny\",\"remember\":\"host\",\"ttl\":0"),
		ANSWER("\"answer\":\"deny\",\"remember\":\"host\",\"ttl\":86401"),
		ANSWER("\"answer\":\"deny\",\"remember\":\"host\",\"ttl\":1.5"),
		"{\"type\":\"answer\",\"answer\":\"allow\"}",
		"{\"type\":\"answer\",\"id\":0,\"answer\":\"allow\"}",
		"{\"type\":\"answer\",\"id\":-7,\"answer\":\"allow\"}",
		"{\"type\":\"answer\",\"id\":\"7\",\"answer\":\"allow\"}",
		"{\"type\":\"answer\",\"id\":7.0,\"answer\":\"allow\"}",
		"{\"type\":\"answer\",\"id\":99999999999999999999,\"answer\":\"allow\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!problem_of(lines[i]))
			fail_msg("taken: %s", lines[i]);
	assert_int_not_equal(frame_read("{\"type\":\"hello\0\",\"version\":1}", 30, &frame, &(const char *){ NULL }),
			     0);
}

static void test_words_are_harmless(void **state)
{
	char line[4096];

	(void)state;
	assert_null(
		problem_of(ANSWER("\"answer\":\"deny\",\"reason\":\"a\\u001b[2J\\u202eb\\r\\nc\\u009bd\\u200be\"")));
	assert_string_equal(frame.decision.words, "a?[2J?b??c?d?e");
	snprintf(line, sizeof(line), ANSWER("\"answer\":\"deny\",\"reason\":\"%0*d\u00f6\u00f6\""), 235, 0);
	assert_null(problem_of(line));
	assert_int_equal(strlen(frame.decision.words), 239); /* it fits */
	snprintf(line, sizeof(line), ANSWER("\"answer\":\"deny\",\"reason\":\"%0*d\u00f6\u00f6\u00f6\""), 234, 0);
	assert_null(problem_of(line));
	assert_true(text_is_printable(frame.decision.words, sizeof(frame.decision.words)));
	assert_string_equal(frame.decision.words + 234, "\u00f6...");
}

static void test_each_is_answered_once(void **state)
{
	static struct unanswered all;

	(void)state;
	for (uint64_t id = 1; id <= NP_DECIDER_UNANSWERED; id++)
		assert_int_equal(unanswered_add(&all, id * 3), 0);
	assert_int_equal(unanswered_add(&all, 100000), -E2BIG);
	assert_int_equal(unanswered_add(&all, 3), -EPROTO);
	assert_false(unanswered_take(&all, 4));
	assert_false(unanswered_take(&all, 0));
	assert_false(unanswered_take(&all, UINT64_MAX));
	assert_true(unanswered_take(&all, 6));
	assert_false(unanswered_take(&all, 6));
	for (uint64_t id = NP_DECIDER_UNANSWERED; id; id--)
		assert_int_equal(unanswered_take(&all, id * 3), id != 2);
	assert_int_equal(all.n, 0);
	assert_false(unanswered_take(&all, 3));
}

static void test_a_body_is_needed_once(void **state)
{
	static struct unanswered all;

	(void)state;
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(unanswered_add(&all, id), 0);
	assert_false(unanswered_need_body(&all, 4));
	assert_true(unanswered_need_body(&all, 2));
	assert_false(unanswered_need_body(&all, 2));
	assert_true(unanswered_take(&all, 1));
	assert_false(unanswered_need_body(&all, 1)); /* it is answered */
	assert_false(unanswered_need_body(&all, 2)); /* what moves up is what it was */
	assert_true(unanswered_need_body(&all, 3));
	assert_true(unanswered_take(&all, 2));
	assert_true(unanswered_take(&all, 3));
	assert_int_equal(unanswered_add(&all, 5), 0);
	assert_true(unanswered_need_body(&all, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_that_are),	      cmocka_unit_test(test_frames_that_are_not),
		cmocka_unit_test(test_words_are_harmless),    cmocka_unit_test(test_each_is_answered_once),
		cmocka_unit_test(test_a_body_is_needed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
