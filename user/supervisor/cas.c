/* SPDX-License-Identifier: MIT */
/*
 * Which worker makes the CA of a session, and which are sent it. A worker makes it, or takes the one that an earlier
 * daemon kept. After a start with thousands of sessions that is a lot of work: no worker has more than a few to make at
 * a time, so that its other messages do not wait behind them, and a session that a client waits for comes first.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/supervisor_internal.h"
#include "loop/loop.h"

#define CA_RETRY_MS 1000 /* until another worker is asked for a CA */
#define CAS_AT_ONCE 4	 /* that one worker has to make: a few milliseconds */

/* Out of the queue that it is in. */
static void ca_dequeue(struct supervisor *w, struct session_brief *a)
{
	if (a->ca.len)
		return;
	if (a->requested_of)
		a->requested_of->cas--;
	TAILQ_REMOVE(a->requested_of ? &w->cas_requested : &w->cas_wanted, a, of_cas);
	a->requested_of = NULL;
}

/* To the front: what is late is wanted most. */
static void ca_requeue(struct supervisor *w, struct session_brief *a)
{
	ca_dequeue(w, a);
	TAILQ_INSERT_HEAD(&w->cas_wanted, a, of_cas);
}

void ca_want(struct supervisor *w, struct session_brief *a)
{
	TAILQ_INSERT_TAIL(&w->cas_wanted, a, of_cas);
	cas_request(w);
}

void ca_unwant(struct supervisor *w, struct session_brief *a)
{
	ca_dequeue(w, a);
}

void cas_unrequest(struct process *p)
{
	struct session_brief *a, *next;

	p->cas_behind = false;
	for (a = TAILQ_FIRST(&p->supervisor->cas_requested); a; a = next) {
		next = TAILQ_NEXT(a, of_cas);
		if (a->requested_of == p)
			ca_requeue(p->supervisor, a);
	}
}

/* The next in turn that has time. */
static struct process *worker_choose(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[w->turn++ % w->config.count];

		if (p->ready && p->cas < CAS_AT_ONCE)
			return p;
	}
	return NULL;
}

static void ca_request(struct process *p, struct session_brief *a)
{
	struct link_ca message = { 0 };
	struct supervisor *w = p->supervisor;

	memcpy(message.session, a->ca.session, sizeof(message.session));
	ca_kept(w, message.session, &message);
	TAILQ_REMOVE(&w->cas_wanted, a, of_cas);
	TAILQ_INSERT_TAIL(&w->cas_requested, a, of_cas);
	a->requested_of = p;
	a->requested_ns = loop_now_ns();
	p->cas++;
	process_send(p, LINK_MAKE_CA, &message, sizeof(message), -1);
	explicit_bzero(&message, sizeof(message));
}

void cas_request(struct supervisor *w)
{
	const uint64_t now = loop_now_ns();
	struct session_brief *a;
	struct process *p;

	while ((a = TAILQ_FIRST(&w->cas_requested)) && now - a->requested_ns > CA_RETRY_MS * 1000000ull)
		ca_requeue(w, a);
	while ((a = TAILQ_FIRST(&w->cas_wanted)) && (p = worker_choose(w)))
		ca_request(p, a);
}

/* A worker that does not keep up is not ended for it: it is told all of them later, in one piece. */
static void ca_send(struct supervisor *w, const struct link_ca *ca)
{
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		if (p->pid && w->recovered && !p->cas_behind &&
		    link_send(p->link, LINK_CA, ca, sizeof(*ca), -1) == -EAGAIN)
			p->cas_behind = true;
	}
}

void cas_catch_up(struct process *p)
{
	int fd = -1;

	if (!p->ready || !p->cas_behind || batch_make(p->supervisor, true, &fd) < 0)
		return;
	p->cas_behind = link_send(p->link, LINK_BATCH, NULL, 0, fd) == -EAGAIN;
	close(fd);
}

void ca_learn(struct process *from, const struct link_ca *message)
{
	struct supervisor *w = from->supervisor;
	struct session_brief *a;

	if (message->session[NP_LABEL_SIZE - 1] || !message->len || message->len > LINK_CA_BYTES ||
	    message->pem_len > LINK_CA_BYTES - message->len)
		return;
	a = session_brief_find(w, message->session);
	if (!a || a->ca.len || a->requested_of != from)
		return;
	ca_dequeue(w, a);
	a->ca = *message;
	ca_keep(w, &a->ca); /* before anybody trusts it */
	ca_send(w, &a->ca);
	cas_request(w);
}

int supervisor_ca(struct supervisor *w, const char *session, struct buf *out)
{
	struct session_brief *a = session_brief_find(w, session);

	if (!a)
		return -ENOENT;
	if (!a->ca.len && !a->requested_of) {
		ca_requeue(w, a);
		cas_request(w);
	}
	if (!a->ca.len)
		supervisor_sync(w); /* it has been asked for */
	if (!a->ca.len)
		return -EAGAIN;
	buf_append(out, a->ca.data + a->ca.len, a->ca.pem_len);
	return buf_error(out);
}
