/* SPDX-License-Identifier: MIT */
/* Opening and closing the kernel side, and the interface that sessions use. */
#include "kernel/kernel.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "vocab/words.h"
#include "base/fs.h"
#include "base/json.h"
#include "kernel/internal.h"

/* The loader's own words, only for those who ask: callers get a sentence in `problem`. */
static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (!getenv("NETPAWL_DEBUG") || level == LIBBPF_DEBUG)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

void kernel_quiet(void)
{
	libbpf_set_print(print_libbpf);
}

static int on_ring(void *data, void *sample, size_t size)
{
	struct kernel *kernel = data;
	const struct np_event *event = sample;

	if (size >= sizeof(*event) && event->version == NP_ABI_VERSION)
		kernel->config.on_event(kernel->config.data, event);
	return 0;
}

static void on_ring_ready(void *data, uint32_t events)
{
	struct kernel *kernel = data;

	(void)events;
	ring_buffer__consume(kernel->ring);
}

void kernel_drain(struct kernel *kernel)
{
	ring_buffer__consume(kernel->ring);
}

static int ring_start(struct kernel *kernel)
{
	kernel->ring = ring_buffer__new(bpf_map__fd(kernel->skel->maps.np_events), on_ring, kernel, NULL);
	if (!kernel->ring)
		return -errno;
	return loop_watch(kernel->config.loop, ring_buffer__epoll_fd(kernel->ring), EPOLLIN, on_ring_ready, kernel);
}

static int slice_open(struct kernel *kernel, char problem[static 512])
{
	char path[FS_PATH_SIZE];
	int r = cgroup_mount_find(kernel->mount);

	if (r < 0) {
		snprintf(problem, 512, "no cgroup v2 file system is mounted");
		return r;
	}
	if (fs_path(path, "%s/%s", kernel->mount, kernel->config.slice) < 0)
		return -ENAMETOOLONG;
	r = cgroup_make(kernel->mount, path, &kernel->slice);
	if (r == 0 && kernel->slice.depth >= NP_DEPTH_MAX - 1)
		r = -ENAMETOOLONG;
	if (r < 0)
		snprintf(problem, 512, "cannot make the cgroup %.400s: %s", path, strerror(-r));
	return r;
}

/* The order matters: programs are on the slice before anything can be registered, maps are frozen before
 * programs are attached, and whatever a predecessor left stays attached until ours has taken its place. What an older
 * version left stays until kernel_upgrade_finish(). */
static int kernel_start(struct kernel *kernel, char problem[static 512])
{
	const struct {
		int (*step)(struct kernel *kernel);
		const char *words;
	} steps[] = {
		{ upgrade_attach, "attach to what an older gate holds" },
		{ tables_open, "map np_in_force" },
		{ ports_guard, "attach to the network namespace" },
		{ inspector_open, "make the inspector's cgroup" },
		{ object_pin, "pin the programs" },
		{ watch_start, "watch cgroups" },
		{ cut_open, "open the iterators" },
		{ ring_start, "read the event ring" },
		{ devices_start, "attach to the network devices" },
		{ build_note, "note which build this is" },
	};
	int r = slice_open(kernel, problem);

	if (r == 0)
		r = pins_open(kernel, problem);
	if (r < 0)
		return r;
	r = object_load(kernel, problem);
	if (r == 0)
		r = upgrade_copy(kernel, problem);
	if (r < 0) {
		/* An older gate enforces, and its own daemon must be able to start again: that meets no pins of ours. */
		if (kernel->took_over && !kernel->had_links)
			pins_remove_tree(kernel->pins);
		return r;
	}
	failpoint("gate_loaded");
	r = links_attach(kernel, &kernel->slice, "slice", false);
	failpoint("gate_attached");
	if (r < 0) {
		snprintf(problem, 512, "cannot attach to %.400s: %s", kernel->slice.path, strerror(-r));
		return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		r = steps[i].step(kernel);
		if (r < 0) {
			snprintf(problem, 512, "cannot %s: %s", steps[i].words, strerror(-r));
			return r;
		}
	}
	kernel->started = true;
	return 0;
}

