/* SPDX-License-Identifier: MIT */
/*
 * The ratchet. Its order is the promise: session_raise() does four steps, and only then does the
 * caller acknowledge.
 *   1. kernel: every sandbox of the session is raised. Nothing new passes the gate from here on.
 *   2. inspectors: the second enforcement point is sent the rungs that the kernel holds. The kernel
 *      comes first, so that no connection is steered to an inspector by a looser gate after the
 *      inspector has looked at what is open.
 *   3. cut: when the inspectors have ended what the rungs forbid, open sockets are. The inspectors
 *      come first, because they end exchanges with an event that names the cause and reset their
 *      origins' side; a socket that the kernel cuts under them would only look like a client that
 *      went away.
 *   4. record: on disk. That is a wait, and neither of the last two needs the other: when the kernel has
 *      noted which sandboxes are to be cut, the disk begins to write the raise (raise_log.h), and it is waited
 *      for after the cut. The database follows when the answer is on its way.
 * Each step leaves things tighter than the steps after it know, so a crash or a failure between two
 * of them is never a loosening:
 *   - kernel raised, inspectors not: the gate stops the sandbox's packets. Inspectors end with their
 *     daemon, and what they had open with them; those that did not are ended by the next daemon before
 *     it answers anybody (inspector_clear()); the next ones start with what the kernel holds;
 *   - both tightened, not cut: what is open is stopped at the packet layer already. The next daemon
 *     cuts, because the kernel is stricter than the record, or because the kernel's note says so;
 *   - cut, not recorded: a restart finds the kernel stricter and the record follows;
 *   - in the log, not committed: the next start commits it;
 *   - all done, not acknowledged: the client asks again and is told what stands.
 * Reports on requests that arrive meanwhile wait until the verb is over: see verb_end().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/failpoint.h"
#include "session/questions_internal.h"
#include "session/raise_outcome.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

/* Sets what stands from now on: the maximum of what stood and of what is asked. */
static void session_target(struct service *service, struct session *session, enum level level)
{
	struct np_rung next = session->stands;

	if (level > next.level)
		next.level = level;
	/* The policy may have become stricter since the last raise; it never makes this looser. */
	if (service->config.modes.of[next.level] > next.mode)
		next.mode = service->config.modes.of[next.level];
	if (!np_rung_equal(&next, &session->stands) && next.generation < UINT32_MAX)
		next.generation++;
	session->stands = next;
}

static int sandbox_raise(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;
	struct np_rung target = sandbox_target(sandbox), rung = { 0 };
	int r = gate->raise(gate->ctx, &sandbox->pub.cgroup, &target, sandbox->session->name.text, &rung);

	if (r)
		return r;
	/* The kernel takes the maximum, so it may say more than was asked. Less would be a broken promise. */
	if (!np_rung_is_valid(&rung) || np_rung_is_looser(&rung, &target) || rung.generation < target.generation)
		return -EIO;
	/* A higher level that is PROXIED as well has rules of its own. One that is NONE by its class has nothing open, but its session may: what a
	 * sandbox that is gone left with the inspectors. */
	if (sandbox->registered &&
	    (rung.mode > sandbox->pub.rung.mode || (rung.mode != NP_FULL && rung.level > sandbox->pub.rung.level)))
		sandbox->uncut = true;
	sandbox->registered = true;
	sandbox->stale = false;
	sandbox->unsent = true;
	sandbox->pub.rung = rung;
	return 0;
}

/* Raises every sandbox that is behind. *ret_again: the kernel was stricter than asked, so what stands
 * has changed and sandboxes that were raised before may be behind again. */
static int session_kernel_once(struct service *service, struct session *session, bool *ret_again,
			       struct failure *ret_failure)
{
	struct sandbox *sandbox;
	int result = 0;

	*ret_again = false;
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session)) {
		int r;

		if (!sandbox_is_behind(sandbox))
			continue;
		r = sandbox_raise(service, sandbox);
		if (r && !result)
			result = service_fail(ret_failure, NP_R_NOT_APPLIED, r, "sandbox %s: %s", sandbox->pub.id,
					      strerror(-r));
		if (!r && session_absorb(session, sandbox))
			*ret_again = true;
	}
	return result;
}

/* Step 1. On failure the others are raised all the same, and *ret_failure names the first. */
static int session_kernel(struct service *service, struct session *session, struct failure *ret_failure)
{
	bool again = true;
	int r = 0;

	/* A mode can rise twice at most, and generations are the maximum of what is there: three rounds do. */
	for (int i = 0; i < 3 && again; i++)
		r = session_kernel_once(service, session, &again, ret_failure);
	return r;
}

/* Step 2, without its wait, which is session_cut()'s: nobody needs to wait where nothing was open. */
static void session_inspectors(struct service *service, struct session *session)
{
	struct sandbox *sandbox;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session)) {
		if (!sandbox->unsent)
			continue;
		sandbox->unsent = false;
		inspectors_tighten(service, sandbox->pub.cgroup.id, sandbox->pub.id, session->name.text,
				   &sandbox->pub.rung);
	}
}

