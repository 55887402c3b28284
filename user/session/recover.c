/* SPDX-License-Identifier: MIT */
/*
 * After a start: the store says whose cgroups there were, the kernel says how tight they are, the file system says which of
 * them still exist. The stricter of two answers wins, and everything that one of them does not know is closed or removed, never
 * opened. Nothing here passes through a looser state: the gate went on enforcing while there was no daemon.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sql.h"
#include "session/service_internal.h"

/* What the kernel holds, sorted by cgroup id. */
struct held {
	struct gate_sandbox *sandboxes;
	size_t count, size;
};

struct recovery {
	struct service *service;
	struct held held;
	int result; /* the first failure; the others are consequences or of the same kind */
	struct failure failure;
};

static void recovery_fail(struct recovery *recovery, int r, const struct failure *failure)
{
	if (recovery->result)
		return;
	recovery->result = r;
	recovery->failure = *failure;
}

#define RECOVERY_FAIL(recovery, reason, r, ...)                  \
	do {                                                     \
		struct failure failure_;                         \
		service_fail(&failure_, reason, r, __VA_ARGS__); \
		recovery_fail(recovery, r, &failure_);           \
	} while (0)

static int held_add(void *data, const struct gate_sandbox *sandbox)
{
	struct held *held = data;

	if (ARRAY_RESERVE(held->sandboxes, held->size, held->count + 1) < 0)
		return -ENOMEM;
	held->sandboxes[held->count++] = *sandbox;
	return 0;
}

static int held_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct gate_sandbox *)a)->cgroup_id, y = ((const struct gate_sandbox *)b)->cgroup_id;

	return (x > y) - (x < y);
}

static const struct gate_sandbox *held_find(const struct held *held, uint64_t cgroup_id)
{
	struct gate_sandbox key = { .cgroup_id = cgroup_id };

	return held->count ? bsearch(&key, held->sandboxes, held->count, sizeof(key), held_compare) : NULL;
}

/* 0: it is there. -ENOENT: it is gone, or another cgroup has its path: then *ret says which. */
static int row_find(struct service *service, const struct sandbox_row *row, struct gate_cgroup *ret)
{
	const struct gate *gate = &service->config.gate;
	int r;

	*ret = (struct gate_cgroup){ 0 };
	r = gate->cgroup_find(gate->ctx, row->path, ret);
	return !r && ret->id != row->cgroup_id ? -ENOENT : r;
}

/* The wall's clock is all that a start has. One that was set back behind the beginning says nothing: then it begins now. */
static void sandbox_age_set(const struct service *service, struct sandbox *sandbox)
{
	const uint64_t wall = service->config.wall_us(), from = sandbox->pub.created_us;
	const uint64_t age = wall > from ? wall - from : 0;

	sandbox->made_us -= age < sandbox->made_us ? age : sandbox->made_us;
}

/* Puts a recorded sandbox into memory, with what the kernel knows of it. */
static int row_load(struct recovery *recovery, const struct sandbox_row *row, const struct gate_cgroup *cgroup,
		    struct sandbox **ret)
{
	struct service *service = recovery->service;
	const struct gate_sandbox *held = held_find(&recovery->held, row->cgroup_id);
	struct failure failure;
	struct session *session;
	struct sandbox *sandbox;
	int r = session_load(service, &row->session, LEVEL_PUBLIC, &session, &failure);

	if (r) {
		recovery_fail(recovery, r, &failure);
		return r;
	}
	r = sandbox_new(service, session, row->id, cgroup, row->adopted, &sandbox);
	session_unpin(service, session);
	if (r) {
		RECOVERY_FAIL(recovery, NP_R_FAILED, r, "sandbox %s: %s", row->id, strerror(-r));
		return r;
	}
	sandbox->pub.created_us = row->created_us;
	sandbox_age_set(service, sandbox);
	sandbox_touch(service, sandbox);
	sandbox->pub.class = row->class;
	sandbox->pub.kept = kept_is(service, row->id);
	sandbox->pub.parent = !row->adopted && parent_is(&row->session, row->path);
	sandbox->pub.born = sandbox->placed = !row->adopted && parent_holds(&row->session, row->path);
	own_network_note(service, sandbox);
	sandbox->recorded = sandbox->announced = sandbox->stale = sandbox->recovered = true;
	/* It ran without the gate, as after the pins were removed; or the crash came before the cut. */
	sandbox->uncut = !held || held->uncut;
	if (held) {
		sandbox->registered = true;
		sandbox->pub.rung = held->rung;
	}
	*ret = sandbox;
	return 0;
}

