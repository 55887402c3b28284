/* SPDX-License-Identifier: MIT */
#include "../resolver/dns.h"

#include "net/dial.c"

#include <fcntl.h>

#include "vocab/words.h"
#include "vocab/limits.h"

static const struct zone zones[] = {
	{ "v4.test", .text = { NULL, "127.0.0.1" }, .ttl_s = 60 },
	{ "v6.test", .text = { "::1", NULL }, .ttl_s = 60 },
	{ "both.test", .text = { "::1", "127.0.0.1" }, .ttl_s = 60 },
	{ "mapped.test", .text = { "::ffff:127.0.0.1", NULL }, .ttl_s = 60 },
	{ "nat64.test", .text = { "64:ff9b::7f00:1 2002:7f00:1::1", "127.0.0.1" }, .ttl_s = 60 },
	{ "many.test",
	  .text = { "::1 2001:db8::1 2001:db8::2 2001:db8::3 2001:db8::4 2001:db8::5 2001:db8::6 2001:db8::7 "
		    "2001:db8::8 "
		    "2001:db8::9",
		    "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6 127.0.0.7 127.0.0.8 127.0.0.9 "
		    "127.0.0.10" },
	  .ttl_s = 60 },
	{ "five.test", .text = { NULL, "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5" }, .ttl_s = 60 },
	{ "three.test", .text = { NULL, "127.0.0.1 127.0.0.2 127.0.0.3" }, .ttl_s = 60 },
	{ "no-v6-answer.test", .text = { NULL, "127.0.0.1" }, .ttl_s = 60, .quirk = { SILENT, FINE } },
	{ "no-v4-answer.test", .text = { "::1", NULL }, .ttl_s = 60, .quirk = { FINE, SILENT } },
	{ "silent.test", .quirk = { SILENT, SILENT } },
	{ "servfail.test", .quirk = { FAILING, FAILING } },
	{ "tcp.test", .text = { "::1", "127.0.0.1" }, .ttl_s = 60, .quirk = { TRUNCATED, TRUNCATED } },
	{ "alias.test", .cname = "v4.test", .ttl_s = 60 },
	{ 0 },
};

static struct dialer *dialer;

static void tick(void)
{
	dialer_tick(dialer);
}

static int setup(void **state)
{
	struct dialer_config config;

	(void)state;
	dns_new(zones);
	config = (struct dialer_config){ .loop = dns.loop,
					 .resolvers = dns.servers,
					 .hosts = "127.0.0.1 hosted.test\n" };
	assert_int_equal(dialer_new(&config, &dialer), 0);
	dns.tick = tick;
	return 0;
}

/* -- where to dial ------------------------------------------------------------- */

/* Listeners on one port; what a test does not want is not there, or does not answer. */
static struct {
	int v4, v6;
	uint16_t port;
	int stuffed[16]; /* connections that fill a backlog */
	size_t n_stuffed;
} origin;

static int listen_on(const char *text, uint16_t port, int backlog)
{
	union sockaddr_inet to;
	struct np_addr addr;
	const int one = 1;
	int fd;

	assert_int_equal(addr_parse(text, strlen(text), &addr), 0);
	to = sockaddr_of(&addr, port);
	fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &to.sa, sockaddr_len(&to)) < 0 || listen(fd, backlog) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A port that is free in both families; nothing listens on it yet. */
static void origin_pick(void)
{
	memset(&origin, 0, sizeof(origin));
	origin.v4 = origin.v6 = -1;
	for (int i = 0; i < 50; i++) {
		struct sockaddr_in addr;
		socklen_t len = sizeof(addr);
		int v4 = listen_on("0.0.0.0", 0, 1), v6;

		assert_int_equal(getsockname(v4, (struct sockaddr *)&addr, &len), 0);
		origin.port = ntohs(addr.sin_port);
		v6 = listen_on("::1", origin.port, 1);
		close(v4);
		if (v6 >= 0) {
			close(v6);
			return;
		}
	}
	fail_msg("no port is free in both families");
}

static void origin_listen(bool v4, bool v6)
{
	origin_pick();
	if (v4)
		origin.v4 = listen_on("127.0.0.1", origin.port, 64);
	if (v6)
		origin.v6 = listen_on("::1", origin.port, 64);
	assert_true((!v4 || origin.v4 >= 0) && (!v6 || origin.v6 >= 0));
}