/* Ends made sandboxes that the kernel would not tighten. */
static void session_end_loose(struct service *service, struct session *session)
{
	struct sandbox *sandbox, *next;

	session->pins++;
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = next) {
		next = TAILQ_NEXT(sandbox, of_session);
		/* The last resort against processes that would keep a network they must not have. An adopted cgroup's
		 * processes are not ours to kill: the answer names it, and the sweep tries again. */
		if (sandbox_is_loose(sandbox) && !sandbox->pub.adopted &&
		    (sandbox_end(service, sandbox, false, "daemon") == 0 || sandbox->dying))
			continue;
		sandbox_care(service, sandbox);
	}
	session_unpin(service, session);
}

int session_apply(struct service *service, struct session *session, struct failure *ret_failure)
{
	int r = session_kernel(service, session, ret_failure);

	session_inspectors(service, session);
	session_end_loose(service, session);
	return r;
}

static bool session_is_uncut(const struct session *session)
{
	const struct sandbox *sandbox = TAILQ_FIRST(&session->sandboxes);

	while (sandbox && !sandbox->uncut)
		sandbox = TAILQ_NEXT(sandbox, of_session);
	return sandbox;
}

static int cut_batch(struct service *service, struct session *session, unsigned *cut)
{
	const struct gate *gate = &service->config.gate;
	uint64_t ids[CUT_BATCH];
	unsigned count = 0;
	size_t n = 0;
	struct sandbox *sandbox;
	int r;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
		if (sandbox->uncut && n < CUT_BATCH)
			ids[n++] = sandbox->pub.cgroup.id;
	if (!n)
		return 0;
	r = gate->cut(gate->ctx, ids, n, GATE_CUT_RAISED, &count);
	if (r)
		return r;
	*cut += count;
	for (size_t i = 0; i < n; i++) {
		sandbox = sandbox_by_cgroup(service, ids[i]);
		sandbox->uncut = false;
		sandbox_care(service, sandbox);
	}
	return 1;
}

int session_cut(struct service *service, struct session *session, unsigned *ret_cut, struct failure *ret_failure)
{
	unsigned cut = session_is_uncut(session) ? inspectors_sync(service) : 0; /* then step 2 is over */
	int r;

	do
		r = cut_batch(service, session, &cut);
	while (r > 0);
	*ret_cut = cut;
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "open connections of %s could not be cut: %s",
				    session->name.text, strerror(-r));
	return 0;
}

/* A rung that no program asks for is none. Adopted cgroups have programs of their own: these are put back where they are gone. */
static int session_attached(struct service *service, struct session *session, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	const struct sandbox *sandbox;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); gate->whole && sandbox;
	     sandbox = TAILQ_NEXT(sandbox, of_session)) {
		int r;

		if (!sandbox->pub.adopted || !sandbox->registered || sandbox->dying)
			continue;
		r = gate->attach(gate->ctx, &sandbox->pub.cgroup);
		if (r && r != -ENOENT) /* else it is gone, and what ran in it */
			return service_fail(ret_failure, NP_R_NOT_WHOLE, r, "sandbox %s: its programs: %s",
					    sandbox->pub.id, strerror(-r));
	}
	return 0;
}

/* Is every program in its place? */
static bool programs_stand(const struct service *service)
{
	const struct gate *gate = &service->config.gate;

	return !gate->whole || service->whole || (gate->stands && gate->stands(gate->ctx));
}

int service_whole(struct service *service, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	char problem[512] = "";
	int r = programs_stand(service) ? 0 : gate->whole(gate->ctx, problem);

	return r ? service_fail(ret_failure, NP_R_NOT_WHOLE, r, "%s", problem) : 0;
}

/* Where nobody is there whom programs would have to hold, it does not matter. */
static int session_whole(struct service *service, const struct session *session, struct failure *ret_failure)
{
	return TAILQ_EMPTY(&session->sandboxes) ? 0 : service_whole(service, ret_failure);
}

/* Step 3 of a raise, and what has to be true for its acknowledgement. */
struct cutting {
	struct service *service;
	struct session *session;
	bool settled;		 /* no sandbox was behind: nobody waits for an acknowledgement about them */
	struct outcome *o;	 /* its applied and cut */
	struct failure *failure; /* of these */
};

/* Looked at before it is cut: what was opened while programs were gone is among what is cut. */
static void raise_whole(const struct cutting *c)
{
	struct outcome *o = c->o;

	if (!o->applied && !c->settled)
		o->applied = session_attached(c->service, c->session, c->failure);
	if (!o->applied && !c->settled)
		o->applied = session_whole(c->service, c->session, c->failure);
}

