/* SPDX-License-Identifier: MIT */
/*
 * Bytes both ways between two sockets, for tunnels whose ends are both plain TCP. What comes for a sandbox the kernel moves through a
 * pipe: it never comes to user space. What a sandbox sends is copied: pages that its program handed over (sendfile(), splice()) are the
 * program's to write to until they have left the host. Moved on as they are, they would leave with what is in them by then,
 * after a raise too.
 */
#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "net/linger.h"

#define PIECE  (64u << 10)  /* what is held of one direction */
#define BUDGET (128u << 10) /* one turn of one direction: then it is someone else's */

/* From one end to the other. */
struct way {
	int from, to;
	int pipe[2];	/* -1: it is copied */
	const char *at; /* what is held, then */
	char *kept;	/* and where, when a turn ends before it is sent */
	size_t held;	/* bytes that were taken from one end, and not given to the other */
	bool readable, writable;
	bool eof;  /* from has said all */
	bool done; /* and to has it */
	uint64_t moved;
};

struct splice {
	struct loop *loop;
	struct loop_task task;
	int ends[2];
	struct way ways[2]; /* ways[i] is from ends[i] */
	splice_closed_fn *closed;
	void *ctx;
};

static ssize_t splice_move(int from, int to, size_t len)
{
	ssize_t n;

	do
		n = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void way_drop(struct way *w)
{
	free(w->kept);
	w->kept = NULL;
}

static ssize_t way_take(struct way *w)
{
	static char piece[PIECE]; /* of whoever has the turn */
	ssize_t n;

	if (w->pipe[1] >= 0)
		return splice_move(w->from, w->pipe[1], PIECE);
	do
		n = recv(w->from, piece, sizeof(piece), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	way_drop(w);
	w->at = piece;
	return n < 0 ? -errno : n;
}

static ssize_t way_give(struct way *w)
{
	ssize_t n;

	if (!w->writable)
		return -EAGAIN;
	if (w->pipe[0] >= 0)
		return splice_move(w->pipe[0], w->to, w->held);
	do
		n = send(w->to, w->at, w->held, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	w->at += n;
	return n;
}

/* What is held outlasts the turn, or is forgotten when nothing is. */
static int way_keep(struct way *w)
{
	if (!w->held) {
		way_drop(w);
	} else if (w->pipe[0] < 0 && !w->kept) {
		w->kept = malloc(w->held);
		if (!w->kept)
			return -ENOMEM;
		memcpy(w->kept, w->at, w->held);
		w->at = w->kept;
	}
	return 0;
}

static int way_move(struct way *w)
{
	for (size_t budget = BUDGET; budget;) {
		ssize_t n;

		if (!w->held && w->readable && !w->eof) {
			n = way_take(w);
			if (n == -EAGAIN)
				w->readable = false;
			else if (n < 0)
				return (int)n;
			w->eof = n == 0;
			w->held = n > 0 ? (size_t)n : 0;
		}
		if (!w->held)
			break;
		n = way_give(w);
		if (n == -EAGAIN) {
			w->writable = false;
			break;
		}
		if (n < 0)
			return (int)n;
		w->held -= (size_t)n;
		w->moved += (uint64_t)n;
		budget -= budget < (size_t)n ? budget : (size_t)n;
	}
	return way_keep(w);
}

/* 0; 1: there is more to do; -errno: it broke. */
static int way_pump(struct way *w)
{
	int r = way_move(w);

	if (r < 0)
		return r;
	if (w->held && !w->writable)
		return 0;
	if (w->eof && !w->held && !w->done) {
		w->done = true;
		shutdown(w->to, SHUT_WR);
	}
	return w->held || (w->readable && !w->eof);
}

static bool is_orderly(const struct splice *s)
{
	return s->ways[0].done && s->ways[1].done;
}

size_t splice_unsent(const struct splice *s)
{
	return is_orderly(s) ? socket_unsent(s->ends[1]) : 0;
}

bool splice_owes(const struct splice *s)
{
	return !s->ways[0].done || socket_unsent(s->ends[1]);
}

static void splice_pump(void *data)
{
	struct splice *s = data;
	int a = way_pump(&s->ways[0]), b = a < 0 ? a : way_pump(&s->ways[1]);

	if (a >= 0 && b >= 0 && (!is_orderly(s) || splice_unsent(s))) {
		if (a || b)
			loop_later(s->loop, &s->task);
		return;
	}
	s->closed(s->ctx, s->ways[0].moved, s->ways[1].moved);
}

void splice_tick(struct splice *s)
{
	if (is_orderly(s))
		splice_pump(s);
}

static void on_event(struct splice *s, unsigned end, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->ways[end].readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		s->ways[!end].writable = true;
	loop_later(s->loop, &s->task);
}

static void on_near(void *data, uint32_t events)
{
	on_event(data, 0, events);
}

static void on_far(void *data, uint32_t events)
{
	on_event(data, 1, events);
}

void splice_count(const struct splice *s, uint64_t *ret_sent, uint64_t *ret_received)
{
	*ret_sent = s->ways[0].moved;
	*ret_received = s->ways[1].moved;
}

void splice_free(struct splice *s)
{
	if (!s)
		return;
	loop_cancel(s->loop, &s->task);
	for (unsigned i = 0; i < 2; i++) {
		loop_unwatch(s->loop, s->ends[i]);
		if (!is_orderly(s)) /* what is short must look so */
			reset_on_close(s->ends[i]);
		if (is_orderly(s) && i == 1)
			close_acknowledged(s->ends[i]);
		else
			close(s->ends[i]);
		way_drop(&s->ways[i]);
		cleanup_close(&s->ways[i].pipe[0]);
		cleanup_close(&s->ways[i].pipe[1]);
	}
	free(s);
}

int splice_start(struct loop *loop, struct lane *lane, int near, int far, splice_closed_fn *closed, void *ctx,
		 struct splice **ret)
{
	struct splice *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		close(near);
		close(far);
		return -ENOMEM;
	}
	*s = (struct splice){ .loop = loop, .ends = { near, far }, .closed = closed, .ctx = ctx };
	s->task = (struct loop_task){ .fn = splice_pump, .data = s, .lane = lane };
	for (unsigned i = 0; i < 2; i++)
		s->ways[i] = (struct way){
			.from = s->ends[i], .to = s->ends[!i], .pipe = { -1, -1 }, .readable = true, .writable = true
		};
	r = pipe2(s->ways[1].pipe, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0)
		r = loop_watch(loop, near, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, on_near, s);
	if (r == 0)
		r = loop_watch(loop, far, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, on_far, s);
	if (r < 0) {
		splice_free(s);
		return r;
	}
	loop_later(loop, &s->task); /* what came before it was watched */
	*ret = s;
	return 0;
}
