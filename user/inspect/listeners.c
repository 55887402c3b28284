/* SPDX-License-Identifier: MIT */
#include "inspect/listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "inspect/client.h"

#define ACCEPT_BATCH 8 /* then it is someone else's turn */

struct listener {
	LIST_ENTRY(listener) of_worker;
	struct worker *worker;
	uint64_t netns;
	int fd;
	bool watched;
	bool dead;
};

static void on_listen(void *data, uint32_t events)
{
	struct listener *listener = data;
	struct worker *worker = listener->worker;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH && !listener->dead; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			break;
		client_accept(worker, fd);
	}
	worker_flush(worker);
}

static int listener_watch(struct listener *listener)
{
	int r = loop_watch(listener->worker->loop, listener->fd, EPOLLIN | EPOLLEXCLUSIVE, on_listen, listener);

	listener->watched = r == 0;
	return r;
}

static void listener_unwatch(struct listener *listener)
{
	if (listener->watched)
		loop_unwatch(listener->worker->loop, listener->fd);
	listener->watched = false;
}

static void listener_free(struct listener *listener)
{
	listener_unwatch(listener);
	if (listener->netns)
		cleanup_close(&listener->fd);
	LIST_REMOVE(listener, of_worker);
	free(listener);
}

int listener_add(struct worker *worker, uint64_t netns, int fd)
{
	struct listener *listener = malloc(sizeof(*listener));

	if (!listener) {
		if (netns)
			cleanup_close(&fd);
		return -ENOMEM;
	}
	*listener = (struct listener){ .worker = worker, .netns = netns, .fd = fd };
	LIST_INSERT_HEAD(&worker->listeners, listener, of_worker);
	return worker->ready && !worker->stopping.stop_ns ? listener_watch(listener) : 0;
}

void listeners_remove(struct worker *worker, uint64_t netns)
{
	struct listener *listener;

	LIST_FOREACH(listener, &worker->listeners, of_worker) {
		listener->dead |= netns && listener->netns == netns;
		worker->has_dead_listeners |= listener->dead;
	}
}

void listeners_tick(struct worker *worker)
{
	struct listener *listener, *next;

	if (!worker->has_dead_listeners)
		return;
	worker->has_dead_listeners = false;
	for (listener = LIST_FIRST(&worker->listeners); listener; listener = next) {
		next = LIST_NEXT(listener, of_worker);
		if (!listener->dead)
			continue;
		dns_server_unlisten(worker->dns, listener->netns);
		listener_free(listener);
	}
}

int listeners_open(struct worker *worker)
{
	struct listener *listener;
	int r = 0;

	LIST_FOREACH(listener, &worker->listeners, of_worker)
		if (r == 0)
			r = listener_watch(listener);
	return r;
}

void listeners_shut(struct worker *worker)
{
	struct listener *listener;

	LIST_FOREACH(listener, &worker->listeners, of_worker)
		listener_unwatch(listener);
}

void listeners_free(struct worker *worker)
{
	while (LIST_FIRST(&worker->listeners))
		listener_free(LIST_FIRST(&worker->listeners));
}
