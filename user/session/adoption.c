/* SPDX-License-Identifier: MIT */
/* Adoption: a cgroup that somebody else made, with processes in it, becomes a sandbox. */
#include <errno.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/fs.h"
#include "base/sql.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

/* Nested sandboxes would have two sessions and two modes. Adoption is rare enough to look at all of them. */
static int overlap_check(struct service *service, const struct gate_cgroup *cgroup, struct failure *ret_failure)
{
	const struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup->id);

	if (sandbox)
		return service_fail(ret_failure, NP_R_BAD_CGROUP, -EEXIST, "%s is already a sandbox of %s (%s)",
				    cgroup->path, sandbox->pub.session.text, sandbox->pub.id);
	for (sandbox = TAILQ_FIRST(&service->all); sandbox; sandbox = TAILQ_NEXT(sandbox, of_all)) {
		const char *how = path_below(cgroup->path, sandbox->pub.cgroup.path)   ? "is below"
				  : path_below(sandbox->pub.cgroup.path, cgroup->path) ? "contains"
										       : NULL;

		/* One that is over, and only waits to be forgotten, confines nobody. */
		if (how && sandbox->stage == SANDBOX_RUNS)
			return service_fail(ret_failure, NP_R_BAD_CGROUP, -EEXIST,
					    "%s %s the cgroup of sandbox %s of %s", cgroup->path, how, sandbox->pub.id,
					    sandbox->pub.session.text);
	}
	return 0;
}

/*
 * The cgroup of a sandbox that is over becomes another sandbox. No raise of the former session reaches it any more, and what it has
 * may be more than the new session's mode forbids: so it ends here, or the cgroup is not handed over.
 *   1. at the inspectors, first as in a raise: they end exchanges with an event that names the cause;
 *   2. in the kernel: what its programs had closed. For another session also what processes hold open that live on in the cgroup, or
 *      outside: bytes of the former session may wait in the queues of any of these sockets;
 *   3. what is reported so far is told, as long as it is known whose it is.
 * The kernel's entry stays, and with it the mode: raise() takes the maximum. Its network, too: cgroup_inspect() has found its
 * processes there. A failure leaves the sandbox as it was, over and held, for the sweep.
 */
static int adopt_hand_over(struct service *service, struct sandbox *sandbox, const struct session *to,
			   struct failure *ret_failure)
{
	const struct service_config *config = &service->config;
	const enum gate_cut why = sandbox->session == to ? GATE_CUT_ENDED : GATE_CUT_HANDED;
	unsigned cut = 0;
	int r;

	forwards_sweep(service); /* sockets of the host that may call into it */
	sandbox_leave(service, sandbox);
	r = config->gate.cut(config->gate.ctx, &sandbox->pub.cgroup.id, 1, why, &cut);
	if (r) {
		sandbox->left =
			sandbox->stage == SANDBOX_RELEASED; /* else a raise may tell the inspectors of it again */
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "what sandbox %s of %s left open in %s: %s",
				    sandbox->pub.id, sandbox->pub.session.text, sandbox->pub.cgroup.path, strerror(-r));
	}
	if (config->before_handover)
		config->before_handover(config->retire_data, sandbox->pub.cgroup.id);
	r = store_sandbox_remove(config->store, sandbox->pub.id, config->wall_us());
	if (r) {
		sandbox->left = sandbox->stage == SANDBOX_RELEASED;
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "the end of sandbox %s: %s", sandbox->pub.id,
				    sql_strerror(r));
	}
	sandbox_drop(service, sandbox);
	return 0;
}

/*
 * A sandbox that this adoption may go on with: the same session's, whose adoption failed half-way. NULL when there is none. One
 * that was removed but that the kernel still knows because its cgroup lives on makes room.
 */
static int adopt_resume(struct service *service, const struct session *session, const struct gate_cgroup *cgroup,
			struct sandbox **ret, struct failure *ret_failure)
{
	struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup->id);

	*ret = NULL;
	if (!sandbox || !sandbox->pub.adopted)
		return 0;
	if (sandbox->stage == SANDBOX_LINGERS || sandbox->stage == SANDBOX_RELEASED)
		return adopt_hand_over(service, sandbox, session, ret_failure);
	if (sandbox->unfinished && sandbox->session == session && sandbox->stage == SANDBOX_RUNS)
		*ret = sandbox;
	return 0;
}

