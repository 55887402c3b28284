/* SPDX-License-Identifier: MIT */
/* Requests and connections that wait for an answer from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

#include "inspect/debug_dump.h"
#include "inspect/tunnel.h"

/* -- a stage that holds ---------------------------------------------------------------------- */

static bool holds; /* else nothing is */
static struct hold_terms terms;
static char looked[64]; /* what came of the body meanwhile */
static bool looks;	/* whatever the terms say */

static const struct stage stage_hold;

static enum stage_result on_start(struct exchange *ex)
{
	if (!holds)
		return STAGE_NEXT;
	if (terms.body || looks)
		stage_wants(ex, &stage_hold, WAY_REQUEST, WANT_LOOK);
	return exchange_hold(ex, &terms);
}

static enum stage_result on_body(struct exchange *ex, struct piece *piece)
{
	assert_true(hold_is_on(&ex->hold));
	snprintf(looked + strlen(looked), sizeof(looked) - strlen(looked), "%.*s%s", (int)piece->len,
		 piece->len ? piece->data : "", piece->end ? "." : "|");
	return STAGE_NEXT;
}

static enum stage_result on_connect(struct tunnel *tunnel)
{
	enum stage_result r;

	if (!holds)
		return STAGE_NEXT;
	assert_string_equal(tunnel_client(tunnel)->host.name, "raw.test");
	r = tunnel_hold(tunnel, &terms);
	if (r == STAGE_HELD)
		assert_non_null(hold_find(worker, tunnel_hold_number(tunnel)));
	return r;
}

static const struct stage stage_hold = {
	.name = "hold", .role = STAGE_ANSWERS, .start = on_start, .connect = on_connect, .request_body = on_body
};

const struct stage *const stages[] = {
	&stage_place, &stage_judge, &stage_hold, &stage_capture, &stage_canonical, &stage_upstream, &stage_report, NULL,
};

static int hold_start(void **state)
{
	holds = true;
	terms = (struct hold_terms){ .ms = 25000, .late = NP_R_NEEDS_APPROVAL, .words = "nobody answered" };
	looked[0] = '\0';
	looks = false;
	return world_start(state);
}

#define hold_test(name) cmocka_unit_test_setup_teardown(name, hold_start, world_stop)

static struct hold *the_hold(void)
{
	struct hold *hold = TAILQ_FIRST(&worker->holds.list);

	assert_int_equal(worker->holds.n, 1);
	assert_ptr_equal(hold_find(worker, hold->number), hold);
	return hold;
}

static void resume(struct hold *hold)
{
	const uint64_t number = hold->number;

	hold_resume(hold);
	worker_flush(worker);
	assert_null(hold_find(worker, number));
	settle();
}

static void refuse(struct hold *hold)
{
	hold_refuse(hold, NP_R_NEEDS_APPROVAL, "somebody said no");
	worker_flush(worker);
	settle();
}

static struct peer *client_of(bool h2)
{
	return h2 ? client_tls("low.test", true) : client_plain("low.test");
}

/* -- requests ---------------------------------------------------------------------------------- */

static void test_resumed(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked = ask(client, "POST", "/a", 3), *heard;

		send_body(client, asked, "ask", 3);
		send_end(client, asked, NULL);
		settle();
		assert_int_equal(n_fars, h2); /* it is not even looked up */
		pass_ms(24000);
		assert_string_equal(asked->words, "");
		assert_int_equal(n_reports, h2);
		resume(the_hold());
		assert_int_equal(n_fars, h2 + 1);
		heard = &fars[h2].peer.talks[0];
		assert_string_equal(heard->words, "POST /a len=3 end ");
		assert_body(heard, "ask");
		answer(&fars[h2].peer, heard, 204, NO_BODY);
		settle();
		assert_string_equal(asked->words, "204 end ");
		pass_ms(50);
		assert_int_equal(reports[h2].request.reason, NP_R_RULE_ALLOWS);
		assert_int_equal(reports[h2].request.status, 204);
	}
}

