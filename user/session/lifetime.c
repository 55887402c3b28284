/* SPDX-License-Identifier: MIT */
/*
 * How long sessions live. A session that nobody uses ends, one that ended long ago is forgotten, and a temporary one goes
 * with its run. Forgotten is the record: datasets, notices, who read them. Its level is not: the store keeps a row of it,
 * and a session that comes back under that name starts from there. That row goes by the policy's word or an operator's, and
 * never while the session has a workspace: files of a high session must not turn up in a low one.
 *
 * A clock that jumps makes nothing go: what goes by its age waits until the clock has been steady for NP_CLOCK_STEADY_S.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "session/raise_outcome.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

#define TEMPORARY_BATCHES 16

void service_lifetime_set(struct service *service, const struct lifetime *lifetime)
{
	service->config.lifetime = *lifetime;
}

/* -- workspaces ---------------------------------------------------------------- */

static int workspace_end(struct service *service, const char *session, enum workspace_fate fate)
{
	const struct service_config *config = &service->config;
	int r = config->workspace_end ? config->workspace_end(config->workspace_data, session, fate) : 0;

	return r == -ENOENT ? 0 : r;
}

static int workspace_see_to(struct service *service, struct session *session)
{
	int r = workspace_end(service, session->name.text, service->config.lifetime.at_end);

	if (!r)
		r = store_session_seen_to(service->config.store, session->name.text);
	session->workspace_due = r != 0;
	return r;
}

/* A sandbox that only lingers has connections, and no process that has a file. */
static bool session_is_lived_in(const struct session *session)
{
	const struct sandbox *sandbox;

	TAILQ_FOREACH(sandbox, &session->sandboxes, of_session) {
		if (sandbox->stage == SANDBOX_RUNS)
			return true;
	}
	return false;
}

void session_workspace_end(struct service *service, struct session *session)
{
	if (session->workspace_due &&
	    !session_is_lived_in(session)) /* else processes still die: the sweep sees to it */
		workspace_see_to(service, session);
}

int session_workspace_renew(struct service *service, struct session *session)
{
	return session->workspace_due ? workspace_see_to(service, session) : 0;
}

/* -- forget -------------------------------------------------------------------- */

static void forgotten_emit(struct service *service, const char *session, const char *who, const char *text)
{
	struct event event = { .reason = NP_R_SESSION_FORGOTTEN, .session = session, .who = who, .text = text };

	service_emit(service, &event, NULL, NULL);
}

/* The session is not on record: what is left is the level, and perhaps a workspace. */
static int level_forget(struct service *service, const char *session, bool level_too, struct forgotten *ret,
			struct failure *ret_failure)
{
	struct store *store = service->config.store;
	int r = store_level_get(store, session, &ret->level);

	if (r == -ENOENT)
		return 0;
	if (!r && !level_too) {
		ret->remembered = true;
		return 0;
	}
	if (!r)
		r = store_level_release(store, session);
	return r ? service_fail(ret_failure, NP_R_NOT_RECORDED, r, "the level of %s: %s", session, sql_strerror(r)) : 0;
}

/* First the workspace, then the record, the level last: a crash between two of them leaves a level without files, and never
 * files without their level. */
static int session_forget(struct service *service, struct session *session, bool level_too, struct forgotten *ret,
			  struct failure *ret_failure)
{
	const char *name = session->name.text;
	const struct np_rung before = session->recorded;
	int r;

	if (session->status == SESSION_OPEN)
		return service_fail(ret_failure, NP_R_SESSION_OPEN, -EBUSY, "%s: end it first", name);
	if (session->sandbox_count)
		return service_fail(ret_failure, NP_R_SESSION_OPEN, -EBUSY,
				    "%s: its sandboxes are being removed; try again", name);
	r = workspace_end(service, name, WORKSPACE_REMOVE);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "the workspace of %s could not be removed: %s", name,
				    strerror(-r));
	/* What stands may be higher than what could be recorded; the level that is remembered is the record's. */
	if (!np_rung_equal(&session->stands, &session->recorded))
		r = store_session_raise(service->config.store, name, &session->stands, NULL, NULL, NULL);
	if (!r && session->status == SESSION_ENDED)
		r = store_sessions_forget(service->config.store, &session->name, 1, service->config.wall_us());
	if (r)
		return service_fail(ret_failure, r == -E2BIG ? NP_R_TOO_MANY : NP_R_NOT_RECORDED, r, "%s: %s", name,
				    r == -E2BIG ? "too many levels are remembered" : sql_strerror(r));
	rise_emit(service, session, &before, session_owed_us(session), "daemon");
	session->recorded = session->stands;
	session->owed_us = 0;
	session->status = SESSION_NEW;
	return level_forget(service, name, level_too, ret, ret_failure);
}

int service_session_forget(struct service *service, const char *name, bool level_too, const char *who,
			   struct forgotten *ret, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct session *session;
	bool remembered = false;
	char text[160];
	int r = session_open(service, name, &session, ret_failure);

	if (r)
		return r;
	*ret = (struct forgotten){ .session = session->name };
	/* Of one that is not on record only a level can still be forgotten. */
	if (session->status == SESSION_NEW)
		r = session_missing(service, name, &remembered, ret_failure);
	if (!r || (remembered && level_too))
		r = session_forget(service, session, level_too, ret, ret_failure);
	session_unpin(service, session);
	if (r)
		return r;
	snprintf(text, sizeof(text), "its record and its workspace; %s%s",
		 ret->remembered ? level_name(ret->level.level)
		 : level_too	 ? "its level too"
				 : "it had no level to remember",
		 ret->remembered ? " is remembered as its level" : "");
	forgotten_emit(service, name, who, text);
	return 0;
}

