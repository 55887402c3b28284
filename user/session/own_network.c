/* SPDX-License-Identifier: MIT */
/*
 * Which sandboxes have a network namespace of their own: made ones whose mode, when they are made, lets nothing out that the
 * inspector does not carry. A sandbox keeps what it began with: a raise tightens both kinds alike.
 */
#include <errno.h>
#include <string.h>

#include "session/service_internal.h"

void service_own_network_set(struct service *service, unsigned modes)
{
	service->config.own_network = modes;
}

bool own_network_is(struct service *service, uint64_t cgroup_id, struct sandbox_netns *ret)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	return inspectors->netns_find && inspectors->netns_find(inspectors->ctx, cgroup_id, ret) == 0;
}

int service_sandbox_netns(struct service *service, const struct sandbox_info *sandbox, bool fresh,
			  struct sandbox_netns *ret, struct failure *ret_failure)
{
	const struct inspectors *inspectors = &service->config.inspectors;
	struct sandbox *own = sandbox_by_cgroup(service, sandbox->cgroup.id);
	int r = 0;

	if (!own || own->pub.adopted)
		return 0;
	if (fresh && !own->pub.own_network && service->config.own_network >> sandbox->rung.mode & 1)
		r = inspectors->netns_make(inspectors->ctx, sandbox->cgroup.id, sandbox->rung.mode == NP_PROXIED);
	if (r == -ENOSPC)
		return service_fail(ret_failure, NP_R_TOO_MANY, r,
				    "there are %d sandboxes with a network of their own already", NP_NAMESPACES_MAX);
	if (r < 0)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "a network of its own for %s: %s", sandbox->id,
				    strerror(-r));
	own->pub.own_network = own_network_is(service, sandbox->cgroup.id, ret);
	return 0;
}