/* Listens and never answers: the backlog is full, so the kernel drops what comes. */
static int listen_dead(const char *text)
{
	int fd = listen_on(text, origin.port, 0);
	union sockaddr_inet to;
	struct np_addr addr;

	assert_true(fd >= 0);
	assert_int_equal(addr_parse(text, strlen(text), &addr), 0);
	to = sockaddr_of(&addr, origin.port);
	for (int i = 0; i < 3; i++) {
		int client = socket(to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		assert_true(client >= 0 && origin.n_stuffed < ARRAY_SIZE(origin.stuffed));
		origin.stuffed[origin.n_stuffed++] = client;
		assert_true(connect(client, &to.sa, sockaddr_len(&to)) == 0 || errno == EINPROGRESS);
	}
	return fd;
}

static int teardown(void **state)
{
	(void)state;
	dialer_free(dialer);
	for (size_t i = 0; i < origin.n_stuffed; i++)
		close(origin.stuffed[i]);
	if (origin.v4 > 0)
		close(origin.v4);
	if (origin.v6 > 0)
		close(origin.v6);
	memset(&origin, 0, sizeof(origin));
	dns_free();
	return 0;
}

/* -- somebody who dials -------------------------------------------------------- */

struct caller {
	struct dial *dial;
	struct dial_result result;
	int done;
	bool starting;
	const char *forbidden; /* addresses that may not be dialled; "*" for all */
	char seen[1024];       /* what may() was asked, in order */
	struct dial **cancels; /* another one, to be cancelled when this one is done */
};

static int all_done;

static bool caller_may(void *ctx, const struct route *route)
{
	struct caller *c = ctx;
	char text[ADDR_TEXT_SIZE];

	addr_format(&route->addr, text);
	if (*c->seen)
		strcat(c->seen, " ");
	strcat(c->seen, text);
	for (const char *name = route->aliases ? route->aliases->names : ""; *name; name += strlen(name) + 1) {
		strcat(c->seen, "<");
		strcat(c->seen, name);
	}
	return !c->forbidden || (strcmp(c->forbidden, "*") != 0 && !strstr(c->forbidden, text));
}

static void caller_done(void *ctx, const struct dial_result *result)
{
	struct caller *c = ctx;

	assert_false(c->starting);
	assert_int_equal(c->done, 0);
	c->done = 1;
	c->result = *result;
	all_done++;
	if (c->cancels) {
		dial_cancel(*c->cancels);
		*c->cancels = NULL;
	}
	assert_int_equal(result->words != NULL, result->error != 0);
	assert_int_equal(result->fd >= 0, result->error == 0);
}

static int host_dial(const char *text, dial_done_fn *done, struct caller *c)
{
	struct host host;
	struct dial_terms terms = { .host = &host, .port = origin.port, .may = caller_may, .done = done, .ctx = c };

	assert_int_equal(host_parse(text, strlen(text), &host), 0);
	return dial_start(dialer, &terms, &c->dial);
}

static void caller_dial(struct caller *c, const char *text)
{
	c->starting = true;
	assert_int_equal(host_dial(text, caller_done, c), 0);
	c->starting = false;
	assert_int_equal(c->done, 0);
}

static void expect_connected(const struct caller *c, const char *to)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	char text[ADDR_TEXT_SIZE];
	int nodelay = 0;

	if (c->result.error)
		fail_msg("%s", c->result.words);
	addr_format(&c->result.route.addr, text);
	assert_string_equal(text, to);
	assert_false(c->result.refused);
	assert_int_equal(getpeername(c->result.fd, (struct sockaddr *)&peer, &len), 0);
	assert_true(fcntl(c->result.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(c->result.fd, F_GETFD) & FD_CLOEXEC);
	len = sizeof(nodelay);
	assert_int_equal(getsockopt(c->result.fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len), 0);
	assert_true(nodelay);
	close(c->result.fd);
}

static void expect_failed(const struct caller *c, int error, const char *words)
{
	assert_int_equal(c->result.error, error);
	assert_string_equal(c->result.words, words);
	assert_int_equal(c->result.fd, -1);
}

static struct caller dial_text(const char *text)
{
	static struct caller c;

	c = (struct caller){ 0 };
	caller_dial(&c, text);
	run_until(&c.done, 1);
	return c;
}

static unsigned ms_since(uint64_t start)
{
	return (unsigned)((loop_now_ns() - start) / NS_PER_MS);
}

/* -- tests --------------------------------------------------------------------- */

static void one_family(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(true, true);
	c = dial_text("v4.test");
	expect_connected(&c, "127.0.0.1");
	assert_true(c.result.dns_us < 300000 && c.result.connect_us < 300000);
	c = dial_text("v6.test");
	expect_connected(&c, "::1");
	assert_string_equal(c.seen, "::1");
	c = dial_text("alias.test"); /* once from the resolvers, once from memory */
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "127.0.0.1<v4.test");
	c = dial_text("alias.test");
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "127.0.0.1<v4.test");
	c = dial_text("tcp.test");
	expect_connected(&c, "::1");
	c = dial_text("hosted.test");
	expect_connected(&c, "127.0.0.1");
}

