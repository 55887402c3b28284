/* SPDX-License-Identifier: MIT */
/*
 * A whole worker between clients and origins of the test: its own code from the socket on, with a dialer, a clock and a TLS of
 * the test's making (tests/fuzz/exchange_seams.h). Nothing waits: settle() lets it work until it would sleep, and time passes
 * only by pass_ms().
 */
#pragma once

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "loop/loop.c"

#include "../../fuzz/exchange_ends.h"
#include "base/log.h"
#include "inspect/exchange.h"
#include "policy/snapshot.h"
#include "worker_peers.h"

#define CLIENTS 16
#define FARS	16
#define REPORTS 64

struct far {
	struct peer peer;
	struct host host;
	uint16_t port;
};

/* What the daemon gets to know. */
struct seen_report {
	struct link_request request;
	char method[32], url[256], tails[LINK_TAILS][256];
};

static const char *const standard_policy = "version: 1\n"
					   "rules:\n"
					   "  - deny: bad.test\n"
					   "  - allow: get.test\n"
					   "    methods: [GET, HEAD]\n"
					   "  - allow: small.test\n"
					   "    max_body: 64B\n"
					   "    timeouts: {idle: 2s, first_byte: 1s, connect: 1s}\n"
					   "  - allow: ws.test\n"
					   "    websocket: true\n"
					   "  - allow: pinned.test\n"
					   "    inspect: false\n"
					   "  - allow: \"raw.test:2222\"\n"
					   "  - allow: low.test\n"
					   "    for: [PUBLIC, INTERNAL, CONFIDENTIAL]\n"
					   "  - allow: seen.test\n"
					   "    capture: 64B\n"
					   "  - allow: [origin.test, h2.test, loop.test, meta.test]\n"
					   "  - allow: 198.51.100.10\n";

static struct worker *worker;
static int link_fd;
static struct worker_fds given;
static struct peer clients[CLIENTS];
static struct far fars[FARS];
static unsigned n_clients, n_fars; /* that there ever were */
static unsigned generation, fds_before;
static struct seen_report reports[REPORTS];
static unsigned n_reports;

/* -- the loop ----------------------------------------------------------------------------- */

static void world_step(void)
{
	bool moved = false;

	for (unsigned i = 0; i < n_clients; i++)
		moved |= peer_move(&clients[i]);
	for (unsigned i = 0; i < n_fars; i++)
		moved |= peer_move(&fars[i].peer);
	if (!moved && !tls_bring_up())
		loop_stop(worker->loop);
}

static void reports_take(void)
{
	static char data[LINK_BYTES_MAX];
	struct ledger *ledger = worker->reporter.ledger;
	const char *tails[LINK_TAILS];
	ssize_t n;

	for (uint64_t next; (n = ledger_next(ledger, ledger->read, data, &next)); ledger->read = next) {
		struct seen_report *r = &reports[n_reports++];

		assert_true(n > 0 && n_reports <= REPORTS);
		assert_int_equal(link_request_next(data, (size_t)n, &r->request, tails), n);
		snprintf(r->method, sizeof(r->method), "%s", tails[LINK_METHOD] ?: "");
		snprintf(r->url, sizeof(r->url), "%s", tails[LINK_URL] ?: "");
		for (int i = 0; i < LINK_TAILS; i++)
			snprintf(r->tails[i], sizeof(r->tails[i]), "%s", tails[i] ?: "");
	}
}

/* Until there is nothing left to do. */
static void settle(void)
{
	worker->loop->stopped = false;
	assert_int_equal(loop_run(worker->loop), 0);
	reports_take();
}

static void pass_ms(uint64_t ms)
{
	settle();
	now_ns += ms * 1000000;
	tick_fn(tick_data);
	settle();
}

/* -- the daemon --------------------------------------------------------------------------- */

static void message_send(enum link_type type, const void *data, size_t len, int fd)
{
	assert_int_equal(link_send(link_fd, type, data, len, fd), 0);
}

static void blob_send(enum link_type type, const void *data, size_t len)
{
	int fd = -1;

	assert_int_equal(link_blob(data, len, &fd), 0);
	message_send(type, NULL, 0, fd);
	close(fd);
}

static void policy_send(const char *text)
{
	_buf_ struct buf record = BUF_INIT(1u << 20);

	snapshot_begin(&record, "", "test.yaml");
	snapshot_add(&record, "test.yaml", text, strlen(text));
	blob_send(LINK_POLICY, record.data, record.len);
}

static void sandbox_send(enum link_type type, uint64_t cgroup_id, enum level level, enum np_mode mode)
{
	struct link_sandbox message = { .cgroup_id = cgroup_id,
					.slot = (uint32_t)cgroup_id,
					.rung = { .level = level, .mode = mode, .generation = ++generation } };

	snprintf(message.session, sizeof(message.session), "test/s");
	message_send(type, &message, sizeof(message), -1);
}

static void raise_to(enum level level, enum np_mode mode)
{
	uint32_t number = 0;

	sandbox_send(LINK_SANDBOX, 1, level, mode);
	message_send(LINK_SYNC, &number, sizeof(number), -1);
	settle();
}

static void remove_sandbox(void)
{
	sandbox_send(LINK_GONE, 1, LEVEL_CONFIDENTIAL, NP_PROXIED);
	settle();
}

