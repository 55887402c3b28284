/* SPDX-License-Identifier: MIT */
/* A new policy: the ratchets that it turns, and the connections that it forbids. */
#include <string.h>

#include "session/questions_internal.h"
#include "session/service_internal.h"

struct reloading {
	const char *who;
	struct policy_effect *effect;
	struct failure *failure; /* the first */
	int result;
};

/* A session whose level means more now than it did. */
static void session_reload(struct service *service, struct session *session, void *data)
{
	struct reloading *reloading = data;
	struct raise_request request = {
		.level = session->stands.level,
		.who = reloading->who,
		.start_ns = service->config.now_ns(),
	};
	struct escalation done = { 0 };
	struct failure failure;
	int r;

	if (session->status != SESSION_OPEN || service->config.modes.of[session->stands.level] <= session->stands.mode)
		return;
	r = session_raise(service, session, &request, &done, &failure);
	if (r && !reloading->result) {
		reloading->result = r;
		*reloading->failure = failure;
	}
	reloading->effect->raised += done.raised;
	reloading->effect->cut += done.cut;
}

static int batch_cut(struct service *service, struct sandbox *const *sandboxes, size_t n, struct policy_effect *effect,
		     struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	uint64_t ids[CUT_BATCH];
	unsigned cut = 0;
	int r;

	effect->cut +=
		inspectors_sync(service); /* they first, as in raise.c: they have the policy since before this call */
	for (size_t i = 0; i < n; i++)
		ids[i] = sandboxes[i]->pub.cgroup.id;
	r = gate->cut(gate->ctx, ids, n, GATE_CUT_RELOADED, &cut);
	if (!r) {
		effect->cut += cut;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		sandboxes[i]->uncut = true;
		sandbox_care(service, sandboxes[i]);
	}
	return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "open connections could not be cut: %s", strerror(-r));
}

/* All sandboxes together: what a cut costs is the walk over the host's sockets. */
static int sandboxes_reload(struct service *service, struct policy_effect *effect, struct failure *ret_failure)
{
	struct sandbox *batch[CUT_BATCH], *sandbox;
	int result = 0;
	size_t n = 0;

	for (sandbox = TAILQ_FIRST(&service->all); sandbox; sandbox = TAILQ_NEXT(sandbox, of_all)) {
		bool last = !TAILQ_NEXT(sandbox, of_all);

		/* NONE knows no rules. */
		if (sandbox_is_held(sandbox) && sandbox->pub.rung.mode != NP_NONE)
			batch[n++] = sandbox;
		if (n && (n == CUT_BATCH || last)) {
			int r = batch_cut(service, batch, n, effect, ret_failure);

			result = result ? result : r;
			n = 0;
		}
	}
	return result;
}

int service_policy_raise(struct service *service, const struct level_modes *modes, const char *who,
			 struct policy_effect *effect, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct reloading reloading = { .who = who, .effect = effect, .failure = ret_failure };

	service->config.modes = *modes;
	sessions_each(service, session_reload, &reloading);
	return reloading.result;
}

int service_policy_cut(struct service *service, struct policy_effect *effect, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);

	questions_reload(service);
	return sandboxes_reload(service, effect, ret_failure);
}
