/* SPDX-License-Identifier: MIT */
/* The host's ports: how many sandboxes may take of them, and the program that hides their listeners from callers
 * beyond the host. It sits on the network namespace, not on a cgroup. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "addr.h"
#include "base/fs.h"
#include "kernel/internal.h"
#include "ports.h"
#include "vocab/limits.h"

#define RANGE_PATH "/proc/sys/net/ipv4/ip_local_port_range"

uint32_t ports_share(void)
{
	unsigned first, last, ports = 28232; /* what Linux has unless somebody changed it */
	FILE *f = fopen(RANGE_PATH, "re");

	if (f && fscanf(f, "%u %u", &first, &last) == 2 && first <= last && last <= 65535)
		ports = last - first + 1;
	if (f)
		fclose(f);
	return ports - ports / NP_SOCKETS_SHARE;
}

/* Those of a predecessor: whoever used them speaks to nobody any more. */
static void forwards_forget(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_forwards);
	__u64 key;

	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		if (bpf_map_delete_elem(fd, &key) < 0)
			return;
}

/* np_inbound to our network namespace. Idempotent. */
static int ports_attach(struct kernel *kernel)
{
	_close_ int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct link_want want = { .kind = LINK_NETNS, .target_fd = netns, .attach_type = BPF_SK_LOOKUP };
	char path[FS_PATH_SIZE];
	struct stat st;
	int r;

	if (netns < 0 || fstat(netns, &st) < 0)
		return -errno;
	r = fs_path(path, "%s/links/net", kernel->pins);
	if (r == 0)
		r = fs_mkdir_all(path, 0700);
	if (r == 0)
		r = fs_path(path, "%s/links/net/np_inbound", kernel->pins);
	want.path = path;
	want.target = st.st_ino;
	return r < 0 ? r : link_hold(kernel, "net", kernel->skel->progs.np_inbound, &want);
}

int ports_guard(struct kernel *kernel)
{
	forwards_forget(kernel);
	return ports_attach(kernel);
}

/* A sweep walks all of np_holds, which takes most of a millisecond: so one a second, for however many sandboxes went. What is
 * left until then only waits, for the gate asks whether a socket stands. */
int ports_check(struct kernel *kernel)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (kernel->sweep_due)
		bpf_prog_test_run_opts(program_fd(kernel, kernel->skel->progs.np_sweep), &opts);
	kernel->sweep_due = false;
	return ports_attach(kernel);
}

/* Any, loopback, or an address of one of the devices there. */
static bool addr_is_own(struct kernel *kernel, uint64_t netns, const struct np_addr *addr)
{
	const struct np_own_addr key = { .netns = netns, .addr = *addr };
	__u8 kind = 0;

	if (np_addr_is_any(addr) || np_addr_is_loopback(addr))
		return true;
	return bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_host_addrs), &key, &kind) == 0 &&
	       kind == NP_ADDR_OWN;
}

int gate_listens(void *ctx, uint64_t cgroup_id, unsigned port, struct np_addr *ret)
{
	struct kernel *kernel = ctx;
	struct np_listens found = { .version = NP_ABI_VERSION,
				    .port = (uint16_t)port,
				    .cgroup_id = cgroup_id,
				    .netns = namespace_cookie(kernel, cgroup_id) };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &found, .ctx_size_in = sizeof(found)); /* and out */
	int r = lists_note(kernel);

	if (r < 0)
		return r;
	if (bpf_prog_test_run_opts(program_fd(kernel, kernel->skel->progs.np_listens), &opts) < 0)
		return -errno;
	if ((int)opts.retval < 0)
		return (int)opts.retval;
	if (!addr_is_own(kernel, found.netns,
			 &found.addr)) /* we would carry what the forward's clients say to beyond the host */
		return -ENOENT;
	*ret = found.addr;
	if (!found.addr.d[0] && !found.addr.d[1] && !found.v6only) /* [::] takes callers of both families */
		ret->w[2] = htonl(0xffff);
	return 0;
}

int gate_forward(void *ctx, uint64_t cookie, uint64_t cgroup_id)
{
	struct kernel *kernel = ctx;
	int fd = bpf_map__fd(kernel->skel->maps.np_forwards);

	return bpf_map_update_elem(fd, &cookie, &cgroup_id, BPF_NOEXIST) < 0 ? -errno : 0;
}

void gate_unforward(void *ctx, uint64_t cookie)
{
	struct kernel *kernel = ctx;

	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.np_forwards), &cookie);
}
