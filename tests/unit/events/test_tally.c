/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "events/tally.c"

static struct tally tally;
static struct buf out = { .max = 1 << 18 };

static int start(void **state)
{
	(void)state;
	tally = (struct tally){ 0 };
	return 0;
}

static void note(struct event event)
{
	tally_note(&tally, &event);
}

static void says(const char *line)
{
	buf_clear(&out);
	tally_describe(&tally, &out);
	assert_int_equal(buf_error(&out), 0);
	if (!strstr(out.data, line))
		fail_msg("no \"%s\" in:\n%s", line, out.data);
}

static void test_requests_by_verdict_and_reason(void **state)
{
	(void)state;
	note((struct event){ .reason = NP_R_NOT_IN_POLICY, .url = "https://x.test/" });
	note((struct event){ .reason = NP_R_NOT_IN_POLICY, .url = "https://y.test/" });
	note((struct event){ .reason = NP_R_NOT_IN_POLICY, .query = "x.test" });
	note((struct event){ .reason = NP_R_NOT_IN_POLICY, .hook = NP_HOOK_CONNECT }); /* the gate counts its own */
	says("netpawl_requests_total{verdict=\"refuse\",reason=\"not_in_policy\"} 2\n");
	says("netpawl_dns_queries_total{verdict=\"refuse\",reason=\"not_in_policy\"} 1\n");
}

static void test_durations_are_those_of_answered_requests(void **state)
{
	(void)state;
	note((struct event){
		.reason = NP_R_RULE_ALLOWS, .method = "GET", .status = 200, .dns_us = 1000, .receive_us = 3000 });
	note((struct event){ .reason = NP_R_RULE_ALLOWS, .method = "CONNECT", .wait_us = 9 }); /* a tunnel */
	note((struct event){ .reason = NP_R_RULE_DENIES, .method = "GET", .status = 403, .wait_us = 9 });
	says("netpawl_request_duration_seconds_bucket{le=\"0.001\"} 0\n");
	says("netpawl_request_duration_seconds_bucket{le=\"0.005\"} 1\n");
	says("netpawl_request_duration_seconds_sum 0.004000000\n");
}

static void test_raises_and_what_they_cut_is_counted_once(void **state)
{
	(void)state;
	note((struct event){ .reason = NP_R_RAISED, .rung.level = 3, .cut = 2, .has_cut = 1, .applied_us = 42 });
	note((struct event){ .reason = NP_R_CUT, .cut = 2, .has_cut = 1 });
	says("netpawl_raises_total{level=\"SECRET\"} 1\n");
	says("netpawl_connections_cut_total 2\n");
	says("netpawl_raise_apply_seconds_bucket{le=\"0.0001\"} 1\n");
	says("netpawl_changes_total{kind=\"change\",reason=\"raised\"} 1\n");
}

static void test_a_level_that_does_not_exist_is_not_counted(void **state)
{
	(void)state;
	note((struct event){ .reason = NP_R_RAISED, .rung.level = 200 });
	note((struct event){ .reason = 4711 });
	says("netpawl_raises_total{level=\"SECRET\"} 0\n");
}

static void test_questions_end_once(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		note((struct event){ .reason = NP_R_QUESTION_ASKED });
	note((struct event){ .reason = NP_R_QUESTION_ANSWERED, .answer = "host", .waited_us = 2000000 });
	note((struct event){ .reason = NP_R_QUESTION_ENDED, .answer = "host" }); /* the answer is over */
	note((struct event){ .reason = NP_R_QUESTION_ANSWERED, .answer = "deny", .waited_us = 1 });
	note((struct event){ .reason = NP_R_QUESTION_ENDED, .waited_us = 600000000 });
	says("netpawl_questions_asked_total 3\n");
	says("netpawl_questions_total{outcome=\"allowed\"} 1\n");
	says("netpawl_questions_total{outcome=\"denied\"} 1\n");
	says("netpawl_questions_total{outcome=\"unanswered\"} 1\n");
	says("netpawl_question_wait_seconds_count 3\n");
}

static void test_what_was_not_written_is_counted(void **state)
{
	(void)state;
	note((struct event){ .reason = NP_R_NOT_IN_POLICY, .suppressed = 5 });
	note((struct event){ .reason = NP_R_SUPPRESSED, .suppressed = 2 });
	note((struct event){ .reason = NP_R_LOST, .suppressed = 3 });
	says("netpawl_events_suppressed_total 7\n");
	says("netpawl_events_lost_total 3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_requests_by_verdict_and_reason, start),
		cmocka_unit_test_setup(test_durations_are_those_of_answered_requests, start),
		cmocka_unit_test_setup(test_raises_and_what_they_cut_is_counted_once, start),
		cmocka_unit_test_setup(test_a_level_that_does_not_exist_is_not_counted, start),
		cmocka_unit_test_setup(test_questions_end_once, start),
		cmocka_unit_test_setup(test_what_was_not_written_is_counted, start),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_free(&out);
	return failed;
}
