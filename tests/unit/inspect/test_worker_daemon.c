/* SPDX-License-Identifier: MIT */
/* What the daemon says to a worker in the middle of exchanges, and what it is told. */
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

/* The next message of the worker of this type; what it announces besides is passed over. */
static bool told(enum link_type wanted)
{
	static char data[LINK_BYTES_MAX];
	enum link_type type;
	size_t len;

	while (link_receive(link_fd, &type, data, &len, NULL) == 0)
		if (type == wanted)
			return true;
	return false;
}

static struct talk *half_done(struct peer **ret_client, const char *host, bool h2)
{
	struct peer *client = h2 ? client_tls(host, true) : client_plain(host);
	struct talk *asked = ask(client, "POST", "/", 10);

	send_body(client, asked, "half", 4);
	settle();
	assert_body(&last_asked->talks[last_asked->n - 1], "half");
	*ret_client = client;
	return asked;
}

/* Everything ends, with resets, and says at which rung. */
static void test_raise_closes(void **state)
{
	struct talk *asked[2];
	struct peer *client[2];
	unsigned before;

	(void)state;
	for (int h2 = 0; h2 < 2; h2++)
		asked[h2] = half_done(&client[h2], "low.test", h2);
	before = generation;
	raise_to(LEVEL_SECRET, NP_NONE);
	assert_true(told(LINK_SYNC));
	assert_int_equal(n_reports, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(client[i]->eof && !asked[i]->ended && fars[i].peer.eof);
		assert_int_equal(reports[i].request.reason, NP_R_ENDED_BY_RAISE);
		assert_int_equal(reports[i].request.rung.mode, NP_NONE);
		assert_int_equal(reports[i].request.rung.generation, before + 1);
		assert_string_equal(reports[i].request.text, "allowed until then by test.yaml:14");
		assert_int_equal(reports[i].request.status, 0);
	}
	assert_int_equal(worker->reporter.ledger->cut, 2);
	/* Nothing new is taken. */
	assert_true(client_plain("low.test")->end.fd >= 0);
	settle();
	assert_true(clients[2].eof);
}

/* A level at which one of two is still allowed. */
static void test_raise_judges(void **state)
{
	const char *policy = "version: 1\n"
			     "levels: {SECRET: PROXIED}\n"
			     "rules:\n"
			     "  - {allow: low.test, for: [INTERNAL]}\n"
			     "  - allow: origin.test\n";
	struct peer *low, *high;
	struct talk *ends, *stays;

	(void)state;
	policy_send(policy);
	settle();
	ends = half_done(&low, "low.test", false);
	stays = half_done(&high, "origin.test", false);
	raise_to(LEVEL_SECRET, NP_PROXIED);
	assert_memory_equal(ends->words, "403 ", 4);
	assert_true(fars[0].peer.eof && !fars[0].peer.talks[0].ended);
	assert_report(NP_R_ENDED_BY_RAISE, 403, "http://low.test/");
	assert_int_equal(reports[0].request.rung.level, LEVEL_SECRET);
	/* The other goes on, and its event has the rung that it was decided at. */
	send_body(high, stays, "whole.", 6);
	send_end(high, stays, NULL);
	settle();
	answer(&fars[1].peer, &fars[1].peer.talks[0], 204, NO_BODY);
	settle();
	pass_ms(50);
	assert_string_equal(stays->words, "204 end ");
	assert_int_equal(n_reports, 2);
	assert_int_equal(reports[1].request.reason, NP_R_RULE_ALLOWS);
	assert_int_equal(reports[1].request.rung.level, LEVEL_INTERNAL);
	assert_int_equal(reports[1].request.rung.generation, generation - 1);
	/* What was open before serves nobody after. */
	ask(high, "GET", "/", NO_BODY);
	settle();
	assert_int_equal(n_fars, 3);
}

static void test_raise_in_response(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = h2 ? client_tls("low.test", true) : client_plain("low.test");
		struct talk *asked = ask(client, "GET", "/", NO_BODY);

		settle();
		answer(last_asked, &last_asked->talks[0], 200, 10);
		send_body(last_asked, &last_asked->talks[0], "half", 4);
		settle();
		policy_send("version: 1\nrules:\n  - deny: low.test\n");
		settle();
		if (h2)
			assert_string_equal(asked->words, "200 len=10 reset:2 ");
		else
			assert_true(client->eof && !asked->ended);
		assert_int_equal(n_reports, h2 + 1);
		assert_int_equal(reports[h2].request.reason, NP_R_ENDED_BY_RELOAD);
		assert_int_equal(reports[h2].request.status, 200);
		policy_send(standard_policy);
		settle();
	}
}

