/* SPDX-License-Identifier: MIT */
/*
 * Which sandboxes have a network namespace of their own: made ones, with "private" those whose mode, when they are made,
 * lets nothing out that the inspector does not carry, with "nat" all; and adopted ones that live in one, which are containers. A sandbox keeps what it began with: a raise
 * tightens all kinds alike.
 */
#include <errno.h>
#include <string.h>

#include "session/service_internal.h"

void service_own_network_set(struct service *service, const struct own_networks *networks)
{
	service->config.own_networks = *networks;
}

bool own_network_is(struct service *service, uint64_t cgroup_id, struct sandbox_netns *ret)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	return inspectors->netns_find && inspectors->netns_find(inspectors->ctx, cgroup_id, ret) == 0;
}

void own_network_note(struct service *service, struct sandbox *sandbox)
{
	struct sandbox_netns netns;

	service->own_networks -= sandbox->pub.own_network;
	sandbox->pub.own_network = own_network_is(service, sandbox->pub.cgroup.id, &netns);
	sandbox->pub.way_out = sandbox->pub.own_network && netns.wired && !sandbox->pub.adopted && !sandbox->pub.born;
	service->own_networks += sandbox->pub.own_network;
}

/* No user may take all networks from the others. more: how many the user is about to get. */
static int share_check(struct service *service, const struct session_name *session, unsigned more,
		       struct failure *ret_failure)
{
	unsigned n = more;

	if (service->own_networks + more <= NP_NAMESPACES_PER_USER)
		return 0;
	for (const struct sandbox *s = TAILQ_FIRST(&service->all); s; s = TAILQ_NEXT(s, of_all))
		n += s->pub.own_network && session_name_same_user(&s->pub.session, session);
	if (n <= NP_NAMESPACES_PER_USER)
		return 0;
	return service_fail(
		ret_failure, NP_R_TOO_MANY, -ENOSPC,
		"%.*s has %d sandboxes with a network of their own already; with sandbox: network: shared in the "
		"policy they take none",
		(int)session->user_len, session->text, NP_NAMESPACES_PER_USER);
}

static int network_fail(const char *id, int r, struct failure *ret_failure)
{
	if (r == -ENOSPC)
		return service_fail(
			ret_failure, NP_R_TOO_MANY, r,
			"there are %d networks of sandboxes' own already, or as many as "
			"/proc/sys/user/max_net_namespaces says; with sandbox: network: shared in the policy "
			"sandboxes take none",
			NP_NAMESPACES_MAX);
	if (r == -ENONET)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r,
				    "a network of its own with a way out for %s: this host does not forward; set "
				    "net.ipv4.ip_forward to 1, or choose another sandbox: network: in the policy",
				    id);
	return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "a network of its own for %s: %s", id, strerror(-r));
}

int own_network_join(struct service *service, struct sandbox *sandbox, const char *netns, struct failure *ret_failure)
{
	const struct inspectors *inspectors = &service->config.inspectors;
	int r = inspectors->netns_join ? inspectors->netns_join(inspectors->ctx, &sandbox->pub.cgroup, netns) : 0;

	if (netns && (r == -EXDEV || r == -EINVAL))
		return service_fail(ret_failure, NP_R_FOREIGN_NETNS, r, "%s: %s", netns,
				    r == -EXDEV ? "its processes live in another network namespace"
						: "it leads to no network namespace but the host's");
	if (r < 0)
		return network_fail(sandbox->pub.id, r, ret_failure);
	if (sandbox->pub.own_network)
		return 0;
	own_network_note(service, sandbox);
	return sandbox->pub.own_network ? share_check(service, &sandbox->pub.session, 0, ret_failure) : 0;
}

int service_sandbox_netns(struct service *service, const struct sandbox_info *sandbox, bool fresh,
			  struct sandbox_netns *ret, struct failure *ret_failure)
{
	const struct inspectors *inspectors = &service->config.inspectors;
	struct sandbox *own = sandbox_by_cgroup(service, sandbox->cgroup.id);
	const struct own_networks *networks = &service->config.own_networks;
	const unsigned mode = 1u << sandbox->rung.mode;
	int r = 0;

	if (!own || own->pub.adopted)
		return 0;
	if (fresh && !own->pub.own_network && networks->modes & mode) {
		r = share_check(service, &sandbox->session, 1, ret_failure);
		if (r < 0)
			return r;
		r = inspectors->netns_make(inspectors->ctx, sandbox->cgroup.id, sandbox->rung.mode == NP_PROXIED,
					   networks->way_out & mode);
	}
	if (r < 0)
		return network_fail(sandbox->id, r, ret_failure);
	own_network_note(service, own);
	own_network_is(service, sandbox->cgroup.id, ret);
	return 0;
}
