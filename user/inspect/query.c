/* SPDX-License-Identifier: MIT */
#include "inspect/query.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "limits.h"

#define EDNS_SIZE 1232 /* what passes everywhere without fragments */

/* A socket of c-ares. */
struct watched {
	LIST_ENTRY(watched) link;
	struct asker *asker;
	int fd;
};

LIST_HEAD(watched_list, watched);

struct asker {
	struct loop *loop;
	ares_channel channel;
	bool edns;
	size_t pending;
	struct watched_list watched;
};

/* -- questions ----------------------------------------------------------------- */

static void query_answered(void *arg, int status, int timeouts, unsigned char *data, int len)
{
	struct query *query = arg;
	struct asker *asker = query->asker;
	int error = -EREMOTEIO;

	(void)timeouts;
	query->pending = false;
	asker->pending--;
	if (status == ARES_EDESTRUCTION)
		return;
	if (status == ARES_SUCCESS && len >= NS_HFIXEDSZ) {
		/* A server that does not know EDNS. c-ares asks again by itself, but only the first time. */
		if (query->edns && (data[3] & 0xf) == ns_r_formerr && !data[10] && !data[11]) {
			asker->edns = false;
			query_send(query);
			return;
		}
		error = 0;
	} else if (status == ARES_ETIMEOUT) {
		error = -ETIMEDOUT;
	}
	query->told(query, error, data, len < 0 ? 0 : (size_t)len);
}

void query_send(struct query *query)
{
	struct asker *asker = query->asker;
	int len, status;
	unsigned char *message = NULL;
	unsigned short id;

	/* The id is made here: c-ares 1.18 makes guessable ones where there is no /dev/urandom (CVE-2023-31147). */
	if (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
		query->told(query, -EREMOTEIO, NULL, 0);
		return;
	}
	query->edns = asker->edns;
	status = ares_create_query(query->name, ns_c_in, query->type, id, 1, &message, &len,
				   query->edns ? EDNS_SIZE : 0);
	if (status != ARES_SUCCESS) {
		/* ENOTFOUND: .onion, which is nobody's business (RFC 7686). */
		query->told(query, status == ARES_ENOTFOUND ? -ENOENT : -EREMOTEIO, NULL, 0);
		return;
	}
	query->pending = true;
	asker->pending++;
	ares_send(asker->channel, message, len, query_answered, query);
	ares_free_string(message);
}

void asker_tick(struct asker *asker)
{
	if (asker->pending)
		ares_process_fd(asker->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* -- sockets ------------------------------------------------------------------- */

static void watched_event(void *data, uint32_t events)
{
	struct watched *w = data;
	const uint32_t broken = EPOLLERR | EPOLLHUP;

	/* This may free w. */
	ares_process_fd(w->asker->channel, events & (EPOLLIN | broken) ? w->fd : ARES_SOCKET_BAD,
			events & (EPOLLOUT | broken) ? w->fd : ARES_SOCKET_BAD);
}

/* c-ares wants other events of a socket, or none because it is about to close it. One that cannot be watched is silent:
 * its questions time out. */
static void asker_socket(void *data, ares_socket_t fd, int readable, int writable)
{
	struct asker *asker = data;
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
	struct watched *w = LIST_FIRST(&asker->watched);

	while (w && w->fd != fd)
		w = LIST_NEXT(w, link);
	if (w) {
		loop_unwatch(asker->loop, fd);
	} else if (events) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return;
		w->asker = asker;
		w->fd = fd;
		LIST_INSERT_HEAD(&asker->watched, w, link);
	}
	if (w && (!events || loop_watch(asker->loop, fd, events, watched_event, w) < 0)) {
		LIST_REMOVE(w, link);
		free(w);
	}
}

/* Whatever is not said here, c-ares looks for in files. */
static int asker_connect(struct asker *asker, const char *resolvers)
{
	int servers = 1, status;
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.lookups = (char[]){ "b" },
		.ednspsz = EDNS_SIZE,
		.ndots = 1,
		.sock_state_cb = asker_socket,
		.sock_state_cb_data = asker,
	};

	for (const char *p = resolvers; *p; p++)
		servers += *p == ',';
	/* Each round asks every server, and waits twice as long as the one before. A late answer is welcome, too. */
	options.tries = servers == 1 ? 3 : 2;
	options.timeout = NP_RESOLVE_MS / (servers * ((1 << options.tries) - 1));
	if (options.timeout < 1)
		options.timeout = 1;
	status = ares_init_options(&asker->channel, &options,
				   ARES_OPT_FLAGS | ARES_OPT_LOOKUPS | ARES_OPT_EDNSPSZ | ARES_OPT_NDOTS |
					   ARES_OPT_SOCK_STATE_CB | ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS |
					   ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_SORTLIST | ARES_OPT_NOROTATE);
	if (status != ARES_SUCCESS) {
		asker->channel = NULL;
		return -ENOMEM;
	}
	status = ares_set_servers_ports_csv(asker->channel, resolvers);
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EINVAL;
	return 0;
}

int asker_new(struct loop *loop, const char *resolvers, struct asker **ret)
{
	struct asker *asker = calloc(1, sizeof(*asker));
	int e;

	if (!asker)
		return -ENOMEM;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		free(asker);
		return -ENOMEM;
	}
	asker->loop = loop;
	asker->edns = true;
	LIST_INIT(&asker->watched);
	e = asker_connect(asker, resolvers);
	if (e < 0) {
		asker_free(asker);
		return e;
	}
	*ret = asker;
	return 0;
}

void asker_free(struct asker *asker)
{
	if (!asker)
		return;
	if (asker->channel)
		ares_destroy(asker->channel); /* closes its sockets, and so empties watched */
	ares_library_cleanup();
	free(asker);
}
