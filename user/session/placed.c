/* SPDX-License-Identifier: MIT */
/*
 * Processes that a platform places in a made sandbox by itself, rather than by `netpawl run`. They may bring sockets along
 * that were made elsewhere, which no hook of the gate sees, so they are looked at as those of an adopted cgroup are: when the
 * first of them has had the time to close what it inherited, and whenever the sandbox is tightened. Nothing can be taken
 * from such a process but its life, so a sandbox that is not FULL ends with it.
 *
 * Not seen is what comes later and brings something along while nothing is tightened, and what is fetched from outside
 * (pidfd_getfd): that is the platform's business.
 */
#include <stdio.h>
#include <string.h>

#include "session/service_internal.h"
#include "vocab/limits.h"

/* Is there something that the gate cannot govern? What cannot be looked at counts. */
static bool sandbox_brings(struct service *service, const struct sandbox *sandbox, struct gate_problem *problem)
{
	const struct gate *gate = &service->config.gate;
	int r = gate->cgroup_look(gate->ctx, &sandbox->pub.cgroup, problem);

	if (r && !problem->text[0])
		snprintf(problem->text, sizeof(problem->text), "%.400s: %s", sandbox->pub.cgroup.path, strerror(-r));
	return r != 0;
}

/* May free the sandbox: when it is made, and not FULL. */
static void placed_refuse(struct service *service, struct sandbox *sandbox, const char *text)
{
	struct event event = { .reason = NP_R_PLACED_SOCKETS, .text = text };

	service_emit(service, &event, sandbox->session, sandbox);
	if (sandbox->pub.rung.mode != NP_FULL && !sandbox->pub.adopted) /* whose processes are its engine's to end */
		sandbox_abandon(service, sandbox);
}

bool placed_check(struct service *service, struct sandbox *sandbox)
{
	struct gate_problem problem = { 0 };
	uint64_t now = service->config.now_ns();

	if (!sandbox->placed || sandbox->settled)
		return false;
	if (!sandbox->entered_ns) {
		sandbox->entered_ns = now;
		return false;
	}
	if (now - sandbox->entered_ns < NP_PLACED_MS * 1000000ull)
		return false;
	sandbox->settled = !sandbox_brings(service, sandbox, &problem);
	/* Somebody may be starting another process in a container just now (docker exec), which holds sockets of the runtime. */
	if (sandbox->settled || (sandbox->pub.born && now - sandbox->entered_ns < NP_PLACED_BORN_MS * 1000000ull))
		return false;
	sandbox->settled = true;
	placed_refuse(service, sandbox, problem.text);
	return true;
}

void placed_raise(struct service *service, struct session *session)
{
	const struct gate *gate = &service->config.gate;
	struct sandbox *sandbox, *next;

	session->pins++;
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = next) {
		struct gate_problem problem = { 0 };

		next = TAILQ_NEXT(sandbox, of_session);
		if (!sandbox->placed || !sandbox->uncut || sandbox->stage != SANDBOX_RUNS || sandbox->dying ||
		    !gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup))
			continue;
		if (sandbox_brings(service, sandbox, &problem))
			placed_refuse(service, sandbox, problem.text);
	}
	session_unpin(service, session);
}

void service_sandbox_place(struct service *service, const struct sandbox_info *info)
{
	struct sandbox *sandbox = sandbox_by_id(service, info->id);

	if (sandbox)
		sandbox->placed = true;
}