static void literals(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(true, true);
	c = dial_text("127.0.0.1");
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "127.0.0.1");
	c = dial_text("[::1]");
	expect_connected(&c, "::1");
	assert_int_equal(dns.wanted[FAMILY_V4], 0);
	c = (struct caller){ .forbidden = "*" };
	caller_dial(&c, "127.0.0.1");
	run_until(&c.done, 1);
	expect_failed(&c, -EACCES, "the address may not be reached");
	assert_true(c.result.refused);
}

static void ipv6_goes_first(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(true, true);
	c = dial_text("both.test");
	expect_connected(&c, "::1");
	assert_string_equal(c.seen, "::1");
}

static void ipv6_that_is_refused_costs_nothing(void **state)
{
	uint64_t start;
	struct caller c;

	(void)state;
	origin_listen(true, false);
	dial_text("missing.test"); /* the resolver is warm */
	start = loop_now_ns();
	c = dial_text("both.test");
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "::1 127.0.0.1");
	assert_true(ms_since(start) < NP_EYEBALL_MS);
}

static void ipv6_that_is_dead_costs_a_head_start(void **state)
{
	uint64_t start;
	struct caller c;

	(void)state;
	origin_listen(true, false);
	origin.v6 = listen_dead("::1");
	start = loop_now_ns();
	c = dial_text("both.test");
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "::1 127.0.0.1");
	assert_in_range(ms_since(start), NP_EYEBALL_MS, NP_CONNECT_MS - 1);
	assert_true(c.result.connect_us >= NP_EYEBALL_MS * 1000);

	c = dial_text("v6.test"); /* alone, it takes as long as it may */
	expect_failed(&c, -ETIMEDOUT, "timed out");
	assert_in_range(c.result.connect_us, NP_CONNECT_MS * 1000, NP_CONNECT_MS * 1000 + 500000);
	assert_true(np_addr_is_loopback(&c.result.route.addr));

	memset(&c, 0, sizeof(c)); /* or as long as it is given */
	caller_dial(&c, "v6.test");
	dial_set_connect(c.dial, NP_CONNECT_MS + 200);
	run_until(&c.done, 1);
	expect_failed(&c, -ETIMEDOUT, "timed out");
	assert_true(c.result.connect_us >= (NP_CONNECT_MS + 200) * 1000);
}

static void nothing_listens(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(false, false);
	c = dial_text("both.test");
	expect_failed(&c, -ECONNREFUSED, "connection refused");
	assert_false(c.result.refused);
	assert_string_equal(c.seen, "::1 127.0.0.1");
	c = dial_text("127.0.0.1");
	expect_failed(&c, -ECONNREFUSED, "connection refused");
}

static void families_take_turns(void **state)
{
	struct caller c = { .forbidden = "*" };

	(void)state;
	origin_listen(false, false);
	caller_dial(&c, "many.test");
	run_until(&c.done, 1);
	assert_true(c.result.refused);
	assert_string_equal(c.seen, "::1 127.0.0.1 2001:db8::1 127.0.0.2 2001:db8::2 127.0.0.3 2001:db8::3 127.0.0.4 "
				    "2001:db8::4 127.0.0.5 2001:db8::5 127.0.0.6 2001:db8::6 127.0.0.7 2001:db8::7 "
				    "127.0.0.8"); /* NP_ADDRS_PER_NAME */
}

