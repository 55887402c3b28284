/* SPDX-License-Identifier: MIT */
#include "netns/way_out.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "nat.h"
#include "netns/masquerade.h"
#include "netns/netns.h"
#include "netns/rtnetlink.h"
#include "vocab/limits.h"

#define NAME	    WAY_OUT_PREFIX "%u"
#define NAME_INSIDE "eth0"
#define ALIAS	    "netpawl %" PRIu64
#define LINK_BYTES  16384 /* what the kernel tells of one device */

/* Next hops that no device has, and no packet shows: the neighbour entries below are all that is known of them. */
#define GATEWAY4 0xa9fe0101u						  /* 169.254.1.1 */
static const struct np_addr gateway6 = { .b = { 0xfe, 0x80, [15] = 1 } }; /* fe80::1 */

/* One end of a pair, as its namespace sees it. */
struct end {
	int fd;		/* rtnetlink */
	unsigned index; /* of the device */
	unsigned number;
	bool v6;
};

static void mac_of(unsigned number, bool inside, uint8_t ret[static 6])
{
	const uint8_t mac[6] = { 0x02, 'n', 'p', inside, (uint8_t)(number >> 8), (uint8_t)number };

	memcpy(ret, mac, sizeof(mac));
}

static size_t addr_raw(const struct np_addr *addr, const void **ret)
{
	*ret = np_addr_is_v4(addr) ? (const void *)&addr->w[3] : addr;
	return np_addr_is_v4(addr) ? 4 : 16;
}

static void addr_put(struct rtnl_request *rq, unsigned type, const struct np_addr *addr)
{
	const void *raw;
	size_t size = addr_raw(addr, &raw);

	rtnl_put(rq, type, raw, size);
}

static unsigned char family_of(const struct np_addr *addr)
{
	return np_addr_is_v4(addr) ? AF_INET : AF_INET6;
}

/* -- steps ------------------------------------------------------------------------------------ */

static int pair_make(int fd, unsigned number, int netns)
{
	const struct ifinfomsg any = { .ifi_family = AF_UNSPEC };
	struct rtattr *info, *data, *peer;
	struct rtnl_request rq;
	char name[IFNAMSIZ];
	uint8_t mac[6];

	snprintf(name, sizeof(name), NAME, number);
	mac_of(number, false, mac);
	rtnl_begin(&rq, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &any, sizeof(any));
	rtnl_put(&rq, IFLA_IFNAME, name, strlen(name) + 1);
	rtnl_put(&rq, IFLA_ADDRESS, mac, sizeof(mac));
	info = rtnl_nest(&rq, IFLA_LINKINFO);
	rtnl_put(&rq, IFLA_INFO_KIND, "veth", 4);
	data = rtnl_nest(&rq, IFLA_INFO_DATA);
	peer = rtnl_nest(&rq, VETH_INFO_PEER);
	rtnl_append(&rq, &any, sizeof(any));
	mac_of(number, true, mac);
	rtnl_put(&rq, IFLA_IFNAME, NAME_INSIDE, sizeof(NAME_INSIDE));
	rtnl_put(&rq, IFLA_ADDRESS, mac, sizeof(mac));
	rtnl_put(&rq, IFLA_NET_NS_FD, &netns, sizeof(netns));
	rtnl_nest_end(&rq, peer);
	rtnl_nest_end(&rq, data);
	rtnl_nest_end(&rq, info);
	return rtnl_send(fd, &rq);
}

/* Before it is up: then it would have made up a link-local address, by which the two would meet. A kernel without IPv6 says no. */
static int link_quiet(const struct end *end)
{
	const struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)end->index };
	const __u8 none = IN6_ADDR_GEN_MODE_NONE;
	struct rtnl_request rq;
	struct rtattr *spec, *inet6;
	int r;

	rtnl_begin(&rq, RTM_NEWLINK, 0, &link, sizeof(link));
	spec = rtnl_nest(&rq, IFLA_AF_SPEC);
	inet6 = rtnl_nest(&rq, AF_INET6);
	rtnl_put(&rq, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof(none));
	rtnl_nest_end(&rq, inet6);
	rtnl_nest_end(&rq, spec);
	r = rtnl_send(end->fd, &rq);
	return r == -EAFNOSUPPORT && !end->v6 ? 0 : r;
}