/* Something may have turned up while the gate was being attached. */
static int adopt_look_again(struct service *service, const struct sandbox *sandbox, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct gate_problem problem = { 0 };
	struct gate_cgroup found;
	int r = gate->cgroup_inspect(gate->ctx, sandbox->pub.cgroup.path, sandbox->starting, &found, &problem);

	if (r == 0 && found.id != sandbox->pub.cgroup.id)
		return service_fail(ret_failure, NP_R_BAD_CGROUP, -ENOENT, "%s is another cgroup by now",
				    sandbox->pub.cgroup.path);
	if (r)
		return service_fail(ret_failure, problem.reason ? problem.reason : NP_R_BAD_CGROUP, r,
				    "%s; the cgroup stays confined until it is empty or adopted",
				    problem.text[0] ? problem.text : strerror(-r));
	return 0;
}

/*
 * Join its network namespace, raise, attach, look again, record, cut: none of them alone opens anything, and each makes the next
 * one safe.
 *
 * The caller has looked once already, so that a cgroup that is plainly unfit is left as it was. But until the gate is
 * attached its processes open, connect and receive what they like. From then on they cannot make or connect a socket that
 * the gate does not see, so what the second look does not find, they do not get from inside any more. (From outside, by
 * pidfd_getfd() or over the socket that is their standard input, they can: whoever has such a hand outside is the
 * platform's business.) If it finds something, the adoption is refused and the confinement stays: undoing it would give
 * the network back to processes that have just shown that they get around it, and a crash here leaves the same: a
 * registered cgroup with the gate on it. Before the record, because a record says that the promise holds.
 *
 * Of a container that was started again nobody waits for the answer: whatever keeps its network namespace from being joined (its
 * processes live in several, which they can bring about; there are too many), it is confined all the same, as one that was just born is.
 */
static int adopt_steps(struct service *service, struct sandbox *sandbox, const char *netns, const char *who,
		       unsigned *ret_cut, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct session *session = sandbox->session;
	const int joined = own_network_join(service, sandbox, netns, ret_failure);
	int r = sandbox->starting == GATE_STARTING_ALL ? 0 : joined;

	if (!r)
		r = session_apply(service, session, ret_failure);
	if (!r)
		r = session_follow(service, session, who, ret_failure);
	if (r)
		return r;
	r = gate->attach(gate->ctx, &sandbox->pub.cgroup);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "the gate could not be attached to %s: %s",
				    sandbox->pub.cgroup.path, strerror(-r));
	failpoint("adopt_attached");
	r = joined ? joined : adopt_look_again(service, sandbox, ret_failure);
	if (r)
		return r;
	r = sandbox_record(service, sandbox);
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "sandbox %s: %s", sandbox->pub.id,
				    sql_strerror(r));
	return session_cut(service, session, ret_cut, ret_failure);
}

/*
 * An adoption failed. Where nothing was raised, nothing happened. Else the cgroup is confined at least in part, and taking that
 * away would free processes that run in it: it stays as it is, in memory too, until the same call finishes it or the cgroup
 * empties. An empty one can be let go at once.
 */
static void adopt_undo(struct service *service, struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;

	if (!sandbox->registered) {
		service->config.inspectors.forget(service->config.inspectors.ctx, sandbox->pub.cgroup.id);
		sandbox_drop(service, sandbox);
	} else if (gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup) ||
		   sandbox_end(service, sandbox, false, "daemon"))
		sandbox->unfinished = true;
}

static int adopt_in(struct service *service, struct session *session, const struct gate_cgroup *cgroup,
		    const struct adoption *adoption, const char *who, struct sandbox **ret, unsigned *ret_cut,
		    struct failure *ret_failure)
{
	struct sandbox *sandbox;
	int r = adopt_resume(service, session, cgroup, &sandbox, ret_failure);

