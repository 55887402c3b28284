/* SPDX-License-Identifier: MIT */
/*
 * The least that a gate made of BPF programs can cost: programs that only say yes, on the hooks that the gate uses.
 *
 *   empty CGROUP      says "ready"; each line on stdin is answered by "RUN-TIME-NS RUN-COUNT" of all of them
 *
 * The device programs go on every device of the network namespace that it runs in, and the one of look-ups on that. All go away with
 * this process.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>

#include "bench.h"

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS; older headers have no name for it */

static const struct {
	enum bpf_prog_type type;
	unsigned attach;
	int answer;
} hooks[] = {
	{ BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, 1 },
	{ BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS, 1 },
	{ BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, 1 },
	{ BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_RELEASE, 1 },
	{ BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT, 1 },
	{ BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_SENDMSG, 1 },
	{ BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS, 1 },
	{ BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP, SK_PASS },
	{ BPF_PROG_TYPE_SCHED_CLS, TCX_EGRESS, -1 },
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

static int progs[HOOKS];

static int load(unsigned type, unsigned attach, int answer)
{
	const struct bpf_insn body[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = answer },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = type == BPF_PROG_TYPE_SCHED_CLS ? 0 : (enum bpf_attach_type)attach);

	return bpf_prog_load((enum bpf_prog_type)type, "np_bench_empty", "GPL", body, 2, &options);
}

static void attach_to(size_t hook, int target)
{
	if (bpf_link_create(progs[hook], target, (enum bpf_attach_type)hooks[hook].attach, NULL) < 0)
		err(1, "empty program, attach type %u", hooks[hook].attach);
}

int main(int argc, char **argv)
{
	int cgroup = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct if_nameindex *devices = if_nameindex();
	char line[16];

	if (cgroup < 0 || netns < 0 || !devices)
		errx(2, "usage: empty CGROUP");
	for (size_t i = 0; i < HOOKS; i++) {
		progs[i] = load(hooks[i].type, hooks[i].attach, hooks[i].answer);
		if (progs[i] < 0)
			err(1, "empty program, type %u", hooks[i].type);
		if (hooks[i].attach != TCX_EGRESS)
			attach_to(i, hooks[i].attach == BPF_SK_LOOKUP ? netns : cgroup);
		for (struct if_nameindex *d = devices; hooks[i].attach == TCX_EGRESS && d->if_index; d++)
			attach_to(i, (int)d->if_index);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long long ns = 0, runs = 0;

		for (size_t i = 0; i < HOOKS; i++) {
			struct bpf_prog_info info = { 0 };
			__u32 len = sizeof(info);

			if (bpf_obj_get_info_by_fd(progs[i], &info, &len) < 0)
				err(1, "info");
			ns += info.run_time_ns;
			runs += info.run_cnt;
		}
		printf("%llu %llu\n", ns, runs);
		fflush(stdout);
	}
	return 0;
}
