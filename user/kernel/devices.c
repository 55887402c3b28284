/* SPDX-License-Identifier: MIT */
/*
 * np_device on every network device, those that appear later too; and the same in the network namespaces of containers. Netlink only says "look again": what is true is read from the kernel anew each time, so a
 * lost message costs nothing. Devices are numbered, listed and attached to where the calling thread is: for a container's it
 * goes there.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "kernel/internal.h"
#include "netns/interfaces.h"
#include "netns/way_out.h"

/* Our place among a device's clsact filters, so that we find, replace and remove only our own. A gate of an older version
 * has another, so that both are asked while it is taken over. */
#define CLSACT_HANDLE		 0x6e70
#define CLSACT_PRIORITY(version) (0x6e70 - 4 + (version))

/* Of a device's link and its pin: "if2" is the host's, "n4711-if2" that of the namespace with this cookie; "if7-in" is the way in of a
 * device. */
#define NAME_SIZE 40

static void device_name(const struct namespace *ns, unsigned ifindex, bool in, char name[static NAME_SIZE])
{
	const char *way = in ? "-in" : "";

	if (ns)
		snprintf(name, NAME_SIZE, "n%llu-if%u%s", (unsigned long long)ns->pub.cookie, ifindex, way);
	else
		snprintf(name, NAME_SIZE, "if%u%s", ifindex, way);
}

/* The namespace that a name tells, 0 for the host's. False: it is none of ours. */
static bool device_name_read(const char *name, uint64_t *ret_cookie, unsigned *ret_ifindex)
{
	unsigned long long cookie = 0;
	int end = 0;

	if (sscanf(name, "if%u%n", ret_ifindex, &end) != 1 &&
	    sscanf(name, "n%llu-if%u%n", &cookie, ret_ifindex, &end) != 2)
		return false;
	if (name[end] && strcmp(name + end, "-in") != 0)
		return false;
	*ret_cookie = cookie;
	return true;
}

static int device_attach_tcx(struct kernel *kernel, const struct namespace *ns, unsigned ifindex, bool in)
{
	char path[FS_PATH_SIZE], name[NAME_SIZE];
	const struct link_want want = { path, LINK_DEVICE, ifindex, (int)ifindex,
					in ? NP_ATTACH_TCX_INGRESS : NP_ATTACH_TCX_EGRESS };
	int r;

	device_name(ns, ifindex, in, name);
	r = fs_path(path, "%s/devices/%s", kernel->pins, name);
	return r < 0 ? r : link_hold(kernel, name, kernel->skel->progs.np_device, &want);
}

static int device_attach_clsact(struct kernel *kernel, unsigned ifindex, bool in)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = in ? BPF_TC_INGRESS : BPF_TC_EGRESS);
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
	_free_ struct interface *devices = NULL;
	size_t n = 0;

	interfaces_list(&devices, &n);
	for (size_t i = 0; i < n; i++) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)devices[i].index, .attach_point = BPF_TC_EGRESS);
		LIBBPF_OPTS(bpf_tc_opts, opts, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY(version));

		bpf_tc_detach(&hook, &opts);
		hook.attach_point = BPF_TC_INGRESS;
		bpf_tc_detach(&hook, &opts);
	}
}

/* Forgets pins of devices that are gone, whose links are empty: hosts that make and drop veth pairs would collect them. there: those
 * that there are, in the namespace with this cookie. */
static void devices_forget(struct kernel *kernel, uint64_t cookie, const struct interface *there, size_t n)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *dir = NULL;

	fs_path(path, "%s/devices", kernel->pins);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		unsigned index;
		uint64_t of;
		size_t i = 0;

		if (!device_name_read(e->d_name, &of, &index) || of != cookie)
			continue;
		while (i < n && there[i].index != index)
			i++;
		if (i < n)
			continue;
		unlinkat(dirfd(dir), e->d_name, 0);
		place_forget(kernel, e->d_name);
	}
}

