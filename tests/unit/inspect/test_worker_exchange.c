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
		origin = last_asked;
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

/* -- what it says itself ------------------------------------------------------------------- */

static void test_refused(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = h2 ? client_tls("bad.test", true) : client_plain("bad.test");
		struct talk *asked = ask(client, "GET", "/a", NO_BODY);

		settle();
		assert_memory_equal(asked->words, "403 len=", 8);
		assert_true(asked->ended);
		assert_string_equal(talk_field(asked, "x-netpawl-reason"), "rule_denies");
		assert_non_null(strstr(asked->body.data, "\"rule\":\"test.yaml:3\""));
		assert_int_equal(n_reports, h2 + 1);
		assert_int_equal(reports[h2].request.reason, NP_R_RULE_DENIES);
		assert_int_equal(reports[h2].request.status, 403);
		assert_string_equal(reports[h2].request.place, "test.yaml:3");
		assert_int_equal(reports[h2].request.rung.level, LEVEL_INTERNAL);
		assert_int_equal(reports[h2].request.rung.generation, generation);
	}
	assert_int_equal(n_fars, 0);
}

/* The rest of a refused request is read and forgotten, and the connection serves the next one. */
static void test_refused_body(void **state)
{
	struct peer *client = client_plain("get.test");
	struct talk *asked = ask(client, "POST", "/a", CHUNKED);

	(void)state;
	settle();
	assert_string_equal(talk_field(asked, "x-netpawl-reason"), "not_in_policy");
	for (int i = 0; i < 100; i++)
		send_body(client, asked, (char[4096]){ 0 }, 4096);
	send_end(client, asked, NULL);
	settle();
	asked = ask(client, "GET", "/b", NO_BODY);
	settle();
	assert_int_equal(n_fars, 1);
	assert_string_equal(fars[0].peer.talks[0].words, "GET /b end ");
}

static void test_unread_head(void **state)
{
	struct peer *client = client_plain("origin.test");

	(void)state;
	say(client, "GET /a HTTP/1.1\r\nHost: origin.test\r\nHost: bad.test\r\n\r\n");
	talk_new(client);
	settle();
	assert_non_null(strstr(client->raw.data, "HTTP/1.1 400 "));
	assert_true(client->eof);
	assert_int_equal(the_report()->request.reason, NP_R_BAD_HTTP);
	assert_int_equal(n_fars, 0);
}

static void test_other_host(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_tls("origin.test", h2);
		struct talk *asked;

		snprintf(client->host, sizeof(client->host), "h2.test");
		asked = ask(client, "GET", "/", NO_BODY);
		settle();
		assert_memory_equal(asked->words, "421 ", 4);
		assert_int_equal(reports[h2].request.reason, NP_R_HOST_MISMATCH);
	}
}

static void test_route_refused(void **state)
{
	struct peer *client = client_plain("loop.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	assert_memory_equal(asked->words, "403 ", 4);
	assert_report(NP_R_ADDRESS_REFUSED, 403, "http://loop.test/");
	assert_string_equal(reports[0].request.address, "127.0.0.1");
	assert_int_equal(n_fars, 0);
}

static void test_body_bound(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct peer *client = client_plain("small.test");
		struct talk *asked = ask(client, "POST", "/", known ? 65 : CHUNKED);

		if (!known) {
			settle();
			assert_string_equal(fars[0].peer.talks[0].words, "POST / ");
			send_body(client, asked, (char[65]){ 0 }, 65);
		}
		settle();
		assert_memory_equal(asked->words, "413 ", 4);
		assert_int_equal(reports[known].request.reason, NP_R_BODY_TOO_LARGE);
	}
	assert_int_equal(n_fars, 1);
	assert_true(fars[0].peer.eof); /* who got the first of it does not take it for the whole */
	assert_false(fars[0].peer.talks[0].ended);
}

static void test_captured(void **state)
{
	struct peer *client = client_plain("seen.test");
	struct talk *asked = ask_with(client, "POST", "/", 3, "x-token", "hush"), *heard;

	(void)state;
	send_body(client, asked, "ask", 3);
	send_end(client, asked, NULL);
	settle();
	heard = &fars[0].peer.talks[0];
	answer(&fars[0].peer, heard, 103, NO_BODY);
	answer_with(&fars[0].peer, heard, 200, 2, "x-final", "1");
	send_body(&fars[0].peer, heard, "ok", 2);
	send_end(&fars[0].peer, heard, NULL);
	settle();
	assert_string_equal(asked->words, "103 200 len=2 end ");
	pass_ms(50);
	assert_string_equal(the_report()->tails[LINK_REQUEST_HEADERS], "x-token: (redacted)\n");
	assert_string_equal(the_report()->tails[LINK_REQUEST_BODY], "ask");
	assert_string_equal(the_report()->tails[LINK_RESPONSE_HEADERS], "x-final: 1\n");
	assert_string_equal(the_report()->tails[LINK_RESPONSE_BODY], "ok");
}

/* -- its parts -------------------------------------------------------------------------------- */

static void test_continue(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask_with(client, "PUT", "/", 3, "expect", ""), *heard;

		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		assert_string_equal(heard->words, "PUT / len=3 expects ");
		answer(origin, heard, 100, NO_BODY);
		settle();
		assert_string_equal(asked->words, "100 ");
		send_body(client, asked, "ask", 3);
		send_end(client, asked, NULL);
		settle();
		assert_body(heard, "ask");
		answer(origin, heard, 204, NO_BODY);
		settle();
		assert_string_equal(asked->words, "100 204 end ");
	}
}

