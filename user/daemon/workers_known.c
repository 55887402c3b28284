/* SPDX-License-Identifier: MIT */
/* What every inspector has to know: sandboxes, their sessions, and the authorities of those. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/workers_internal.h"
#include "loop/loop.h"

#define CA_RETRY_MS 1000 /* until another worker is asked for an authority */

/* -- authorities ------------------------------------------------------------------------ */

struct site *site_find(struct workers *w, const char *session)
{
	uint64_t hash = hash_text(w->seed, session);

	for (struct table_node *n = table_first(&w->sites, hash); n; n = table_next(n)) {
		struct site *a = container_of(n, struct site, node);

		if (!strcmp(a->ca.session, session))
			return a;
	}
	return NULL;
}

void authority_learn(struct process *from, const struct link_ca *told)
{
	struct workers *w = from->workers;
	struct site *a;

	if (told->session[NP_LABEL_SIZE - 1] || !told->len || told->len > LINK_CA_BYTES ||
	    told->pem_len > LINK_CA_BYTES - told->len)
		return;
	a = site_find(w, told->session);
	if (!a || a->ca.len || a->asked != from)
		return;
	a->ca = *told;
	tell_all(w, LINK_CA, &a->ca, sizeof(a->ca), -1);
}

/* Of the next worker in turn, if the last one that was asked has not answered for a while. */
static void authority_ask(struct workers *w, struct site *a)
{
	uint64_t now = loop_now_ns();

	if (a->ca.len || (a->asked && now - a->asked_ns < CA_RETRY_MS * 1000000ull))
		return;
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[w->turn++ % w->config.count];

		if (!p->ready)
			continue;
		a->asked = p;
		a->asked_ns = now;
		process_send(p, LINK_MAKE_CA, &a->ca, sizeof(a->ca), -1);
		return;
	}
}

void authorities_ask(struct workers *w)
{
	for (size_t i = 0; i < w->sites.size; i++)
		for (struct table_node *n = w->sites.buckets[i]; n; n = n->next)
			authority_ask(w, container_of(n, struct site, node));
}

int workers_ca(struct workers *w, const char *session, struct buf *out)
{
	const struct site *a = site_find(w, session);

	if (!a)
		return -ENOENT;
	if (!a->ca.len)
		workers_sync(w); /* it was asked for when the sandbox came */
	if (!a->ca.len)
		return -EAGAIN;
	buf_append(out, a->ca.data + a->ca.len, a->ca.pem_len);
	return buf_error(out);
}

/* -- sandboxes -------------------------------------------------------------------------- */

static struct known *known_find(struct workers *w, uint64_t cgroup_id)
{
	uint64_t hash = hash_number(w->seed, cgroup_id);

	for (struct table_node *n = table_first(&w->boxes, hash); n; n = table_next(n)) {
		struct known *known = container_of(n, struct known, node);

		if (known->box.cgroup_id == cgroup_id)
			return known;
	}
	return NULL;
}

static struct site *site_new(struct workers *w, const char *session)
{
	struct site *site = table_reserve(&w->sites) == 0 ? calloc(1, sizeof(*site)) : NULL;

	if (!site)
		return NULL;
	memcpy(site->ca.session, session, strnlen(session, sizeof(site->ca.session) - 1));
	site->names_fd = -1;
	if (names_open(w, site) < 0) {
		free(site);
		return NULL;
	}
	table_add(&w->sites, &site->node, hash_text(w->seed, site->ca.session));
	return site;
}

static void site_free(struct workers *w, struct site *site, bool forget)
{
	names_close(w, site, forget);
	table_remove(&w->sites, &site->node);
	explicit_bzero(site, sizeof(*site));
	free(site);
}

static struct known *known_new(struct workers *w, uint64_t cgroup_id, const char *session)
{
	struct known *known = calloc(1, sizeof(*known));
	struct site *a = site_find(w, session);

	if (!a)
		a = site_new(w, session);
	if (!known || !a || table_reserve(&w->boxes) < 0) {
		free(known);
		return NULL;
	}
	a->boxes++;
	known->box.cgroup_id = cgroup_id;
	memcpy(known->box.session, a->ca.session, sizeof(known->box.session));
	table_add(&w->boxes, &known->node, hash_number(w->seed, cgroup_id));
	authority_ask(w, a);
	return known;
}