/* First round: the sandboxes that are still there. */
static int row_recover(void *data, const struct sandbox_row *row)
{
	struct recovery *recovery = data;
	struct service *service = recovery->service;
	const struct gate *gate = &service->config.gate;
	struct gate_cgroup cgroup;
	struct sandbox *sandbox;
	int r = row_find(service, row, &cgroup);

	if (r == -ENOENT || sandbox_by_cgroup(service, row->cgroup_id))
		return 0;
	if (r) {
		RECOVERY_FAIL(recovery, NP_R_NOT_APPLIED, r, "cgroup %s of sandbox %s: %s", row->path, row->id,
			      strerror(-r));
		/* It may be there, so it is taken to be. The kernel uses the depth for new entries only. */
		cgroup = (struct gate_cgroup){ .id = row->cgroup_id, .depth = 1 };
		strcpy(cgroup.path, row->path);
	}
	if (row_load(recovery, row, &cgroup, &sandbox) || sandbox->pub.adopted)
		return 0;
	if (sandbox->session->status == SESSION_ENDED)
		sandbox_abandon(service, sandbox); /* the end of its session was cut short */
	else
		sandbox->pub.ever_populated = gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup);
	return 0;
}

/*
 * Second round: those that are gone. After the first, because cgroup ids come again after a reboot,
 * and the entry of a sandbox that lives must not be retired for one that is gone.
 */
static int row_forget(void *data, const struct sandbox_row *row)
{
	struct recovery *recovery = data;
	struct service *service = recovery->service;
	const struct gate *gate = &service->config.gate;
	struct gate_cgroup cgroup, found;
	struct sandbox *sandbox;

	if (sandbox_by_id(service, row->id) || row_find(service, row, &found) != -ENOENT)
		return 0;
	if (!row->cgroup_id) {
		restarted_recover(service, row);
		return 0;
	}
	/* Another cgroup under a name of ours, below the slice, is nobody's. It is NONE, and it
	 * goes; but for a parent's, in which an engine has started a container again. */
	if (found.id && !row->adopted && !parent_is(&row->session, row->path))
		gate->cgroup_remove(gate->ctx, &found);
	if (sandbox_by_cgroup(service, row->cgroup_id)) {
		store_sandbox_remove(service->config.store, row->id, service->config.wall_us());
		return 0;
	}
	cgroup = (struct gate_cgroup){ .id = row->cgroup_id, .depth = 1 };
	strcpy(cgroup.path, row->path);
	if (!row_load(recovery, row, &cgroup, &sandbox))
		sandbox_end(service, sandbox, true, "daemon");
	return 0;
}

/* What the kernel was told before a crash, and the record was not. */
static void recover_absorb(struct service *service, struct session *session)
{
	struct event event = { .reason = NP_R_RECONCILED };
	bool stricter = false;
	struct sandbox *sandbox;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
		if (sandbox->registered && session_absorb(session, sandbox))
			stricter = true;
	if (!stricter)
		return;
	/* The crash came before the record, perhaps before the cut as well. */
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
		sandbox->uncut = true;
	/* A failure shows again below, when all that stands is settled. An ended session is not revived. */
	if (session->status == SESSION_OPEN)
		session_record(service, session);
	else if (!store_session_raise(service->config.store, session->name.text, &session->stands, NULL, NULL, NULL))
		session->recorded = session->stands;
	service_emit(service, &event, session, NULL);
}

static void recover_session(struct service *service, struct session *session, void *data)
{
	struct recovery *recovery = data;
	const struct gate *gate = &service->config.gate;
	struct failure failure;
	struct sandbox *sandbox;
	unsigned cut;
	int r;

	recover_absorb(service, session);
	if (session->status == SESSION_OPEN) {
		r = session_settle(service, session, "daemon", &failure);
	} else {
		r = session_apply(service, session, &failure);
		if (!r)
			r = session_cut(service, session, &cut, &failure);
	}
	if (r)
		recovery_fail(recovery, r, &failure);
	/* The daemon may have died between the record and the file, or the files are gone with a reboot. */
	if (session->status == SESSION_OPEN)
		session_publish(service, session);
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session)) {
		if (!sandbox->pub.adopted || sandbox->stage != SANDBOX_RUNS)
			continue;
		r = gate->attach(gate->ctx, &sandbox->pub.cgroup);
		if (r)
			RECOVERY_FAIL(recovery, NP_R_NOT_APPLIED, r, "the gate could not be attached to %s: %s",
				      sandbox->pub.cgroup.path, strerror(-r));
	}
}

/* One look at the gate, when the last of them has its rung: nobody is told of any before. */
static void recover_whole(struct recovery *recovery)
{
	const struct gate *gate = &recovery->service->config.gate;
	char problem[512] = "";
	int r;

	recovery->service->whole = true;
	sessions_each(recovery->service, recover_session, recovery);
	recovery->service->whole = false;
	r = gate->whole ? gate->whole(gate->ctx, problem) : 0;
	if (r)
		RECOVERY_FAIL(recovery, NP_R_NOT_WHOLE, r, "%s", problem);
}

/* No call of the API names or lists it: the history alone says that it is there. */
static void unknown_emit(struct service *service, const struct gate_sandbox *held, const char *path,
			 const struct np_rung *rung)
{
	char text[sizeof(((struct gate_cgroup *)NULL)->path) + 64];
	struct event event = { .reason = NP_R_RECONCILED, .rung = *rung, .text = text };

	if (*held->session)
		event.session = held->session;
	snprintf(text, sizeof(text), "cgroup %llu (%s), which no record knows, is closed",
		 (unsigned long long)held->cgroup_id, *path ? path : "no path");
	service_emit(service, &event, NULL, NULL);
}

