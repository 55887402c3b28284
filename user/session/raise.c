/* SPDX-License-Identifier: MIT */
/*
 * The ratchet. Its order is the promise: tighten the kernel, cut what is open, record on disk, and
 * only then does the caller acknowledge. Each step leaves things tighter than the steps after it
 * know, so a crash or a failure between two of them is never a loosening:
 *   - kernel raised, not cut: what is open is stopped at the packet layer already;
 *   - cut, not recorded: a restart finds the kernel stricter and the record follows;
 *   - recorded, not acknowledged: the client asks again and is told what stands.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/failpoint.h"
#include "session/service_internal.h"

/* Sets what stands from now on: the maximum of what stood and of what is asked. */
static void live_target(struct service *service, struct live *live, enum level level)
{
	struct np_rung next = live->stands;

	if (level > next.level)
		next.level = level;
	/* The policy may have become stricter since the last raise; it never makes this looser. */
	if (service->config.modes.of[next.level] > next.mode)
		next.mode = service->config.modes.of[next.level];
	if (!np_rung_equal(&next, &live->stands) && next.generation < UINT32_MAX)
		next.generation++;
	live->stands = next;
}

static int box_raise(struct service *service, struct box *box)
{
	const struct gate *gate = &service->config.gate;
	struct np_rung target = box_target(box), rung = { 0 };
	int r = gate->raise(gate->ctx, &box->pub.cgroup, &target, box->live->name.text, &rung);

	if (r)
		return r;
	/* The kernel takes the maximum, so it may say more than was asked. Less would be a broken
	 * promise. */
	if (!np_rung_is_valid(&rung) || np_rung_is_looser(&rung, &target) || rung.generation < target.generation)
		return -EIO;
	/* A higher level that is PROXIED as well has rules of its own. */
	if (box->registered &&
	    (rung.mode > box->pub.rung.mode || (rung.mode == NP_PROXIED && rung.level > box->pub.rung.level)))
		box->uncut = true;
	box->registered = true;
	box->stale = false;
	box->pub.rung = rung;
	return 0;
}

/* Raises every box that is behind. Whether the kernel was stricter than asked is told, for then
 * what stands has changed and boxes that were raised before may be behind again. */
static int live_apply_once(struct service *service, struct live *live, bool *ret_again, struct failure *ret_failure)
{
	struct box *box;
	int result = 0;

	*ret_again = false;
	for (box = TAILQ_FIRST(&live->boxes); box; box = TAILQ_NEXT(box, of_session)) {
		int r;

		if (!box_is_behind(box))
			continue;
		r = box_raise(service, box);
		if (r && !result)
			result = service_fail(ret_failure, NP_R_NOT_APPLIED, r, "sandbox %s: %s", box->pub.id,
					      strerror(-r));
		if (!r && live_absorb(live, box))
			*ret_again = true;
	}
	return result;
}

int live_apply(struct service *service, struct live *live, struct failure *ret_failure)
{
	struct box *box, *next;
	bool again = true;
	int r = 0;

	/* A mode can rise twice at most, and generations are the maximum of what is there: three
	 * rounds do. */
	for (int i = 0; i < 3 && again; i++)
		r = live_apply_once(service, live, &again, ret_failure);
	live->pins++;
	for (box = TAILQ_FIRST(&live->boxes); box; box = next) {
		next = TAILQ_NEXT(box, of_session);
		/* The last resort against processes that would keep a network they must not have.
		 * An adopted cgroup's processes are not ours to kill: the answer names it, and the
		 * sweep tries again. */
		if (box_is_loose(box) && !box->pub.adopted &&
		    (box_end(service, box, false, "daemon") == 0 || box->dying))
			continue;
		box_care(service, box);
	}
	live_unpin(service, live);
	return r;
}

static int cut_batch(struct service *service, struct live *live, unsigned *cut)
{
	const struct gate *gate = &service->config.gate;
	uint64_t ids[CUT_BATCH];
	unsigned count = 0;
	size_t n = 0;
	struct box *box;
	int r;

	for (box = TAILQ_FIRST(&live->boxes); box; box = TAILQ_NEXT(box, of_session))
		if (box->uncut && n < CUT_BATCH)
			ids[n++] = box->pub.cgroup.id;
	if (!n)
		return 0;
	r = gate->cut(gate->ctx, ids, n, GATE_CUT_RAISED, &count);
	if (r)
		return r;
	*cut += count;
	for (size_t i = 0; i < n; i++) {
		box = box_by_cgroup(service, ids[i]);
		box->uncut = false;
		box_care(service, box);
	}
	return 1;
}

int live_cut(struct service *service, struct live *live, unsigned *ret_cut, struct failure *ret_failure)
{
	unsigned cut = 0;
	int r;

	do
		r = cut_batch(service, live, &cut);
	while (r > 0);
	*ret_cut = cut;
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "open connections of %s could not be cut: %s",
				    live->name.text, strerror(-r));
	return 0;
}

static void dataset_fill(struct service *service, const struct raise_request *request, struct dataset_row *row)
{
	*row = (struct dataset_row){ .level = request->level, .added_us = service->config.wall_us() };
	strncpy(row->name, request->dataset, sizeof(row->name) - 1);
	if (request->text)
		strncpy(row->reason, request->text, sizeof(row->reason) - 1);
}

/* Makes or revives it in the store, when it is not open there. */
static int live_put(struct service *service, struct live *live, const struct notice_row *notice, bool *ret_created)
{
	struct session_row row = {
		.name = live->name,
		.rung = live->stands,
		.created_us = service->config.wall_us(),
	};
	int r = store_session_put(service->config.store, &row, notice);

	if (r)
		return r;
	*ret_created = true;
	live->status = LIVE_OPEN;
	live->recorded = live->stands;
	return 0;
}

