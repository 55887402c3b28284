/* SPDX-License-Identifier: MIT */
/* Sandboxes come and go: make, adopt, remove. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "session/service_internal.h"

/* USER.SESSION.xxxxxxxx. The random part also keeps a.b/c and a/b.c apart. */
static int id_choose(struct service *service, const struct session_name *name, char id[static NP_SANDBOX_ID_MAX + 1])
{
	uint32_t number;

	for (int i = 0; i < 16; i++) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(id, NP_SANDBOX_ID_MAX + 1, "%.*s.%s.%08x", (int)name->user_len, name->text,
			 name->text + name->user_len + 1, number);
		if (!box_by_id(service, id))
			return 0;
	}
	return -EEXIST;
}

static int bounds_check(const struct service *service, const struct live *live, struct failure *ret_failure)
{
	if (service->boxes_by_id.count >= NP_BOXES_MAX)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "there are %zu sandboxes already",
				    service->boxes_by_id.count);
	if (live->box_count >= NP_BOXES_PER_SESSION)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%s has %u sandboxes already", live->name.text,
				    live->box_count);
	return 0;
}

/* A session that is ready for one more sandbox: on disk, no looser than it should be, and pinned.
 */
static int live_enter(struct service *service, const char *session, const char *who, struct live **ret,
		      struct failure *ret_failure)
{
	struct session_name parsed;
	struct live *live;
	int r = service_name_read(session, &parsed, ret_failure);

	if (!r)
		r = live_load(service, &parsed, LEVEL_PUBLIC, &live, ret_failure);
	if (r)
		return r;
	r = bounds_check(service, live, ret_failure);
	if (!r)
		r = live_settle(service, live, who, ret_failure);
	if (r) {
		live_unpin(service, live);
		return r;
	}
	*ret = live;
	return 0;
}

static int box_record(struct service *service, struct box *box)
{
	struct sandbox_row row = {
		.session = box->pub.session,
		.cgroup_id = box->pub.cgroup.id,
		.adopted = box->pub.adopted,
		.class = box->pub.class,
		.created_us = box->pub.created_us,
	};
	int r;

	if (box->recorded)
		return 0;
	memcpy(row.id, box->pub.id, sizeof(row.id));
	strcpy(row.path, box->pub.cgroup.path);
	r = store_sandbox_put(service->config.store, &row);
	box->recorded = !r;
	return r;
}

/* What the session's boxes say may be stricter than its record: a cgroup that the kernel knew
 * already. */
static int live_follow(struct service *service, struct live *live, struct failure *ret_failure)
{
	bool created;
	int r;

	if (np_rung_equal(&live->stands, &live->recorded))
		return 0;
	r = live_record(service, live, NULL, &created);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "%s: %s", live->name.text, strerror(-r));
	return 0;
}

/* Records and raises what cgroup_make() made. On failure the box is abandoned. */
static int make_finish(struct service *service, struct box *box, struct failure *ret_failure)
{
	struct live *live = box->live;
	char id[NP_SANDBOX_ID_MAX + 1];
	int r = box_record(service, box);

	if (r) {
		box_abandon(service, box);
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "a new sandbox of %s: %s", live->name.text,
				    strerror(-r));
	}
	memcpy(id, box->pub.id, sizeof(id));
	r = live_apply(service, live, ret_failure);
	if (!r)
		r = live_follow(service, live, ret_failure);
	if (!r)
		return 0;
	/* live_apply() may have ended it: it is looked up again. */
	box = box_by_id(service, id);
	if (box)
		box_abandon(service, box);
	return r;
}

/*
 * First the cgroup, then the record (which needs the cgroup's id), then the raise, which opens it
 * to its session's mode. A cgroup below the slice that is not registered is NONE. So a crash after
 * the first step leaves an empty cgroup that nobody was told of and that has no network, and
 * recovery removes it; a crash after the second leaves a record, and recovery raises it or forgets
 * it. At no time is there a cgroup with a network that no record knows.
 */
static int make_in(struct service *service, struct live *live, enum run_class class, bool kept, const char *who,
		   struct box **ret, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	char id[NP_SANDBOX_ID_MAX + 1];
	struct gate_cgroup cgroup;
	struct box *box;
	int r = id_choose(service, &live->name, id);

	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "no id could be made: %s", strerror(-r));
	r = gate->cgroup_make(gate->ctx, id, &cgroup);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "cgroup %s: %s", id, strerror(-r));
	r = box_new(service, live, id, &cgroup, false, &box);
	if (r) {
		gate->cgroup_remove(gate->ctx, &cgroup);
		return service_fail(ret_failure, NP_R_FAILED, r, "out of memory");
	}
	box->pub.created_us = box->pub.active_us = service->config.wall_us();
	box->pub.class = class;
	box->pub.kept = kept;
	r = make_finish(service, box, ret_failure);
	if (r)
		return r;
	r = kept ? kept_make(service, box) : 0;
	if (r) {
		box_abandon(service, box);
		return service_fail(ret_failure, NP_R_FAILED, r, "the directory of a kept sandbox: %s", strerror(-r));
	}
	live_publish(service, live); /* it is there before anybody can look for it */
	box->announced = true;
	box_event(service, NP_R_SANDBOX_MADE, box, who, NULL);
	*ret = box;
	return 0;
}

