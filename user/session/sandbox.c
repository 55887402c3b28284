/* SPDX-License-Identifier: MIT */
/* One sandbox in memory: how it is found, what it waits for, how it ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/service_internal.h"
#include "vocab/limits.h"

struct sandbox *sandbox_by_cgroup(struct service *service, uint64_t cgroup_id)
{
	return TABLE_FIND(&service->sandboxes_by_cgroup, hash_number(&service->key, cgroup_id), struct sandbox,
			  by_cgroup, sandbox, sandbox->pub.cgroup.id == cgroup_id);
}

struct sandbox *sandbox_by_id(struct service *service, const char *id)
{
	return TABLE_FIND(&service->sandboxes_by_id, hash_text(&service->key, id), struct sandbox, by_id, sandbox,
			  !strcmp(sandbox->pub.id, id));
}

int sandbox_new(struct service *service, struct session *session, const char *id, const struct gate_cgroup *cgroup,
		bool adopted, struct sandbox **ret)
{
	struct sandbox *sandbox;

	if (table_reserve(&service->sandboxes_by_id) || table_reserve(&service->sandboxes_by_cgroup))
		return -ENOMEM;
	sandbox = calloc(1, sizeof(*sandbox));
	if (!sandbox)
		return -ENOMEM;
	strncpy(sandbox->pub.id, id, sizeof(sandbox->pub.id) - 1);
	sandbox->pub.session = session->name;
	sandbox->pub.cgroup.id = cgroup->id;
	sandbox->pub.cgroup.depth = cgroup->depth;
	strcpy(sandbox->pub.cgroup.path, cgroup->path); /* not the whole 4 KiB: there may be 10,000 sandboxes */
	sandbox->pub.adopted = adopted;
	sandbox->pub.temporary = session->temporary;
	sandbox->pub.rung.mode = NP_FULL; /* nothing is known to hold it back yet */
	sandbox->session = session;
	sandbox->made_us = service->config.boot_us();
	table_add(&service->sandboxes_by_id, &sandbox->by_id, hash_text(&service->key, sandbox->pub.id));
	table_add(&service->sandboxes_by_cgroup, &sandbox->by_cgroup, hash_number(&service->key, cgroup->id));
	TAILQ_INSERT_TAIL(&service->all, sandbox, of_all);
	TAILQ_INSERT_TAIL(&session->sandboxes, sandbox, of_session);
	session->sandbox_count++;
	*ret = sandbox;
	return 0;
}

static void sandbox_hide(struct service *service, struct sandbox *sandbox)
{
	if (!sandbox->dying)
		service->hidden++;
	sandbox->dying = true;
	sandbox_care(service, sandbox);
}

void sandbox_drop(struct service *service, struct sandbox *sandbox)
{
	struct session *session = sandbox->session;

	if (service->cursor == sandbox)
		service->cursor = TAILQ_NEXT(sandbox, of_all);
	if (sandbox->care) {
		TAILQ_REMOVE(&service->care, sandbox, of_care);
		service->care_count--;
	}
	if (sandbox->dying)
		service->hidden--;
	service->own_networks -= sandbox->pub.own_network;
	TAILQ_REMOVE(&service->all, sandbox, of_all);
	TAILQ_REMOVE(&session->sandboxes, sandbox, of_session);
	session->sandbox_count--;
	table_remove(&service->sandboxes_by_id, &sandbox->by_id);
	table_remove(&service->sandboxes_by_cgroup, &sandbox->by_cgroup);
	free(sandbox);
	session_release(service, session);
}

uint64_t sandbox_age_us(const struct service *service, const struct sandbox *sandbox)
{
	return service->config.boot_us() - sandbox->made_us;
}

struct np_rung sandbox_target(const struct sandbox *sandbox)
{
	struct np_rung target = sandbox->session->stands;

	if (class_mode(sandbox->pub.class) > target.mode)
		target.mode = class_mode(sandbox->pub.class);
	target.flags = sandbox->pub.class == CLASS_READ_ONLY ? NP_READ_ONLY : 0;
	return target;
}