static void test_trailers(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", CHUNKED), *heard;

		send_body(client, asked, "ask", 3);
		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		send_end(client, asked, "x-sum");
		settle();
		assert_string_equal(heard->words, "POST / end x-sum=1 ");
		answer(origin, heard, 200, CHUNKED);
		send_body(origin, heard, "answer", 6);
		send_end(origin, heard, "x-end");
		settle();
		assert_string_equal(asked->words, "200 end x-end=1 ");
		assert_body(asked, "answer");
	}
}

/* Trailers that came before there was an origin to have them. */
static void test_trailers_early(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "POST", "/", CHUNKED);

	(void)state;
	send_body(client, asked, "ask", 3);
	send_end(client, asked, "x-sum");
	settle();
	assert_string_equal(fars[0].peer.talks[0].words, "POST / end x-sum=1 ");
	assert_body(&fars[0].peer.talks[0], "ask");
}

static void test_no_body(void **state)
{
	struct peer *client = client_plain("origin.test"), *origin;
	struct talk *asked = ask(client, "HEAD", "/", NO_BODY);

	(void)state;
	settle();
	origin = &fars[0].peer;
	say(origin, "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n");
	settle();
	assert_string_equal(asked->words, "200 len=7 end ");
	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	h1_next(origin->h1);
	peer_read_h1(origin);
	say(origin, "HTTP/1.1 304 Not Modified\r\n\r\n");
	settle();
	assert_string_equal(asked->words, "304 end ");
	assert_int_equal(n_fars, 1); /* by a kept connection */
}

/* HTTP/1.0: the end of the connection is the end of the body. */
static void test_until_close(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	say(&fars[0].peer, "HTTP/1.0 200 OK\r\n\r\nall of it");
	settle();
	assert_string_equal(asked->words, "200 ");
	end_close(&fars[0].peer.end);
	settle();
	assert_string_equal(asked->words, "200 end ");
	assert_body(asked, "all of it");
}

/* -- one faster than the other ------------------------------------------------------------------ */

#define MUCH (1500u << 10)

static void test_origin_is_slow(void **state)
{
	static char bytes[MUCH];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked, *heard;

		ends_small = true;
		asked = ask(client, "POST", "/", MUCH);
		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		origin->end.deaf = true;
		send_body(client, asked, bytes, MUCH);
		settle();
		assert_in_range(worker->memory.held, 64u << 10, 4 * NP_BACKLOG_HIGH);
		assert_int_equal(heard->body.len, 0);
		pass_ms(50);
		origin->end.deaf = false;
		send_end(client, asked, NULL);
		settle();
		assert_int_equal(heard->body.len, MUCH);
		assert_true(heard->ended);
		answer(origin, heard, 204, NO_BODY);
		settle();
		assert_string_equal(asked->words, "204 end ");
	}
}

static void test_client_is_slow(void **state)
{
	static char bytes[MUCH];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "GET", "/", NO_BODY), *heard;

		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		client->end.deaf = true;
		answer(origin, heard, 200, MUCH);
		send_body(origin, heard, bytes, MUCH);
		settle();
		assert_in_range(worker->memory.held, 1, 4 * NP_BACKLOG_HIGH);
		pass_ms(50);
		client->end.deaf = false;
		send_end(origin, heard, NULL);
		settle();
		assert_int_equal(asked->body.len, MUCH);
		assert_true(asked->ended);
	}
}

/* -- one side goes ------------------------------------------------------------------------------- */

static void test_client_goes(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", 10), *heard;

		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		send_body(client, asked, "half", 4);
		settle();
		end_reset(&client->end);
		settle();
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, NP_R_RULE_ALLOWS);
		assert_int_equal(reports[i].request.status, 0);
		assert_string_equal(reports[i].request.text, "the client went away");
		assert_false(heard->ended);
		if (i & 2)
			assert_non_null(strstr(heard->words, "reset:8 "));
		else
			assert_true(origin->eof);
	}
}

static void test_origin_goes(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		const bool begun = i & 4;
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", NO_BODY), *heard;

		settle();
		origin = last_asked;
		heard = &origin->talks[origin->n - 1];
		if (begun) {
			answer(origin, heard, 200, 10);
			send_body(origin, heard, "half", 4);
			settle();
		}
		end_close(&origin->end);
		settle();
		pass_ms(50);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, begun ? NP_R_RESPONSE_BROKEN : NP_R_ORIGIN_UNREACHABLE);
		if (!begun)
			assert_memory_equal(asked->words, "502 ", 4);
		else if (i & 1)
			assert_string_equal(asked->words, "200 len=10 reset:2 ");
		else
			assert_true(client->eof && !asked->ended);
	}
}

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
		world_test(test_both_ways),	 world_test(test_refused),	  world_test(test_refused_body),
		world_test(test_unread_head),	 world_test(test_other_host),	  world_test(test_route_refused),
		world_test(test_body_bound),	 world_test(test_captured),	  world_test(test_continue),
		world_test(test_trailers),	 world_test(test_trailers_early), world_test(test_no_body),
		world_test(test_until_close),	 world_test(test_origin_is_slow), world_test(test_client_is_slow),
		world_test(test_client_goes),	 world_test(test_origin_goes),	  world_test(test_kept_is_gone),
		world_test(test_stream_refused), world_test(test_times_out),	  world_test(test_connect_times_out),
		world_test(test_dial_fails),	 world_test(test_idle),
	};

	return cmocka_run_group_tests_name("worker_exchange", tests, NULL, NULL);
}