static void test_refused(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked = ask(client, "POST", "/a", 3);

		settle();
		refuse(the_hold());
		assert_memory_equal(asked->words, "403 ", 4);
		assert_true(asked->ended);
		assert_string_equal(talk_field(asked, "x-netpawl-reason"), "needs_approval");
		assert_non_null(strstr(asked->body.data, "somebody said no"));
		assert_non_null(strstr(asked->body.data, "\"rule\":\"test.yaml:14\""));
		assert_int_equal(n_reports, h2 + 1);
		assert_int_equal(reports[h2].request.reason, NP_R_NEEDS_APPROVAL);
		assert_string_equal(reports[h2].request.text, "somebody said no");
		/* The connection serves the next one. */
		holds = false;
		if (!h2) {
			send_body(client, asked, "ask", 3);
			send_end(client, asked, NULL);
		}
		ask(client, "GET", "/b", NO_BODY);
		settle();
		assert_string_equal(fars[h2].peer.talks[0].words, "GET /b end ");
		holds = true;
	}
}

/* Longer than any time-out of an exchange, and not for ever. */
static void test_late(void **state)
{
	struct peer *client = client_of(false);
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	terms.ms = NP_HOLD_MAX_MS + 1000;
	settle();
	pass_ms(NP_STALL_MS + 1000);
	pass_ms(NP_HOLD_MAX_MS - NP_STALL_MS - 2000);
	assert_string_equal(asked->words, "");
	pass_ms(2000);
	assert_memory_equal(asked->words, "403 ", 4);
	assert_report(NP_R_NEEDS_APPROVAL, 403, "http://low.test/");
	assert_string_equal(reports[0].request.text, "nobody answered");
}

/* HTTP/1.1: what comes behind the head is not read on while nobody has said that it may go. */
static void test_body_waits(void **state)
{
	static char bytes[1500u << 10];
	struct peer *client = client_of(false);
	struct talk *asked = ask(client, "POST", "/", sizeof(bytes));

	(void)state;
	settle();
	send_body(client, asked, bytes, sizeof(bytes));
	send_end(client, asked, NULL);
	settle();
	assert_true(client->end.out.len > 1u << 20);
	pass_ms(1000);
	assert_true(client->end.out.len > 1u << 20);
	assert_in_range(worker->memory.held, 1, 128u << 10);
	resume(the_hold());
	assert_int_equal(fars[0].peer.talks[0].body.len, sizeof(bytes));
	assert_true(fars[0].peer.talks[0].ended);
}

/* A stage that asks with the first bytes of the body gets them, from a client that waits to be told to send. */
static void test_body_wanted(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked, *heard;

		terms.body = 4096;
		looked[0] = '\0';
		asked = ask_with(client, "POST", "/", 6, "expect", "");
		settle();
		assert_string_equal(asked->words, "100 ");
		send_body(client, asked, "ask", 3);
		settle();
		send_body(client, asked, "ing", 3);
		send_end(client, asked, NULL);
		settle();
		assert_string_equal(looked, "ask|ing|.");
		resume(the_hold());
		heard = &fars[h2].peer.talks[0];
		assert_string_equal(heard->words, "POST / len=6 end "); /* it does not wait any more */
		assert_body(heard, "asking");
	}
}

/* HTTP/2: streams that wait with all that their windows allow are in nobody's way. */
static unsigned woken;

static void on_wake(struct hold *hold)
{
	assert_true(hold_is_on(hold));
	woken++;
}

static void read_on(size_t body)
{
	woken = 0;
	hold_read(the_hold(), body, on_wake, 1000);
	worker_flush(worker);
	settle();
}

static void test_body_wanted_later(void **state)
{
	(void)state;
	looks = true;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked = ask(client, "POST", "/", 9), *heard;

		looked[0] = '\0';
		send_body(client, asked, "ask", 3);
		settle();
		send_body(client, asked, "ing", 3);
		settle();
		assert_string_equal(looked, h2 ? "ask|ing|" : "ask|"); /* a stream has a window of its own */
		pass_ms(20000);
		read_on(9);
		assert_string_equal(looked, "ask|ing|");
		assert_int_equal(woken, 0);
		pass_ms(1100);
		assert_int_equal(woken, 1);
		send_body(client, asked, " on", 3);
		send_end(client, asked, NULL);
		settle();
		assert_string_equal(looked, "ask|ing| on|.");
		pass_ms(2000);
		assert_int_equal(woken, 1);
		resume(the_hold());
		heard = &fars[h2].peer.talks[0];
		assert_string_equal(heard->words, "POST / len=9 end ");
		assert_body(heard, "asking on");
	}
	/* Its time is what it was. */
	ask(client_of(false), "POST", "/", 9);
	settle();
	pass_ms(24000);
	read_on(9);
	pass_ms(1100);
	assert_int_equal(worker->holds.n, 0);
}

