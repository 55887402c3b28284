/* SPDX-License-Identifier: MIT */
/* What this kernel can do, found by doing it. */
#include <errno.h>
#include <linux/landlock.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <bpf/btf.h>

#include "base/json.h"
#include "kernel/internal.h"

/* r0 = 1; exit */
static const struct bpf_insn allow[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static bool program_loads(enum bpf_prog_type type, int attach_type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)attach_type);
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

/* Two sockets, connected by a name that the kernel makes up: 0, or -errno of connect(). */
static int sockets_connect(int listener, int client)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);

	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr.sun_family)) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
		return -errno;
	return connect(client, (struct sockaddr *)&addr, len) < 0 ? -errno : 0;
}

/* An LSM program can be loaded and attached although the kernel was started without BPF among its security modules:
 * then nobody asks it. So one is attached that refuses a single socket of ours, and that is tried. */
static bool lsm_works(const struct btf *btf)
{
	_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	_close_ int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	_close_ int prog = -1, link = -1;
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	int id = btf__find_by_name_kind(btf, "bpf_lsm_unix_stream_connect", BTF_KIND_FUNC);

	if (id <= 0 || listener < 0 || client < 0 || getsockopt(client, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0)
		return false;
	{
		const struct bpf_insn refuse[] = {
			/* r1 = the first argument, a struct sock; r0 = its cookie */
			{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_1 },
			{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_socket_cookie },
			/* r2 = ours; if r0 == r2 return -EPERM */
			{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_2, .imm = (int32_t)cookie },
			{ .imm = (int32_t)(cookie >> 32) },
			{ .code = BPF_JMP | BPF_JEQ | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_2, .off = 2 },
			{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
			{ .code = BPF_JMP | BPF_EXIT },
			{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -EPERM },
			{ .code = BPF_JMP | BPF_EXIT },
		};
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_LSM_MAC,
			    .attach_btf_id = (uint32_t)id);

		prog = bpf_prog_load(BPF_PROG_TYPE_LSM, "np_probe", "GPL", refuse, ARRAY_SIZE(refuse), &opts);
	}
	link = prog < 0 ? -1 : bpf_raw_tracepoint_open(NULL, prog);
	return link >= 0 && sockets_connect(listener, client) == -EPERM;
}

#define FEATURES(X) X(unix_hooks) X(sock_destroy) X(casts) X(sees_cgroups) X(tcx) X(lsm)

unsigned features_bits(const struct features *f)
{
	unsigned bits = 0, bit = 1;

#define X(name) bits |= f->name ? bit : 0, bit <<= 1;
	FEATURES(X)
#undef X
	return bits;
}

struct features features_of_bits(unsigned bits)
{
	struct features f;

#define X(name) f.name = bits & 1, bits >>= 1;
	FEATURES(X)
#undef X
	return f;
}

void features_probe(struct features *ret)
{
	struct btf *btf = btf__load_vmlinux_btf();

	*ret = (struct features){
		.unix_hooks = program_loads(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, NP_ATTACH_UNIX_CONNECT) &&
			      program_loads(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, NP_ATTACH_UNIX_SENDMSG),
		.tcx = tcx_works(),
	};
	if (!btf)
		return;
	ret->sock_destroy = btf__find_by_name_kind(btf, "bpf_sock_destroy", BTF_KIND_FUNC) > 0;
	ret->casts = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	ret->sees_cgroups = btf__find_by_name_kind(btf, "bpf_cgroup_from_id", BTF_KIND_FUNC) > 0;
	ret->lsm = lsm_works(btf);
	btf__free(btf);
}

void feature_describe(struct buf *out, const char *name, bool present, const char *yes, const char *no)
{
	json_open_object(out, NULL);
	json_put_text(out, "feature", name, SIZE_MAX);
	json_put_bool(out, "present", present);
	json_put_text(out, "means", present ? yes : no, SIZE_MAX);
	json_close_object(out);
}

void features_describe(const struct features *f, struct buf *out)
{
	long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	char mount[4096];

	json_open_array(out, "features");
	feature_describe(out, "cgroup v2", cgroup_mount_find(mount) == 0, "sandboxes are cgroups; it is mounted",
			 "not mounted: netpawld cannot start");
	feature_describe(out, "BTF", access("/sys/kernel/btf/vmlinux", R_OK) == 0,
			 "the gate fits itself to this kernel", "no /sys/kernel/btf/vmlinux: netpawld cannot start");
	feature_describe(out, "tcx", f->tcx, "the last gate sits on every device as a link",
			 "clsact is used instead; another program may remove its filters");
	feature_describe(out, "bpf_sock_destroy", f->sock_destroy,
			 "open connections get an error at once when a session is raised",
			 "SOCK_DESTROY is used instead: the same, but slower");
	feature_describe(out, "connect_unix", f->unix_hooks,
			 f->lsm ? "unix sockets are judged by their names where BPF LSM is not there"
				: "a sandbox reaches only unix sockets that it opened itself; names that are not "
				  "certain are refused",
			 f->lsm ? "BPF LSM is used instead"
			 : landlock >= 6
				 ? "host unix sockets are hidden by netpawl run only; adopted cgroups reach them"
				 : "host unix sockets with a path are hidden by netpawl run only; abstract ones are "
				   "reached by every sandbox, whatever its mode");
	feature_describe(out, "bpf_cgroup_from_id", f->sees_cgroups,
			 "the kernel itself refuses to forget a living sandbox",
			 "only the daemon keeps a living sandbox from being forgotten and registered anew");
	feature_describe(out, "BPF LSM", f->lsm,
			 "a unix socket is judged when the kernel has found it: no race, by whatever name",
			 f->unix_hooks ? "unix sockets are judged by their names: a sandbox that sees a host's socket "
					 "(adopted cgroups, --bind) and renames directories at the right moment "
					 "reaches it in the end; a call to an own socket that would wait gets EAGAIN"
				       : "nothing judges unix sockets");
	feature_describe(out, "Landlock 6", landlock >= 6, "netpawl run shuts abstract unix sockets and signals twice",
			 f->lsm || f->unix_hooks ? "abstract unix sockets are shut by the gate alone"
						 : "nothing shuts the host's abstract unix sockets");
}
