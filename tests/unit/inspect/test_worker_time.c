/* SPDX-License-Identifier: MIT */
/* Exchanges that are sent once more, and those that take too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

const struct stage *const stages[] = {
	&stage_place, &stage_judge, &stage_capture, &stage_canonical, &stage_upstream, &stage_report, NULL,
};

/* -- once more ------------------------------------------------------------------------------------ */

/* A kept connection that its origin closed: what can be done twice goes by another one. */
static void test_kept_is_gone(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "GET", "/a", NO_BODY);

	(void)state;
	settle();
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	asked = ask(client, "PUT", "/b", 3);
	send_body(client, asked, "ask", 3);
	send_end(client, asked, NULL);
	fars[0].peer.end.deaf = true;
	settle();
	end_close(&fars[0].peer.end);
	settle();
	assert_int_equal(n_fars, 2);
	assert_string_equal(fars[1].peer.talks[0].words, "PUT /b len=3 end ");
	assert_body(&fars[1].peer.talks[0], "ask");
	answer(&fars[1].peer, &fars[1].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked->words, "204 end ");
}

static void test_stream_refused(void **state)
{
	struct peer *client = client_tls("h2.test", true);
	struct talk *asked = ask(client, "POST", "/", 3);

	(void)state;
	send_body(client, asked, "ask", 3);
	send_end(client, asked, NULL);
	settle();
	h2_reset(fars[0].peer.talks[0].stream, H2_REFUSED_STREAM);
	settle();
	assert_int_equal(n_fars, 2);
	assert_string_equal(fars[1].peer.talks[0].words, "POST / len=3 end ");
	assert_body(&fars[1].peer.talks[0], "ask");
	h2_reset(fars[1].peer.talks[0].stream, H2_HTTP_1_1_REQUIRED);
	settle();
	assert_int_equal(n_fars, 3); /* ALPN is not spoken here: that it was asked for once more is what counts */
	h2_reset(fars[2].peer.talks[0].stream, H2_CANCEL);
	settle();
	assert_memory_equal(asked->words, "502 ", 4);
}

/* -- time --------------------------------------------------------------------------------------------- */

static void test_times_out(void **state)
{
	struct peer *client = client_plain("small.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	pass_ms(900);
	assert_int_equal(n_reports, 0);
	pass_ms(200);
	assert_memory_equal(asked->words, "504 ", 4);
	assert_report(NP_R_TIMED_OUT, 504, "http://small.test/");
	assert_string_equal(reports[0].request.text, "nothing for 1 s (first_byte)");

	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	answer(&fars[1].peer, &fars[1].peer.talks[0], 200, 10);
	send_body(&fars[1].peer, &fars[1].peer.talks[0], "half", 4);
	settle();
	pass_ms(2100);
	assert_int_equal(n_reports, 2);
	assert_int_equal(reports[1].request.reason, NP_R_TIMED_OUT);
	assert_string_equal(reports[1].request.text, "nothing for 2 s (idle)");
	assert_true(client->eof && !asked->ended);
}

static void test_connect_times_out(void **state)
{
	struct peer *client = client_plain("small.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	dial_fate = DIAL_HANGS;
	settle();
	pass_ms(1000 + NP_RESOLVE_MS + 50);
	assert_memory_equal(asked->words, "504 ", 4);
	assert_string_equal(the_report()->request.text, "nothing for 1 s (connect)");
}

static void test_dial_fails(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	dial_fate = DIAL_FAILS;
	settle();
	assert_memory_equal(asked->words, "502 ", 4);
	assert_report(NP_R_ORIGIN_UNREACHABLE, 502, "http://origin.test/");
}

/* Without an exchange a connection is kept for a while, no longer. */
static void test_idle(void **state)
{
	struct peer *client = client_plain("origin.test");

	(void)state;
	ask(client, "GET", "/", NO_BODY);
	settle();
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	pass_ms(NP_IDLE_MS - 1000);
	assert_false(client->eof || fars[0].peer.eof);
	pass_ms(2000);
	assert_true(client->eof && fars[0].peer.eof);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_kept_is_gone),	    world_test(test_stream_refused), world_test(test_times_out),
		world_test(test_connect_times_out), world_test(test_dial_fails),     world_test(test_idle),
	};

	return cmocka_run_group_tests_name("worker_time", tests, NULL, NULL);
}
