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

/* Is there something that the gate cannot govern? What cannot be looked at counts. */
static bool box_brings(struct service *service, const struct box *box, struct gate_problem *problem)
{
	const struct gate *gate = &service->config.gate;
	int r = gate->cgroup_look(gate->ctx, &box->pub.cgroup, problem);

	if (r && !problem->text[0])
		snprintf(problem->text, sizeof(problem->text), "%.400s: %s", box->pub.cgroup.path, strerror(-r));
	return r != 0;
}

/* May free the box: when it is not FULL. */
static void box_object(struct service *service, struct box *box, const char *text)
{
	struct event event = { .reason = NP_R_PLACED_SOCKETS, .text = text };

	service_emit(service, &event, box->live, box);
	if (box->pub.rung.mode != NP_FULL)
		box_abandon(service, box);
}

bool placed_check(struct service *service, struct box *box)
{
	struct gate_problem problem = { 0 };
	uint64_t now = service->config.now_ns();

	if (!box->placed || box->settled)
		return false;
	if (!box->entered_ns) {
		box->entered_ns = now;
		return false;
	}
	if (now - box->entered_ns < NP_PLACED_MS * 1000000ull)
		return false;
	box->settled = true;
	if (!box_brings(service, box, &problem))
		return false;
	box_object(service, box, problem.text);
	return true;
}

void placed_raise(struct service *service, struct live *live)
{
	const struct gate *gate = &service->config.gate;
	struct box *box, *next;

	live->pins++;
	for (box = TAILQ_FIRST(&live->boxes); box; box = next) {
		struct gate_problem problem = { 0 };

		next = TAILQ_NEXT(box, of_session);
		if (!box->placed || !box->uncut || box->stage != BOX_LIVES || box->dying ||
		    !gate->cgroup_populated(gate->ctx, &box->pub.cgroup))
			continue;
		if (box_brings(service, box, &problem))
			box_object(service, box, problem.text);
	}
	live_unpin(service, live);
}

void service_sandbox_place(struct service *service, const struct sandbox *sandbox)
{
	struct box *box = box_by_id(service, sandbox->id);

	if (box)
		box->placed = true;
}