int sandbox_make(struct service *service, const char *session, enum run_class class, bool kept, const char *who,
		 const struct sandbox **ret, struct failure *ret_failure)
{
	struct live *live;
	struct box *box = NULL;
	int r = live_enter(service, session, who, &live, ret_failure);

	if (r)
		return r;
	r = make_in(service, live, class, kept, who, &box, ret_failure);
	live_unpin(service, live);
	if (r)
		return r;
	*ret = &box->pub;
	return 0;
}

int service_sandbox_make(struct service *service, const char *session, const char *who, const struct sandbox **ret,
			 struct failure *ret_failure)
{
	return sandbox_make(service, session, CLASS_OPEN, false, who, ret, ret_failure);
}

/* True when inner is outer, or below it. */
static bool path_is_within(const char *inner, const char *outer)
{
	size_t len = strlen(outer);

	return !strncmp(inner, outer, len) && (inner[len] == '\0' || inner[len] == '/');
}

/* Nested sandboxes would have two sessions and two modes. Adoption is rare enough to look at all of
 * them. */
static int overlap_check(struct service *service, const struct gate_cgroup *cgroup, struct failure *ret_failure)
{
	const struct box *box = box_by_cgroup(service, cgroup->id);

	if (box)
		return service_fail(ret_failure, NP_R_BAD_CGROUP, -EEXIST, "%s is already a sandbox of %s (%s)",
				    cgroup->path, box->pub.session.text, box->pub.id);
	for (box = TAILQ_FIRST(&service->all); box; box = TAILQ_NEXT(box, of_all)) {
		const char *how = path_is_within(cgroup->path, box->pub.cgroup.path)   ? "is below"
				  : path_is_within(box->pub.cgroup.path, cgroup->path) ? "contains"
										       : NULL;

		/* One that is over, and only waits to be forgotten, confines nobody. */
		if (how && box->stage == BOX_LIVES)
			return service_fail(ret_failure, NP_R_BAD_CGROUP, -EEXIST,
					    "%s %s the cgroup of sandbox %s of %s", cgroup->path, how, box->pub.id,
					    box->pub.session.text);
	}
	return 0;
}

/*
 * A box that this adoption may go on with: the same session's, whose adoption failed half-way, or
 * one that was removed but that the kernel still knows because its cgroup lives on. NULL when there
 * is none.
 */
static struct box *adopt_resume(struct service *service, const struct live *live, const struct gate_cgroup *cgroup)
{
	struct box *box = box_by_cgroup(service, cgroup->id);
	const bool over = box && (box->stage == BOX_LINGERS || box->stage == BOX_RELEASED);

	if (!box || !box->pub.adopted || (!box->unfinished && !over))
		return NULL;
	if (box->live == live && box->stage == BOX_LIVES)
		return box;
	if (over) {
		/* Its place is free. The kernel's entry stays, and with it the mode: raise() takes
		 * the maximum. */
		if (store_sandbox_remove(service->config.store, box->pub.id))
			return NULL;
		box_drop(service, box);
	}
	return NULL;
}

/* Something may have turned up while the gate was being attached. */
static int adopt_look_again(struct service *service, const struct box *box, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct gate_problem problem = { 0 };
	struct gate_cgroup found;
	int r = gate->cgroup_inspect(gate->ctx, box->pub.cgroup.path, &found, &problem);

	if (r == 0 && found.id != box->pub.cgroup.id)
		return service_fail(ret_failure, NP_R_BAD_CGROUP, -ENOENT, "%s is another cgroup by now",
				    box->pub.cgroup.path);
	if (r)
		return service_fail(ret_failure, problem.reason ? problem.reason : NP_R_BAD_CGROUP, r,
				    "%s; the cgroup stays confined until it is empty or adopted",
				    problem.text[0] ? problem.text : strerror(-r));
	return 0;
}

/*
 * Raise, attach, look again, record, cut: none of them alone opens anything, and each makes the next one safe.
 *
 * The caller has looked once already, so that a cgroup that is plainly unfit is left as it was. But until the gate is
 * attached its processes open, connect and receive what they like. From then on they cannot make or connect a socket that
 * the gate does not see, so what the second look does not find, they do not get from inside any more. (From outside, by
 * pidfd_getfd() or over the socket that is their standard input, they can: whoever has such a hand outside is the
 * platform's business.) If it finds something, the adoption is refused and the confinement stays: undoing it would give
 * the network back to processes that have just shown that they get around it, and a crash here leaves the same: a
 * registered cgroup with the gate on it. Before the record, because a record says that the promise holds.
 */
