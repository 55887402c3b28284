/* SPDX-License-Identifier: MIT */
#include "resolver/nameservers.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "net/linger.h"
#include "vocab/limits.h"

#define EDNS_SIZE 1232 /* what passes everywhere without fragments */

/* A socket of c-ares. */
struct watched {
	LIST_ENTRY(watched) link;
	struct transmission *transmission;
	int fd;
};

LIST_HEAD(watched_list, watched);
LIST_HEAD(query_list, query);

/* Queries on the wire that are wanted as long as one another. They have a channel of c-ares to themselves: c-ares repeats
 * what is not answered and has no call that takes back one query of a channel, but destroying a channel ends all that it
 * does. */
struct transmission {
	LIST_ENTRY(transmission) link;
	struct nameservers *nameservers;
	struct query_list queries; /* none: it is over */
	ares_channel channel;
	struct watched_list watched;
};

LIST_HEAD(transmission_list, transmission);

struct nameservers {
	struct loop *loop;
	char *resolvers;
	bool edns;
	struct transmission_list pending;
	struct transmission_list
		over; /* c-ares is still at work on them when it tells the answer: freed from the loop */
	struct loop_task task;
};

/* -- sockets ------------------------------------------------------------------- */

static void watched_event(void *data, uint32_t events)
{
	struct watched *w = data;
	const uint32_t broken = EPOLLERR | EPOLLHUP;

	/* This may free w. */
	ares_process_fd(w->transmission->channel, events & (EPOLLIN | broken) ? w->fd : ARES_SOCKET_BAD,
			events & (EPOLLOUT | broken) ? w->fd : ARES_SOCKET_BAD);
}

/* c-ares wants other events of a socket, or none because it is about to close it. One that cannot be watched is silent:
 * its questions time out. */
static void transmission_socket(void *data, ares_socket_t fd, int readable, int writable)
{
	struct transmission *t = data;
	struct loop *loop = t->nameservers->loop;
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
	struct watched *w = LIST_FIRST(&t->watched);

	while (w && w->fd != fd)
		w = LIST_NEXT(w, link);
	if (w) {
		loop_unwatch(loop, fd);
	} else if (events) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return;
		w->transmission = t;
		w->fd = fd;
		LIST_INSERT_HEAD(&t->watched, w, link);
	}
	if (w && (!events || loop_watch(loop, fd, events, watched_event, w) < 0)) {
		LIST_REMOVE(w, link);
		free(w);
	}
}

/* Over TCP a query may wait in the socket. */
static int transmission_configure(ares_socket_t fd, int type, void *data)
{
	(void)data;
	if (type == SOCK_STREAM)
		reset_on_close(fd);
	return 0;
}

/* -- channels ------------------------------------------------------------------ */

/* Whatever is not said here, c-ares looks for in files. 0, -ENOMEM or -EINVAL. */
static int channel_open(const char *resolvers, struct transmission *t)
{
	int servers = 1, status;
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.lookups = (char[]){ "b" },
		.ednspsz = EDNS_SIZE,
		.ndots = 1,
		.sock_state_cb = transmission_socket,
		.sock_state_cb_data = t,
	};

	for (const char *p = resolvers; *p; p++)
		servers += *p == ',';
	/* Each round asks every server, and waits twice as long as the one before. A late answer is welcome, too. */
	options.tries = servers == 1 ? 3 : 2;
	options.timeout = NP_RESOLVE_MS / (servers * ((1 << options.tries) - 1));
	if (options.timeout < 1)
		options.timeout = 1;
	status = ares_init_options(&t->channel, &options,
				   ARES_OPT_FLAGS | ARES_OPT_LOOKUPS | ARES_OPT_EDNSPSZ | ARES_OPT_NDOTS |
					   ARES_OPT_SOCK_STATE_CB | ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS |
					   ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_SORTLIST | ARES_OPT_NOROTATE);
	if (status != ARES_SUCCESS) {
		t->channel = NULL;
		return -ENOMEM;
	}
	ares_set_socket_configure_callback(t->channel, transmission_configure, NULL);
	status = ares_set_servers_ports_csv(t->channel, resolvers);
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EINVAL;
	return 0;
}

static void query_end(struct query *query)
{
	LIST_REMOVE(query, of_transmission);
	query->transmission = NULL;
	query->pending = false;
}

/* Not inside of its channel's own callbacks. */
static void transmission_free(struct transmission *t)
{
	struct query *query;

	while ((query = LIST_FIRST(&t->queries)))
		query_end(query); /* nothing is told */
	LIST_REMOVE(t, link);
	if (t->channel)
		ares_destroy(t->channel); /* closes its sockets, and so empties watched */
	free(t);
}

static struct transmission *transmission_new(struct nameservers *nameservers)
{
	struct transmission *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->nameservers = nameservers;
	LIST_INIT(&t->queries);
	LIST_INIT(&t->watched);
	LIST_INSERT_HEAD(&nameservers->pending, t, link);
	if (channel_open(nameservers->resolvers, t) == 0)
		return t;
	transmission_free(t);
	return NULL;
}

static void on_over(void *data)
{
	struct nameservers *nameservers = data;

	while (!LIST_EMPTY(&nameservers->over))
		transmission_free(LIST_FIRST(&nameservers->over));
}

/* -- questions ----------------------------------------------------------------- */

