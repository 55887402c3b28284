/* SPDX-License-Identifier: MIT */
/* One sandbox in memory: how it is found, what it waits for, how it ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/service_internal.h"

struct box *box_by_cgroup(struct service *service, uint64_t cgroup_id)
{
	uint64_t hash = hash_number(service->seed, cgroup_id);

	for (struct table_node *n = table_first(&service->boxes_by_cgroup, hash); n; n = table_next(n)) {
		struct box *box = container_of(n, struct box, by_cgroup);

		if (box->pub.cgroup.id == cgroup_id)
			return box;
	}
	return NULL;
}

struct box *box_by_id(struct service *service, const char *id)
{
	uint64_t hash = hash_text(service->seed, id);

	for (struct table_node *n = table_first(&service->boxes_by_id, hash); n; n = table_next(n)) {
		struct box *box = container_of(n, struct box, by_id);

		if (!strcmp(box->pub.id, id))
			return box;
	}
	return NULL;
}

int box_new(struct service *service, struct live *live, const char *id, const struct gate_cgroup *cgroup, bool adopted,
	    struct box **ret)
{
	struct box *box;

	if (table_reserve(&service->boxes_by_id) || table_reserve(&service->boxes_by_cgroup))
		return -ENOMEM;
	box = calloc(1, sizeof(*box));
	if (!box)
		return -ENOMEM;
	strncpy(box->pub.id, id, sizeof(box->pub.id) - 1);
	box->pub.session = live->name;
	box->pub.cgroup.id = cgroup->id;
	box->pub.cgroup.depth = cgroup->depth;
	strcpy(box->pub.cgroup.path, cgroup->path); /* not the whole 4 KiB: there may be 10,000 boxes */
	box->pub.adopted = adopted;
	box->pub.rung.mode = NP_FULL; /* nothing is known to hold it back yet */
	box->live = live;
	table_add(&service->boxes_by_id, &box->by_id, hash_text(service->seed, box->pub.id));
	table_add(&service->boxes_by_cgroup, &box->by_cgroup, hash_number(service->seed, cgroup->id));
	TAILQ_INSERT_TAIL(&service->all, box, of_all);
	TAILQ_INSERT_TAIL(&live->boxes, box, of_session);
	live->box_count++;
	*ret = box;
	return 0;
}

static void box_hide(struct service *service, struct box *box)
{
	if (!box->dying)
		service->hidden++;
	box->dying = true;
	box_care(service, box);
}

void box_drop(struct service *service, struct box *box)
{
	struct live *live = box->live;

	if (service->cursor == box)
		service->cursor = TAILQ_NEXT(box, of_all);
	if (box->care) {
		TAILQ_REMOVE(&service->care, box, of_care);
		service->care_count--;
	}
	if (box->dying)
		service->hidden--;
	TAILQ_REMOVE(&service->all, box, of_all);
	TAILQ_REMOVE(&live->boxes, box, of_session);
	live->box_count--;
	table_remove(&service->boxes_by_id, &box->by_id);
	table_remove(&service->boxes_by_cgroup, &box->by_cgroup);
	free(box);
	live_release(service, live);
}

struct np_rung box_target(const struct box *box)
{
	struct np_rung target = box->live->stands;

	if (class_mode(box->pub.class) > target.mode)
		target.mode = class_mode(box->pub.class);
	target.flags = box->pub.class == CLASS_READ_ONLY ? NP_READ_ONLY : 0;
	return target;
}

bool box_is_held(const struct box *box)
{
	/* What lingers has an entry, which can be raised. Without one a raise would register a cgroup that is gone. */
	return box->stage == BOX_LIVES || (box->stage == BOX_LINGERS && box->registered);
}

bool box_is_loose(const struct box *box)
{
	const struct np_rung target = box_target(box);

	return box_is_held(box) && (!box->registered || np_rung_is_looser(&box->pub.rung, &target));
}

bool box_is_behind(const struct box *box)
{
	if (!box_is_held(box))
		return false;
	return box->stale || box_is_loose(box) || box->pub.rung.generation < box->live->stands.generation;
}