/* -- the sweep ------------------------------------------------------------------- */

static bool clock_is_steady(struct service *service)
{
	return steady_clock_look(&service->clock, service->config.wall_us(), service->config.now_ns() / 1000,
				 NP_CLOCK_STEADY_S * 1000000ull);
}

/* In memory is what has a sandbox, or a raise that is not recorded: none of that goes. */
static void names_unused(struct service *service, struct store_names *names)
{
	size_t n = 0;

	for (size_t i = 0; i < names->count; i++)
		if (!session_find(service, names->names[i].text))
			names->names[n++] = names->names[i];
	names->count = n;
}

/* text is what people are told; NULL for temporary ones, of which that their run is over was told. */
static void names_forget(struct service *service, struct store_names *names, const char *text)
{
	int (*forget)(struct store *, const struct session_name *, size_t, uint64_t) =
		text ? store_sessions_forget : store_temporary_forget;
	struct store *store = service->config.store;
	uint64_t now = service->config.wall_us();

	names_unused(service, names);
	if (!names->count || !forget(store, names->names, names->count, now)) {
		for (size_t i = 0; text && i < names->count; i++)
			forgotten_emit(service, names->names[i].text, "daemon", text);
		return;
	}
	/* One of them does not go; the others do. */
	for (size_t i = 0; i < names->count; i++)
		if (!forget(store, &names->names[i], 1, now) && text)
			forgotten_emit(service, names->names[i].text, "daemon", text);
}

/* One batch. False: there are no more, or they do not go. */
static bool temporary_forget(struct service *service, struct store_names *names)
{
	struct store *store = service->config.store;
	uint64_t now = service->config.wall_us();
	const unsigned before = store_sessions_count(store);
	bool full;

	if (store_due(store, DUE_TEMPORARY, now - NP_TEMPORARY_S * 1000000ull, STORE_BATCH, names))
		return false;
	full = names->count == STORE_BATCH;
	names_unused(service, names);
	/* Whoever started its run was killed, so nobody has ended it. */
	for (size_t i = 0; i < names->count; i++) {
		struct session_row row;

		if (!store_session_get(store, names->names[i].text, &row) && !row.ended)
			service_session_end(service, names->names[i].text, "daemon", NULL);
	}
	names_forget(service, names, NULL);
	return full && store_sessions_count(store) < before;
}

/* As many as anonymous runs can come in a second. */
static void temporary_sweep(struct service *service, struct store_names *names)
{
	for (unsigned i = 0; i < TEMPORARY_BATCHES && temporary_forget(service, names); i++)
		;
}

static void workspace_sweep(struct service *service, struct store_names *names)
{
	if (store_due(service->config.store, DUE_WORKSPACE, 1, STORE_BATCH, names))
		return;
	for (size_t i = 0; i < names->count; i++) {
		struct session *session;

		if (session_load(service, &names->names[i], LEVEL_PUBLIC, &session, NULL))
			continue;
		session_workspace_end(service, session);
		session_unpin(service, session);
	}
}

static void age_sweep(struct service *service, struct store_names *names)
{
	const struct lifetime *lifetime = &service->config.lifetime;
	struct store *store = service->config.store;
	const uint64_t now = service->config.wall_us(), keep = lifetime->keep_s * 1000000;

	if (keep && now > keep && clock_is_steady(service)) {
		if (!store_due(store, DUE_IDLE, now - keep, STORE_BATCH, names))
			for (size_t i = 0; i < names->count; i++)
				service_session_end(service, names->names[i].text, "daemon", NULL);
		if (!store_due(store, DUE_OLD, now - keep, STORE_BATCH, names))
			names_forget(service, names, "it ended longer ago than the policy keeps sessions");
	}
	if (lifetime->keep_count && store_sessions_ended(store) > lifetime->keep_count &&
	    !store_due(store, DUE_OLD, INT64_MAX, store_sessions_ended(store) - (unsigned)lifetime->keep_count, names))
		names_forget(service, names, "more sessions have ended than the policy keeps");
}

/* The only way by which time lowers anything: where the policy says for how long. */
static void level_sweep(struct service *service, struct store_names *names)
{
	const struct service_config *config = &service->config;
	const uint64_t now = config->wall_us(), remember = config->lifetime.remember_s * 1000000;

	if (!remember || now <= remember || !clock_is_steady(service) ||
	    store_due(config->store, DUE_LEVEL, now - remember, STORE_BATCH, names))
		return;
	names_unused(service, names);
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->names[i].text;

		if (config->workspace_is && config->workspace_is(config->workspace_data, name))
			store_level_renew(config->store, name, now); /* it may come back to its files */
		else if (!store_level_release(config->store, name))
			forgotten_emit(service, name, "daemon",
				       "its level: it went longer ago than the policy remembers");
	}
}

bool sessions_make_room(struct service *service)
{
	struct store_names names;

	if (store_due(service->config.store, DUE_OLD, INT64_MAX, STORE_BATCH, &names))
		return false;
	names_forget(service, &names, "there are as many sessions as there can be, and it was the first to end");
	return store_sessions_count(service->config.store) < NP_SESSIONS_MAX - service->reserve;
}

void lifetime_sweep(struct service *service)
{
	struct store_names names;

	workspace_sweep(service, &names);
	temporary_sweep(service, &names);
	age_sweep(service, &names);
	level_sweep(service, &names);
}