static int device_attach(struct kernel *kernel, const struct namespace *ns, unsigned ifindex, bool in)
{
	int r = -EINVAL;

	if (kernel->features.tcx)
		r = device_attach_tcx(kernel, ns, ifindex, in);
	if (r != -EINVAL)
		return r;
	kernel->features.tcx = false;
	return device_attach_clsact(kernel, ifindex, in);
}

/* -- devices that lead to sandboxes ------------------------------------------------------------------ */

static int namespace_number(struct namespace *ns)
{
	if (ns->number < 0)
		ns->number = interfaces_netns_number(ns->pub.fd);
	return ns->number;
}

static int number_compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* The numbers of the namespaces that sandboxes live in, in order. Asked for behind the list of devices, which gives them out. */
static int numbers_list(const struct kernel *kernel, int **ret, size_t *ret_n)
{
	_free_ int *list = NULL;
	size_t n = 0, room = 0;

	for (struct namespace *ns = namespace_next(kernel, NULL); ns; ns = namespace_next(kernel, ns)) {
		if (!ns->pub.wired || namespace_number(ns) < 0)
			continue;
		if (ARRAY_RESERVE(list, room, n + 1) < 0)
			return -ENOMEM;
		list[n++] = ns->number;
	}
	if (n)
		qsort(list, n, sizeof(*list), number_compare);
	*ret = take_ptr(list);
	*ret_n = n;
	return 0;
}

/* The host's end of a pair that leads to a sandbox: of a way out that it has of its own, or of a container's network. What comes in
 * there still has its socket, and has waited in a queue, or for a CPU, since it was judged last: it is judged once more before the
 * host takes it for its own to forward. */
static bool device_leads_in(const struct interface *device, const int *numbers, size_t n)
{
	if (!strncmp(device->name, WAY_OUT_PREFIX, strlen(WAY_OUT_PREFIX)))
		return true;
	return n && device->peer_netns >= 0 &&
	       bsearch(&device->peer_netns, numbers, n, sizeof(*numbers), number_compare);
}

/* ns NULL: the host's. The caller is there. */
static int devices_attach_in(struct kernel *kernel, struct namespace *ns, unsigned *ret_count)
{
	uint64_t *seen = ns ? &ns->devices_seen : &kernel->devices_seen, mark;
	_free_ struct interface *devices = NULL;
	_free_ int *numbers = NULL;
	size_t n = 0, n_numbers = 0;
	int result = interfaces_list(&devices, &n);
	const bool all = result == 0;

	if (result >= 0 && !ns)
		result = numbers_list(kernel, &numbers, &n_numbers);
	if (result < 0)
		return result;
	result = 0;
	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		int r = device_attach(kernel, ns, devices[i].index, false);

		if (r == 0 && !ns && device_leads_in(&devices[i], numbers, n_numbers))
			r = device_attach(kernel, ns, devices[i].index, true);
		if (r == -ENODEV)
			continue; /* gone in the meantime */
		if (r < 0) {
			log_error("device %s: cannot attach np_device: %s", devices[i].name, strerror(-r));
			result = r;
			continue;
		}
		(*ret_count)++;
	}
	mark = all ? hash_mark(devices, n * sizeof(*devices)) : 0;
	/* Else none has gone; or one that was missed is there all the same and keeps its program: netlink has more to tell. */
	if (all && *seen != mark)
		devices_forget(kernel, ns ? ns->pub.cookie : 0, devices, n);
	*seen = mark;
	return result;
}

int devices_attach(struct kernel *kernel)
{
	return devices_attach_in(kernel, NULL, &kernel->devices);
}

int kernel_devices_look(struct kernel *kernel)
{
	return devices_attach(kernel);
}

/* -- watching them -------------------------------------------------------------------------------- */