int kernel_open(const struct kernel_config *config, struct kernel **ret, char problem[static 512])
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	int r;

	problem[0] = '\0';
	if (!kernel)
		return -ENOMEM;
	kernel_quiet();
	kernel->config = *config;
	kernel->lists.diag_fd = kernel->lists.timer_fd = -1;
	kernel->lock_fd = kernel->netlink_fd = kernel->inotify_fd = kernel->cut_tcp = kernel->cut_udp = -1;
	r = kernel_start(kernel, problem);
	if (r < 0) {
		if (!problem[0])
			snprintf(problem, 512, "%s", strerror(-r));
		kernel_close(kernel);
		return r;
	}
	if (!kernel->features.unix_hooks && !kernel->features.lsm)
		log_warning("this kernel has no hook for unix sockets: sandboxes reach the host's abstract ones. "
			    "See netpawl doctor");
	*ret = kernel;
	return 0;
}

void kernel_close(struct kernel *kernel)
{
	if (!kernel)
		return;
	loop_cancel(kernel->config.loop, &kernel->sweep);
	ring_buffer__free(kernel->ring);
	tables_close(kernel);
	lists_close(kernel);
	cleanup_close(&kernel->cut_tcp);
	cleanup_close(&kernel->cut_udp);
	watch_free(kernel);
	if (kernel->netlink_fd >= 0)
		close(kernel->netlink_fd);
	places_close(kernel);
	programs_close(kernel);
	gate_bpf__destroy(kernel->skel);
	if (kernel->lock_fd >= 0)
		close(kernel->lock_fd);
	free(kernel);
}

bool kernel_took_over(const struct kernel *kernel)
{
	return kernel->took_over;
}

/* -- the interface of session/gate.h ------------------------------------------ */

static int gate_cgroup_make(void *ctx, const char *id, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;
	char path[FS_PATH_SIZE];
	int r;

	if (fs_path(path, "%s/%s", kernel->slice.path, id) < 0)
		return -ENAMETOOLONG;
	r = cgroup_make(kernel->mount, path, ret);
	if (r == 0)
		watch_add(kernel, ret);
	return r;
}

static int gate_cgroup_inspect(void *ctx, const char *path, struct gate_cgroup *ret, struct gate_problem *ret_problem)
{
	return adopt_inspect(ctx, path, ret, ret_problem);
}

static int gate_cgroup_look(void *ctx, const struct gate_cgroup *cg, struct gate_problem *ret_problem)
{
	return adopt_look(ctx, cg, 0, ret_problem);
}

static int gate_cgroup_find(void *ctx, const char *path, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;
	int r = cgroup_look(kernel->mount, path, ret);

	if (r == 0)
		watch_add(kernel, ret);
	return r;
}

static int gate_raise(void *ctx, const struct gate_cgroup *cg, const struct np_rung *rung, const char *session,
		      struct np_rung *ret)
{
	return ratchet_raise(ctx, cg, rung, session, ret);
}

/* Name of an adopted cgroup's folder below links/. */
static void links_name(uint64_t cgroup_id, char name[static 32])
{
	snprintf(name, 32, "c%llu", (unsigned long long)cgroup_id);
}

static int gate_attach(void *ctx, const struct gate_cgroup *cg)
{
	char name[32];

	links_name(cg->id, name);
	lists_adopted(ctx, cg->id);
	return links_attach(ctx, cg, name, false);
}

static int gate_detach(void *ctx, const struct gate_cgroup *cg)
{
	char name[32];

	links_name(cg->id, name);
	links_detach(ctx, name);
	return 0;
}

static int gate_cut(void *ctx, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut)
{
	return cut_sandboxes(ctx, ids, n, why, ret_cut);
}

static int gate_orphans(void *ctx, const uint64_t *ids, size_t n, bool *ret_has)
{
	return cut_orphans_find(ctx, ids, n, ret_has);
}

static int gate_cgroup_remove(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx;
	return cgroup_remove(cg);
}

struct below {
	const char *prefix;
	int result;
};

static int below_remove(void *data, const struct gate_cgroup *cg)
{
	struct below *below = data;
	const char *name = strrchr(cg->path, '/');
	int r = name && !strncmp(name + 1, below->prefix, strlen(below->prefix)) ? cgroup_remove(cg) : 0;

	below->result = below->result ? below->result : r;
	return 0;
}

static int gate_cgroup_remove_below(void *ctx, const struct gate_cgroup *cg, const char *prefix)
{
	const struct kernel *kernel = ctx;
	struct below below = { .prefix = prefix };
	int r = cgroup_each_child(kernel->mount, cg, below_remove, &below);

	return r ? r : below.result;
}

static bool gate_cgroup_populated(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx;
	return cgroup_populated(cg);
}

static int gate_retire(void *ctx, uint64_t cgroup_id)
{
	struct kernel *kernel = ctx;
	int r = ratchet_retire(kernel, cgroup_id);

	if (r == 0)
		ports_sweep_later(kernel);
	return r;
}

