/* SPDX-License-Identifier: MIT */
/*
 * np_device on every network device, those that appear later too, and the table
 * of the host's own addresses. Netlink only says "look again": what is true is
 * read from the kernel anew each time, so a lost message costs nothing.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/fs.h"
#include "kernel/internal.h"

/* Our place among a device's clsact filters, so that we find, replace and remove only our own. A gate of an older version
 * has another, so that both are asked while it is taken over. */
#define CLSACT_HANDLE		 0x6e70
#define CLSACT_PRIORITY(version) (0x6e70 - 4 + (version))

static int device_attach_tcx(struct kernel *kernel, unsigned ifindex)
{
	char path[FS_PATH_SIZE], name[32];
	const struct link_want want = { path, LINK_DEVICE, ifindex, (int)ifindex, NP_ATTACH_TCX_EGRESS };
	int r = fs_path(path, "%s/devices/if%u", kernel->pins, ifindex);

	snprintf(name, sizeof(name), "if%u", ifindex);
	return r < 0 ? r : link_hold(kernel, name, kernel->skel->progs.np_device, &want);
}

static int device_attach_clsact(struct kernel *kernel, unsigned ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY(NP_ABI_VERSION),
		    .prog_fd = program_fd(kernel, kernel->skel->progs.np_device), .flags = BPF_TC_F_REPLACE);
	LIBBPF_OPTS(bpf_tc_opts, there, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY(NP_ABI_VERSION));
	size_t index = program_index(kernel, kernel->skel->progs.np_device);
	int r;

	if (index != SIZE_MAX && bpf_tc_query(&hook, &there) == 0 && there.prog_id == kernel->programs[index].id)
		return 0;
	r = bpf_tc_hook_create(&hook);
	if (r < 0 && r != -EEXIST)
		return r;
	r = bpf_tc_attach(&hook, &opts);
	if (r == 0 && kernel->started)
		log_info("device %u has its program", ifindex); /* it is new, or somebody removed the filter */
	return r;
}

void devices_detach_clsact(unsigned version)
{
	struct if_nameindex *names = if_nameindex();

	for (struct if_nameindex *n = names; n && n->if_index; n++) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)n->if_index, .attach_point = BPF_TC_EGRESS);
		LIBBPF_OPTS(bpf_tc_opts, opts, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY(version));

		bpf_tc_detach(&hook, &opts);
	}
	if_freenameindex(names);
}

/* Pins of devices that are gone hold empty links. Hosts that make and drop veth pairs would collect them. */
static void devices_forget(struct kernel *kernel, const struct if_nameindex *names)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *dir = NULL;

	fs_path(path, "%s/devices", kernel->pins);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		unsigned index;
		const struct if_nameindex *n = names;

		if (sscanf(e->d_name, "if%u", &index) != 1)
			continue;
		while (n->if_index && n->if_index != index)
			n++;
		if (n->if_index)
			continue;
		unlinkat(dirfd(dir), e->d_name, 0);
		place_forget(kernel, e->d_name);
	}
}

int devices_attach(struct kernel *kernel)
{
	struct if_nameindex *names = if_nameindex();
	int result = 0;

	if (!names)
		return -errno;
	kernel->devices = 0;
	for (struct if_nameindex *n = names; n->if_index; n++) {
		int r = -EINVAL;

		if (kernel->features.tcx)
			r = device_attach_tcx(kernel, n->if_index);
		if (r == -EINVAL) {
			kernel->features.tcx = false;
			r = device_attach_clsact(kernel, n->if_index);
		}
		if (r == -ENODEV)
			continue; /* gone in the meantime */
		if (r < 0) {
			log_error("device %s: cannot attach np_device: %s", n->if_name, strerror(-r));
			result = r;
			continue;
		}
		kernel->devices++;
	}
	devices_forget(kernel, names);
	if_freenameindex(names);
	return result;
}

static bool address_of(const struct sockaddr *sa, struct np_addr *ret)
{
	if (sa && sa->sa_family == AF_INET) {
		*ret = (struct np_addr){ .w = { 0, 0, htonl(0xffff),
						((const struct sockaddr_in *)sa)->sin_addr.s_addr } };
		return true;
	}
	if (sa && sa->sa_family == AF_INET6) {
		memcpy(ret, &((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof(*ret));
		return true;
	}
	return false;
}

static const struct sockaddr *broadcast_of(const struct ifaddrs *a)
{
	return a->ifa_flags & IFF_BROADCAST && a->ifa_addr && a->ifa_addr->sa_family == AF_INET ? a->ifa_broadaddr
												: NULL;
}

static bool is_listed(const struct ifaddrs *list, const struct np_addr *addr)
{
	struct np_addr other;

	for (; list; list = list->ifa_next) {
		if (address_of(list->ifa_addr, &other) && !memcmp(&other, addr, sizeof(other)))
			return true;
		if (address_of(broadcast_of(list), &other) && !memcmp(&other, addr, sizeof(other)))
			return true;
	}
	return false;
}

static int addresses_update(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_host_addrs), r = 0;
	struct ifaddrs *list = NULL;
	struct np_addr key, next;
	const __u8 own = NP_ADDR_OWN, broadcast = NP_ADDR_BROADCAST;
	bool more;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (struct ifaddrs *a = list; a; a = a->ifa_next) {
		if (address_of(broadcast_of(a), &key) && bpf_map_update_elem(fd, &key, &broadcast, BPF_ANY) < 0)
			r = -errno;
		if (address_of(a->ifa_addr, &key) && bpf_map_update_elem(fd, &key, &own, BPF_ANY) < 0)
			r = -errno; /* full: the packet layer still holds, only the errno is less kind */
	}
	more = bpf_map_get_next_key(fd, NULL, &key) == 0;
	while (more) {
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (!is_listed(list, &key))
			bpf_map_delete_elem(fd, &key);
		key = next;
	}
	freeifaddrs(list);
	return r;
}

static void on_netlink(void *data, uint32_t events)
{
	struct kernel *kernel = data;
	char scratch[16384];

	(void)events;
	while (recv(kernel->netlink_fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		errno = 0;
	devices_attach(kernel);
	if (addresses_update(kernel) < 0)
		log_warning("the table of the host's addresses is incomplete");
}

int devices_start(struct kernel *kernel)
{
	struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int r;

	/* Listen before the first look, so that nothing falls between. */
	kernel->netlink_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (kernel->netlink_fd < 0 || bind(kernel->netlink_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	r = devices_attach(kernel);
	if (r == 0)
		r = addresses_update(kernel);
	if (r == 0)
		r = loop_watch(kernel->config.loop, kernel->netlink_fd, EPOLLIN, on_netlink, kernel);
	return r;
}
