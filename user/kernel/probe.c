/* SPDX-License-Identifier: MIT */
/* What this kernel can do, found by doing it. */
#include <errno.h>
#include <linux/landlock.h>
#include <net/if.h>
#include <string.h>
#include <sys/syscall.h>

#include <bpf/btf.h>

#include "kernel/internal.h"

/* r0 = 1; exit */
static const struct bpf_insn allow[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static bool program_loads(enum bpf_prog_type type, int attach_type, uint32_t attach_btf_id)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)attach_type,
		    .attach_btf_id = attach_btf_id);
	_close_ int fd = bpf_prog_load(type, "np_probe", "GPL", allow, ARRAY_SIZE(allow), &opts);

	return fd >= 0;
}

/* A tcx link on lo, gone again at once. */
static bool tcx_works(void)
{
	static const struct bpf_insn next[] = {
		{ .code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	_close_ int prog = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "np_probe", "GPL", next, ARRAY_SIZE(next), NULL);
	_close_ int link = -1;

	if (prog < 0)
		return false;
	link = bpf_link_create(prog, (int)if_nametoindex("lo"), (enum bpf_attach_type)NP_ATTACH_TCX_EGRESS, NULL);
	return link >= 0;
}

void features_probe(struct features *ret)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id;

	*ret = (struct features){
		.unix_hooks = program_loads(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, NP_ATTACH_UNIX_CONNECT, 0) &&
			      program_loads(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, NP_ATTACH_UNIX_SENDMSG, 0),
		.tcx = tcx_works(),
	};
	if (!btf)
		return;
	ret->sock_destroy = btf__find_by_name_kind(btf, "bpf_sock_destroy", BTF_KIND_FUNC) > 0;
	ret->casts = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	ret->sees_cgroups = btf__find_by_name_kind(btf, "bpf_cgroup_from_id", BTF_KIND_FUNC) > 0;
	id = btf__find_by_name_kind(btf, "bpf_lsm_socket_create", BTF_KIND_FUNC);
	ret->lsm_cgroup = id > 0 && program_loads(BPF_PROG_TYPE_LSM, BPF_LSM_CGROUP, (uint32_t)id);
	btf__free(btf);
}

static void feature_describe(struct buf *out, bool *first, const char *name, bool present, const char *yes,
			     const char *no)
{
	buf_printf(out, "%s{\"feature\":\"%s\",\"present\":%s,\"means\":\"%s\"}", *first ? "" : ",", name,
		   present ? "true" : "false", present ? yes : no);
	*first = false;
}

void features_describe(const struct features *f, struct buf *out)
{
	long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	char mount[4096];
	bool first = true;

	buf_puts(out, "[");
	feature_describe(out, &first, "cgroup v2", cgroup_mount_find(mount) == 0,
			 "sandboxes are cgroups; it is mounted", "not mounted: netpawld cannot start");
	feature_describe(out, &first, "BTF", access("/sys/kernel/btf/vmlinux", R_OK) == 0,
			 "the gate fits itself to this kernel", "no /sys/kernel/btf/vmlinux: netpawld cannot start");
	feature_describe(out, &first, "tcx", f->tcx, "the last gate sits on every device as a link",
			 "clsact is used instead; another program may remove its filters");
	feature_describe(out, &first, "bpf_sock_destroy", f->sock_destroy,
			 "open connections get an error at once when a session is raised",
			 "SOCK_DESTROY is used instead: the same, but slower");
	feature_describe(out, &first, "connect_unix", f->unix_hooks,
			 "a sandbox reaches only unix sockets that it opened itself",
			 landlock >= 6 ? "host unix sockets are hidden by netpawl run only; adopted cgroups reach them"
				       : "host unix sockets with a path are hidden by netpawl run only; abstract ones "
					 "are reached by every sandbox, whatever its mode");
	feature_describe(out, &first, "bpf_cgroup_from_id", f->sees_cgroups,
			 "the kernel itself refuses to forget a living sandbox",
			 "only the daemon keeps a living sandbox from being forgotten and registered anew");
	feature_describe(
		out, &first, "BPF LSM", f->lsm_cgroup, "programs of this kind load; this version does not use them yet",
		"exotic socket families are shut by seccomp in netpawl run; adopted cgroups must shut them themselves");
	feature_describe(out, &first, "Landlock 6", landlock >= 6,
			 "netpawl run shuts abstract unix sockets and signals twice",
			 f->unix_hooks ? "abstract unix sockets are shut by the connect_unix hook alone"
				       : "nothing shuts the host's abstract unix sockets");
	buf_puts(out, "]");
}
