/* SPDX-License-Identifier: MIT */
#include "dns/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/sockaddr.h"
#include "base/table.h"
#include "vocab/limits.h"

_Static_assert(offsetof(struct sockaddr_in, sin_zero) == NP_ANSWER_V4 &&
		       offsetof(struct sockaddr_in6, sin6_flowinfo) == NP_ANSWER_V6_LOW &&
		       offsetof(struct sockaddr_in6, sin6_scope_id) == NP_ANSWER_V6_HIGH,
	       "where an answer's cgroup id is");

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

#define ORIGINS_BYTES (NP_DNS_ORIGINS * sizeof(struct np_dns_origin))
#define BATCHES_MAX   4 /* before others have their turn */

union mark_control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(uint32_t))];
};

/* The sockets in one network namespace. */
struct dns_listener {
	struct table_node node;
	struct dns_socket *port;
	uint64_t netns;
	int fds[2]; /* IPv4, IPv6; -1: none */
};

struct dns_socket {
	struct dns_socket_config config;
	struct dns_listener host; /* those of the config, which are not in the table */
	struct table listeners;	  /* the others, by namespace */
	bool open;
	const struct np_dns_origin *dns_origins;
	/* of the batch at hand */
	struct mmsghdr messages[NP_DNS_BATCH];
	struct iovec parts[NP_DNS_BATCH];
	union sockaddr_inet names[NP_DNS_BATCH];
	union mark_control controls[NP_DNS_BATCH];
	char data[NP_DNS_BATCH][NP_DNS_BYTES];
};

/* -- whose it is -------------------------------------------------------------------- */

static bool client_from(const union sockaddr_inet *name, struct dns_client *ret)
{
	ret->v6 = name->sa.sa_family == AF_INET6;
	return sockaddr_parts(name, &ret->addr, &ret->port);
}

/* 0: it has none, so no sandbox sent it. */
static uint32_t mark_of(struct msghdr *message)
{
	uint32_t mark = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_MARK && c->cmsg_len == CMSG_LEN(sizeof(mark)))
			memcpy(&mark, CMSG_DATA(c), sizeof(mark));
	return mark;
}

/* The kernel writes while we read: what was read counts if its number was the same before and after. */
static bool client_find(const struct np_dns_origin *dns_origins, uint32_t mark, struct dns_client *client)
{
	const struct np_dns_origin *query = &dns_origins[NP_DNS_ORIGIN_INDEX(client->v6, client->port, client->netns)];
	struct np_addr source;

	if (!mark || mark & 1 || __atomic_load_n(&query->number, __ATOMIC_ACQUIRE) != mark)
		return false;
	client->cgroup_id = query->cgroup_id;
	client->generation = query->generation;
	client->server = query->server;
	source = query->source;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&query->number, __ATOMIC_RELAXED) != mark)
		return false;
	client->number = mark;
	return memcmp(&source, &client->addr, sizeof(source)) == 0;
}

/* -- in and out ----------------------------------------------------------------------- */

static void message_take(struct dns_socket *port, uint64_t netns, size_t i)
{
	struct mmsghdr *message = &port->messages[i];
	struct dns_client client = { .netns = netns };

	if (message->msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !client_from(&port->names[i], &client))
		return;
	if (client_find(port->dns_origins, mark_of(&message->msg_hdr), &client))
		port->config.query(port->config.ctx, &client, port->data[i], message->msg_len);
}

static void batches_receive(struct dns_listener *listener, bool v6)
{
	struct dns_socket *port = listener->port;

	for (unsigned batch = 0; batch < BATCHES_MAX; batch++) {
		int n;

		for (size_t i = 0; i < NP_DNS_BATCH; i++) {
			port->parts[i] = (struct iovec){ port->data[i], NP_DNS_BYTES };
			port->messages[i].msg_hdr = (struct msghdr){
				.msg_name = &port->names[i],
				.msg_namelen = sizeof(port->names[i]),
				.msg_iov = &port->parts[i],
				.msg_iovlen = 1,
				.msg_control = &port->controls[i],
				.msg_controllen = sizeof(port->controls[i]),
			};
		}
		n = recvmmsg(listener->fds[v6], port->messages, NP_DNS_BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++)
			message_take(port, listener->netns, (size_t)i);
		if (n < NP_DNS_BATCH)
			return;
	}
}

static void on_socket4(void *data, uint32_t events)
{
	(void)events;
	batches_receive(data, false);
}

static void on_socket6(void *data, uint32_t events)
{
	(void)events;
	batches_receive(data, true);
}

static struct dns_listener *listener_find(struct dns_socket *port, uint64_t netns)
{
	uint64_t hash = hash_mark(&netns, sizeof(netns));

	if (netns == port->host.netns)
		return &port->host;
	return TABLE_FIND(&port->listeners, hash, struct dns_listener, node, listener, listener->netns == netns);
}