/* The first that is cut takes the connection of the others with it. */
static void test_raise_of_many_on_one_connection(void **state)
{
	struct peer *client = client_tls("h2.test", true);
	struct talk *asked[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		asked[i] = ask(client, "GET", "/", NO_BODY);
	settle();
	assert_int_equal(n_fars, 1);
	for (int i = 0; i < 3; i++) {
		answer(last_asked, &last_asked->talks[i], 200, 10);
		send_body(last_asked, &last_asked->talks[i], "half", 4);
	}
	settle();
	policy_send("version: 1\nrules:\n  - deny: h2.test\n");
	settle();
	assert_int_equal(n_reports, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(asked[i]->words, "200 len=10 reset:2 ");
		assert_int_equal(reports[i].request.reason, NP_R_ENDED_BY_RELOAD);
	}
}

/* Of several clients, and of requests that are allowed as before, which end with it, or go again if they have no answer yet. */
static void test_cut_of_one_among_others(void **state)
{
	struct peer *near[2] = { client_tls("h2.test", true), client_tls("h2.test", false) };
	struct talk *asked[4];

	(void)state;
	asked[0] = ask(near[0], "GET", "/a", NO_BODY);
	asked[1] = ask(near[0], "GET", "/cut", NO_BODY);
	asked[2] = ask(near[0], "GET", "/c", NO_BODY);
	asked[3] = ask(near[1], "GET", "/d", NO_BODY);
	settle();
	assert_int_equal(n_fars, 1);
	for (int i = 0; i < 4; i += i == 1 ? 2 : 1) { /* /c has no answer */
		answer(&fars[0].peer, &fars[0].peer.talks[i], 200, 10);
		send_body(&fars[0].peer, &fars[0].peer.talks[i], "half", 4);
	}
	settle();
	policy_send("version: 1\nrules:\n  - deny: h2.test\n    paths: [\"/cut\"]\n  - allow: h2.test\n");
	settle();
	assert_string_equal(asked[0]->words, "200 len=10 reset:2 ");
	assert_string_equal(asked[1]->words, "200 len=10 reset:2 ");
	assert_true(near[1]->eof && !asked[3]->ended);
	assert_int_equal(n_reports, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reports[i].request.reason,
				 strstr(reports[i].url, "/cut") ? NP_R_ENDED_BY_RELOAD : NP_R_RESPONSE_BROKEN);
	assert_int_equal(n_fars, 2);
	assert_string_equal(fars[1].peer.talks[0].words, "GET /c end ");
	answer(&fars[1].peer, &fars[1].peer.talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked[2]->words, "204 end ");
}

/* While its name is looked up, too. */
static void test_raise_in_dial(void **state)
{
	struct peer *client = client_plain("low.test");
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	dial_fate = DIAL_HANGS;
	settle();
	policy_send("version: 1\nrules:\n  - deny: low.test\n");
	settle();
	assert_memory_equal(asked->words, "403 ", 4);
	assert_report(NP_R_ENDED_BY_RELOAD, 403, "http://low.test/");
}

static void test_removed(void **state)
{
	struct link_sandbox message = { .cgroup_id = 1, .session = "test/s" };
	struct peer *client;

	(void)state;
	half_done(&client, "low.test", false);
	last_asked->end.deaf = true;
	message_send(LINK_LEFT, &message, sizeof(message), -1);
	settle();
	remove_sandbox();
	assert_true(client->eof);
	assert_report(NP_R_ENDED_BY_REMOVAL, 0, "http://low.test/");
	assert_true(LIST_EMPTY(&worker->sessions));
}

/* Bytes that the origin has not taken are a reason to wait with the end of a sandbox. */
static void test_left(void **state)
{
	static char bytes[1u << 20];
	struct link_sandbox message = { .cgroup_id = 1, .session = "test/s" };
	struct peer *client;
	struct talk *asked;

	(void)state;
	while (told(LINK_READY))
		;
	message_send(LINK_LEFT, &message, sizeof(message), -1);
	settle();
	assert_false(told(LINK_LEFT));
	ends_small = true;
	client = client_plain("low.test");
	asked = ask(client, "POST", "/", sizeof(bytes));
	settle();
	last_asked->end.deaf = true;
	send_body(client, asked, bytes, sizeof(bytes));
	settle();
	message_send(LINK_LEFT, &message, sizeof(message), -1);
	settle();
	assert_true(told(LINK_LEFT));
}

/* What is open may end; what is not goes at once. */
static void test_stop(void **state)
{
	struct peer *idle = client_plain("low.test"), *busy;
	struct talk *asked;

	(void)state;
	asked = half_done(&busy, "low.test", false);
	message_send(LINK_STOP, NULL, 0, -1);
	settle();
	pass_ms(50);
	assert_true(idle->eof && !busy->eof);
	send_body(busy, asked, "whole.", 6);
	send_end(busy, asked, NULL);
	settle();
	answer(last_asked, &last_asked->talks[0], 204, NO_BODY);
	settle();
	assert_string_equal(asked->words, "204 end ");
	assert_non_null(strstr(busy->raw.data, "connection: close"));
	pass_ms(50);
	assert_true(worker->loop->stopped);
	assert_true(busy->eof);
}

static void test_stop_is_short(void **state)
{
	struct peer *client;

	(void)state;
	half_done(&client, "low.test", true);
	message_send(LINK_STOP, NULL, 0, -1);
	settle();
	pass_ms(NP_DRAIN_MS + 50);
	assert_true(worker->loop->stopped);
	sandbox_free(worker, sandbox_find(worker, 1), NP_R_ENDED_BY_STOP);
	reports_take();
	assert_report(NP_R_ENDED_BY_STOP, 0, "https://low.test/");
}

static void test_settle(void **state)
{
	uint32_t number = 7;

	(void)state;
	while (told(LINK_READY))
		;
	message_send(LINK_SETTLE, &number, sizeof(number), -1);
	settle();
	assert_true(told(LINK_SETTLE));
}

/* A client that comes before its session has a CA waits for it. */
static void test_ca(void **state)
{
	struct link_sandbox other = { .cgroup_id = 2,
				      .slot = 2,
				      .session = "test/other",
				      .rung = { .level = LEVEL_INTERNAL, .mode = NP_PROXIED, .generation = 9 } };
	struct peer *client = &clients[n_clients++];
	int near;

	(void)state;
	message_send(LINK_SANDBOX, &other, sizeof(other), -1);
	settle();
	peer_init(client);
	end_open(&client->end, &near);
	nears[near].flow = (struct np_flow){ .cgroup_id = 2, .addr = np_addr_v4(np_net32(0xc633640a)), .port = 443 };
	client_accept(worker, near);
	hello_send(&client->end, "origin.test", 11);
	settle();
	peer_speak(client, false, false);
	snprintf(client->host, sizeof(client->host), "origin.test");
	ask(client, "GET", "/", NO_BODY);
	settle();
	assert_int_equal(n_fars, 0);
	message_send(LINK_CA, &(struct link_ca){ .session = "test/other", .len = 1 }, sizeof(struct link_ca), -1);
	settle();
	assert_int_equal(n_fars, 1);
	assert_string_equal(fars[0].peer.talks[0].words, "GET / end ");
	sandbox_send(LINK_GONE, 2, LEVEL_INTERNAL, NP_PROXIED);
	settle();
	assert_true(client->eof);
}

/* Without its word nothing is allowed. */
static void test_nonsense(void **state)
{
	(void)state;
	message_send(LINK_SANDBOX, "x", 1, -1);
	settle();
	assert_true(worker->loop->stopped);
}

/* Of whom nobody has told it anything it takes nothing. */
static void test_stranger(void **state)
{
	struct peer *client = &clients[n_clients++];
	int near;

	(void)state;
	peer_init(client);
	end_open(&client->end, &near);
	nears[near].flow = (struct np_flow){ .cgroup_id = 99, .addr = np_addr_v4(np_net32(0xc633640a)), .port = 80 };
	client_accept(worker, near);
	settle();
	assert_true(client->eof);
	assert_int_equal(n_reports, 0);
}

/* So many reports at once, and the others are counted. */
static void test_report_rate(void **state)
{
	struct sandbox *sandbox = sandbox_find(worker, 1);
	struct peer *client = client_plain("bad.test");

	(void)state;
	sandbox->rate.tokens = 1;
	for (int i = 0; i < 2; i++) {
		ask(client, "GET", "/", NO_BODY);
		settle();
	}
	assert_int_equal(n_reports, 1);
	assert_int_equal(worker->reporter.ledger->slots[0].suppressed, 1);
	assert_int_equal(worker->reporter.ledger->slots[0].requests, 2);
	assert_int_equal(worker->reporter.ledger->slots[0].refused, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_raise_closes),
		world_test(test_raise_judges),
		world_test(test_raise_in_response),
		world_test(test_raise_of_many_on_one_connection),
		world_test(test_cut_of_one_among_others),
		world_test(test_raise_in_dial),
		world_test(test_removed),
		world_test(test_left),
		world_test(test_stop),
		world_test(test_stop_is_short),
		world_test(test_settle),
		world_test(test_ca),
		world_test(test_nonsense),
		world_test(test_stranger),
		world_test(test_report_rate),
	};

	return cmocka_run_group_tests_name("worker_daemon", tests, NULL, NULL);
}