/* A sandbox of the kernel that no record knows, as when the store was lost. Closed; forgotten when it is gone. */
static void recover_unknown(struct recovery *recovery, const struct gate_sandbox *held)
{
	struct service *service = recovery->service;
	const struct gate *gate = &service->config.gate;
	/* The kernel asks for a depth and uses it for new entries only; this one is there. */
	struct gate_cgroup cgroup = { .id = held->cgroup_id, .depth = 1 };
	struct np_rung closed = { .level = LEVEL_SECRET, .mode = NP_NONE, .generation = held->rung.generation }, rung;
	int r = 0;

	if (gate->cgroup_by_id)
		r = gate->cgroup_by_id(gate->ctx, held->cgroup_id, &cgroup);
	if (r == -ENOENT) {
		/* It refuses when the cgroup is there after all. */
		r = cgroup_retire(service, held->cgroup_id);
		if (!r || r == -ENOENT)
			return;
	}
	if (r)
		cgroup = (struct gate_cgroup){ .id = held->cgroup_id, .depth = 1 };
	r = gate->raise(gate->ctx, &cgroup, &closed, held->session, &rung);
	if (!r) {
		inspectors_tighten(service, held->cgroup_id, "", held->session, &rung);
		unknown_emit(service, held, cgroup.path, &rung);
	} else
		RECOVERY_FAIL(recovery, NP_R_NOT_APPLIED, r,
			      "cgroup %llu of %s, which no record knows, could not be closed: %s",
			      (unsigned long long)held->cgroup_id, held->session, strerror(-r));
}

/* Cgroups below the slice that are no sandboxes: of a make that was cut short. */
struct strays {
	struct service *service;
	struct gate_cgroup *cgroups;
	size_t count, size;
};

static int stray_add(void *data, const struct gate_cgroup *cgroup)
{
	struct strays *strays = data;
	const struct gate *gate = &strays->service->config.gate;

	if (sandbox_by_cgroup(strays->service, cgroup->id) || gate->cgroup_populated(gate->ctx, cgroup))
		return 0;
	if (ARRAY_RESERVE(strays->cgroups, strays->size, strays->count + 1) < 0)
		return -ENOMEM;
	strays->cgroups[strays->count++] = *cgroup;
	return 0;
}

/* Tidying up: they are NONE and empty, so a failure matters to nobody. */
static void recover_strays(struct service *service)
{
	const struct gate *gate = &service->config.gate;
	struct strays strays = { .service = service };

	if (!gate->slice_each)
		return;
	gate->slice_each(gate->ctx, stray_add, &strays);
	for (size_t i = 0; i < strays.count; i++)
		if (!gate->cgroup_remove(gate->ctx, &strays.cgroups[i]))
			cgroup_retire(service, strays.cgroups[i].id);
	free(strays.cgroups);
}

/* The daemon ended before it was committed, or the machine before that was on the disk. */
static void replayed_emit(void *data, const struct replayed_raise *raise)
{
	struct event event = {
		.reason = NP_R_RECONCILED,
		.session = raise->session.text,
		.rung = raise->rung,
		.text = "this raise was in the log in front of the record alone: the record has it now",
	};

	service_emit(data, &event, NULL, NULL);
}

int service_recover(struct service *service, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	const struct gate *gate = &service->config.gate;
	struct recovery recovery = { .service = service };
	int r = gate->each(gate->ctx, held_add, &recovery.held);

	store_replayed_each(service->config.store, replayed_emit, service);
	if (r)
		RECOVERY_FAIL(&recovery, NP_R_FAILED, r, "the kernel's sandboxes could not be read: %s", strerror(-r));
	if (recovery.held.count)
		qsort(recovery.held.sandboxes, recovery.held.count, sizeof(*recovery.held.sandboxes), held_compare);
	r = store_sandboxes_each(service->config.store, row_recover, &recovery);
	if (!r)
		r = store_sandboxes_each(service->config.store, row_forget, &recovery);
	if (r)
		RECOVERY_FAIL(&recovery, NP_R_FAILED, r, "the recorded sandboxes could not be read: %s",
			      sql_strerror(r));
	recover_whole(&recovery);
	/* With half of the records read, an unknown sandbox may be a known one: it is closed all the same. */
	for (size_t i = 0; i < recovery.held.count; i++)
		if (!sandbox_by_cgroup(service, recovery.held.sandboxes[i].cgroup_id))
			recover_unknown(&recovery, &recovery.held.sandboxes[i]);
	recover_strays(service);
	kept_recover(service);
	notices_recover(service);
	free(recovery.held.sandboxes);
	if (recovery.result && ret_failure)
		*ret_failure = recovery.failure;
	return recovery.result;
}