static int live_store(struct service *service, struct live *live, const struct dataset_row *dataset,
		      const struct notice_row *notice)
{
	int r = store_session_raise(service->config.store, live->name.text, &live->stands, dataset, notice, NULL);

	if (!r)
		live->recorded = live->stands;
	return r;
}

int live_record(struct service *service, struct live *live, const struct raise_request *request, bool *ret_created)
{
	_buf_ struct buf text = BUF_INIT(NP_NOTICE_TEXT);
	bool has_dataset = request && request->dataset, too_many = false;
	struct dataset_row dataset;
	struct notice_row notice;
	/* The first transaction that writes the new mode has the notice: neither is there without the other. */
	const struct notice_row *due = live_notice(service, live, request, &notice, &text) ? &notice : NULL;
	const struct notice_row *told = due;
	int r = 0;

	*ret_created = false;
	if (has_dataset)
		dataset_fill(service, request, &dataset);
	if (live->status != LIVE_OPEN) {
		r = live_put(service, live, due, ret_created);
		due = NULL;
	}
	if (!r && has_dataset) {
		r = live_store(service, live, &dataset, due);
		too_many = r == -E2BIG;
	}
	/* Bookkeeping is no reason to lose a raise: without the dataset then. */
	if ((!r || too_many) && !np_rung_equal(&live->stands, &live->recorded))
		r = live_store(service, live, NULL, due);
	else if (too_many)
		r = 0;
	if (!r && told)
		live_publish(service, live);
	/* Worth remembering only when it starts above the bottom. */
	live->dirty = r && live->status == LIVE_NEW && live->stands.level > LEVEL_PUBLIC;
	return !r && too_many ? -E2BIG : r;
}

/* What a raise did, for the answer and the events. */
struct outcome {
	struct np_rung before;
	bool created, raised;
	unsigned cut;
	uint64_t applied_us;
	int applied, recorded; /* 0 or -errno */
};

static void outcome_emit(struct service *service, const struct live *live, const struct raise_request *request,
			 const struct outcome *o, const struct failure *failure)
{
	struct event event = { .who = request->who };

	if (o->created) {
		event.reason = NP_R_SESSION_CREATED;
		service_emit(service, &event, live, NULL);
	}
	if (o->raised && (!o->recorded || o->recorded == -E2BIG)) {
		event = (struct event){
			.reason = NP_R_RAISED,
			.who = request->who,
			.dataset = request->dataset,
			.text = request->text,
			.cut = o->cut,
			.has_cut = 1,
			.applied_us = o->applied_us,
		};
		service_emit(service, &event, live, NULL);
	}
	if (o->cut) {
		event = (struct event){ .reason = NP_R_CUT, .who = request->who, .cut = o->cut, .has_cut = 1 };
		service_emit(service, &event, live, NULL);
	}
	if (failure->reason == NP_R_NOT_APPLIED || failure->reason == NP_R_NOT_RECORDED) {
		event = (struct event){ .reason = failure->reason,
					.who = request->who,
					.dataset = request->dataset,
					.text = failure->text };
		service_emit(service, &event, live, NULL);
	}
}

/* The answer: what is most urgent for the client to know comes first. */
static int outcome_answer(const struct live *live, const struct outcome *o, struct failure *failure)
{
	if (o->applied) {
		size_t len = strlen(failure->text);

		/* live_apply() and live_cut() have said which sandbox; say here that the record
		 * failed, too. */
		if (o->recorded && o->recorded != -E2BIG)
			snprintf(failure->text + len, sizeof(failure->text) - len, "; not recorded either: %s",
				 strerror(-o->recorded));
		return o->applied;
	}
	if (o->recorded == -E2BIG)
		return o->raised ? 0
				 : service_fail(failure, NP_R_TOO_MANY, -E2BIG, "%s has %d datasets already",
						live->name.text, NP_DATASETS_MAX);
	if (o->recorded)
		return service_fail(failure, NP_R_NOT_RECORDED, o->recorded, "%s: %s", live->name.text,
				    strerror(-o->recorded));
	return 0;
}

int live_raise(struct service *service, struct live *live, const struct raise_request *request, struct escalation *ret,
	       struct failure *ret_failure)
{
	struct outcome o = { .before = live->recorded };
	struct failure failure = { 0 };
	int r;

	live_target(service, live, request->level);
	o.applied = live_apply(service, live, &failure);
	placed_raise(service, live);
	failpoint("after_raise");
	if (!o.applied)
		failure.reason = 0; /* an earlier round's, made good since */
	o.applied_us = (service->config.now_ns() - request->start_ns) / 1000;
	r = live_cut(service, live, &o.cut, o.applied ? NULL : &failure);
	failpoint("after_cut");
	if (!o.applied)
		o.applied = r;
	failpoint("before_record");
	o.recorded = live_record(service, live, request, &o.created);
	failpoint("after_record");
	/* Against the record, not against memory: a raise whose record failed is raised when it is
	 * recorded. */
	o.raised = live->stands.level > o.before.level || live->stands.mode > o.before.mode;

	r = outcome_answer(live, &o, &failure);
	outcome_emit(service, live, request, &o, &failure);
	if (r) {
		if (ret_failure)
			*ret_failure = failure;
		return r;
	}
	*ret = (struct escalation){
		.session = live->name,
		.rung = live->stands,
		.raised = o.raised,
		.cut = o.cut,
		.applied_us = o.applied_us,
	};
	return 0;
}

int live_settle(struct service *service, struct live *live, const char *who, struct failure *ret_failure)
{
	struct raise_request request = {
		.level = live->stands.level,
		.who = who,
		.start_ns = service->config.now_ns(),
	};
	struct escalation ignored;

	return live_raise(service, live, &request, &ignored, ret_failure);
}
