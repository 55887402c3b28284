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

struct rung box_target(const struct box *box)
{
	struct rung target = box->live->stands;

	if (class_mode(box->pub.class) > target.mode)
		target.mode = class_mode(box->pub.class);
	target.reads_only = box->pub.class == CLASS_READ_ONLY;
	return target;
}

bool box_is_loose(const struct box *box)
{
	const struct rung target = box_target(box), *kernel = &box->pub.rung;

	return box->stage == BOX_LIVES && (!box->registered || kernel->mode < target.mode ||
					   kernel->level < target.level || kernel->reads_only < target.reads_only);
}

bool box_is_behind(const struct box *box)
{
	if (box->stage != BOX_LIVES)
		return false; /* nothing runs there; raising it could register a cgroup that is gone
			       */
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
static int box_release(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	int r;

	if (box->gone)
		return 0;
	/* Detaching gives the network back: never to anybody who is there to use it. */
	if (box->pub.adopted && gate->cgroup_populated(gate->ctx, &box->pub.cgroup))
		return -EBUSY;
	r = box->pub.adopted ? gate->detach(gate->ctx, &box->pub.cgroup)
			     : gate->cgroup_remove(gate->ctx, &box->pub.cgroup);
	return r == -ENOENT ? 0 : r;
}

/*
 * The second stage. The kernel may refuse to forget a cgroup that still exists, as a detached one
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

int box_end(struct service *service, struct box *box, bool gone, const char *who)
{
	box->gone = box->gone || gone;
	if (box->stage == BOX_LIVES) {
		int r = box_release(service, box);

		if (r == -EBUSY && !box->pub.adopted)
			box_hide(service, box);
		if (r)
			return r;
		box->stage = BOX_RELEASED;
		if (box->announced)
			box_event(service, NP_R_SANDBOX_REMOVED, box, who, NULL);
	}
	if (box->stage == BOX_RELEASED) {
		if (box_retire(service, box)) {
			box_hide(service, box);
			return 0;
		}
		box->stage = BOX_RETIRED;
	}
	if (box->pub.kept && kept_forget(service, box->pub.id)) {
		box_hide(service, box);
		return 0;
	}
	/* Even a put that failed may have reached the disk, so this does not ask box->recorded. */
	if (store_sandbox_remove(service->config.store, box->pub.id)) {
		box_hide(service, box);
		return 0;
	}
	box_drop(service, box);
	return 0;
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
	} else if (box_was_used(service, box)) {
		box_end(service, box, false, "daemon");
		return;
	}
	if (box->pub.kept)
		kept_check(service, box);
}