void box_care(struct service *service, struct box *box)
{
	bool care = box->dying || box->uncut || box_is_behind(box);

	if (care == box->care)
		return;
	box->care = care;
	if (care) {
		TAILQ_INSERT_TAIL(&service->care, box, of_care);
		service->care_count++;
	} else {
		TAILQ_REMOVE(&service->care, box, of_care);
		service->care_count--;
	}
}

bool box_is_gone(struct service *service, const struct box *box)
{
	const struct gate *gate = &service->config.gate;
	struct gate_cgroup found;
	int r = gate->cgroup_find(gate->ctx, box->pub.cgroup.path, &found);

	/* Another cgroup at the same path is not ours: ours is gone. Other errors prove nothing. */
	return r == -ENOENT || (!r && found.id != box->pub.cgroup.id);
}

/* The first stage: afterwards no process lives in the sandbox. -EBUSY while one does. */
static int box_empty(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	int r;

	if (box->gone)
		return 0;
	/* Detaching gives the network back: never to anybody who is there to use it. */
	if (box->pub.adopted)
		return gate->cgroup_populated(gate->ctx, &box->pub.cgroup) ? -EBUSY : 0;
	r = gate->cgroup_remove(gate->ctx, &box->pub.cgroup);
	return r == -ENOENT ? 0 : r;
}

/* Has it orphans? When that cannot be told, it may. */
static bool box_has_orphans(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	bool has = true;

	if (!box->looked && gate->orphans(gate->ctx, &box->pub.cgroup.id, 1, &has))
		has = true;
	has = box->looked ? box->has_orphans : has;
	box->looked = false;
	return has;
}

/*
 * The second stage. Programs that are gone may have left connections with bytes that are not acknowledged. The mode
 * permits these bytes, so they may arrive, within NP_LINGER_MS, and the gate stays until then: a raise meanwhile tightens
 * and cuts them as it does those of others. Somebody who is let into an adopted cgroup after its removal is not made to
 * wait for them. 0: nothing is left; -EBUSY: ask again.
 */
static int box_linger(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	uint64_t now = service->config.now_ns();
	bool waits, has = box->registered && box_has_orphans(service, box);
	unsigned cut = 0;
	int r = 0;

	if (!box->linger_ns)
		box->linger_ns = now + NP_LINGER_MS * 1000000ull;
	waits = now < box->linger_ns && box->pub.rung.mode != NP_NONE && !box->uncut && !box_is_loose(box);
	if (has && waits && box->pub.adopted && !box->gone)
		waits = !gate->cgroup_populated(gate->ctx, &box->pub.cgroup);
	if (has && waits)
		return -EBUSY;
	if (has)
		r = gate->cut(gate->ctx, &box->pub.cgroup.id, 1, GATE_CUT_ENDED, &cut);
	/* Without an entry the gate below the slice lets nothing pass. An adopted cgroup is below something else. */
	return box->pub.adopted ? r : 0;
}

/* The third stage: an adopted cgroup is let go. */
static int box_release(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	int r = box->pub.adopted && !box->gone ? gate->detach(gate->ctx, &box->pub.cgroup) : 0;

	return r == -ENOENT ? 0 : r;
}

/*
 * The fourth stage. The kernel may refuse to forget a cgroup that still exists, as a detached one
 * does: its entry is harmless and stays until the cgroup goes.
 */
static int box_retire(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	int r = gate->retire(gate->ctx, box->pub.cgroup.id);

	if (r && r != -ENOENT)
		return r;
	/* Only now: had the cgroup been alive after all, under another path, this would have freed
	 * it. What is left to detach are pins in the file system, so a failure takes nothing away.
	 */
	if (box->gone && box->pub.adopted)
		gate->detach(gate->ctx, &box->pub.cgroup);
	return 0;
}

void box_count(struct service *service, struct box *box)
{
	if (service->config.count)
		service->config.count(service->config.count_data, box->pub.cgroup.id, &box->pub.counts);
}

static struct ended_box *ended_find(struct service *service, const char *id)
{
	for (size_t i = 0; *id && i < NP_ENDED_KEPT; i++)
		if (!strcmp(service->ended[i].id, id))
			return &service->ended[i];
	return NULL;
}