bool sandbox_is_held(const struct sandbox *sandbox)
{
	/* What lingers has an entry, which can be raised. Without one a raise would register a cgroup that is gone. After that nothing
	 * is left that a raise could stop: see sandbox_leave(). */
	return sandbox->stage == SANDBOX_RUNS || (sandbox->stage == SANDBOX_LINGERS && sandbox->registered);
}

bool sandbox_is_loose(const struct sandbox *sandbox)
{
	const struct np_rung target = sandbox_target(sandbox);

	return sandbox_is_held(sandbox) && (!sandbox->registered || np_rung_is_looser(&sandbox->pub.rung, &target));
}

bool sandbox_is_behind(const struct sandbox *sandbox)
{
	if (!sandbox_is_held(sandbox))
		return false;
	return sandbox->stale || sandbox_is_loose(sandbox) ||
	       sandbox->pub.rung.generation < sandbox->session->stands.generation;
}

void sandbox_touch(struct service *service, struct sandbox *sandbox)
{
	sandbox->pub.active_us = service->config.wall_us();
	sandbox->active_ns = service->config.now_ns();
}

void sandbox_care(struct service *service, struct sandbox *sandbox)
{
	bool care = sandbox->dying || sandbox->uncut || sandbox_is_behind(sandbox);

	if (care == sandbox->care)
		return;
	sandbox->care = care;
	if (care) {
		TAILQ_INSERT_TAIL(&service->care, sandbox, of_care);
		service->care_count++;
	} else {
		TAILQ_REMOVE(&service->care, sandbox, of_care);
		service->care_count--;
	}
}

bool sandbox_is_gone(struct service *service, const struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	struct gate_cgroup found;
	int r = gate->cgroup_find(gate->ctx, sandbox->pub.cgroup.path, &found);

	/* Another cgroup at the same path is not ours: ours is gone. Other errors prove nothing. */
	return r == -ENOENT || (!r && found.id != sandbox->pub.cgroup.id);
}

/*
 * Before its processes are killed, the inspectors learn of it: they would take the connections that end with them for
 * clients that went away. Only PROXIED has connections there. A sandbox that is looser than its session allows is not made
 * to wait for them: it is killed at once.
 */
static void sandbox_announce_end(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;

	if (sandbox->ending || !sandbox->registered || sandbox->pub.rung.mode != NP_PROXIED ||
	    sandbox_is_loose(sandbox) || !gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup))
		return;
	sandbox->ending = true;
	inspectors_ending(service, sandbox->pub.cgroup.id, true);
}

/* The first stage: afterwards no process lives in the sandbox. -EBUSY while one does. */
static int sandbox_empty(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	int r;

	if (sandbox->gone)
		return 0;
	/* Detaching gives the network back: never to anybody who is there to use it. */
	if (sandbox->pub.adopted)
		return gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup) ? -EBUSY : 0;
	sandbox_announce_end(service, sandbox);
	r = gate->cgroup_remove(gate->ctx, &sandbox->pub.cgroup);
	if (sandbox->ending && r && r != -EBUSY && r != -ENOENT) { /* it goes on as it was */
		sandbox->ending = false;
		inspectors_ending(service, sandbox->pub.cgroup.id, false);
	}
	return r == -ENOENT ? 0 : r;
}

/* Has it orphans? When that cannot be told, it may. */
static bool sandbox_has_orphans(struct service *service, struct sandbox *sandbox)
{
	bool has = true;

	if (!sandbox->looked && orphans_find(service, &sandbox->pub.cgroup.id, 1, &has))
		has = true;
	has = sandbox->looked ? sandbox->has_orphans : has;
	sandbox->looked = false;
	return has;
}

/*
 * The second stage. Programs that are gone may have left connections with bytes that are not acknowledged. The mode
 * permits these bytes, so they may arrive, within NP_LINGER_MS, and the gate stays until then: a raise meanwhile tightens
 * and cuts them as it does those of others. Somebody who is let into an adopted cgroup after its removal is not made to
 * wait for them. 0: nothing is left; -EBUSY: ask again.
 */