static int netlink_open(void)
{
	struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

static void netlink_drain(int fd)
{
	char scratch[16384];

	while (recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		errno = 0;
}

static void on_netlink(void *data, uint32_t events)
{
	struct kernel *kernel = data;

	(void)events;
	netlink_drain(kernel->netlink_fd);
	devices_attach(kernel);
	if (addresses_update(kernel, NULL) < 0)
		log_warning("the table of the host's addresses is incomplete");
}

int devices_start(struct kernel *kernel)
{
	int r;

	/* Listen before the first look, so that nothing falls between. */
	kernel->netlink_fd = netlink_open();
	if (kernel->netlink_fd < 0)
		return kernel->netlink_fd;
	r = devices_attach(kernel);
	if (r == 0)
		r = addresses_update(kernel, NULL);
	if (r == 0)
		r = loop_watch(kernel->config.loop, kernel->netlink_fd, EPOLLIN, on_netlink, kernel);
	return r;
}

/* -- containers' ----------------------------------------------------------------------------------- */

static int container_look(void *data)
{
	struct namespace *ns = data;
	unsigned count;
	int r = devices_attach_in(ns->kernel, ns, &count);

	addresses_update(ns->kernel, ns);
	return r;
}

static int container_open(void *data)
{
	struct namespace *ns = data;

	ns->netlink_fd = netlink_open();
	return ns->netlink_fd < 0 ? ns->netlink_fd : container_look(ns);
}

static void on_container(void *data, uint32_t events)
{
	struct namespace *ns = data;

	(void)events;
	netlink_drain(ns->netlink_fd);
	devices_follow(ns);
}

int devices_follow(struct namespace *ns)
{
	return netns_call(ns->pub.fd, container_look, ns);
}

/* Those of the host's devices that lead there; the list is what gives the namespace its number. */
static int devices_lead_in(struct namespace *ns)
{
	_free_ struct interface *devices = NULL;
	size_t n = 0;
	int r = interfaces_list(&devices, &n);

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (devices[i].peer_netns >= 0 && devices[i].peer_netns == namespace_number(ns)) {
			r = device_attach(ns->kernel, NULL, devices[i].index, true);
			r = r == -ENODEV ? 0 : r; /* gone in the meantime */
		}
	return r < 0 ? r : 0;
}

int devices_watch(struct namespace *ns)
{
	int r = netns_call(ns->pub.fd, container_open, ns);

	if (r == 0)
		r = devices_lead_in(ns);
	return r < 0 ? r : loop_watch(ns->kernel->config.loop, ns->netlink_fd, EPOLLIN, on_container, ns);
}

static int container_detach_clsact(void *data)
{
	const unsigned *version = data;

	devices_detach_clsact(*version);
	return 0;
}

void devices_detach_clsact_in(int netns, unsigned version)
{
	netns_call(netns, container_detach_clsact, &version);
}

void devices_detach_old_clsact(struct kernel *kernel, unsigned version)
{
	for (struct namespace *ns = namespace_next(kernel, NULL); ns; ns = namespace_next(kernel, ns))
		if (ns->pub.wired && !kernel->features.tcx)
			devices_detach_clsact_in(ns->pub.fd, version);
}

void devices_leave(struct namespace *ns)
{
	if (!ns->kernel->features.tcx)
		devices_detach_clsact_in(ns->pub.fd, NP_ABI_VERSION);
	devices_forget(ns->kernel, ns->pub.cookie, NULL, 0);
	addresses_leave(ns->kernel, ns->pub.cookie);
}

void devices_forget_gone(struct kernel *kernel, const __u64 *but, size_t n_but)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *dir = NULL;

	fs_path(path, "%s/devices", kernel->pins);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		unsigned index;
		uint64_t of;

		if (device_name_read(e->d_name, &of, &index) && namespace_is_gone(kernel, of, but, n_but))
			unlinkat(dirfd(dir), e->d_name, 0); /* nobody of us has held it so far */
	}
}
