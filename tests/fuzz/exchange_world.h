/* SPDX-License-Identifier: MIT */
/* What is around the worker: the far ends of its connections, and the daemon. */
#pragma once

#include <sys/ioctl.h>

#include "vocab/words.h"
#include "exchange_read.h"
#include "exchange_ends.h"

#define CLIENTS	   4
#define FARS	   16
#define SANDBOXES  3
#define SESSIONS   2
#define PIECES_MAX 256
#define STEPS_MAX  20000 /* wake-ups, all together */

enum { FLAG_CUT = 1, FLAG_NO_CA = 2, FLAG_SMALL = 4, FLAG_HOLD = 8, FLAG_FILTER = 16 };

struct far {
	struct end end;
	struct origin origin;
	struct host host;
	uint16_t port;
	unsigned session;
};

static const char *const sessions[SESSIONS] = { "fuzz/a", "fuzz/b" };
static const unsigned session_of[SANDBOXES] = { 0, 0, 1 };

static struct worker *worker;
static int link_fd;
static struct end clients[CLIENTS];
static struct far fars[FARS];
static unsigned policy, generation, pieces, steps;
static bool closed[SESSIONS], held;
static const uint8_t *input, *input_end;
static unsigned flags, ending;

/* Made once. */
static int blob_settings, blob_batch, blob_policies[ARRAY_SIZE(policies)];
static struct link_ca cas[SESSIONS];

/* -- ends --------------------------------------------------------------------------------- */

/* Moves bytes both ways. True when some were moved. */
static bool end_move(struct end *end, struct origin *origin)
{
	static char data[64 << 10];
	bool moved = false;
	ssize_t n;

	if (end->fd < 0)
		return false;
	while (!end->deaf && (n = __real_recv(end->fd, data, sizeof(data), 0)) > 0) {
		moved = true;
		if (origin)
			origin_read(origin, data, (size_t)n);
	}
	n = end->out.len ? send(end->fd, end->out.data, end->out.len, MSG_NOSIGNAL) : 0;
	if (n > 0) {
		buf_drop(&end->out, (size_t)n);
		moved = true;
	} else if (n < 0 && errno != EAGAIN) {
		buf_clear(&end->out);
	}
	if (end->shut && !end->out.len)
		shutdown(end->fd, SHUT_WR);
	return moved;
}

static bool ends_move(void)
{
	bool moved = false;

	for (size_t i = 0; i < CLIENTS; i++)
		moved |= end_move(&clients[i], NULL);
	for (size_t i = 0; i < FARS; i++)
		moved |= end_move(&fars[i].end, &fars[i].origin);
	return moved;
}

/* -- origins -------------------------------------------------------------------------------- */

static void far_close(struct far *far)
{
	end_close(&far->end);
	origin_clear(&far->origin);
	origin_init(&far->origin);
}

static void far_name(struct far *far, bool tls)
{
	struct origin *o = &far->origin;
	int n;

	o->port = far->port;
	if (far->host.is_addr)
		addr_format(&far->host.addr, o->name);
	else
		memcpy(o->name, far->host.name, sizeof(far->host.name));
	n = snprintf(o->authority, sizeof(o->authority), strchr(o->name, ':') ? "[%s]" : "%s", o->name);
	if (o->port != (tls ? 443 : 80))
		snprintf(o->authority + n, sizeof(o->authority) - (size_t)n, ":%u", o->port);
}

static int far_new(const struct host *host, uint16_t port, uint64_t cgroup_id, bool opaque)
{
	struct far *far = NULL;
	int near;

	for (size_t i = 0; i < FARS && !far; i++)
		if (fars[i].end.fd < 0)
			far = &fars[i];
	if (!far)
		return -1;
	far_close(far);
	end_open(&far->end, &near);
	nears[near].far = far;
	nears[near].h2 = !strcmp(host->name, "h2.test");
	far->host = *host;
	far->port = port;
	far->session = session_of[cgroup_id - 1];
	check(!closed[far->session]);
	far->origin.policy = policy;
	far->origin.opaque = opaque;
	far_name(far, false);
	return near;
}

static void far_tls(struct far *far)
{
	far_name(far, true);
	far->origin.h2 = nears[far->end.near].h2;
}

static void far_send(struct far *far, const void *data, size_t len)
{
	/* Both ways are free after this, for who asked for it. */
	if (far->origin.request.upgrade && far->origin.state == ORIGIN_START && memmem(data, len, " 101", 4))
		far->origin.opaque = true;
	end_send(&far->end, data, len);
}

static void fars_rejudge(unsigned session, bool all)
{
	for (size_t i = 0; i < FARS; i++) {
		int unread = 0;

		if (fars[i].end.fd < 0 || (!all && fars[i].session != session))
			continue;
		ioctl(fars[i].end.fd, FIONREAD, &unread);
		origin_rejudge(&fars[i].origin, policy, closed[fars[i].session], (size_t)unread);
	}
}

/* -- the daemon ------------------------------------------------------------------------------- */

static void message_send(enum link_type type, const void *data, size_t len, int fd)
{
	check(link_send(link_fd, type, data, len, fd) == 0);
}

static void send_sandbox(enum link_type type, unsigned sandbox, enum level level, enum np_mode mode)
{
	struct link_sandbox message = { .cgroup_id = sandbox + 1,
					.slot = sandbox + 1,
					.rung = { .level = level, .mode = mode, .generation = ++generation } };

	snprintf(message.session, sizeof(message.session), "%s", sessions[session_of[sandbox]]);
	message_send(type, &message, sizeof(message), -1);
}

/* Sandboxes of one session change together. */
static void escalate(unsigned session, enum np_mode mode)
{
	closed[session] = true;
	fars_rejudge(session, false);
	for (unsigned i = 0; i < SANDBOXES; i++)
		if (session_of[i] == session)
			send_sandbox(LINK_SANDBOX, i, LEVEL_SECRET, mode);
}

static void reload(void)
{
	policy = !policy;
	fars_rejudge(0, true);
	message_send(LINK_POLICY, NULL, 0, blob_policies[policy]);
}

/* What the worker reports can be read, and every request that it has judged is reported, suppressed or open. */
static void receive(void)
{
	static char data[LINK_BYTES_MAX];
	struct ledger *ledger = worker->reporter.ledger;
	const char *tails[LINK_TAILS];
	struct link_request request;
	enum link_type type;
	size_t len;
	ssize_t n;

	while (link_receive(link_fd, &type, data, &len, NULL) == 0)
		check(type == LINK_READY || type == LINK_REQUESTS);
	for (uint64_t next; (n = ledger_next(ledger, ledger->read, data, &next)); ledger->read = next) {
		check(n > 0 && link_request_next(data, (size_t)n, &request, tails) == n);
		check(request.cgroup_id && request.cgroup_id <= SANDBOXES);
		ledger->slots[request.cgroup_id - 1].taken++;
	}
	for (unsigned i = 0; i < SANDBOXES; i++)
		check(ledger->slots[i].taken + ledger->slots[i].suppressed <= ledger->slots[i].requests &&
		      ledger->slots[i].refused <= ledger->slots[i].requests);
}