static void test_body_told_later(void **state)
{
	(void)state;
	looks = true;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked = ask_with(client, "POST", "/", 3, "expect", ""), *heard;

		looked[0] = '\0';
		settle();
		assert_string_equal(asked->words, "");
		read_on(3);
		assert_string_equal(asked->words, "100 ");
		send_body(client, asked, "ask", 3);
		send_end(client, asked, NULL);
		settle();
		assert_string_equal(looked, "ask|.");
		resume(the_hold());
		heard = &fars[h2].peer.talks[0];
		assert_string_equal(heard->words, "POST / len=3 end ");
		assert_body(heard, "ask");
	}
}

static void test_others_go_on(void **state)
{
	static char bytes[NP_H2_WINDOW];
	struct peer *client = client_tls("low.test", true);
	struct talk *asked[6], *heard;

	(void)state;
	for (int i = 0; i < 6; i++) {
		asked[i] = ask(client, "POST", "/held", sizeof(bytes));
		send_body(client, asked[i], bytes, sizeof(bytes));
		send_end(client, asked[i], NULL);
		settle();
	}
	assert_int_equal(worker->holds.n, 6);
	holds = false;
	heard = ask(client, "POST", "/free", 3);
	send_body(client, heard, "ask", 3);
	send_end(client, heard, NULL);
	settle();
	assert_int_equal(n_fars, 1);
	assert_string_equal(fars[0].peer.talks[0].words, "POST /free len=3 end ");
	assert_body(&fars[0].peer.talks[0], "ask");
	/* And each of them is whole when it goes. */
	h1_next(fars[0].peer.h1);
	while (worker->holds.n)
		resume(TAILQ_FIRST(&worker->holds.list));
	assert_int_equal(n_fars, 7);
	for (int i = 1; i < 7; i++)
		assert_int_equal(fars[i].peer.talks[0].body.len, sizeof(bytes));
}

/* Whoever looks for what hangs finds it. */
static void test_shown(void **state)
{
	const struct debug_page *page;

	(void)state;
	ask(client_of(false), "GET", "/", NO_BODY);
	settle();
	pass_ms(1000);
	debug_page_make(worker, &(struct debug_ask){ .number = 1 }, &page);
	assert_int_equal(page->sums.count[DEBUG_EXCHANGE], 1);
	for (uint32_t i = 0; i < page->n; i++)
		if (page->entries[i].kind == DEBUG_EXCHANGE) {
			assert_string_equal(debug_state_name(DEBUG_EXCHANGE, page->entries[i].state), "held");
			assert_string_equal(page->entries[i].host, "low.test");
		}
}

/* -- what ends it ------------------------------------------------------------------------------- */

static void test_raised(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_of(h2);
		struct talk *asked = ask(client, "GET", "/", NO_BODY);

		settle();
		raise_to(LEVEL_SECRET, h2 ? NP_PROXIED : NP_NONE);
		assert_int_equal(worker->holds.n, 0);
		assert_int_equal(n_reports, h2 + 1);
		assert_int_equal(reports[h2].request.reason, NP_R_ENDED_BY_RAISE);
		assert_int_equal(reports[h2].request.rung.level, LEVEL_SECRET);
		assert_int_equal(reports[h2].request.rung.generation, generation);
		if (h2)
			assert_memory_equal(asked->words, "403 ", 4);
		else
			assert_true(client->eof && !asked->ended);
		sandbox_send(LINK_GONE, 1, LEVEL_SECRET, NP_NONE);
		sandbox_send(LINK_SANDBOX, 1, LEVEL_INTERNAL, NP_PROXIED);
		message_send(LINK_CA, &(struct link_ca){ .session = "test/s", .len = 1 }, sizeof(struct link_ca), -1);
		settle();
	}
	assert_int_equal(n_fars, 0);
}