/* alias NULL: none. */
static int link_up(const struct end *end, const char *alias)
{
	const struct ifinfomsg link = {
		.ifi_family = AF_UNSPEC, .ifi_index = (int)end->index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP
	};
	struct rtnl_request rq;
	int r = link_quiet(end);

	if (r < 0)
		return r;
	rtnl_begin(&rq, RTM_NEWLINK, 0, &link, sizeof(link));
	if (alias)
		rtnl_put(&rq, IFLA_IFALIAS, alias, strlen(alias));
	return rtnl_send(end->fd, &rq);
}

static int neighbour_add(const struct end *end, const struct np_addr *addr, bool inside)
{
	const struct ndmsg body = { .ndm_family = family_of(addr),
				    .ndm_ifindex = (int)end->index,
				    .ndm_state = NUD_PERMANENT };
	struct rtnl_request rq;
	uint8_t mac[6];

	mac_of(end->number, inside, mac);
	rtnl_begin(&rq, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof(body));
	addr_put(&rq, NDA_DST, addr);
	rtnl_put(&rq, NDA_LLADDR, mac, sizeof(mac));
	return rtnl_send(end->fd, &rq);
}

/* to NULL: everywhere, by the gateway; else that one address, by the device. */
static int route_add(const struct end *end, const struct np_addr *to, const struct np_addr *gateway)
{
	struct rtmsg body = { .rtm_family = family_of(to ? to : gateway),
			      .rtm_table = RT_TABLE_MAIN,
			      .rtm_protocol = RTPROT_STATIC,
			      .rtm_scope = to ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
			      .rtm_type = RTN_UNICAST,
			      .rtm_flags = to ? 0 : RTNH_F_ONLINK };
	struct rtnl_request rq;

	if (to)
		body.rtm_dst_len = np_addr_is_v4(to) ? 32 : 128;
	rtnl_begin(&rq, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	if (to)
		addr_put(&rq, RTA_DST, to);
	else
		addr_put(&rq, RTA_GATEWAY, gateway);
	rtnl_put(&rq, RTA_OIF, &end->index, sizeof(end->index));
	return rtnl_send(end->fd, &rq);
}

static int address_add(const struct end *end, const struct np_addr *addr)
{
	const struct ifaddrmsg body = { .ifa_family = family_of(addr),
					.ifa_prefixlen = np_addr_is_v4(addr) ? 32 : 128,
					.ifa_flags = IFA_F_NODAD,
					.ifa_index = end->index };
	struct rtnl_request rq;

	rtnl_begin(&rq, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	addr_put(&rq, IFA_LOCAL, addr);
	addr_put(&rq, IFA_ADDRESS, addr);
	return rtnl_send(end->fd, &rq);
}

/* -- both ends ----------------------------------------------------------------------------------- */

static int family_inside(const struct end *end, const struct np_addr *addr, const struct np_addr *gateway)
{
	int r = address_add(end, addr);

	if (r == 0)
		r = neighbour_add(end, gateway, false);
	return r == 0 ? route_add(end, NULL, gateway) : r;
}

static int inside_make(void *data)
{
	const struct end *host = data;
	const struct np_addr v4 = np_nat_v4(host->number), v6 = np_nat_v6(host->number),
			     gateway4 = np_addr_v4(htonl(GATEWAY4));
	_close_ int fd = rtnl_open();
	struct end end = { .fd = fd, .index = if_nametoindex(NAME_INSIDE), .number = host->number, .v6 = host->v6 };
	int r;

	if (fd < 0 || !end.index)
		return fd < 0 ? fd : -ENODEV;
	if (end.v6) /* whatever new namespaces have of it on this host */
		(void)fs_write_at(AT_FDCWD, "/proc/sys/net/ipv6/conf/" NAME_INSIDE "/disable_ipv6", "0");
	r = link_up(&end, NULL);
	if (r == 0)
		r = family_inside(&end, &v4, &gateway4);
	return r == 0 && end.v6 ? family_inside(&end, &v6, &gateway6) : r;
}

static int family_outside(const struct end *end, const struct np_addr *addr)
{
	int r = route_add(end, addr, NULL);

	return r == 0 ? neighbour_add(end, addr, true) : r;
}

/* name: of a device, or "all". */
static bool device_forwards(const char *family, const char *name)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;

	return fs_path(path, "/proc/sys/net/%s/conf/%s/forwarding", family, name) == 0 &&
	       fs_read_at(AT_FDCWD, path, 16, &text) == 0 && text[0] == '1';
}

static int ends_make(struct end *end, uint64_t cgroup_id, int netns)
{
	const struct np_addr v4 = np_nat_v4(end->number), v6 = np_nat_v6(end->number);
	char alias[48], name[IFNAMSIZ], path[FS_PATH_SIZE];
	int r;

	snprintf(name, sizeof(name), NAME, end->number);
	snprintf(alias, sizeof(alias), ALIAS, cgroup_id);
	end->index = if_nametoindex(name);
	if (!end->index)
		return -ENODEV;
	if (end->v6 && fs_path(path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name) == 0)
		(void)fs_write_at(AT_FDCWD, path, "0");
	r = link_up(end, alias);
	if (r == 0 && !device_forwards("ipv4", name))
		r = fs_path(path, "/proc/sys/net/ipv4/conf/%s/forwarding", name) < 0
			    ? -ENAMETOOLONG
			    : fs_write_at(AT_FDCWD, path, "1"); /* of our own device */
	if (r == 0)
		r = family_outside(end, &v4);
	if (r == 0 && end->v6)
		r = family_outside(end, &v6);
	return r == 0 ? netns_call(netns, inside_make, end) : r;
}

static void device_delete(int fd, unsigned index)
{
	const struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	struct rtnl_request rq;
	int r;

	rtnl_begin(&rq, RTM_DELLINK, 0, &link, sizeof(link));
	r = index ? rtnl_send(fd, &rq) : 0;
	if (r < 0 && r != -ENODEV)
		log_warning("the way out of a sandbox's own network stays, as device %u: %s", index, strerror(-r));
}

/* -- what the host does --------------------------------------------------------------------------- */

static void problem_look(struct ways_out *ways)
{
	char chain[96];

	ways->problem[0] = '\0';
	if (!ways->wanted)
		return;
	if (!device_forwards("ipv4", "all"))
		snprintf(ways->problem, sizeof(ways->problem),
			 "this host does not forward: set net.ipv4.ip_forward to 1; until then no sandbox with a way "
			 "out is started");
	else if (masquerade_is_barred(chain))
		snprintf(ways->problem, sizeof(ways->problem),
			 "the chain %s drops what is forwarded: have it accept the devices npnat*, in and out", chain);
}

/* Whoever's: another daemon may have made some since this one has looked. */
static bool devices_left(void)
{
	struct if_nameindex *names = if_nameindex();
	bool found = !names;

	for (const struct if_nameindex *n = names; n && n->if_index && !found; n++)
		found = !strncmp(n->if_name, WAY_OUT_PREFIX, strlen(WAY_OUT_PREFIX));
	if_freenameindex(names);
	return found;
}

void ways_out_want(struct ways_out *ways, bool wanted)
{
	bool news = wanted && !ways->wanted;

	ways->wanted = wanted;
	if (!wanted && !ways->n && !devices_left() && masquerade_remove() < 0)
		log_warning("the table of nft for sandboxes' ways out stays");
	problem_look(ways);
	if (news && ways->problem[0])
		log_warning("network: nat: %s", ways->problem);
}

static unsigned long conntrack_read(const char *what)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;

	if (fs_path(path, "/proc/sys/net/netfilter/nf_conntrack_%s", what) < 0 ||
	    fs_read_at(AT_FDCWD, path, 32, &text) < 0)
		return 0;
	return strtoul(text, NULL, 10);
}

