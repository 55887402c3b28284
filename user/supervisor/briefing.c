/* SPDX-License-Identifier: MIT */
/* What every inspector has to know: sandboxes, and their sessions. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/supervisor_internal.h"

/* -- sessions --------------------------------------------------------------------------- */

struct session_brief *session_brief_find(struct supervisor *w, const char *session)
{
	return TABLE_FIND(&w->sessions, hash_text(&w->key, session), struct session_brief, node, a,
			  !strcmp(a->ca.session, session));
}

/* -- sandboxes -------------------------------------------------------------------------- */

struct briefed *known_find(struct supervisor *w, uint64_t cgroup_id)
{
	return TABLE_FIND(&w->sandboxes, hash_number(&w->key, cgroup_id), struct briefed, node, briefed,
			  briefed->sandbox.cgroup_id == cgroup_id);
}

static struct session_brief *session_brief_new(struct supervisor *w, const char *name)
{
	struct session_brief *session = table_reserve(&w->sessions) == 0 ? calloc(1, sizeof(*session)) : NULL;

	if (!session)
		return NULL;
	memcpy(session->ca.session, name, strnlen(name, sizeof(session->ca.session) - 1));
	session->names_fd = -1;
	if (names_open(w, session) < 0) {
		free(session);
		return NULL;
	}
	table_add(&w->sessions, &session->node, hash_text(&w->key, session->ca.session));
	ca_want(w, session);
	return session;
}

static void session_brief_free(struct supervisor *w, struct session_brief *session, bool forget)
{
	ca_unwant(w, session);
	if (forget)
		ca_forget(w, session->ca.session);
	names_close(w, session, forget);
	table_remove(&w->sessions, &session->node);
	explicit_bzero(session, sizeof(*session));
	free(session);
}

static struct briefed *known_new(struct supervisor *w, uint64_t cgroup_id, const char *session)
{
	struct briefed *briefed = calloc(1, sizeof(*briefed));
	struct session_brief *a = session_brief_find(w, session);

	if (!a)
		a = session_brief_new(w, session);
	if (!briefed || !a || table_reserve(&w->sandboxes) < 0) {
		free(briefed);
		return NULL;
	}
	a->sandboxes++;
	briefed->sandbox.cgroup_id = cgroup_id;
	memcpy(briefed->sandbox.session, a->ca.session, sizeof(briefed->sandbox.session));
	table_add(&w->sandboxes, &briefed->node, hash_number(&w->key, cgroup_id));
	return briefed;
}

/* The kernel has reused the cgroup id of one that is leaving: its last reports count for the new one. */
static void leaving_forget(struct supervisor *w, uint64_t cgroup_id)
{
	struct briefed *briefed, *next;

	for (briefed = LIST_FIRST(&w->leaving); briefed; briefed = next) {
		next = LIST_NEXT(briefed, of_leaving);
		if (briefed->sandbox.cgroup_id != cgroup_id)
			continue;
		LIST_REMOVE(briefed, of_leaving);
		free(briefed);
	}
}

/* The kernel's entry of a cgroup that is adopted again has been there before: what it has counted so far is not this sandbox's. */
static uint32_t ledger_enter(struct supervisor *w, uint64_t cgroup_id, const char *sandbox, const char *session,
			     const struct np_rung *rung)
{
	const struct ledger_entry *had = ledgers_find(w->ledgers, cgroup_id);
	const bool is_new = w->recovered && (!had || strcmp(had->sandbox, sandbox) != 0);
	const uint32_t slot = ledgers_enter(w->ledgers, cgroup_id, sandbox, session, rung, !w->recovered);
	struct ledger_entry *entry = is_new && slot ? ledgers_find(w->ledgers, cgroup_id) : NULL;
	struct np_meter meter;

	if (entry && kernel_meter(w->config.kernel, cgroup_id, &meter) == 0) {
		entry->everyday = meter.refused;
		entry->gate_reported = meter.suppressed;
	}
	return slot;
}

static void sandbox_leave(void *ctx, uint64_t cgroup_id);