static int gate_each(void *ctx, int (*fn)(void *data, const struct gate_sandbox *sandbox), void *data)
{
	return ratchet_each(ctx, fn, data);
}

static int gate_read(void *ctx, uint64_t cgroup_id, struct np_rung *ret)
{
	return ratchet_read(ctx, cgroup_id, ret);
}

static int gate_cgroup_by_id(void *ctx, uint64_t id, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;

	return cgroup_by_id(kernel->mount, id, ret);
}

static int gate_slice_each(void *ctx, int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	struct kernel *kernel = ctx;

	return cgroup_each_child(kernel->mount, &kernel->slice, fn, data);
}

static int gate_listens(void *ctx, uint64_t cgroup_id, unsigned port, struct np_addr *ret)
{
	return ports_listens(ctx, cgroup_id, (uint16_t)port, ret);
}

static int gate_forward(void *ctx, uint64_t cookie, uint64_t cgroup_id)
{
	return ports_forward(ctx, cookie, cgroup_id);
}

static void gate_unforward(void *ctx, uint64_t cookie)
{
	ports_unforward(ctx, cookie);
}

struct gate kernel_gate(struct kernel *kernel)
{
	return (struct gate){
		.ctx = kernel,
		.cgroup_make = gate_cgroup_make,
		.cgroup_inspect = gate_cgroup_inspect,
		.cgroup_look = gate_cgroup_look,
		.cgroup_find = gate_cgroup_find,
		.raise = gate_raise,
		.attach = gate_attach,
		.cut = gate_cut,
		.orphans = gate_orphans,
		.cgroup_remove = gate_cgroup_remove,
		.cgroup_remove_below = gate_cgroup_remove_below,
		.cgroup_populated = gate_cgroup_populated,
		.detach = gate_detach,
		.retire = gate_retire,
		.each = gate_each,
		.read = gate_read,
		.listens = gate_listens,
		.forward = gate_forward,
		.unforward = gate_unforward,
		.cgroup_by_id = gate_cgroup_by_id,
		.slice_each = gate_slice_each,
		.whole = gate_whole,
	};
}

/* -- questions ------------------------------------------------------------------ */

static int find_sandbox(void *data, uint64_t id)
{
	struct kernel *kernel = data;
	struct np_sandbox sandbox;

	return id == kernel->slice.id ||
	       bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_sandboxes), &id, &sandbox) == 0;
}

bool kernel_is_sandboxed(struct kernel *kernel, pid_t pid)
{
	return cgroup_each_above(kernel->mount, pid, find_sandbox, kernel) != 0;
}

/* The sum over processors of an entry; 0 when there is none. values has room for n of them. */
static uint64_t count_sum(int fd, const void *key, __u64 *values, int n)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(fd, key, values) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void describe_counts(struct kernel *kernel, struct buf *out)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(kernel->skel->maps.np_counts);
	_free_ __u64 *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;

	json_open_object(out, "refused");
	for (__u32 reason = 0; values && reason < NP_REASON_COUNT; reason++) {
		uint64_t sum = NP_REASON_REFUSES(reason) ? count_sum(fd, &reason, values, n) : 0;

		if (sum)
			json_put_number(out, reason_token(reason), sum);
	}
	json_close_object(out);
}

static void describe_errors(struct kernel *kernel, struct buf *out)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(kernel->skel->maps.np_errors);
	_free_ __u64 *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;
	struct np_error_key key, *previous = NULL;

	json_open_array(out, "helper_errors");
	while (values && bpf_map_get_next_key(fd, previous, &key) == 0) {
		uint64_t sum = count_sum(fd, &key, values, n);

		previous = &key;
		if (!sum)
			continue;
		json_open_object(out, NULL);
		json_put_number(out, "place", (uint64_t)key.place);
		json_put_number(out, "errno", (uint64_t)-key.error);
		json_put_number(out, "count", sum);
		json_close_object(out);
	}
	json_close_array(out);
}

void kernel_describe(struct kernel *kernel, struct buf *out)
{
	json_put_text(out, "cgroup", kernel->slice.path, FS_PATH_SIZE);
	json_put_text(out, "pins", kernel->pins, FS_PATH_SIZE);
	json_put_number(out, "devices", kernel->devices);
	describe_counts(kernel, out);
	describe_errors(kernel, out);
	json_put_number(out, "cut_late", kernel->lists.missed);
	features_describe(&kernel->features, out);
}

void kernel_probe(struct buf *out)
{
	struct features features;

	kernel_quiet();
	features_probe(&features);
	features_describe(&features, out);
}
