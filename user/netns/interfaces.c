/* SPDX-License-Identifier: MIT */
#include "netns/interfaces.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/net_namespace.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "netns/rtnetlink.h"

#ifndef RTEXT_FILTER_SKIP_STATS
#define RTEXT_FILTER_SKIP_STATS (1 << 3)
#endif
#define TRIES 3 /* of a list that changes while it is read; who watches netlink is told, and looks again */

static const void *attr_find(const struct rtattr *attr, size_t len, unsigned type, size_t *ret_size)
{
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len))
		if (attr->rta_type == type) {
			*ret_size = RTA_PAYLOAD(attr);
			return RTA_DATA(attr);
		}
	return NULL;
}

/* -- devices ------------------------------------------------------------------------------------------ */

struct interfaces {
	struct interface *list;
	size_t n, room;
};

static int interface_take(void *data, const struct nlmsghdr *message)
{
	struct interfaces *all = data;
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const void *peer_netns;
	const char *name;
	size_t size, peer_size = 0;
	struct interface *new;

	if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return 0;
	name = attr_find(IFLA_RTA(info), IFLA_PAYLOAD(message), IFLA_IFNAME, &size);
	if (!name || !size)
		return 0;
	if (ARRAY_RESERVE(all->list, all->room, all->n + 1) < 0)
		return -ENOMEM;
	new = &all->list[all->n++];
	*new = (struct interface){ .index = (unsigned)info->ifi_index, .peer_netns = -1 };
	memcpy(new->name, name, size < IF_NAMESIZE ? size : IF_NAMESIZE - 1);
	peer_netns = attr_find(IFLA_RTA(info), IFLA_PAYLOAD(message), IFLA_LINK_NETNSID, &peer_size);
	if (peer_netns && peer_size == sizeof(new->peer_netns))
		memcpy(&new->peer_netns, peer_netns, peer_size);
	return 0;
}

int interfaces_netns_number(int netns)
{
	const struct rtgenmsg any = { .rtgen_family = AF_UNSPEC };
	const size_t head = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(any)));
	char answer[256] __attribute__((aligned(8)));
	const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
	_close_ int fd = rtnl_open();
	struct rtnl_request rq;
	const void *number;
	size_t size = 0;
	int ret = -1;

	rtnl_begin(&rq, RTM_GETNSID, 0, &any, sizeof(any));
	rtnl_put(&rq, NETNSA_FD, &netns, sizeof(netns));
	if (fd < 0 || rtnl_ask(fd, &rq, answer, sizeof(answer)) < 0 || message->nlmsg_type != RTM_NEWNSID ||
	    message->nlmsg_len < head)
		return -1;
	number = attr_find((const struct rtattr *)(answer + head), message->nlmsg_len - head, NETNSA_NSID, &size);
	if (number && size == sizeof(ret))
		memcpy(&ret, number, size);
	return ret;
}

int interfaces_list(struct interface **ret, size_t *ret_n)
{
	const struct ifinfomsg any = { .ifi_family = AF_UNSPEC };
	const __u32 without = RTEXT_FILTER_SKIP_STATS;
	_close_ int fd = rtnl_open();
	struct interfaces all = { 0 };
	int r = fd < 0 ? fd : -EINTR;

	for (int i = 0; i < TRIES && r == -EINTR; i++) {
		struct rtnl_request rq;

		all.n = 0;
		rtnl_begin(&rq, RTM_GETLINK, 0, &any, sizeof(any));
		rtnl_put(&rq, IFLA_EXT_MASK, &without, sizeof(without));
		r = rtnl_dump(fd, &rq, interface_take, &all);
	}
	if (r < 0 && r != -EINTR) {
		free(all.list);
		return r;
	}
	*ret = all.list;
	*ret_n = all.n;
	return r < 0; /* -EINTR: of these it is known that they are there */
}

/* -- addresses ---------------------------------------------------------------------------------------- */

struct addrs {
	int (*fn)(void *data, const struct np_addr *addr, bool broadcast);
	void *data;
};

static int addr_report(const struct addrs *addrs, int family, const void *raw, size_t size, bool broadcast)
{
	struct np_addr addr = { 0 };
	__be32 v4;

	if (family == AF_INET && size == sizeof(v4)) {
		memcpy(&v4, raw, size);
		addr = np_addr_v4(v4);
	} else if (family == AF_INET6 && size == sizeof(addr)) {
		memcpy(&addr, raw, size);
	} else {
		return 0;
	}
	return addrs->fn(addrs->data, &addr, broadcast);
}

static int addr_take(void *data, const struct nlmsghdr *message)
{
	const struct addrs *addrs = data;
	const struct ifaddrmsg *info = NLMSG_DATA(message);
	const void *local, *broadcast;
	size_t local_size = 0, size = 0, len;
	int r = 0;

	if (message->nlmsg_type != RTM_NEWADDR || message->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return 0;
	len = IFA_PAYLOAD(message);
	/* On a link between two, the other address is the far one. */
	local = attr_find(IFA_RTA(info), len, IFA_LOCAL, &local_size);
	if (!local)
		local = attr_find(IFA_RTA(info), len, IFA_ADDRESS, &local_size);
	broadcast = attr_find(IFA_RTA(info), len, IFA_BROADCAST, &size);
	if (broadcast)
		r = addr_report(addrs, info->ifa_family, broadcast, size, true);
	return r || !local ? r : addr_report(addrs, info->ifa_family, local, local_size, false);
}

int interfaces_each_addr(int (*fn)(void *data, const struct np_addr *addr, bool broadcast), void *data)
{
	const struct ifaddrmsg any = { .ifa_family = AF_UNSPEC };
	struct addrs addrs = { fn, data };
	_close_ int fd = rtnl_open();
	int r = fd < 0 ? fd : -EINTR;

	for (int i = 0; i < TRIES && r == -EINTR; i++) {
		struct rtnl_request rq;

		rtnl_begin(&rq, RTM_GETADDR, 0, &any, sizeof(any));
		r = rtnl_dump(fd, &rq, addr_take, &addrs);
	}
	return r;
}