/* c-ares asks a server that does not know EDNS again without it, and remembers that for the channel. */
static bool channel_has_edns(ares_channel channel)
{
	struct ares_options options;
	int mask, edns;

	if (ares_save_options(channel, &options, &mask) != ARES_SUCCESS)
		return true;
	edns = options.flags & ARES_FLAG_EDNS;
	ares_destroy_options(&options);
	return edns;
}

static void query_answered(void *arg, int status, int timeouts, unsigned char *data, int len)
{
	struct query *query = arg;
	struct nameservers *nameservers = query->nameservers;
	struct transmission *t = query->transmission;
	int error = -EREMOTEIO;

	(void)timeouts;
	if (!t)
		return; /* its channel is being destroyed */
	query_end(query);
	if (LIST_EMPTY(&t->queries)) {
		LIST_REMOVE(t, link);
		LIST_INSERT_HEAD(&nameservers->over, t, link);
		loop_later(nameservers->loop, &nameservers->task);
	}
	if (query->edns && !channel_has_edns(t->channel))
		nameservers->edns = false;
	if (status == ARES_SUCCESS && len >= NS_HFIXEDSZ) {
		/* A server that does not know EDNS. c-ares asks again by itself, but only in one of the ways to say so. */
		if (query->edns && (data[3] & 0xf) == ns_r_formerr && !data[10] && !data[11]) {
			nameservers->edns = false;
			query_send(query, NULL);
			return;
		}
		error = 0;
	} else if (status == ARES_ETIMEOUT) {
		error = -ETIMEDOUT;
	}
	query->known_all_of(query, error, data, len < 0 ? 0 : (size_t)len);
}

void query_send(struct query *query, const struct query *with)
{
	struct nameservers *nameservers = query->nameservers;
	struct transmission *t;
	int len, status;
	unsigned char *message = NULL;
	unsigned short id;

	/* The id is made here: c-ares 1.18 makes guessable ones where there is no /dev/urandom (CVE-2023-31147). */
	if (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
		query->known_all_of(query, -EREMOTEIO, NULL, 0);
		return;
	}
	query->edns = nameservers->edns;
	status = ares_create_query(query->name, ns_c_in, query->type, id, 1, &message, &len,
				   query->edns ? EDNS_SIZE : 0);
	t = with && with->pending ? with->transmission : NULL;
	if (!t && status == ARES_SUCCESS)
		t = transmission_new(nameservers);
	if (!t || status != ARES_SUCCESS) {
		ares_free_string(message);
		/* ENOTFOUND: .onion, which is nobody's business (RFC 7686). */
		query->known_all_of(query, status == ARES_ENOTFOUND ? -ENOENT : -EREMOTEIO, NULL, 0);
		return;
	}
	LIST_INSERT_HEAD(&t->queries, query, of_transmission);
	query->transmission = t;
	query->pending = true;
	ares_send(t->channel, message, len, query_answered, query);
	ares_free_string(message);
}

void nameservers_cancel(struct nameservers *nameservers, query_wanted_fn *wanted, void *ctx)
{
	struct transmission *t, *next;

	for (t = LIST_FIRST(&nameservers->pending); t; t = next) {
		struct query_list gone = LIST_HEAD_INITIALIZER(gone);
		struct query *query;

		next = LIST_NEXT(t, link);
		LIST_FOREACH(query, &t->queries, of_transmission)
			if (wanted(ctx, query))
				break;
		if (query)
			continue;
		while ((query = LIST_FIRST(&t->queries))) {
			query_end(query);
			LIST_INSERT_HEAD(&gone, query, of_transmission);
		}
		transmission_free(t);
		while ((query = LIST_FIRST(&gone))) {
			LIST_REMOVE(query, of_transmission);
			query->known_all_of(query, -ECANCELED, NULL, 0);
		}
	}
}

/* What is answered in here leaves the list, and what is asked anew comes to its head. */
void nameservers_tick(struct nameservers *nameservers)
{
	struct transmission *t, *next;

	for (t = LIST_FIRST(&nameservers->pending); t; t = next) {
		next = LIST_NEXT(t, link);
		ares_process_fd(t->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	}
}

/* -- life ---------------------------------------------------------------------- */

/* Are these addresses? c-ares says so now, and later does not complain. */
static int resolvers_check(struct nameservers *nameservers)
{
	struct transmission t = { .nameservers = nameservers };
	int e = channel_open(nameservers->resolvers, &t);

	if (t.channel)
		ares_destroy(t.channel);
	return e;
}

int nameservers_new(struct loop *loop, const char *resolvers, struct nameservers **ret)
{
	struct nameservers *nameservers = calloc(1, sizeof(*nameservers));
	int e;

	if (!nameservers)
		return -ENOMEM;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		free(nameservers);
		return -ENOMEM;
	}
	nameservers->loop = loop;
	nameservers->edns = true;
	nameservers->task = (struct loop_task){ .fn = on_over, .data = nameservers };
	LIST_INIT(&nameservers->pending);
	LIST_INIT(&nameservers->over);
	nameservers->resolvers = strdup(resolvers);
	e = nameservers->resolvers ? resolvers_check(nameservers) : -ENOMEM;
	if (e < 0) {
		nameservers_free(nameservers);
		return e;
	}
	*ret = nameservers;
	return 0;
}

void nameservers_free(struct nameservers *nameservers)
{
	if (!nameservers)
		return;
	while (!LIST_EMPTY(&nameservers->pending))
		transmission_free(LIST_FIRST(&nameservers->pending));
	on_over(nameservers);
	loop_cancel(nameservers->loop, &nameservers->task);
	ares_library_cleanup();
	free(nameservers->resolvers);
	free(nameservers);
}
