/* SPDX-License-Identifier: MIT */
/* The calls into np_raise and np_retire, and reading the frozen map back. */
#include <errno.h>
#include <string.h>

#include "kernel/internal.h"

static int run_syscall_program(const struct kernel *kernel, const struct bpf_program *prog, void *ctx, uint32_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = size);

	if (bpf_prog_test_run_opts(program_fd(kernel, prog), &opts) < 0)
		return -errno;
	return (int)opts.retval; /* the program's own 0 or -errno */
}

int gate_raise(void *ctx, const struct gate_cgroup *cg, const struct np_rung *rung, const char *session,
	       struct np_rung *ret)
{
	struct kernel *kernel = ctx;
	struct np_raise call = {
		.version = NP_ABI_VERSION,
		.depth = cg->depth,
		.cgroup_id = cg->id,
		.rung = *rung,
	};
	int r;

	strncpy(call.session, session, sizeof(call.session) - 1);
	r = run_syscall_program(kernel, kernel->skel->progs.np_raise, &call, sizeof(call));
	if (r < 0)
		return r;
	*ret = call.rung;
	return 0;
}

int gate_retire(void *ctx, uint64_t cgroup_id)
{
	struct kernel *kernel = ctx;
	struct np_retire call = { .version = NP_ABI_VERSION, .cgroup_id = cgroup_id };
	int r = run_syscall_program(kernel, kernel->skel->progs.np_retire, &call, sizeof(call));

	if (r && r != -ENOENT)
		return r;
	kernel->sweep_due = true;
	return 0;
}

int gate_each(void *ctx, int (*fn)(void *data, const struct gate_sandbox *sandbox), void *data)
{
	struct kernel *kernel = ctx;
	int fd = bpf_map__fd(kernel->skel->maps.np_sandboxes);
	__u64 *keys = calloc(NP_SANDBOXES_MAX, sizeof(*keys)), key = 0;
	/* Usually nothing is. */
	bool due = bpf_map_get_next_key(bpf_map__fd(kernel->skel->maps.np_cut_targets), NULL, &key) == 0;
	size_t n = 0;
	int r = 0;

	if (!keys)
		return -ENOMEM;
	/* All keys first: fn may retire entries, and an iteration would then start over. */
	while (n < NP_SANDBOXES_MAX && bpf_map_get_next_key(fd, n ? &key : NULL, &key) == 0)
		keys[n++] = key;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct gate_sandbox sandbox = { .cgroup_id = keys[i] };
		struct np_sandbox value;

		if (bpf_map_lookup_elem(fd, &keys[i], &value) < 0)
			continue;
		sandbox.rung = value.rung;
		sandbox.uncut = due && cut_is_due(kernel, keys[i]);
		memcpy(sandbox.session, value.session, sizeof(sandbox.session));
		sandbox.session[sizeof(sandbox.session) - 1] = '\0';
		r = fn(data, &sandbox);
	}
	free(keys);
	return r < 0 ? r : 0;
}

static int sandbox_read(const struct kernel *kernel, uint64_t cgroup_id, struct np_sandbox *ret)
{
	return bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_sandboxes), &cgroup_id, ret) < 0 ? -errno : 0;
}

int gate_read(void *ctx, uint64_t cgroup_id, struct np_rung *ret)
{
	struct kernel *kernel = ctx;
	struct np_sandbox value;
	int r = sandbox_read(kernel, cgroup_id, &value);

	if (r == 0)
		*ret = value.rung;
	return r;
}

int kernel_meter(struct kernel *kernel, uint64_t cgroup_id, struct np_meter *ret)
{
	struct np_sandbox value;
	int r = sandbox_read(kernel, cgroup_id, &value);

	if (r == 0)
		*ret = value.meter;
	return r;
}
