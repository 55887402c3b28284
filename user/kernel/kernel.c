/* SPDX-License-Identifier: MIT */
/* Opening and closing the kernel side. */
#include "kernel/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/fs.h"
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
	if (r < 0) {
		snprintf(problem, 512, "cannot make the cgroup %.400s: %s", path, strerror(-r));
		return r;
	}
	/* Another one with other pins would have programs of its own on it. */
	r = slice_lock(path, &kernel->slice_lock_fd, problem);
	if (r < 0)
		return r;
	kernel->slice_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (kernel->slice_fd < 0) {
		r = -errno;
		snprintf(problem, 512, "%.400s: %s", path, strerror(-r));
	}
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
		{ inspector_clear, "end the processes that an earlier daemon left in the inspector's cgroup" },
		{ object_pin, "pin the programs" },
		{ watch_start, "watch cgroups" },
		{ addresses_open, "read the table of addresses" },
		{ namespaces_open, "find the network namespaces of sandboxes" },
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
	kernel->lists.diag_fd = kernel->lists.timer_fd = kernel->tail.wake_fd = -1;
	kernel->lock_fd = kernel->slice_lock_fd = kernel->slice_fd = kernel->netlink_fd = kernel->inotify_fd =
		kernel->cut_tcp = kernel->cut_udp = -1;
	r = netns_cookie(&kernel->netns);
	if (r == 0)
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
	ring_buffer__free(kernel->ring);
	tables_close(kernel);
	tail_close(kernel);
	lists_close(kernel);
	namespaces_close(kernel);
	addresses_close(kernel);
	cleanup_close(&kernel->cut_tcp);
	cleanup_close(&kernel->cut_udp);
	watch_free(kernel);
	cleanup_close(&kernel->netlink_fd);
	places_close(kernel);
	programs_close(kernel);
	gate_bpf__destroy(kernel->skel);
	cleanup_close(&kernel->slice_fd);
	cleanup_close(&kernel->slice_lock_fd);
	cleanup_close(&kernel->lock_fd);
	free(kernel);
}

bool kernel_took_over(const struct kernel *kernel)
{
	return kernel->took_over;
}

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
