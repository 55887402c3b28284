/* SPDX-License-Identifier: MIT */
/* A verb of the service, from its begin to its end, and how verbs speak to the inspectors. */

#include "session/service_internal.h"

struct service *verb_begin(struct service *service)
{
	service->verbs++;
	return service;
}

void verb_end(struct service **verb)
{
	struct service *service = *verb;
	const struct inspectors *inspectors = &service->config.inspectors;

	if (--service->verbs || !service->reports)
		return;
	service->reports = false;
	inspectors->receive(inspectors->ctx);
}

void inspectors_tighten(struct service *service, uint64_t cgroup_id, const char *sandbox, const char *session,
			const struct np_rung *rung)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	service->reports = true;
	inspectors->tighten(inspectors->ctx, cgroup_id, sandbox, session, rung);
}

void inspectors_sync_begin(struct service *service)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	inspectors->sync_begin(inspectors->ctx);
}

unsigned inspectors_sync(struct service *service)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	service->reports = true;
	return inspectors->sync(inspectors->ctx);
}

void inspectors_ending(struct service *service, uint64_t cgroup_id, bool is)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	service->reports = true;
	inspectors->ending(inspectors->ctx, cgroup_id, is);
}

void inspectors_leave(struct service *service, uint64_t cgroup_id)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	service->reports = true;
	inspectors->leave(inspectors->ctx, cgroup_id);
}

int orphans_find(struct service *service, const uint64_t *cgroup_ids, size_t n, bool *ret_has)
{
	const struct gate *gate = &service->config.gate;
	const struct inspectors *inspectors = &service->config.inspectors;
	int r = gate->orphans(gate->ctx, cgroup_ids, n, ret_has);

	if (r)
		return r;
	service->reports = true;
	inspectors->left(inspectors->ctx, cgroup_ids, n, ret_has);
	return 0;
}

/* The kernel first: while it has an entry, connections may be steered to the inspectors, and they must know whose they are. */
int cgroup_retire(struct service *service, uint64_t cgroup_id)
{
	const struct service_config *config = &service->config;
	int r;

	if (config->before_retire)
		config->before_retire(config->retire_data, cgroup_id);
	r = config->gate.retire(config->gate.ctx, cgroup_id);
	if (r)
		return r;
	service->reports = true;
	config->inspectors.forget(config->inspectors.ctx, cgroup_id);
	if (config->on_retired)
		config->on_retired(config->retire_data, cgroup_id);
	return 0;
}