static int sandbox_linger(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	uint64_t now = service->config.now_ns();
	bool waits, has = sandbox->registered && sandbox_has_orphans(service, sandbox);
	unsigned cut = 0;
	int r = 0;

	if (!sandbox->linger_ns)
		sandbox->linger_ns = now + NP_LINGER_MS * 1000000ull;
	waits = now < sandbox->linger_ns && sandbox->pub.rung.mode != NP_NONE && !sandbox->uncut &&
		!sandbox_is_loose(sandbox);
	if (has && waits && sandbox->pub.adopted && !sandbox->gone)
		waits = !gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup);
	if (has && waits)
		return -EBUSY;
	if (has)
		r = gate->cut(gate->ctx, &sandbox->pub.cgroup.id, 1, GATE_CUT_ENDED, &cut);
	/* Without an entry the gate below the slice lets nothing pass. An adopted cgroup is below something else. */
	return sandbox->pub.adopted ? r : 0;
}

/* The third stage: an adopted cgroup is let go. */
static int sandbox_release(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	int r = sandbox->pub.adopted && !sandbox->gone ? gate->detach(gate->ctx, &sandbox->pub.cgroup) : 0;

	return r == -ENOENT ? 0 : r;
}

void sandbox_leave(struct service *service, struct sandbox *sandbox)
{
	if (sandbox->left)
		return;
	ended_note(service, sandbox);
	sandbox->left = true;
	inspectors_leave(service, sandbox->pub.cgroup.id);
}

/*
 * The fourth stage. The kernel may refuse to forget a cgroup that still exists, as a detached one
 * does: its entry stays until the cgroup goes. A raise does not reach the sandbox any more, so what the inspectors have of it
 * ends now, whatever the kernel says: its orphans in the kernel have ended in the second stage.
 */
static int sandbox_retire(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	int r = cgroup_retire(service, sandbox->pub.cgroup.id);

	if (r && r != -ENOENT) {
		sandbox_leave(service, sandbox);
		return r;
	}
	/* Only now: had the cgroup been alive after all, under another path, this would have freed it. What is left to
	 * detach are pins in the file system, so a failure takes nothing away. */
	if (sandbox->gone && sandbox->pub.adopted)
		gate->detach(gate->ctx, &sandbox->pub.cgroup);
	return 0;
}

void sandbox_count(struct service *service, struct sandbox *sandbox)
{
	if (service->config.count)
		service->config.count(service->config.count_data, sandbox->pub.cgroup.id, &sandbox->pub.counts);
}

int sandbox_end(struct service *service, struct sandbox *sandbox, bool gone, const char *who)
{
	sandbox->gone = sandbox->gone || gone;
	if (sandbox->stage == SANDBOX_RUNS) {
		int r = sandbox_empty(service, sandbox);

		if (r == -EBUSY && !sandbox->pub.adopted)
			sandbox_hide(service, sandbox);
		if (r)
			return r;
		sandbox->stage = SANDBOX_LINGERS;
		if (sandbox->gone && !strcmp(who, "daemon"))
			restarted_await(service, sandbox);
		if (sandbox->announced)
			sandbox_event(service, NP_R_SANDBOX_REMOVED, sandbox, who, NULL);
	}
	if (sandbox->pub.kept && kept_forget(service, sandbox->pub.id)) {
		sandbox_hide(service, sandbox);
		return 0;
	}
	if (sandbox->pub.parent)
		parent_forget(service, sandbox->pub.id);
	if (sandbox->stage == SANDBOX_LINGERS) {
		if (sandbox_linger(service, sandbox) || sandbox_release(service, sandbox)) {
			sandbox_hide(service, sandbox);
			return 0;
		}
		sandbox->stage = SANDBOX_RELEASED;
		sandbox_care(service, sandbox);
	}
	if (sandbox->stage == SANDBOX_RELEASED) {
		if (!sandbox->left)
			ended_note(service, sandbox);
		if (sandbox_retire(service, sandbox)) {
			sandbox_hide(service, sandbox);
			return 0;
		}
		sandbox->stage = SANDBOX_RETIRED;
	}
	/* Even a put that failed may have reached the disk, so this does not ask sandbox->recorded. */
	if (!restarted_is_awaited(service, sandbox->pub.id) &&
	    store_sandbox_remove(service->config.store, sandbox->pub.id, service->config.wall_us())) {
		sandbox_hide(service, sandbox);
		return 0;
	}
	sandbox_drop(service, sandbox);
	return 0;
}