/* The host's table of connections is everybody's. When it is full nobody opens one any more: so those who have ways out stop
 * before, and the rest is the host's. */
static bool conntrack_is_crowded(bool before)
{
	unsigned long max = conntrack_read("max");

	return max && conntrack_read("count") >= max / 8 * (before ? NP_CONNTRACK_REOPEN : NP_CONNTRACK_SHUT);
}

int ways_out_check(struct ways_out *ways)
{
	ways->shut = ways->n && conntrack_is_crowded(ways->shut);
	return ways->n ? masquerade_ensure(ways->shut) : 0;
}

/* -- one of them --------------------------------------------------------------------------------- */

int way_out_make(struct ways_out *ways, uint64_t cgroup_id, int netns)
{
	_close_ int fd = rtnl_open();
	struct end end = { .fd = fd, .v6 = device_forwards("ipv6", "all") };
	int r = fd < 0 ? fd : device_forwards("ipv4", "all") ? masquerade_ensure(ways->shut) : -ENONET;

	if (r < 0)
		return r;
	r = -ENOSPC;
	/* The number that was free for longest: what is still on its way to the one who had it last reaches nobody else. */
	for (unsigned i = 0; i < NP_NAMESPACES_MAX && (r == -ENOSPC || r == -EEXIST); i++) {
		end.number = ways->next++ % NP_NAMESPACES_MAX;
		if (!ways->owners[end.number])
			r = pair_make(fd, end.number, netns); /* -EEXIST: another daemon's */
	}
	if (r < 0)
		return r == -EEXIST ? -ENOSPC : r;
	r = ends_make(&end, cgroup_id, netns);
	if (r < 0) {
		device_delete(fd, end.index);
		return r;
	}
	ways->owners[end.number] = cgroup_id;
	ways->n++;
	return 0;
}

