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
	&stage_place, &stage_judge, &stage_capture, &stage_canonical, &stage_upstream, &stage_report, NULL,
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

/* -- many at once to a host that nobody knows yet ---------------------------------------------------------- */

static void ask_both(struct peer *client, struct talk *asked[2])
{
	asked[0] = ask(client, "GET", "/a", NO_BODY);
	asked[1] = ask(client, "GET", "/b", NO_BODY);
}

/* One of them dials: then each has a stream, or, of HTTP/1.1, a connection; once that is known, nobody waits. */
static void test_first_dials_for_all(void **state)
{
	struct talk *asked[2];

	(void)state;
	ask_both(client_tls("h2.test", true), asked);
	settle();
	assert_int_equal(n_fars, 1);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(fars[0].peer.talks[i].words, i ? "GET /b end " : "GET /a end ");
		answer(&fars[0].peer, &fars[0].peer.talks[i], 204, NO_BODY);
	}
	settle();
	assert_string_equal(asked[0]->words, "204 end ");
	assert_string_equal(asked[1]->words, "204 end ");
	ask_both(client_tls("origin.test", true), asked);
	settle();
	assert_int_equal(n_fars, 3);
	assert_string_equal(fars[1].peer.talks[0].words, "GET /a end ");
	assert_string_equal(fars[2].peer.talks[0].words, "GET /b end ");
	dial_fate = DIAL_HANGS;
	ask_both(client_tls("origin.test", true), asked);
	settle();
	assert_int_equal(n_dials, 5);
}

/* Whose client leaves is not waited for, and does not wait. */
static void test_first_goes(void **state)
{
	struct peer *client = client_tls("h2.test", true);
	struct talk *asked[2];

	(void)state;
	dial_fate = DIAL_HANGS;
	ask_both(client, asked);
	settle();
	assert_int_equal(n_dials, 1);
	dial_fate = DIAL_WORKS;
	h2_reset(asked[0]->stream, H2_CANCEL);
	settle();
	assert_int_equal(n_fars, 1);
	assert_string_equal(fars[0].peer.talks[0].words, "GET /b end ");
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked[1]->words, "204 end ");
}

static void test_second_goes(void **state)
{
	struct peer *client = client_tls("h2.test", true);
	struct talk *asked[2];

	(void)state;
	dial_fate = DIAL_HANGS;
	ask_both(client, asked);
	settle();
	h2_reset(asked[1]->stream, H2_CANCEL);
	settle();
	assert_int_equal(n_dials, 1);
	client->end.deaf = true;
	end_close(&client->end); /* both: nobody is left to wait for */
	settle();
	assert_int_equal(n_dials, 1);
	assert_int_equal(n_fars, 0);
}

/* What came to nothing for one may come to something for another: each dials for itself. */
static void test_first_fails(void **state)
{
	struct talk *asked[2];

	(void)state;
	dial_fate = DIAL_FAILS;
	ask_both(client_tls("h2.test", true), asked);
	settle();
	assert_memory_equal(asked[0]->words, "502 ", 4);
	assert_memory_equal(asked[1]->words, "502 ", 4);
	assert_int_equal(n_dials, 2);
}

/* A sandbox that goes takes those that wait with it. */
static void test_all_go(void **state)
{
	struct talk *asked[2];

	(void)state;
	dial_fate = DIAL_HANGS;
	ask_both(client_tls("h2.test", true), asked);
	settle();
	remove_sandbox();
	settle();
	assert_int_equal(n_dials, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_both_ways),
		world_test(test_continue),
		world_test(test_trailers),
		world_test(test_trailers_early),
		world_test(test_no_body),
		world_test(test_until_close),
		world_test(test_origin_is_slow),
		world_test(test_client_is_slow),
		world_test(test_client_goes),
		world_test(test_origin_goes),
		world_test(test_first_dials_for_all),
		world_test(test_first_goes),
		world_test(test_second_goes),
		world_test(test_first_fails),
		world_test(test_all_go),
	};

	return cmocka_run_group_tests_name("worker_exchange", tests, NULL, NULL);
}