static void sandbox_tighten(void *ctx, uint64_t cgroup_id, const char *sandbox, const char *session,
			    const struct np_rung *rung)
{
	struct supervisor *w = ctx;
	struct briefed *briefed = known_find(w, cgroup_id);
	bool fresh = !session_brief_find(w, session);

	/* A cgroup that outlived its sandbox was adopted again: it may belong to another session now. Not its network: that is the one
	 * which the adoption has just found it in. */
	if (briefed && strcmp(briefed->sandbox.session, session) != 0) {
		sandbox_leave(w, cgroup_id);
		briefed = NULL;
	}
	leaving_forget(w, cgroup_id);
	if (!briefed)
		briefed = known_new(w, cgroup_id, session);
	if (!briefed)
		return; /* the inspector resets what it does not know */
	secrets_count(w, briefed->sandbox.rung.mode, rung->mode);
	briefed->sandbox.rung = *rung;
	if (rung->mode == NP_PROXIED)
		session_brief_find(w, session)->inspected = true;
	briefed->sandbox.slot = ledger_enter(w, cgroup_id, sandbox, session, rung);
	send_all(w, LINK_SANDBOX, &briefed->sandbox, sizeof(briefed->sandbox), -1);
	if (fresh)
		names_send(w, session_brief_find(w, session));
}

/* forget: the synthetic addresses of its session are free for others, because no program is left that could remember
 * them. */
static void known_remove(struct supervisor *w, struct briefed *briefed, bool forget)
{
	struct session_brief *session = session_brief_find(w, briefed->sandbox.session);

	secrets_count(w, briefed->sandbox.rung.mode, 0);
	table_remove(&w->sandboxes, &briefed->node);
	if (session && --session->sandboxes == 0)
		session_brief_free(w, session, forget);
}

static void sandbox_ending(void *ctx, uint64_t cgroup_id, bool is)
{
	struct supervisor *w = ctx;
	struct briefed *briefed = known_find(w, cgroup_id);

	if (!briefed)
		return;
	briefed->sandbox.ending = is;
	send_all(w, LINK_SANDBOX, &briefed->sandbox, sizeof(briefed->sandbox), -1);
	supervisor_sync(w); /* before the connections end */
}

static void sandbox_leave(void *ctx, uint64_t cgroup_id)
{
	struct supervisor *w = ctx;
	struct briefed *briefed = known_find(w, cgroup_id);
	const struct session_brief *session;

	if (!briefed)
		return;
	session = session_brief_find(w, briefed->sandbox.session);
	send_all(w, LINK_GONE, &briefed->sandbox, sizeof(briefed->sandbox), -1);
	/* What they have to report of it is in their ledgers then, and with the last of a session its connections to origins have ended: a raise
	 * that finds no sandbox waits for nobody. What was never PROXIED has nothing there. */
	if (briefed->sandbox.rung.mode != NP_FULL || (session && session->inspected))
		supervisor_sync(w);
	asks_drop(w, cgroup_id);
	known_remove(w, briefed, true);
	LIST_INSERT_HEAD(&w->leaving, briefed, of_leaving);
}

static void sandbox_forget(void *ctx, uint64_t cgroup_id)
{
	namespace_drop(ctx, cgroup_id);
	sandbox_leave(ctx, cgroup_id);
}

void briefing_leave(struct supervisor *w)
{
	struct briefed *briefed;

	while ((briefed = LIST_FIRST(&w->leaving))) {
		LIST_REMOVE(briefed, of_leaving);
		ledgers_leave(w->ledgers, briefed->sandbox.cgroup_id);
		free(briefed);
	}
}

void left_learn(struct supervisor *w, const struct link_sandbox *message)
{
	struct briefed *briefed = known_find(w, message->cgroup_id);

	if (briefed)
		briefed->left = true;
}

