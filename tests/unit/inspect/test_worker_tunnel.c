/* SPDX-License-Identifier: MIT */
/* Connections whose bytes pass unseen, and websockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

#include "inspect/tunnel.h"

const struct stage *const stages[] = {
	&stage_place, &stage_judge, &stage_capture, &stage_canonical, &stage_upstream, &stage_report, NULL,
};

static struct peer *client_connect(const char *to)
{
	struct peer *client = client_to(80);
	char text[256];

	snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to);
	say(client, text);
	settle();
	return client;
}

static struct peer *tunnel_open(void)
{
	struct peer *client = client_connect("raw.test:2222");

	assert_string_equal(client->raw.data, "HTTP/1.1 200 Connection established\r\n\r\n");
	buf_clear(&client->raw);
	assert_int_equal(fars[n_fars - 1].port, 2222);
	return client;
}

static void test_passes(void **state)
{
	struct peer *client = tunnel_open(), *origin = &fars[0].peer;

	(void)state;
	say(client, "one");
	settle();
	assert_string_equal(origin->raw.data, "one");
	say(origin, "two");
	settle();
	assert_string_equal(client->raw.data, "two");
	pass_ms(50);
	assert_int_equal(worker->reporter.ledger->slots[0].sent, 3);
	assert_int_equal(worker->reporter.ledger->slots[0].received, 3);
	/* It may be silent for as long as it likes. */
	pass_ms(10ull * NP_STALL_MS);
	assert_int_equal(n_reports, 0);
	client->end.shut = true;
	settle();
	assert_true(origin->eof);
	say(origin, "last");
	settle();
	assert_string_equal(client->raw.data, "twolast");
	origin->end.shut = true;
	settle();
	pass_ms(50);
	assert_true(client->eof);
	assert_report(NP_R_RULE_ALLOWS, 0, "raw.test:2222");
	assert_int_equal(reports[0].request.sent, 3);
	assert_int_equal(reports[0].request.received, 7);
	assert_string_equal(reports[0].request.address, "198.51.100.11");
}

static void test_origin_goes(void **state)
{
	struct peer *client = tunnel_open();

	(void)state;
	end_close(&fars[0].peer.end);
	settle();
	assert_true(client->eof);
	client->end.shut = true;
	settle();
	pass_ms(50);
	assert_report(NP_R_RULE_ALLOWS, 0, "raw.test:2222");
}

static void test_refused(void **state)
{
	static const struct {
		const char *to;
		enum np_reason reason;
		unsigned status;
	} cases[] = {
		{ "bad.test:443", NP_R_RULE_DENIES, 403 },
		{ "other.test:2222", NP_R_NOT_IN_POLICY, 403 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct peer *client = client_connect(cases[i].to);

		assert_memory_equal(client->raw.data, "HTTP/1.1 403 ", 13);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, cases[i].reason);
		assert_int_equal(reports[i].request.status, cases[i].status);
		assert_string_equal(reports[i].url, cases[i].to);
	}
	assert_int_equal(n_fars, 0);
}

static void test_dial_fails(void **state)
{
	struct peer *client;

	(void)state;
	dial_fate = DIAL_FAILS;
	client = client_connect("raw.test:2222");
	assert_true(client->eof);
	assert_report(NP_R_ORIGIN_UNREACHABLE, 0, "raw.test:2222");
}

static void test_dial_hangs(void **state)
{
	struct peer *client;

	(void)state;
	dial_fate = DIAL_HANGS;
	client = client_connect("raw.test:2222");
	pass_ms(NP_CONNECT_MS + NP_RESOLVE_MS + 1000);
	assert_true(client->eof);
	assert_int_equal(n_reports, 1);
}

static void test_cut(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct peer *client = tunnel_open();

		say(client, "one");
		settle();
		if (i == 0)
			policy_send("version: 1\nrules:\n  - deny: raw.test\n");
		else if (i == 1)
			raise_to(LEVEL_SECRET, NP_NONE);
		else
			remove_sandbox();
		settle();
		assert_true(client->eof && fars[i].peer.eof);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, i == 0   ? NP_R_ENDED_BY_RELOAD
							    : i == 1 ? NP_R_ENDED_BY_RAISE
								     : NP_R_ENDED_BY_REMOVAL);
		assert_int_equal(reports[i].request.sent, 3);
		assert_memory_equal(reports[i].request.text, "allowed until then by test.yaml:13", 34);
		policy_send(standard_policy);
		sandbox_send(LINK_GONE, 1, LEVEL_SECRET, NP_NONE);
		sandbox_send(LINK_SANDBOX, 1, LEVEL_INTERNAL, NP_PROXIED);
		settle();
	}
}