void sandboxes_look(struct service *service)
{
	struct sandbox *sandboxes[SWEEP_BATCH], *sandbox;
	uint64_t ids[SWEEP_BATCH];
	bool has[SWEEP_BATCH];
	size_t n = 0;

	/* The sweep attends to these, from the front. */
	for (sandbox = TAILQ_FIRST(&service->care); sandbox && n < SWEEP_BATCH;
	     sandbox = TAILQ_NEXT(sandbox, of_care)) {
		if (sandbox->stage != SANDBOX_LINGERS || !sandbox->registered)
			continue;
		ids[n] = sandbox->pub.cgroup.id;
		sandboxes[n++] = sandbox;
	}
	if (n < 2 || orphans_find(service, ids, n, has))
		return; /* each looks for itself */
	for (size_t i = 0; i < n; i++) {
		sandboxes[i]->looked = true;
		sandboxes[i]->has_orphans = has[i];
	}
}

void sandbox_abandon(struct service *service, struct sandbox *sandbox)
{
	if (sandbox_end(service, sandbox, false, "daemon"))
		sandbox_hide(service, sandbox);
}

/* From before a restart, empty, and older than this: whoever asked for it has entered it by now, and it
 * emptied while nobody looked. */
#define ENTER_US (5 * 1000000ULL)

static bool sandbox_was_used(struct service *service, const struct sandbox *sandbox)
{
	const uint64_t age = sandbox_age_us(service, sandbox);

	if (sandbox->pub.parent) /* the next container comes, or the last one again */
		return false;

	/* Whoever made a temporary one, or one whose network it enters, and was killed before a process was there does not come
	 * back to it. */
	return sandbox->pub.ever_populated || (sandbox->recovered && age > ENTER_US) ||
	       ((sandbox->pub.temporary || sandbox->pub.own_network) && age > NP_RUN_START_S * 1000000ull);
}

/* A pod whose first process came after the daemon that had adopted it went: by its processes its network is found again. */
static void adopted_look(struct service *service, struct sandbox *sandbox)
{
	const struct inspectors *inspectors = &service->config.inspectors;
	const struct gate *gate = &service->config.gate;
	struct failure ignored;

	if (sandbox->recovered && !sandbox->pub.own_network && inspectors->netns_lost &&
	    inspectors->netns_lost(inspectors->ctx, sandbox->pub.cgroup.id) &&
	    gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup))
		own_network_join(service, sandbox, NULL, &ignored);
}

void sandbox_check(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;

	if (sandbox->dying || sandbox_is_gone(service, sandbox)) {
		sandbox_end(service, sandbox, !sandbox->dying, "daemon");
		return;
	}
	if (sandbox->pub.adopted) {
		adopted_look(service, sandbox);
		if (sandbox->again && gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup))
			placed_check(service, sandbox);
		return;
	}
	if (sandbox->recovered && !sandbox->pub.own_network) /* found late: the start lacked something */
		own_network_note(service, sandbox);
	if (gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup)) {
		sandbox->pub.ever_populated = true;
		if (placed_check(service, sandbox))
			return;
	} else if (sandbox_was_used(service, sandbox)) {
		sandbox_end(service, sandbox, false, "daemon");
		return;
	}
	if (sandbox->pub.kept)
		kept_check(service, sandbox);
	else if (sandbox->pub.parent)
		parent_look(service, sandbox);
	else if (sandbox->pub.born)
		born_look(service, sandbox);
}