static void sandboxes_left(void *ctx, const uint64_t *cgroup_ids, size_t n, bool *has)
{
	struct supervisor *w = ctx;
	bool requested_of = false;

	for (size_t i = 0; i < n; i++) {
		struct briefed *briefed = known_find(w, cgroup_ids[i]);

		if (has[i] || !briefed || briefed->sandbox.rung.mode != NP_PROXIED)
			continue;
		briefed->left = false;
		send_all(w, LINK_LEFT, &briefed->sandbox, sizeof(briefed->sandbox), -1);
		requested_of = true;
	}
	if (requested_of)
		supervisor_sync(w);
	for (size_t i = 0; requested_of && i < n; i++) {
		const struct briefed *briefed = known_find(w, cgroup_ids[i]);

		has[i] = has[i] || (briefed && briefed->sandbox.rung.mode == NP_PROXIED && briefed->left);
	}
}

void batch_add(struct buf *out, enum link_type type, const void *data, size_t len)
{
	struct link_message message = { .type = type, .len = (uint32_t)len };

	buf_append(out, &message, sizeof(message));
	buf_append(out, data, len);
}

static struct session_brief *session_next(const struct supervisor *w, const struct session_brief *session)
{
	struct table_node *n = table_walk(&w->sessions, session ? &session->node : NULL);

	return n ? container_of(n, struct session_brief, node) : NULL;
}

int batch_make(struct supervisor *w, bool cas_only, int *ret_fd)
{
	_buf_ struct buf out = BUF_INIT(LINK_BATCH_MAX);
	const struct session_brief *a;
	int r;

	for (const struct table_node *n = cas_only ? NULL : table_walk(&w->sandboxes, NULL); n;
	     n = table_walk(&w->sandboxes, n))
		batch_add(&out, LINK_SANDBOX, &container_of(n, struct briefed, node)->sandbox,
			  sizeof(struct link_sandbox));
	for (a = session_next(w, NULL); a; a = session_next(w, a))
		if (a->ca.len)
			batch_add(&out, LINK_CA, &a->ca, sizeof(a->ca));
	for (a = cas_only ? NULL : session_next(w, NULL); a; a = session_next(w, a))
		names_batch(a, &out);
	r = buf_error(&out) ? buf_error(&out) : link_blob(out.data ? out.data : "", out.len, ret_fd);
	if (out.data)
		explicit_bzero(out.data, out.len);
	return r;
}

void briefing_clear(struct supervisor *w)
{
	struct briefed *briefed;

	for (size_t i = 0; i < w->sandboxes.size; i++)
		while (w->sandboxes.buckets[i]) {
			briefed = container_of(w->sandboxes.buckets[i], struct briefed, node);
			known_remove(w, briefed, false);
			free(briefed);
		}
	while ((briefed = LIST_FIRST(&w->leaving))) {
		LIST_REMOVE(briefed, of_leaving);
		free(briefed);
	}
	table_clear(&w->sandboxes);
	table_clear(&w->sessions);
}

void supervisor_recovered(struct supervisor *w, bool (*is_used)(void *data, const char *session),
			  bool (*is_there)(void *data, uint64_t cgroup_id), void *data)
{
	names_sweep(w, is_used, data);
	cas_wipe(w->cas_dir, w, is_used, data);
	ledgers_sweep(w->ledgers, is_there, data);
	w->recovered = true;
	readiness_lose(&w->readiness, loop_now_ns()); /* before this, none can be */
	processes_brief(w);
}

/* -- the interface of session/inspectors.h --------------------------------------------------- */

static void all_sync_begin(void *ctx)
{
	supervisor_sync_begin(ctx);
}

static unsigned all_sync(void *ctx)
{
	supervisor_sync(ctx);
	return supervisor_cut(ctx);
}

static void all_receive(void *ctx)
{
	supervisor_receive(ctx);
}

struct inspectors supervisor_inspectors(struct supervisor *w)
{
	return (struct inspectors){
		.ctx = w,
		.tighten = sandbox_tighten,
		.sync_begin = all_sync_begin,
		.sync = all_sync,
		.ending = sandbox_ending,
		.left = sandboxes_left,
		.forget = sandbox_forget,
		.leave = sandbox_leave,
		.netns_make = namespace_make,
		.netns_join = namespace_join,
		.netns_lost = namespace_lost,
		.netns_find = namespace_find,
		.reply = asks_reply,
		.receive = all_receive,
	};
}