/* inspect: false: the name in the hello is all that is judged, and the hello goes first. */
static void test_pinned(void **state)
{
	struct peer *client = client_to(443);

	(void)state;
	hello_send(&client->end, "pinned.test", 11);
	settle();
	assert_int_equal(n_fars, 1);
	assert_true(fars[0].peer.raw.len > 50 && fars[0].peer.raw.data[0] == 0x16);
	say(&fars[0].peer, "hello");
	settle();
	assert_string_equal(client->raw.data, "hello");
	end_close(&client->end);
	end_close(&fars[0].peer.end);
	settle();
	pass_ms(50);
	assert_report(NP_R_RULE_ALLOWS, 0, "pinned.test:443");
	assert_int_equal(reports[0].request.sent, fars[0].peer.raw.len);
}

/* A CONNECT to a port that is inspected: what is inside is judged as if it had come by itself. */
static void test_connect_inspected(void **state)
{
	struct peer *client = client_connect("origin.test:443");
	struct talk *asked;

	(void)state;
	assert_string_equal(client->raw.data, "HTTP/1.1 200 Connection established\r\n\r\n");
	hello_send(&client->end, "origin.test", 11);
	peer_move(client);
	peer_speak(client, false, false);
	snprintf(client->host, sizeof(client->host), "origin.test");
	settle();
	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	assert_string_equal(fars[0].peer.talks[0].words, "GET / end ");
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked->words, "204 end ");
	/* Another name in the hello than the CONNECT had. */
	client = client_connect("origin.test:443");
	hello_send(&client->end, "h2.test", 7);
	settle();
	assert_true(client->eof);
	pass_ms(50);
	assert_int_equal(n_reports, 2);
	assert_int_equal(reports[0].request.reason, NP_R_RULE_ALLOWS);
	assert_int_equal(reports[1].request.reason, NP_R_HOST_MISMATCH);
}

/* -- websockets --------------------------------------------------------------------------------------- */

static struct peer *websocket_open(void)
{
	struct peer *client = client_to(80);

	say(client, "GET /chat HTTP/1.1\r\nHost: ws.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
	settle();
	assert_int_equal(n_fars, 1);
	assert_non_null(strstr(fars[0].peer.raw.data, "GET /chat HTTP/1.1"));
	buf_clear(&fars[0].peer.raw);
	return client;
}

static void websocket_accept(void)
{
	say(&fars[0].peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			   "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
	settle();
	h1_free(fars[0].peer.h1);
	fars[0].peer.h1 = NULL;
}

static void test_websocket(void **state)
{
	static const char ping[] = { (char)0x81, (char)0x82, 1, 2, 3, 4, 'h' ^ 1, 'i' ^ 2 },
			  pong[] = { (char)0x81, 2, 'y', 'o' };
	struct peer *client = websocket_open();

	(void)state;
	websocket_accept();
	assert_memory_equal(client->raw.data, "HTTP/1.1 101 ", 13);
	buf_clear(&client->raw);
	end_send(&client->end, ping, sizeof(ping));
	settle();
	assert_memory_equal(fars[0].peer.raw.data, ping, sizeof(ping));
	end_send(&fars[0].peer.end, pong, sizeof(pong));
	settle();
	assert_memory_equal(client->raw.data, pong, sizeof(pong));
	/* A frame of a client without a mask is none. */
	end_send(&client->end, pong, sizeof(pong));
	settle();
	pass_ms(50);
	assert_true(client->eof && fars[0].peer.eof);
	assert_report(NP_R_WEBSOCKET_BROKEN, 101, "http://ws.test/chat");
}

static void test_websocket_unasked(void **state)
{
	struct peer *client = client_plain("origin.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	say(&fars[0].peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
	settle();
	assert_memory_equal(asked->words, "502 ", 4);
	assert_report(NP_R_ORIGIN_UNREACHABLE, 502, "http://origin.test/");
}

static void test_websocket_bad(void **state)
{
	struct peer *client = websocket_open();

	(void)state;
	say(&fars[0].peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			   "Sec-WebSocket-Accept: AAAALMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
	settle();
	assert_memory_equal(client->raw.data, "HTTP/1.1 502 ", 13);
	assert_report(NP_R_WEBSOCKET_BROKEN, 502, "http://ws.test/chat");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_passes),	world_test(test_origin_goes),
		world_test(test_refused),	world_test(test_dial_fails),
		world_test(test_dial_hangs),	world_test(test_cut),
		world_test(test_pinned),	world_test(test_connect_inspected),
		world_test(test_websocket),	world_test(test_websocket_unasked),
		world_test(test_websocket_bad),
	};

	return cmocka_run_group_tests_name("worker_tunnel", tests, NULL, NULL);
}