void way_out_drop(struct ways_out *ways, uint64_t cgroup_id)
{
	_close_ int fd = -1;
	char name[IFNAMSIZ];
	unsigned i = 0;

	while (i < NP_NAMESPACES_MAX && (!ways->n || ways->owners[i] != cgroup_id))
		i++;
	if (i == NP_NAMESPACES_MAX)
		return;
	fd = rtnl_open();
	snprintf(name, sizeof(name), NAME, i);
	device_delete(fd, if_nametoindex(name));
	ways->owners[i] = 0;
	if (--ways->n == 0 && !ways->wanted)
		ways_out_want(ways, false);
}

/* -- after a start --------------------------------------------------------------------------------- */

/* Whose it is, by its alias; 0: nobody's of ours. */
static uint64_t owner_read(int fd, unsigned index)
{
	const struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	char answer[LINK_BYTES] __attribute__((aligned(8))), text[64];
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	struct rtnl_request rq;
	const struct rtattr *a;
	uint64_t id;
	int left;

	rtnl_begin(&rq, RTM_GETLINK, 0, &link, sizeof(link));
	if (rtnl_ask(fd, &rq, answer, sizeof(answer)) < 0 || header->nlmsg_type != RTM_NEWLINK)
		return 0;
	left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(link)));
	for (a = (const void *)(answer + NLMSG_LENGTH(sizeof(link))); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != IFLA_IFALIAS || RTA_PAYLOAD(a) >= sizeof(text))
			continue;
		memcpy(text, RTA_DATA(a), RTA_PAYLOAD(a));
		text[RTA_PAYLOAD(a)] = '\0';
		return sscanf(text, "netpawl %" SCNu64, &id) == 1 ? id : 0;
	}
	return 0;
}

void ways_out_find(struct ways_out *ways, bool (*is_there)(void *data, uint64_t cgroup_id), void *data)
{
	struct if_nameindex *names = if_nameindex();
	_close_ int fd = rtnl_open();

	for (struct if_nameindex *n = names; fd >= 0 && n && n->if_index; n++) {
		unsigned number;
		uint64_t id;
		char rest;

		if (sscanf(n->if_name, WAY_OUT_PREFIX "%u%c", &number, &rest) != 1 || number >= NP_NAMESPACES_MAX)
			continue;
		id = owner_read(fd, n->if_index);
		if (!id)
			continue;
		if (!is_there(data, id)) {
			device_delete(fd, n->if_index);
			continue;
		}
		ways->owners[number] = id;
		ways->n++;
		if (number >= ways->next)
			ways->next = number + 1;
	}
	if_freenameindex(names);
	if (ways->n && masquerade_ensure(ways->shut) < 0)
		log_warning("sandboxes with a network of their own have no way out: the table of nft is missing");
}