static void what_may_not_be_reached_is_not(void **state)
{
	struct caller c = { .forbidden = "::1" };

	(void)state;
	origin_listen(true, true);
	caller_dial(&c, "both.test");
	run_until(&c.done, 1);
	expect_connected(&c, "127.0.0.1");

	c = (struct caller){ .forbidden = "::1 127.0.0.1" };
	caller_dial(&c, "both.test");
	run_until(&c.done, 1);
	expect_failed(&c, -EACCES, "the address may not be reached");
	assert_true(c.result.refused);
	assert_string_equal(c.seen, "::1 127.0.0.1");

	close(origin.v4);
	origin.v4 = -1;
	c = (struct caller){ .forbidden = "::1" }; /* one forbidden, one failed */
	caller_dial(&c, "both.test");
	run_until(&c.done, 1);
	expect_failed(&c, -ECONNREFUSED, "connection refused");
	assert_false(c.result.refused);

	/* Not a packet went to what was forbidden. */
	assert_int_equal(fcntl(origin.v6, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(accept(origin.v6, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

/* may() sees what was resolved; what it lets pass is what is dialled. */
static void carried_addresses_are_shown(void **state)
{
	struct caller c = { .forbidden = "64:ff9b::7f00:1 2002:7f00:1::1" };

	(void)state;
	origin_listen(true, false);
	caller_dial(&c, "nat64.test");
	run_until(&c.done, 1);
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "64:ff9b::7f00:1 127.0.0.1");

	c = dial_text("mapped.test");
	expect_connected(&c, "127.0.0.1");
	assert_string_equal(c.seen, "127.0.0.1");
	c = (struct caller){ .forbidden = "127.0.0.1" };
	caller_dial(&c, "mapped.test");
	run_until(&c.done, 1);
	assert_true(c.result.refused);
}

static void names_that_fail(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(true, true);
	c = dial_text("missing.test");
	expect_failed(&c, -ENOENT, "the name does not exist");
	c = dial_text("missing.test"); /* remembered, and still not told at once */
	expect_failed(&c, -ENOENT, "the name does not exist");
	c = dial_text("servfail.test");
	expect_failed(&c, -EREMOTEIO, "the resolvers gave no usable answer");
	c = dial_text("silent.test");
	expect_failed(&c, -ETIMEDOUT, "the resolvers did not answer in time");
	assert_in_range(c.result.dns_us, NP_RESOLVE_MS * 1000 - 20000, NP_RESOLVE_MS * 1000 + 300000);
	assert_int_equal(c.result.connect_us, 0);
	assert_string_equal(c.seen, "");
}

static void a_silent_family_does_not_hold_up_the_other(void **state)
{
	uint64_t start = loop_now_ns();
	struct caller c;

	(void)state;
	origin_listen(true, true);
	c = dial_text("no-v6-answer.test");
	expect_connected(&c, "127.0.0.1");
	assert_in_range(ms_since(start), NP_LAGGARD_MS, NP_RESOLVE_MS - 50);
	assert_true(c.result.dns_us >= NP_LAGGARD_MS * 1000);
	start = loop_now_ns();
	c = dial_text("no-v4-answer.test");
	expect_connected(&c, "::1");
	assert_true(ms_since(start) < NP_RESOLVE_MS - 50);
}

/* The first addresses fail at once; the end waits for the family that has not answered. */
static void the_slower_family_gets_its_chance(void **state)
{
	struct caller c;

	(void)state;
	origin_listen(false, false);
	c = dial_text("no-v6-answer.test");
	expect_failed(&c, -ECONNREFUSED, "connection refused");
	c = (struct caller){ .forbidden = "*" };
	caller_dial(&c, "no-v4-answer.test");
	run_until(&c.done, 1);
	assert_true(c.result.refused);
}

/* One does not answer, the next one fails: the third does not wait for its turn. */
static void a_failure_calls_the_next(void **state)
{
	uint64_t start = loop_now_ns();
	struct caller c;
	int dead;

	(void)state;
	origin_pick();
	dead = listen_dead("127.0.0.1");
	origin.v4 = listen_on("127.0.0.3", origin.port, 64);
	c = dial_text("three.test");
	expect_connected(&c, "127.0.0.3");
	assert_in_range(ms_since(start), NP_EYEBALL_MS, 2 * NP_EYEBALL_MS - 20);
	close(dead);
}

static void only_so_many_at_once(void **state)
{
	struct caller c = { 0 };
	int dead[5];

	(void)state;
	origin_pick();
	for (int i = 0; i < 5; i++) {
		char text[32];

		snprintf(text, sizeof(text), "127.0.0.%d", i + 1);
		dead[i] = listen_dead(text);
	}
	caller_dial(&c, "five.test");
	run_for(5 * NP_EYEBALL_MS);
	assert_int_equal(c.dial->flying, NP_EYEBALLS_MAX);
	assert_string_equal(c.seen, "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4");
	run_until(&c.done, 1);
	expect_failed(&c, -ETIMEDOUT, "timed out");
	for (int i = 0; i < 5; i++)
		close(dead[i]);
}

static void fifty_dials_ask_once(void **state)
{
	struct caller callers[50] = { 0 };

	(void)state;
	origin_listen(true, true);
	all_done = 0;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		caller_dial(&callers[i], "both.test");
	run_until(&all_done, ARRAY_SIZE(callers));
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		expect_connected(&callers[i], "::1");
	assert_int_equal(dns.wanted[FAMILY_V6], 1);
	assert_int_equal(dns.wanted[FAMILY_V4], 1);
}

/* -- cancelling ---------------------------------------------------------------- */

static void cancel_after(const char *text, const char *forbidden, unsigned ms)
{
	struct caller c = { .forbidden = forbidden };
	int fds = fds_open();

	caller_dial(&c, text);
	if (ms)
		run_for(ms);
	assert_int_equal(c.done, 0);
	dial_cancel(c.dial);
	run_for(150);
	assert_int_equal(c.done, 0);
	if (ms || *text != 's') /* a question may still be open */
		assert_true(fds_open() <= fds + 1);
}

static void cancel_in_every_state(void **state)
{
	(void)state;
	dial_cancel(NULL);
	origin_listen(true, false);
	origin.v6 = listen_dead("::1");
	cancel_after("silent.test", NULL, 0);	     /* asked, nothing heard */
	cancel_after("silent.test", NULL, 60);	     /* asked again */
	cancel_after("no-v6-answer.test", NULL, 20); /* one family there, waiting for the other */
	cancel_after("v6.test", NULL, 60);	     /* connecting */
	cancel_after("127.0.0.1", NULL, 0);	     /* connected, nobody knows it yet */
	cancel_after("127.0.0.1", "*", 0);	     /* failed, not told */
	cancel_after("hosted.test", NULL, 0);
	run_for(2 * NP_RESOLVE_MS);
}

/* A result that is on its way holds a socket. */
static void cancel_with_a_result(void **state)
{
	struct caller c = { 0 };

	(void)state;
	origin_listen(true, false);
	caller_dial(&c, "127.0.0.1");
	attempt_event(&c.dial->attempts[0], EPOLLOUT);
	assert_true(c.dial->finished && c.dial->result.fd >= 0);
	dial_cancel(c.dial);
	run_for(30);
	assert_int_equal(c.done, 0);
}

static void cancel_from_another_dial(void **state)
{
	struct caller first = { .forbidden = "*" }, second = { 0 }, third = { .forbidden = "*" };

	(void)state;
	origin_listen(true, true);
	first.cancels = &third.dial; /* told in the same round, later */
	caller_dial(&first, "127.0.0.1");
	caller_dial(&second, "both.test");
	caller_dial(&third, "127.0.0.1");
	second.cancels = &third.dial;
	run_until(&second.done, 1);
	assert_int_equal(first.done, 1);
	assert_int_equal(third.done, 0);
	expect_connected(&second, "::1");
}

static struct caller chained[5];

static void chained_done(void *ctx, const struct dial_result *result)
{
	struct caller *c = ctx;

	caller_done(c, result);
	if (result->fd >= 0)
		close(result->fd);
	if (c + 1 == chained + ARRAY_SIZE(chained))
		return;
	assert_int_equal(host_dial("both.test", chained_done, c + 1), 0);
	assert_int_equal(c[1].done, 0);
}

static void dial_from_done(void **state)
{
	(void)state;
	origin_listen(true, true);
	memset(chained, 0, sizeof(chained));
	chained[1].forbidden = "*";
	assert_int_equal(host_dial("both.test", chained_done, chained), 0);
	run_until(&chained[ARRAY_SIZE(chained) - 1].done, 1);
	assert_true(chained[1].result.refused);
	assert_int_equal(dns.wanted[FAMILY_V4], 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_family),
		TEST(literals),
		TEST(ipv6_goes_first),
		TEST(ipv6_that_is_refused_costs_nothing),
		TEST(ipv6_that_is_dead_costs_a_head_start),
		TEST(nothing_listens),
		TEST(families_take_turns),
		TEST(what_may_not_be_reached_is_not),
		TEST(carried_addresses_are_shown),
		TEST(names_that_fail),
		TEST(a_silent_family_does_not_hold_up_the_other),
		TEST(the_slower_family_gets_its_chance),
		TEST(a_failure_calls_the_next),
		TEST(only_so_many_at_once),
		TEST(fifty_dials_ask_once),
		TEST(cancel_in_every_state),
		TEST(cancel_with_a_result),
		TEST(cancel_from_another_dial),
		TEST(dial_from_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
