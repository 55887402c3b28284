/* SPDX-License-Identifier: MIT */
/* Whole exchanges, with HTTP/1.1 and HTTP/2 on either side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

const struct stage *const stages[] = {
	&stage_place, &stage_judge, &stage_capture, &stage_rewrite, &stage_upstream, &stage_report, NULL,
};

static const char *origin_of(bool h2)
{
	return h2 ? "h2.test" : "origin.test";
}

/* To the origin in the version that is wanted: without TLS only HTTP/1.1 is spoken there. */
static struct peer *client_between(bool near_h2, bool far_h2)
{
	return near_h2 || far_h2 ? client_tls(origin_of(far_h2), near_h2) : client_plain("origin.test");
}

static void test_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/a?b", 3);
		struct talk *heard;

		send_body(client, asked, "ask", 3);
		send_end(client, asked, NULL);
		settle();
		origin = &fars[n_fars - 1].peer;
		assert_int_equal(n_fars, i < 3 ? i + 1 : 3); /* the last one has a stream beside the one before it */
		assert_true(!!origin->h2 == !!(i & 2));
		heard = &origin->talks[origin->n - 1];
		assert_string_equal(heard->words, "POST /a?b len=3 end ");
		assert_body(heard, "ask");
		answer_with(origin, heard, 200, 6, "x-thing", "kept");
		send_body(origin, heard, "answer", 6);
		send_end(origin, heard, NULL);
		settle();
		assert_string_equal(asked->words, "200 len=6 end ");
		assert_string_equal(talk_field(asked, "x-thing"), "kept");
		assert_body(asked, "answer");
		pass_ms(50);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, NP_R_RULE_ALLOWS);
		assert_int_equal(reports[i].request.status, 200);
		assert_int_equal(reports[i].request.sent, 3);
		assert_int_equal(reports[i].request.received, 6);
		assert_string_equal(reports[i].request.place, "test.yaml:18");
		assert_string_equal(reports[i].method, "POST");
		assert_string_equal(reports[i].url, i == 0  ? "http://origin.test/a?b"
						    : i & 2 ? "https://h2.test/a?b"
							    : "https://origin.test/a?b");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_both_ways),
	};

	return cmocka_run_group_tests_name("worker_exchange", tests, NULL, NULL);
}
