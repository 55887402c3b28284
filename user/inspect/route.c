/* SPDX-License-Identifier: MIT */
/* Where an inspector does not dial, whatever a name leads to. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sockaddr.h"
#include "inspect/client.h"
#include "inspect/judge.h"
#include "synth.h"

void route_probes_open(int probes[static 2])
{
	probes[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	probes[1] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The host's own addresses: a packet to one comes from that very one. Nothing is sent to find out. */
static bool addr_is_own(const struct worker *worker, const struct np_addr *addr)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	union sockaddr_inet to = sockaddr_of(addr, 9), from = { 0 };
	socklen_t from_len = sizeof(from);
	int fd = worker->probes[to.sa.sa_family == AF_INET6];
	struct np_addr own;
	uint16_t port;

	/* A connected socket would keep the address that packets to the last one come from. */
	if (fd < 0 || connect(fd, &nowhere, sizeof(nowhere)) < 0)
		return true;
	if (connect(fd, &to.sa, sockaddr_len(&to)) < 0)
		return errno == ECONNREFUSED; /* the gate says so; else it cannot be dialled in any case */
	if (getsockname(fd, &from.sa, &from_len) < 0 || !sockaddr_parts(&from, &own, &port))
		return true;
	return !memcmp(&own, addr, sizeof(own));
}

/* A client that speaks to the upstream proxy itself would reach whatever that reaches, and nobody would judge it. */
static bool is_proxy(const struct worker *worker, const struct host *host, uint16_t port, const struct route *route)
{
	const struct host there = { .is_addr = true, .addr = route ? np_addr_carried(&route->addr) : host->addr };

	return policy_is_proxy(worker->policy, host, port) || (route && policy_is_proxy(worker->policy, &there, port));
}

bool route_may(const struct client *client, const struct host *host, uint16_t port, const struct route *route,
	       const struct head *head, const struct ask *ask)
{
	const struct np_addr *addr = route ? &route->addr : NULL;
	struct np_addr carried;

	if (is_proxy(client->worker, host, port, route) || (!route && name_is_proxys_own(host->name)))
		return false;
	if (!route)
		return judge_request(client, host, port, NULL, head, ask).action == ACTION_ALLOW;
	carried = np_addr_carried(addr);
	if (np_addr_is_loopback(&carried) || np_addr_is_any(&carried) || np_addr_is_many(&carried) ||
	    (np_addr_is_v4(&carried) && !carried.b[12]))
		return false;
	if (np_addr_is_synthetic(addr)) /* it stands for a name, and leads nowhere */
		return false;
	if (addr_is_own(client->worker, addr) ||
	    (memcmp(addr, &carried, sizeof(carried)) && addr_is_own(client->worker, &carried)))
		return false;
	return judge_request(client, host, port, route, head, ask).action == ACTION_ALLOW;
}

struct verdict route_refusal(const struct client *client, const struct host *host, uint16_t port,
			     const struct route *route, const struct head *head, const struct ask *ask)
{
	struct verdict verdict = judge_request(client, host, port, route, head, ask);

	/* No rule denies it: it is this host's, or leads nowhere. The rule that allows the name is not to blame. */
	if (verdict.action == ACTION_ALLOW)
		verdict = (struct verdict){ .action = ACTION_DENY };
	verdict.reason = NP_R_ADDRESS_REFUSED;
	return verdict;
}