void workers_box(struct workers *w, uint64_t cgroup_id, const char *sandbox, const char *session,
		 const struct np_rung *rung)
{
	struct known *known = known_find(w, cgroup_id);
	bool fresh = !site_find(w, session);

	if (!known)
		known = known_new(w, cgroup_id, session);
	if (!known)
		return; /* the inspector resets what it does not know */
	known->box.rung = *rung;
	known->box.slot = ledgers_enter(w->ledgers, cgroup_id, sandbox, session, rung, !w->recovered);
	tell_all(w, LINK_BOX, &known->box, sizeof(known->box), -1);
	if (fresh)
		names_tell(w, site_find(w, session));
}

/* forget: what was given to its session is free for others, for nobody is left who may remember it. */
static void known_free(struct workers *w, struct known *known, bool forget)
{
	struct site *site = site_find(w, known->box.session);

	table_remove(&w->boxes, &known->node);
	free(known);
	if (site && --site->boxes == 0)
		site_free(w, site, forget);
}

void workers_gone(struct workers *w, uint64_t cgroup_id)
{
	struct known *known = known_find(w, cgroup_id);

	if (!known)
		return;
	tell_all(w, LINK_GONE, &known->box, sizeof(known->box), -1);
	workers_sync(w); /* what they have to tell of it comes before it is forgotten */
	known_free(w, known, true);
	ledgers_leave(w->ledgers, cgroup_id);
}

void left_learn(struct workers *w, const struct link_box *told)
{
	struct known *known = known_find(w, told->cgroup_id);

	if (known)
		known->left = true;
}

void workers_left(struct workers *w, const uint64_t *cgroup_ids, size_t n, bool *has)
{
	bool asked = false;

	for (size_t i = 0; i < n; i++) {
		struct known *known = known_find(w, cgroup_ids[i]);

		if (has[i] || !known || known->box.rung.mode != NP_PROXIED)
			continue;
		known->left = false;
		tell_all(w, LINK_LEFT, &known->box, sizeof(known->box), -1);
		asked = true;
	}
	if (asked)
		workers_sync(w);
	for (size_t i = 0; asked && i < n; i++) {
		const struct known *known = known_find(w, cgroup_ids[i]);

		has[i] = has[i] || (known && known->box.rung.mode == NP_PROXIED && known->left);
	}
}

void batch_add(struct buf *out, enum link_type type, const void *data, size_t len)
{
	struct link_message message = { .type = type, .len = (uint32_t)len };

	buf_append(out, &message, sizeof(message));
	buf_append(out, data, len);
}

int batch_make(struct workers *w, int *ret_fd)
{
	_buf_ struct buf out = BUF_INIT(LINK_BATCH_MAX);
	int r;

	for (size_t i = 0; i < w->boxes.size; i++)
		for (struct table_node *n = w->boxes.buckets[i]; n; n = n->next)
			batch_add(&out, LINK_BOX, &container_of(n, struct known, node)->box, sizeof(struct link_box));
	for (size_t i = 0; i < w->sites.size; i++)
		for (struct table_node *n = w->sites.buckets[i]; n; n = n->next) {
			const struct site *a = container_of(n, struct site, node);

			if (a->ca.len)
				batch_add(&out, LINK_CA, &a->ca, sizeof(a->ca));
		}
	for (size_t i = 0; i < w->sites.size; i++)
		for (struct table_node *n = w->sites.buckets[i]; n; n = n->next)
			names_batch(container_of(n, struct site, node), &out);
	r = buf_error(&out) ? buf_error(&out) : link_blob(out.data ? out.data : "", out.len, ret_fd);
	if (out.data)
		explicit_bzero(out.data, out.len);
	return r;
}

void known_clear(struct workers *w)
{
	for (size_t i = 0; i < w->boxes.size; i++)
		while (w->boxes.buckets[i])
			known_free(w, container_of(w->boxes.buckets[i], struct known, node), false);
	table_clear(&w->boxes);
	table_clear(&w->sites);
}

void workers_recovered(struct workers *w, bool (*is_used)(void *data, const char *session),
		       bool (*is_there)(void *data, uint64_t cgroup_id), void *data)
{
	names_sweep(w, is_used, data);
	ledgers_sweep(w->ledgers, is_there, data);
	w->recovered = true;
}
