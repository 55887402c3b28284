/* SPDX-License-Identifier: MIT */
/* What a worker says itself: to what is refused, and to what is too much. */
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

/* Its stream is reset and others go on; that it was refused is told once. */
static void test_unread_head_of_http2(void **state)
{
	struct peer *client = client_tls("origin.test", true);
	struct talk *asked;

	(void)state;
	snprintf(client->host, sizeof(client->host), "u@origin.test");
	asked = ask(client, "GET", "/a", NO_BODY);
	settle();
	assert_string_equal(asked->words, "reset:1 ");
	assert_int_equal(the_report()->request.reason, NP_R_BAD_HTTP);
	assert_string_equal(the_report()->request.text, "an authority with a user name");
	assert_int_equal(n_fars, 0);
	snprintf(client->host, sizeof(client->host), "origin.test");
	ask(client, "GET", "/b", NO_BODY);
	settle();
	assert_int_equal(n_fars, 1);
	assert_int_equal(n_reports, 1);
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

/* -- where it goes ---------------------------------------------------------------------------- */

/* A client that knows us as its proxy says where to in the first line. */
static void test_absolute(void **state)
{
	static const char *const schemes[] = { "http", "https" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct peer *client = client_to(3128);
		char text[128];

		snprintf(text, sizeof(text), "GET %s://origin.test/a HTTP/1.1\r\nHost: origin.test\r\n\r\n",
			 schemes[i]);
		peer_speak(client, false, false);
		ask_raw(client, text);
		settle();
		assert_int_equal(n_fars, i + 1);
		assert_int_equal(fars[i].port, i ? 443 : 80);
		assert_string_equal(fars[i].peer.talks[0].words, "GET /a end ");
		answer(&fars[i].peer, &fars[i].peer.talks[0], 204, NO_BODY);
		settle();
		pass_ms(50);
		snprintf(text, sizeof(text), "%s://origin.test/a", schemes[i]);
		assert_string_equal(reports[i].url, text);
	}
}

/* By address, for who was allowed to go there. */
static void test_address(void **state)
{
	struct peer *client = client_plain("198.51.100.10:80");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	assert_non_null(strstr(fars[0].peer.raw.data, "Host: 198.51.100.10\r\n"));
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked->words, "204 end ");
	asked = ask(client_plain("[2001:db8::1]"), "GET", "/", NO_BODY);
	settle();
	assert_memory_equal(asked->words, "403 ", 4);
	assert_int_equal(n_fars, 1);
}

/* HTTP/2 without TLS, by prior knowledge. */
static void test_prior(void **state)
{
	struct peer *client = client_to(80);
	struct talk *asked;

	(void)state;
	peer_speak(client, false, true);
	snprintf(client->host, sizeof(client->host), "origin.test");
	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	assert_string_equal(fars[0].peer.talks[0].words, "GET / end ");
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked->words, "204 end ");
	/* There is no tunnel inside of it. */
	asked = ask(client, "CONNECT", "", NO_BODY);
	settle();
	assert_string_equal(talk_field(asked, "x-netpawl-reason"), "no_tunnel");
}

/* -- how much it holds -------------------------------------------------------------------------- */

/* Another one's bytes, as it were. */
static void hold_bytes(long n)
{
	struct sandbox *sandbox = sandbox_find(worker, 1);

	sandbox->memory.held += (size_t)n;
	worker->memory.held += (size_t)n;
}

static void test_memory_is_full(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	hold_bytes(NP_MEMORY_PER_SANDBOX);
	settle();
	assert_memory_equal(asked->words, "429 ", 4);
	assert_report(NP_R_TOO_MANY_REQUESTS, 429, "http://origin.test/");
	hold_bytes(-(long)NP_MEMORY_PER_SANDBOX);
}

/* Of a sandbox that holds much, each exchange may hold little, and goes on when that was taken. */
static void test_memory_is_tight(void **state)
{
	static char bytes[200u << 10];

	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = h2 ? client_tls("origin.test", true) : client_plain("origin.test"), *origin;
		struct talk *asked = ask(client, "POST", "/", sizeof(bytes)), *heard;

		hold_bytes(NP_MEMORY_PER_SANDBOX / 4);
		pass_ms(50);
		origin = last_asked;
		heard = &origin->talks[0];
		send_body(client, asked, bytes, sizeof(bytes));
		send_end(client, asked, NULL);
		settle();
		for (int i = 0; i < 20; i++)
			pass_ms(50);
		assert_int_equal(heard->body.len, sizeof(bytes));
		answer(origin, heard, 200, sizeof(bytes));
		send_body(origin, heard, bytes, sizeof(bytes));
		send_end(origin, heard, NULL);
		settle();
		for (int i = 0; i < 20; i++)
			pass_ms(50);
		assert_int_equal(asked->body.len, sizeof(bytes));
		assert_true(asked->ended);
		hold_bytes(-(long)(NP_MEMORY_PER_SANDBOX / 4));
	}
}

/* Beyond that, whoever adds to it is broken off. */
static void test_memory_is_over(void **state)
{
	static char bytes[1u << 20];
	struct peer *client = client_plain("origin.test");
	struct talk *heard;

	(void)state;
	ask(client, "GET", "/", NO_BODY);
	settle();
	heard = &last_asked->talks[0];
	client->end.deaf = true;
	hold_bytes(NP_MEMORY_PER_SANDBOX / 2);
	answer(last_asked, heard, 200, sizeof(bytes));
	send_body(last_asked, heard, bytes, sizeof(bytes));
	settle();
	hold_bytes(-(long)(NP_MEMORY_PER_SANDBOX / 2));
	pass_ms(50);
	assert_report(NP_R_TOO_MUCH_UNREAD, 200, "http://origin.test/");
	assert_true(last_asked->eof);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_refused),	 world_test(test_refused_body),
		world_test(test_unread_head),	 world_test(test_other_host),
		world_test(test_route_refused),	 world_test(test_body_bound),
		world_test(test_captured),	 world_test(test_absolute),
		world_test(test_address),	 world_test(test_prior),
		world_test(test_memory_is_full), world_test(test_memory_is_tight),
		world_test(test_memory_is_over), world_test(test_unread_head_of_http2),
	};

	return cmocka_run_group_tests_name("worker_refuse", tests, NULL, NULL);
}