static int adopt_steps(struct service *service, struct box *box, unsigned *ret_cut, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct live *live = box->live;
	int r;

	r = live_apply(service, live, ret_failure);
	if (!r)
		r = live_follow(service, live, ret_failure);
	if (r)
		return r;
	r = gate->attach(gate->ctx, &box->pub.cgroup);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "the gate could not be attached to %s: %s",
				    box->pub.cgroup.path, strerror(-r));
	r = adopt_look_again(service, box, ret_failure);
	if (r)
		return r;
	r = box_record(service, box);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "sandbox %s: %s", box->pub.id, strerror(-r));
	return live_cut(service, live, ret_cut, ret_failure);
}

/*
 * An adoption failed. Where nothing was raised, nothing happened. Else the cgroup is confined at
 * least in part, and taking that away would free processes that run in it: it stays as it is, in
 * memory too, until the same call finishes it or the cgroup empties. An empty one can be let go at
 * once.
 */
static void adopt_undo(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;

	if (!box->registered)
		box_drop(service, box);
	else if (gate->cgroup_populated(gate->ctx, &box->pub.cgroup) || box_end(service, box, false, "daemon"))
		box->unfinished = true;
}

static int adopt_in(struct service *service, struct live *live, const struct gate_cgroup *cgroup, const char *who,
		    struct box **ret, unsigned *ret_cut, struct failure *ret_failure)
{
	struct box *box = adopt_resume(service, live, cgroup);
	int r;

	if (!box) {
		char id[NP_SANDBOX_ID_MAX + 1];

		r = overlap_check(service, cgroup, ret_failure);
		if (r)
			return r;
		r = id_choose(service, &live->name, id);
		if (!r)
			r = box_new(service, live, id, cgroup, true, &box);
		if (r)
			return service_fail(ret_failure, NP_R_FAILED, r, "no sandbox could be made: %s", strerror(-r));
		box->pub.created_us = box->pub.active_us = service->config.wall_us();
	}
	box->uncut = true; /* whatever its processes opened before */
	r = adopt_steps(service, box, ret_cut, ret_failure);
	if (r) {
		adopt_undo(service, box);
		return r;
	}
	box->unfinished = false;
	live_publish(service, live);
	box->announced = true;
	box_event(service, NP_R_SANDBOX_ADOPTED, box, who, ret_cut);
	*ret = box;
	return 0;
}

int service_sandbox_adopt(struct service *service, const char *session, const char *cgroup_path, const char *who,
			  const struct sandbox **ret, unsigned *ret_cut, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct gate_problem problem = { 0 };
	struct session_name parsed;
	struct gate_cgroup cgroup;
	unsigned cut = 0;
	struct live *live;
	struct box *box = NULL;
	int r;

	r = service_name_read(session, &parsed, ret_failure);
	if (r)
		return r;
	/* Before the session is loaded: a bad path makes no session. */
	r = gate->cgroup_inspect(gate->ctx, cgroup_path, &cgroup, &problem);
	if (r)
		return service_fail(ret_failure, problem.reason ? problem.reason : NP_R_BAD_CGROUP, r, "%s",
				    problem.text[0] ? problem.text : strerror(-r));
	r = live_enter(service, session, who, &live, ret_failure);
	if (r)
		return r;
	r = adopt_in(service, live, &cgroup, who, &box, &cut, ret_failure);
	live_unpin(service, live);
	if (r)
		return r;
	*ret = &box->pub;
	if (ret_cut)
		*ret_cut = cut;
	return 0;
}

int service_sandbox_remove(struct service *service, const char *id, const char *who, struct failure *ret_failure)
{
	struct box *box = box_by_id(service, id);
	int r;

	if (!box || box->dying)
		return service_fail(ret_failure, NP_R_NO_SUCH_SANDBOX, -ENOENT, "%s", id);
	r = box_end(service, box, box_is_gone(service, box), who);
	/* Killed and not empty yet: as good as removed, the sweep sees to the rest. */
	if (!r || box->dying)
		return 0;
	if (r == -EBUSY)
		return service_fail(ret_failure, NP_R_SANDBOX_BUSY, r, "cgroup %s", box->pub.cgroup.path);
	return service_fail(ret_failure, NP_R_FAILED, r, "sandbox %s could not be removed: %s", id, strerror(-r));
}

void service_sandbox_active(struct service *service, uint64_t cgroup_id)
{
	struct box *box = box_by_cgroup(service, cgroup_id);

	if (box)
		box->pub.active_us = service->config.wall_us();
}