/* It is let go by what holds when it goes, and its event says so. */
static void test_raised_and_resumed(void **state)
{
	struct peer *client = client_of(false);

	(void)state;
	ask(client, "GET", "/", NO_BODY);
	settle();
	raise_to(LEVEL_CONFIDENTIAL, NP_PROXIED);
	resume(the_hold());
	answer(&fars[0].peer, &fars[0].peer.talks[0], 204, NO_BODY);
	settle();
	pass_ms(50);
	assert_report(NP_R_RULE_ALLOWS, 204, "http://low.test/");
	assert_int_equal(reports[0].request.rung.level, LEVEL_CONFIDENTIAL);
	assert_int_equal(reports[0].request.rung.generation, generation);
}

static void test_reloaded(void **state)
{
	struct peer *client = client_of(false);
	struct talk *asked = ask(client, "GET", "/", NO_BODY);

	(void)state;
	settle();
	policy_send("version: 1\nrules:\n  - deny: low.test\n");
	settle();
	assert_memory_equal(asked->words, "403 ", 4);
	assert_report(NP_R_ENDED_BY_RELOAD, 403, "http://low.test/");
	assert_string_equal(reports[0].request.place, "test.yaml:3");
	assert_string_equal(reports[0].request.text, "allowed until then by test.yaml:14");
	assert_int_equal(n_fars, 0);
}

static void test_removed(void **state)
{
	struct peer *client = client_of(false);
	uint64_t cgroup_id = 1;

	(void)state;
	ask(client, "GET", "/", NO_BODY);
	settle();
	/* Nothing of it is on its way. */
	assert_false(sandbox_has_unsent(sandbox_find(worker, cgroup_id)));
	remove_sandbox();
	assert_true(client->eof);
	assert_int_equal(n_reports, 1);
	assert_int_equal(reports[0].request.reason, NP_R_ENDED_BY_REMOVAL);
}

/* Who has gone gets nothing done: by a reset, by an end, by either behind a body that is not read, by a stream's reset. */
static void test_client_goes(void **state)
{
	static char bytes[512u << 10];

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct peer *client = client_of(i == 3 || i == 4);
		size_t len = i == 2 ? sizeof(bytes) : i == 5 ? 100u << 10 : 3;
		struct talk *asked = ask(client, "POST", "/", (long)len);

		settle();
		send_body(client, asked, bytes, len);
		send_end(client, asked, NULL);
		settle();
		assert_int_equal(worker->holds.n, 1);
		if (i == 0 || i == 2)
			end_reset(&client->end);
		else if (i == 3)
			h2_reset(asked->stream, H2_CANCEL);
		else
			client->end.shut = true;
		settle();
		pass_ms(50);
		assert_int_equal(worker->holds.n, 0);
		assert_int_equal(n_reports, i + 1);
		assert_string_equal(reports[i].request.text, "the client went away");
		assert_int_equal(reports[i].request.status, 0);
	}
	assert_int_equal(n_fars, 0);
}

static void test_bound(void **state)
{
	struct sandbox *sandbox = sandbox_find(worker, 1);
	struct peer *client = client_of(false);
	struct talk *asked;

	(void)state;
	sandbox->n_held = NP_HELD_PER_SANDBOX;
	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	assert_memory_equal(asked->words, "429 ", 4);
	assert_report(NP_R_TOO_MANY_REQUESTS, 429, "http://low.test/");
	sandbox->n_held--;
	ask(client, "GET", "/", NO_BODY);
	settle();
	assert_int_equal(worker->holds.n, 1);
	refuse(the_hold());
	sandbox->n_held = 0;
	worker->holds.n = NP_HELD_MAX;
	ask(client, "GET", "/", NO_BODY);
	settle();
	assert_int_equal(n_reports, 3);
	assert_int_equal(reports[2].request.reason, NP_R_TOO_MANY_REQUESTS);
	worker->holds.n = 0;
}

/* -- connections whose bytes pass unseen ----------------------------------------------------------- */

static struct peer *tunnel_client_new(void)
{
	struct peer *client = client_to(80);

	say(client, "CONNECT raw.test:2222 HTTP/1.1\r\nHost: raw.test:2222\r\n\r\n");
	settle();
	assert_non_null(strstr(client->raw.data, "200 Connection established"));
	buf_clear(&client->raw);
	assert_int_equal(worker->holds.n, 1);
	assert_int_equal(n_fars, 0);
	return client;
}