int dns_socket_reply(struct dns_socket *port, const struct dns_client *client, const void *data, size_t len)
{
	const struct np_dns_origin *query =
		&port->dns_origins[NP_DNS_ORIGIN_INDEX(client->v6, client->port, client->netns)];
	union sockaddr_inet name = sockaddr_of(&client->addr, client->port);
	const struct dns_listener *listener = listener_find(port, client->netns);

	/* Another sandbox may have the port by now. If it takes it only after this look, the gate refuses the answer. */
	if (!listener || __atomic_load_n(&query->number, __ATOMIC_RELAXED) != client->number)
		return -ESTALE;
	if (client->v6) {
		name.v6.sin6_flowinfo = (uint32_t)client->cgroup_id;
		name.v6.sin6_scope_id = (uint32_t)(client->cgroup_id >> 32);
	} else {
		memcpy(name.v4.sin_zero, &client->cgroup_id, sizeof(client->cgroup_id));
	}
	return sendto(listener->fds[client->v6], data, len, MSG_DONTWAIT | MSG_NOSIGNAL, &name.sa,
		      sockaddr_len(&name)) < 0
		       ? -errno
		       : 0;
}

/* -- life ------------------------------------------------------------------------------ */

int dns_socket_new(const struct dns_socket_config *config, struct dns_socket **ret)
{
	struct dns_socket *port = calloc(1, sizeof(*port));
	socklen_t len = sizeof(port->host.netns);
	void *dns_origins;
	int r;

	if (!port)
		return -ENOMEM;
	dns_origins = mmap(NULL, ORIGINS_BYTES, PROT_READ, MAP_SHARED, config->dns_origins, 0);
	if (dns_origins == MAP_FAILED) {
		r = -errno;
		free(port);
		return r;
	}
	port->config = *config;
	port->dns_origins = dns_origins;
	port->host.port = port;
	memcpy(port->host.fds, config->sockets, sizeof(port->host.fds));
	if (getsockopt(config->sockets[0], SOL_SOCKET, SO_NETNS_COOKIE, &port->host.netns, &len) < 0)
		port->host.netns = 0; /* then no query is known to be anybody's */
	*ret = port;
	return 0;
}

static int listener_watch(struct dns_listener *listener, bool v6)
{
	return loop_watch(listener->port->config.loop, listener->fds[v6], EPOLLIN | EPOLLEXCLUSIVE,
			  v6 ? on_socket6 : on_socket4, listener);
}

/* Of those in the table. */
static void listener_free(struct dns_listener *listener)
{
	struct dns_socket *port = listener->port;

	for (int i = 0; i < 2; i++) {
		if (listener->fds[i] >= 0 && port->open)
			loop_unwatch(port->config.loop, listener->fds[i]);
		cleanup_close(&listener->fds[i]);
	}
	table_remove(&port->listeners, &listener->node);
	free(listener);
}

int dns_socket_open(struct dns_socket *port)
{
	int r = listener_watch(&port->host, false);

	if (r == 0)
		r = listener_watch(&port->host, true);
	for (struct table_node *n = table_walk(&port->listeners, NULL); n; n = table_walk(&port->listeners, n))
		for (int i = 0; r == 0 && i < 2; i++) {
			struct dns_listener *listener = container_of(n, struct dns_listener, node);

			r = listener->fds[i] >= 0 ? listener_watch(listener, i) : 0;
		}
	port->open = r == 0;
	return r;
}

int dns_socket_listen(struct dns_socket *port, uint64_t netns, bool v6, int fd)
{
	struct dns_listener *listener = listener_find(port, netns);
	_close_ int taken = fd;

	if (!listener) {
		listener = table_reserve(&port->listeners) == 0 ? malloc(sizeof(*listener)) : NULL;
		if (!listener)
			return -ENOMEM;
		*listener = (struct dns_listener){ .port = port, .netns = netns, .fds = { -1, -1 } };
		table_add(&port->listeners, &listener->node, hash_mark(&netns, sizeof(netns)));
	}
	if (listener->fds[v6] >= 0)
		return -EPROTO;
	listener->fds[v6] = take_fd(taken);
	return port->open ? listener_watch(listener, v6) : 0;
}

void dns_socket_unlisten(struct dns_socket *port, uint64_t netns)
{
	struct dns_listener *listener = listener_find(port, netns);

	if (listener && listener != &port->host)
		listener_free(listener);
}

void dns_socket_free(struct dns_socket *port)
{
	struct table_node *n;

	if (!port)
		return;
	while ((n = table_walk(&port->listeners, NULL)))
		listener_free(container_of(n, struct dns_listener, node));
	table_clear(&port->listeners);
	munmap((void *)port->dns_origins, ORIGINS_BYTES);
	free(port);
}