/* Nothing of it is open any more, and what it was counted in is about to go. */
static void ended_note(struct service *service, struct box *box)
{
	struct ended_box *ended = ended_find(service, box->pub.id); /* from a try before this one */

	if (!ended) {
		ended = &service->ended[service->ended_next];
		service->ended_next = (service->ended_next + 1) % NP_ENDED_KEPT;
		strcpy(ended->id, box->pub.id); /* of the same size */
	}
	box_count(service, box);
	ended->counts = box->pub.counts;
}

int service_sandbox_ended(struct service *service, const char *id, struct sandbox_counts *ret)
{
	struct box *box = box_by_id(service, id);
	const struct ended_box *ended;

	if (box && box->stage != BOX_RETIRED) { /* its end waits for something */
		box_count(service, box);
		*ret = box->pub.counts;
		return 0;
	}
	ended = ended_find(service, id);
	if (!ended)
		return -ENOENT;
	*ret = ended->counts;
	return 0;
}

int box_end(struct service *service, struct box *box, bool gone, const char *who)
{
	box->gone = box->gone || gone;
	if (box->stage == BOX_LIVES) {
		int r = box_empty(service, box);

		if (r == -EBUSY && !box->pub.adopted)
			box_hide(service, box);
		if (r)
			return r;
		box->stage = BOX_LINGERS;
		if (box->announced)
			box_event(service, NP_R_SANDBOX_REMOVED, box, who, NULL);
	}
	if (box->pub.kept && kept_forget(service, box->pub.id)) {
		box_hide(service, box);
		return 0;
	}
	if (box->stage == BOX_LINGERS) {
		if (box_linger(service, box) || box_release(service, box)) {
			box_hide(service, box);
			return 0;
		}
		box->stage = BOX_RELEASED;
		box_care(service, box);
	}
	if (box->stage == BOX_RELEASED) {
		ended_note(service, box);
		if (box_retire(service, box)) {
			box_hide(service, box);
			return 0;
		}
		box->stage = BOX_RETIRED;
	}
	/* Even a put that failed may have reached the disk, so this does not ask box->recorded. */
	if (store_sandbox_remove(service->config.store, box->pub.id)) {
		box_hide(service, box);
		return 0;
	}
	box_drop(service, box);
	return 0;
}

void boxes_look(struct service *service)
{
	const struct gate *gate = &service->config.gate;
	struct box *boxes[SWEEP_BATCH], *box;
	uint64_t ids[SWEEP_BATCH];
	bool has[SWEEP_BATCH];
	size_t n = 0;

	/* The sweep attends to these, from the front. */
	for (box = TAILQ_FIRST(&service->care); box && n < SWEEP_BATCH; box = TAILQ_NEXT(box, of_care)) {
		if (box->stage != BOX_LINGERS || !box->registered)
			continue;
		ids[n] = box->pub.cgroup.id;
		boxes[n++] = box;
	}
	if (n < 2 || gate->orphans(gate->ctx, ids, n, has))
		return; /* each looks for itself */
	for (size_t i = 0; i < n; i++) {
		boxes[i]->looked = true;
		boxes[i]->has_orphans = has[i];
	}
}

void box_abandon(struct service *service, struct box *box)
{
	if (box_end(service, box, false, "daemon"))
		box_hide(service, box);
}

/* From before a restart, empty, and older than this: whoever asked for it has entered it by now, and it
 * emptied while nobody looked. */
#define ENTER_US (5 * 1000000ULL)

static bool box_was_used(struct service *service, const struct box *box)
{
	return box->pub.ever_populated ||
	       (box->recovered && service->config.wall_us() - box->pub.created_us > ENTER_US);
}

void box_check(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;

	if (box->dying || box_is_gone(service, box)) {
		box_end(service, box, !box->dying, "daemon");
		return;
	}
	if (box->pub.adopted)
		return;
	if (gate->cgroup_populated(gate->ctx, &box->pub.cgroup)) {
		box->pub.ever_populated = true;
		if (placed_check(service, box))
			return;
	} else if (box_was_used(service, box)) {
		box_end(service, box, false, "daemon");
		return;
	}
	if (box->pub.kept)
		kept_check(service, box);
}