static void test_tunnel_resumed(void **state)
{
	struct peer *client = tunnel_client_new();

	(void)state;
	terms.ms = 60000;
	say(client, "hello");
	settle();
	pass_ms(24000); /* longer than a dial may take */
	assert_false(client->eof);
	resume(the_hold());
	assert_int_equal(n_fars, 1);
	assert_string_equal(fars[0].peer.raw.data, "hello");
	say(&fars[0].peer, "welcome");
	settle();
	assert_string_equal(client->raw.data, "welcome");
	end_close(&client->end);
	end_close(&fars[0].peer.end);
	settle();
	pass_ms(50);
	assert_report(NP_R_RULE_ALLOWS, 0, "raw.test:2222");
	assert_string_equal(reports[0].method, "CONNECT");
	assert_int_equal(reports[0].request.sent, 5);
	assert_int_equal(reports[0].request.received, 7);
}

static void test_tunnel_refused(void **state)
{
	struct peer *client = tunnel_client_new();

	(void)state;
	refuse(the_hold());
	assert_true(client->eof);
	assert_report(NP_R_NEEDS_APPROVAL, 0, "raw.test:2222");
	assert_string_equal(reports[0].request.text, "somebody said no");
	assert_string_equal(reports[0].request.place, "test.yaml:13");
	/* By itself, too. */
	client = tunnel_client_new();
	pass_ms(25050);
	assert_true(client->eof);
	assert_int_equal(n_reports, 2);
	assert_int_equal(reports[1].request.reason, NP_R_NEEDS_APPROVAL);
	assert_string_equal(reports[1].request.text, "nobody answered");
	assert_int_equal(n_fars, 0);
}

static void test_tunnel_ended(void **state)
{
	struct peer *client = tunnel_client_new();

	(void)state;
	end_close(&client->end);
	settle();
	pass_ms(50);
	assert_report(NP_R_RULE_ALLOWS, 0, "raw.test:2222");
	assert_string_equal(reports[0].request.text, "it ended before the origin was reached");
	client = tunnel_client_new();
	policy_send("version: 1\nrules:\n  - deny: raw.test\n");
	settle();
	assert_true(client->eof);
	assert_int_equal(n_reports, 2);
	assert_int_equal(reports[1].request.reason, NP_R_ENDED_BY_RELOAD);
	policy_send(standard_policy);
	settle();
	client = tunnel_client_new();
	/* Where it leads is not known: no rule about addresses speaks of it yet. */
	policy_send("version: 1\nrules:\n  - deny: \"::/8\"\n  - allow: \"raw.test:2222\"\n");
	settle();
	raise_to(LEVEL_CONFIDENTIAL, NP_PROXIED);
	the_hold(); /* it may still */
	raise_to(LEVEL_SECRET, NP_NONE);
	assert_true(client->eof);
	assert_int_equal(n_reports, 3);
	assert_int_equal(reports[2].request.reason, NP_R_ENDED_BY_RAISE);
	assert_int_equal(reports[2].request.rung.mode, NP_NONE);
	assert_int_equal(n_fars, 0);
}

static void test_tunnel_bound(void **state)
{
	struct sandbox *sandbox = sandbox_find(worker, 1);
	struct peer *client = client_to(80);

	(void)state;
	sandbox->n_held = NP_HELD_PER_SANDBOX;
	say(client, "CONNECT raw.test:2222 HTTP/1.1\r\nHost: raw.test:2222\r\n\r\n");
	settle();
	sandbox->n_held = 0;
	assert_true(client->eof);
	assert_report(NP_R_TOO_MANY_REQUESTS, 0, "raw.test:2222");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		hold_test(test_resumed),
		hold_test(test_refused),
		hold_test(test_late),
		hold_test(test_body_waits),
		hold_test(test_body_wanted),
		hold_test(test_body_wanted_later),
		hold_test(test_body_told_later),
		hold_test(test_others_go_on),
		hold_test(test_shown),
		hold_test(test_raised),
		hold_test(test_raised_and_resumed),
		hold_test(test_reloaded),
		hold_test(test_removed),
		hold_test(test_client_goes),
		hold_test(test_bound),
		hold_test(test_tunnel_resumed),
		hold_test(test_tunnel_refused),
		hold_test(test_tunnel_ended),
		hold_test(test_tunnel_bound),
	};

	return cmocka_run_group_tests_name("worker_hold", tests, NULL, NULL);
}
