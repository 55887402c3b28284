/* SPDX-License-Identifier: MIT */
/* A new policy: the ratchets that it turns, and the connections that it forbids. */
#include <errno.h>
#include <string.h>

#include "session/service_internal.h"

/* A session whose level means more now than it did. */
static int live_reload(struct service *service, struct live *live, const char *who, struct policy_effect *effect,
		       struct failure *ret_failure)
{
	struct raise_request request = {
		.level = live->stands.level,
		.who = who,
		.start_ns = service->config.now_ns(),
	};
	struct escalation done;
	int r;

	if (live->status != LIVE_OPEN || service->config.modes.of[live->stands.level] <= live->stands.mode)
		return 0;
	r = live_raise(service, live, &request, &done, ret_failure);
	if (r)
		return r;
	effect->raised += done.raised;
	effect->cut += done.cut;
	return 0;
}

static int lives_reload(struct service *service, const char *who, struct policy_effect *effect,
			struct failure *ret_failure)
{
	struct failure failure;
	int result = 0;

	/* Nothing below loads a session, so the table keeps its shape; and none goes but the one at hand. */
	for (size_t i = 0; i < service->lives.size; i++) {
		struct table_node *node = service->lives.buckets[i];

		while (node) {
			struct live *live = container_of(node, struct live, node);
			int r;

			live->pins++;
			r = live_reload(service, live, who, effect, &failure);
			if (r && !result) {
				result = r;
				*ret_failure = failure;
			}
			node = node->next;
			live_unpin(service, live);
		}
	}
	return result;
}

static int batch_cut(struct service *service, struct box *const *boxes, size_t n, struct policy_effect *effect,
		     struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	uint64_t ids[CUT_BATCH];
	unsigned cut = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		ids[i] = boxes[i]->pub.cgroup.id;
	r = gate->cut(gate->ctx, ids, n, GATE_CUT_RELOADED, &cut);
	if (!r) {
		effect->cut += cut;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		boxes[i]->uncut = true;
		box_care(service, boxes[i]);
	}
	return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "open connections could not be cut: %s", strerror(-r));
}

/* All sandboxes together: what a cut costs is the walk over the host's sockets. */
static int boxes_reload(struct service *service, struct policy_effect *effect, struct failure *ret_failure)
{
	struct box *batch[CUT_BATCH], *box;
	int result = 0;
	size_t n = 0;

	for (box = TAILQ_FIRST(&service->all); box; box = TAILQ_NEXT(box, of_all)) {
		bool last = !TAILQ_NEXT(box, of_all);

		/* NONE knows no rules. */
		if (box_is_held(box) && box->pub.rung.mode != NP_NONE)
			batch[n++] = box;
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
	service->config.modes = *modes;
	return lives_reload(service, who, effect, ret_failure);
}

int service_policy_cut(struct service *service, struct policy_effect *effect, struct failure *ret_failure)
{
	return boxes_reload(service, effect, ret_failure);
}