/* -- peers -------------------------------------------------------------------------------- */

static struct peer *client_to(uint16_t port)
{
	struct peer *peer = &clients[n_clients++];
	int near;

	assert_true(n_clients <= CLIENTS);
	peer_init(peer);
	end_open(&peer->end, &near);
	nears[near].flow = (struct np_flow){
		.cgroup_id = 1, .addr = np_addr_v4(np_net32(0xc633640a)), .port = port, .generation = generation
	};
	client_accept(worker, near);
	worker_flush(worker);
	return peer;
}

/* A client that speaks to the host. What it says in TLS comes behind the hello, as it is. */
static struct peer *client_tls(const char *host, bool h2)
{
	struct peer *peer = client_to(443);

	nears[peer->end.near].h2 = h2;
	hello_send(&peer->end, host, strlen(host));
	peer_move(peer);
	peer_speak(peer, false, h2);
	snprintf(peer->host, sizeof(peer->host), "%s", host);
	settle();
	return peer;
}

static struct peer *client_plain(const char *host)
{
	struct peer *peer = client_to(80);

	peer_speak(peer, false, false);
	snprintf(peer->host, sizeof(peer->host), "%s", host);
	return peer;
}

static void far_tls(struct far *far)
{
	peer_free_codec(&far->peer);
	peer_speak(&far->peer, true, nears[far->peer.end.near].h2);
}

static int far_new(const struct host *host, uint16_t port, uint64_t cgroup_id, bool opaque)
{
	struct far *far = &fars[n_fars++];
	int near;

	(void)cgroup_id;
	assert_true(n_fars <= FARS);
	peer_init(&far->peer);
	end_open(&far->peer.end, &near);
	nears[near].far = far;
	nears[near].h2 = !strncmp(host->name, "h2.", 3);
	far->host = *host;
	far->port = port;
	if (!opaque)
		peer_speak(&far->peer, true, false);
	return near;
}

/* -- all of it ----------------------------------------------------------------------------- */

static unsigned fds_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int world_start(void **state)
{
	struct link_ca ca = { .session = "test/s", .len = 1 };
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	log_setup("test", LOG_LEVEL_ERROR);
	fds_before = fds_open();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	link_fd = fds[0];
	now_ns = 1000000000000;
	generation = n_clients = n_fars = n_reports = rounds = 0;
	dial_fate = DIAL_WORKS;
	n_dials = 0;
	ends_small = false;
	given = (struct worker_fds){ .link = fds[1], .dns_origins = memfd_create("asks", MFD_CLOEXEC) };
	assert_int_equal(ftruncate(given.dns_origins, NP_DNS_ORIGINS * sizeof(struct np_dns_origin)), 0);
	for (unsigned i = 0; i < 2; i++) {
		given.listeners[i] = eventfd(0, EFD_CLOEXEC);
		given.dns[i] = eventfd(0, EFD_CLOEXEC);
	}
	assert_int_equal(worker_new(&given, &worker), 0);
	blob_send(LINK_SETTINGS, "\0", 2);
	policy_send(standard_policy);
	blob_send(LINK_ROOTS, "", 0);
	sandbox_send(LINK_SANDBOX, 1, LEVEL_INTERNAL, NP_PROXIED);
	message_send(LINK_CA, &ca, sizeof(ca), -1);
	blob_send(LINK_BATCH, "", 0);
	settle();
	assert_true(worker->ready);
	return 0;
}

/* All have gone, and nothing of them is left. */
static int world_stop(void **state)
{
	const struct sandbox *sandbox;

	(void)state;
	dial_fate = DIAL_FAILS;
	for (unsigned i = 0; i < n_clients; i++)
		end_close(&clients[i].end);
	for (unsigned i = 0; i < n_fars; i++)
		end_close(&fars[i].peer.end);
	for (int i = 0; i < 3; i++)
		pass_ms(301000);
	assert_true(TAILQ_EMPTY(&worker->holds.list) && !worker->holds.n && !worker->n_clients);
	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox)) {
		assert_int_equal(sandbox->n_clients + sandbox->n_exchanges + sandbox->n_held, 0);
		assert_true(LIST_EMPTY(&sandbox->session->pool.upstreams));
		assert_int_equal(sandbox->memory.held + sandbox->session->memory.held, 0);
	}
	worker_free(worker);
	for (unsigned i = 0; i < n_clients; i++)
		peer_free(&clients[i]);
	for (unsigned i = 0; i < n_fars; i++)
		peer_free(&fars[i].peer);
	for (size_t i = 0; i < 2; i++) {
		close(given.listeners[i]);
		close(given.dns[i]);
	}
	close(given.dns_origins);
	close(given.link);
	close(link_fd);
	assert_int_equal(fds_open(), fds_before);
	return 0;
}

#define world_test(name) cmocka_unit_test_setup_teardown(name, world_start, world_stop)

/* The one report that there is. */
static const struct seen_report *the_report(void)
{
	assert_int_equal(n_reports, 1);
	return &reports[0];
}

static void assert_report(enum np_reason reason, unsigned status, const char *url)
{
	const struct seen_report *r = the_report();

	assert_int_equal(r->request.reason, reason);
	assert_int_equal(r->request.status, status);
	assert_string_equal(r->url, url);
}