	if (r)
		return r;
	if (!sandbox) {
		char id[NP_SANDBOX_ID_MAX + 1];

		r = overlap_check(service, cgroup, ret_failure);
		if (r)
			return r;
		r = sandbox_id_choose(service, &session->name, id);
		if (!r)
			r = sandbox_new(service, session, id, cgroup, true, &sandbox);
		if (r)
			return service_fail(ret_failure, NP_R_FAILED, r, "no sandbox could be made: %s", strerror(-r));
		sandbox->pub.created_us = service->config.wall_us();
		sandbox_touch(service, sandbox);
	}
	sandbox->uncut = true; /* whatever its processes opened before */
	sandbox->starting = adoption->starting;
	r = adopt_steps(service, sandbox, adoption->netns, who, ret_cut, ret_failure);
	if (r) {
		adopt_undo(service, sandbox);
		return r;
	}
	sandbox->unfinished = false;
	session_publish(service, session);
	sandbox->announced = true;
	sandbox_event(service, NP_R_SANDBOX_ADOPTED, sandbox, who, ret_cut);
	*ret = sandbox;
	return 0;
}

int adopt_again(struct service *service, const char *name, const struct gate_cgroup *cgroup,
		struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	const struct adoption adoption = { .cgroup = cgroup->path, .starting = GATE_STARTING_ALL };
	struct session *session;
	struct sandbox *sandbox = NULL;
	unsigned cut = 0;
	int r = session_enter(service, name, "daemon", &session, ret_failure);

	if (r)
		return r;
	r = adopt_in(service, session, cgroup, &adoption, "daemon", &sandbox, &cut, ret_failure);
	session_unpin(service, session);
	if (r || !sandbox)
		return r ? r : -EIO;
	sandbox->again = sandbox->placed = true;
	sandbox_event(service, NP_R_CONTAINER_RESTARTED, sandbox, "daemon", NULL);
	return 0;
}

/* Attached to the same session before, and whole: that may be asked for again. NULL: it is not. */
static struct sandbox *adopted_find(struct service *service, const char *session, const char *path)
{
	const struct gate *gate = &service->config.gate;
	struct sandbox *sandbox;
	struct gate_cgroup cgroup;

	if (gate->cgroup_find(gate->ctx, path, &cgroup))
		return NULL;
	sandbox = sandbox_by_cgroup(service, cgroup.id);
	return sandbox && sandbox->pub.adopted && !sandbox->unfinished && sandbox->announced && !sandbox->dying &&
			       sandbox->stage == SANDBOX_RUNS && !strcmp(sandbox->pub.session.text, session)
		       ? sandbox
		       : NULL;
}

int service_sandbox_adopt(struct service *service, const char *name, const struct adoption *adoption, const char *who,
			  const struct sandbox_info **ret, unsigned *ret_cut, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	const struct gate *gate = &service->config.gate;
	struct gate_problem problem = { 0 };
	struct session_name parsed;
	struct gate_cgroup cgroup;
	unsigned cut = 0;
	struct session *session;
	struct sandbox *sandbox = NULL;
	int r = service_name_read(name, &parsed, ret_failure);

	if (r)
		return r;
	/* Before the session is loaded: a bad path makes no session. */
	if (ret_cut)
		*ret_cut = 0;
	if (adoption->starting && born_find(service, parsed.text, adoption->cgroup, ret, &r, ret_failure))
		return r;
	sandbox = adopted_find(service, parsed.text, adoption->cgroup);
	if (sandbox) {
		*ret = &sandbox->pub;
		sandbox->starting = adoption->starting;
		/* What is about to start there was handed what it holds since. */
		r = adoption->starting ? adopt_look_again(service, sandbox, ret_failure) : 0;
		return r ? r : own_network_join(service, sandbox, adoption->netns, ret_failure);
	}
	r = gate->cgroup_inspect(gate->ctx, adoption->cgroup, adoption->starting, &cgroup, &problem);
	if (r)
		return service_fail(ret_failure, problem.reason ? problem.reason : NP_R_BAD_CGROUP, r, "%s",
				    problem.text[0] ? problem.text : strerror(-r));
	r = session_enter(service, name, who, &session, ret_failure);
	if (r)
		return r;
	r = adopt_in(service, session, &cgroup, adoption, who, &sandbox, &cut, ret_failure);
	session_unpin(service, session);
	if (r)
		return r;
	*ret = &sandbox->pub;
	if (ret_cut)
		*ret_cut = cut;
	return starter_note(service, &parsed, who, ret_failure);
}