static void raise_cut(const struct cutting *c)
{
	struct outcome *o = c->o;
	unsigned cut = 0;
	int r;

	if (!o->applied)
		c->failure->reason = 0; /* an earlier round's, made good since */
	r = session_cut(c->service, c->session, &cut, o->applied ? NULL : c->failure); /* the wait for step 2, first */
	o->cut += cut;
	failpoint("after_cut");
	if (!o->applied)
		o->applied = r;
}

/* May it be recorded before it is cut? When the kernel has noted what is to be cut, for the next daemon. */
static bool session_is_noted(struct service *service, const struct session *session)
{
	const struct gate *gate = &service->config.gate;
	const struct sandbox *sandbox;
	bool is = true;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); is && sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
		is = !sandbox->uncut || (gate->cut_due && gate->cut_due(gate->ctx, sandbox->pub.cgroup.id) == 0);
	return is;
}

/* Steps 3 and 4 at the same time: the disk writes while this looks at the gate and at the database, and cuts. The looks come first: meanwhile
 * the inspectors answer. Neither needs anything that the cut changes. */
static void raise_beside(const struct cutting *c, struct record *record, struct buf *line)
{
	struct store *store = c->service->config.store;
	struct outcome *o = c->o;
	struct sandbox *sandbox;
	int checked;

	if (!failpoint_is("after_cut"))
		store_raise_write(store);
	if (failpoint_is("after_record"))
		store_raise_wait(store);
	failpoint("after_record");
	if (!o->applied)
		o->applied = session_attached(c->service, c->session, c->failure);
	checked = record_check(c->service, c->session, record, line);
	if (!TAILQ_EMPTY(&c->session->sandboxes) && !programs_stand(c->service)) {
		for (sandbox = TAILQ_FIRST(&c->session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
			sandbox->uncut = true;
		raise_whole(c);
	}
	raise_cut(c);
	o->recorded = record_end(c->service, c->session, record, store_raise_wait(store), checked, &o->written);
}

static void raise_finish(const struct cutting *c, const struct raise_request *request, struct buf *line)
{
	cleanup(record_free) struct record record;

	record_make(c->service, c->session, request, &record);
	failpoint("before_record");
	if (session_is_noted(c->service, c->session) && record_begin(c->service, c->session, &record)) {
		raise_beside(c, &record, line);
		return;
	}
	raise_whole(c);
	raise_cut(c);
	c->o->recorded = record_write(c->service, c->session, &record, &c->o->written, line);
}

int session_raise(struct service *service, struct session *session, const struct raise_request *request,
		  struct escalation *ret, struct failure *ret_failure)
{
	const bool is_new = session->status == SESSION_NEW;
	_buf_ struct buf line = BUF_INIT(NP_NOTICE_LINE);
	struct outcome o = { .before = session->recorded };
	struct failure failure = { 0 };
	struct cutting cutting = { service, session, false, &o, &failure };
	int r;

	if (is_new && !session->temporary && session_name_is_temporary(&session->name))
		return service_fail(ret_failure, NP_R_BAD_NAME, -EINVAL,
				    "there is no session %s, and only a temporary one is made under such a name",
				    session->name.text);
	session_target(service, session, request->level);
	o.applied = session_kernel(service, session, &failure); /* step 1 */
	o.applied_us = (service->config.now_ns() - request->start_ns) / 1000;
	o.owed_us = session_owed_us(session);
	session_inspectors(service, session); /* step 2, without its wait */
	session_end_loose(service, session);
	placed_raise(service, session);
	if (session_is_uncut(session))
		inspectors_sync_begin(service);
	failpoint("after_raise");
	cutting.settled =
		request->settles && !session_is_uncut(session) && np_rung_equal(&session->stands, &session->recorded);
	raise_finish(&cutting, request, &line); /* steps 3 and 4 */
	if (o.written.notice)
		session_publish_new(service, session, &line);
	questions_raised(service, session);
	/* Against the record, not against memory: a raise whose record failed is raised when it is recorded. */
	o.raised = session->stands.level > o.before.level || session->stands.mode > o.before.mode;

	r = outcome_answer(session, &o, &failure);
	outcome_emit(service, session, request, &o, &failure);
	/* Whatever brings a session into being, or back: whoever is behind it has made it, also when what he wanted beside has failed. */
	if (o.written.created) {
		int noted = starter_note(service, &session->name, request->who, r ? NULL : &failure);

		r = r ? r : noted;
	}
	if (r) {
		if (ret_failure)
			*ret_failure = failure;
		return r;
	}
	*ret = (struct escalation){
		.session = session->name,
		.rung = session->stands,
		.raised = o.raised,
		.created = o.written.created && is_new,
		.cut = o.cut,
		.applied_us = o.applied_us,
	};
	return 0;
}

int session_settle(struct service *service, struct session *session, const char *who, struct failure *ret_failure)
{
	struct raise_request request = {
		.level = session->stands.level,
		.who = who,
		.start_ns = service->config.now_ns(),
		.settles = true,
	};
	struct escalation ignored;

	return session_raise(service, session, &request, &ignored, ret_failure);
}
