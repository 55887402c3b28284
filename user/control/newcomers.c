/* SPDX-License-Identifier: MIT */
/* Those who connect get a place, another's place, or an answer that there is none. */
#include <errno.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "control/server_internal.h"
#include "vocab/limits.h"

/* Ends somebody's connection so that another one has a place. MHD closes it in its next run. */
static void server_evict(struct server *server, struct client *c)
{
	struct failure failure;

	failure_put(&failure, -EMFILE, NP_R_TOO_MANY, "this connection made room for another one");
	if (c->state != CLIENT_ANSWERED)
		admit_answer(c->fd, &failure);
	clients_leave(&server->clients, c);
	shutdown(c->fd, SHUT_RDWR);
	if (c->waits)
		MHD_resume_connection(take_ptr(c->waits));
	if (c->deferred)
		MHD_resume_connection(take_ptr(c->deferred));
}

static void server_admit(struct server *server, int fd, const struct peer *peer)
{
	const struct sockaddr family = { .sa_family = AF_UNIX };
	struct client *leaves, *c;
	struct failure failure;

	if (clients_place(&server->clients, peer->uid, peer->pid, &leaves) < 0) {
		failure_put(&failure, -EMFILE, NP_R_TOO_MANY, "%d connections of root are open", NP_CLIENTS_MAX);
		admit_refuse(&server->admit, fd, &failure);
		return;
	}
	if (leaves)
		server_evict(server, leaves);
	if (clients_join(&server->clients, peer->uid, peer->pid, &c) < 0) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->since_ns = loop_now_ns();
	server->joining = c;
	/* MHD closes the descriptor when it fails; if it called on_connection() before that, it does so again. */
	if (MHD_add_connection(server->daemon, fd, &family, sizeof(family)) != MHD_YES && server->joining)
		clients_remove(&server->clients, take_ptr(server->joining));
}

/* Of a pair that is made here, so that the other side cannot have this end block. It has no place of root's. */
int server_lend(struct server *server, uid_t uid)
{
	struct peer peer = { .uid = uid, .pid = getpid() };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	server_admit(server, pair[0], &peer);
	server_run(server);
	return pair[1];
}

void server_accepts(struct server *server, bool accepts)
{
	if (accepts == server->accepts)
		return;
	if (!accepts)
		loop_unwatch(server->config.loop, server->admit.fd);
	server->accepts =
		accepts && loop_watch(server->config.loop, server->admit.fd, EPOLLIN, on_newcomers, server) == 0;
}

void on_newcomers(void *data, uint32_t events)
{
	struct server *server = data;
	struct peer peer = { .fd = -1 };
	int fd = -EACCES;

	(void)events;
	for (unsigned i = 0; i < NP_ACCEPT_BATCH && (fd >= 0 || fd == -EACCES); i++) {
		fd = admit_accept(&server->admit, &server->config, &peer);
		if (fd >= 0)
			server_admit(server, fd, &peer);
		else if (fd == -EACCES && peer.who[0])
			log_debug("the API refused %s", peer.who);
	}
	/* No descriptors or no memory: whoever waits goes on doing so until the next tick. */
	if (fd < 0 && fd != -EAGAIN && fd != -EACCES)
		server_accepts(server, false);
	server_run(server);
}
