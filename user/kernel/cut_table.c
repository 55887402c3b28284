/* SPDX-License-Identifier: MIT */
/*
 * Cutting by np_sockets, the table of each sandbox's own sockets: why it is complete is in cut.h. The host may have a
 * hundred thousand sockets; an escalation waits for those of its sandbox only.
 *
 * What holds the bytes back is neither this table nor the other passes: the packet layer does, from the raise on, whatever
 * is found here. A cut tells the sandbox's programs, and waits for what lay in devices' queues. So that a mistake in the table does not
 * stay a secret, the host's tables are looked at all the same, later and off the path: what is found then is cut, and counted
 * (`missed`).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "kernel/internal.h"
#include "kernel/sock_diag.h"
#include "vocab/limits.h"

#define RECHECK_AT_ONCE	 8  /* network namespaces, of 1 to 5 ms each ... */
#define RECHECK_PAUSE_MS 20 /* ... and what else waits has its turn */

#define ORDERS_SIZE (NP_CUT_ORDERS * sizeof(struct np_cut_order))

/* How many of them are looked at at once: each in a network namespace of its own is a pass over that one's tables, for which the
 * loop waits. */
static size_t recheck_some(struct kernel *kernel)
{
	const struct cut_lists *lists = &kernel->lists;
	size_t n = 0;

	for (unsigned namespaces = 0; n < lists->n_recheck; n++)
		if (kernel_netns_find(kernel, lists->recheck[n]) && ++namespaces > RECHECK_AT_ONCE)
			break;
	return n;
}

/* What stays on this host is left out: a sandbox goes on with connections to itself, and between two looks at both of its
 * ends there may be new ones. And so are UDP sockets without a peer, each datagram of which is judged. */
static void lists_recheck(struct kernel *kernel)
{
	struct cut_lists *lists = &kernel->lists;
	struct cut_job job = { .ids = lists->recheck, .n = recheck_some(kernel), .why = GATE_CUT_RELOADED };
	struct np_cut_state state = { 0 };
	int r = cut_name(kernel, &job);

	if (r == 0)
		r = cut_pass(kernel, &job, NP_CUT_LOOK, true, &state);
	cut_unname(kernel, &job);
	lists->n_recheck -= job.n;
	memmove(lists->recheck, lists->recheck + job.n, lists->n_recheck * sizeof(*lists->recheck));
	if (state.remembered)
		cut_forget_flows(kernel);
	if (r < 0)
		log_error("open connections could not be looked for once more: %s", strerror(-r));
	if (r < 0 || !state.destroyed)
		return;
	lists->missed += state.destroyed;
	log_warning("%u open connections were cut late: they were not in np_sockets", state.destroyed);
}

static void recheck_in(struct kernel *kernel, unsigned ms)
{
	const struct itimerspec soon = { .it_value = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L } };

	timerfd_settime(kernel->lists.timer_fd, 0, &soon, NULL);
}

static void on_recheck(void *data, uint32_t events)
{
	struct kernel *kernel = data;
	uint64_t count;

	(void)events;
	if (read(kernel->lists.timer_fd, &count, sizeof(count)) < 0)
		return;
	if (!kernel->tail.n) /* what is about to be ended is not missed */
		lists_recheck(kernel);
	if (kernel->lists.n_recheck)
		recheck_in(kernel, RECHECK_PAUSE_MS);
}

/* -- whether they are complete ------------------------------------------------------------------- */

/* PIN_DIR/v8/noted, a symbolic link as PIN_DIR/v8/build is one: since a pass over the host's tables no program has come to a cgroup.
 * The programs go on noting while no daemon runs, so that the next one of the same build, which finds all of them in their places, does
 * not have to look through the tables of every network namespace. Gone before the first program is attached: a crash leaves none. */
static void mark_path(const struct kernel *kernel, char path[static FS_PATH_SIZE])
{
	fs_path(path, "%s/noted", kernel->pins);
}

static void mark_remove(struct kernel *kernel)
{
	char path[FS_PATH_SIZE];

	mark_path(kernel, path);
	unlink(path);
	kernel->lists.marked = false;
}

void lists_unsure(struct kernel *kernel)
{
	kernel->lists.attached++;
	mark_remove(kernel);
}

static void lists_sure(struct kernel *kernel)
{
	char path[FS_PATH_SIZE];

	mark_path(kernel, path);
	if (!kernel->lists.marked)
		kernel->lists.marked = symlink("all", path) == 0 || errno == EEXIST;
}

static bool were_sure(const struct kernel *kernel)
{
	char path[FS_PATH_SIZE];

	mark_path(kernel, path);
	return kernel->same_build && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void note_in_time(void *data)
{
	struct kernel *kernel = data;

	lists_note(kernel);
}

int lists_open(struct kernel *kernel)
{
	struct cut_lists *lists = &kernel->lists;
	void *orders = mmap(NULL, ORDERS_SIZE, PROT_READ, MAP_SHARED, bpf_map__fd(kernel->skel->maps.np_cut_orders), 0);
	int r;

	if (orders == MAP_FAILED)
		return -errno;
	lists->orders = orders;
	lists->diag_fd = diag_open();
	if (lists->diag_fd < 0)
		return lists->diag_fd;
	lists->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (lists->timer_fd < 0)
		return -errno;
	r = loop_watch(kernel->config.loop, lists->timer_fd, EPOLLIN, on_recheck, kernel);
	if (r < 0)
		return r;
	/* Programs of another build may have run until now, and adopted cgroups get ours only when the record is read: the
	 * loop's first moment comes after that. A cut that comes before does it itself. */
	lists->note.fn = note_in_time;
	lists->note.data = kernel;
	lists->marked = were_sure(kernel);
	if (!lists->marked)
		lists_doubt(kernel);
	return 0;
}

void lists_doubt(struct kernel *kernel)
{
	mark_remove(kernel);
	kernel->lists.all_unnoted = true;
	if (kernel->lists.note.fn)
		loop_later(kernel->config.loop, &kernel->lists.note);
}

void lists_close(struct kernel *kernel)
{
	struct cut_lists *lists = &kernel->lists;

	loop_cancel(kernel->config.loop, &lists->note);
	if (lists->orders)
		munmap((void *)lists->orders, ORDERS_SIZE);
	cleanup_close(&lists->diag_fd);
	if (lists->timer_fd >= 0)
		loop_unwatch(kernel->config.loop, lists->timer_fd);
	cleanup_close(&lists->timer_fd);
}

void lists_adopted(struct kernel *kernel, uint64_t cgroup_id)
{
	struct cut_lists *lists = &kernel->lists;

	if (lists->n_unnoted == ARRAY_SIZE(lists->unnoted))
		lists->all_unnoted = true;
	else
		lists->unnoted[lists->n_unnoted++] = cgroup_id;
}

/* A new map, while the notes with the sockets are of another one? */
static bool sockets_are_empty(struct kernel *kernel)
{
	struct np_socket_key key;

	return bpf_map_get_next_key(bpf_map__fd(kernel->skel->maps.np_sockets), NULL, &key) < 0;
}

int lists_note(struct kernel *kernel)
{
	struct cut_lists *lists = &kernel->lists;
	struct cut_job job = {
		.ids = lists->unnoted,
		.n = lists->n_unnoted,
		.why = GATE_CUT_RELOADED,
		.all = !lists->all_unnoted	   ? 0
		       : sockets_are_empty(kernel) ? NP_CUT_ALL_ANEW
						   : 1,
	};
	struct np_cut_state state;
	int r;

	if (!job.all && !job.n)
		return 0;
	r = cut_name(kernel, &job);
	if (r == 0)
		r = cut_pass(kernel, &job, NP_CUT_NOTE, true, &state);
	cut_unname(kernel, &job);
	if (r < 0)
		return r;
	lists->all_unnoted = false;
	lists->n_unnoted = 0;
	lists_sure(kernel);
	return 0;
}

/* A socket of the host that calls into one of these sandboxes (netpawl forward) is in no sandbox's list. */
static bool has_forwards(struct kernel *kernel, const struct cut_job *job)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_forwards);
	__u64 key = 0, id, *previous = NULL;

	while (bpf_map_get_next_key(fd, previous, &key) == 0) {
		previous = &key;
		if (bpf_map_lookup_elem(fd, &key, &id) < 0)
			return true;
		for (size_t i = 0; i < job->n; i++)
			if (job->ids[i] == id)
				return true;
	}
	return errno != ENOENT;
}

bool lists_serve(struct kernel *kernel, const struct cut_job *job)
{
	return !kernel->lists.off && lists_note(kernel) == 0 && !has_forwards(kernel, job);
}

/* Ends sockets that a walk has named, or counts them as left: when they would be too many, these and all that come after them. */
static void orders_do(struct kernel *kernel, const struct cut_job *job, uint64_t cgroup_id, unsigned n,
		      struct diag_result *done)
{
	unsigned had = done->destroyed + done->gone + done->failed;

	if (job->most && (kernel->lists.left || had + n > job->most))
		kernel->lists.left += n;
	else
		diag_destroy(namespace_diag(kernel, kernel_netns_find(kernel, cgroup_id)), kernel->lists.orders, n,
			     done);
}

/* The pass over the sockets of one sandbox. -EAGAIN: they are not all in its list, or would not go. */
static int lists_walk(struct kernel *kernel, const struct cut_job *job, uint64_t cgroup_id, struct diag_result *done)
{
	struct np_cut_walk call = {
		.version = NP_ABI_VERSION,
		.cgroup_id = cgroup_id,
		.most = job->most && job->most < NP_CUT_ORDERS ? job->most : NP_CUT_ORDERS,
	};
	struct np_cut_walk next;
	int n;

	do {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &call, .data_size_in = sizeof(call), .data_out = &next,
			    .data_size_out = sizeof(next));

		n = bpf_prog_test_run_opts(program_fd(kernel, kernel->skel->progs.np_cut_walk), &opts) < 0
			    ? -errno
			    : (int)opts.retval;
		if (n == -ENOENT) /* a sandbox that is gone */
			return 0;
		if (n < 0)
			return n;
		if (n > 0 && n <= NP_CUT_ORDERS)
			orders_do(kernel, job, cgroup_id, (unsigned)n, done);
		call.from = next.from;
	} while (call.from);
	return 0;
}

int lists_pass(struct kernel *kernel, const struct cut_job *job, uint32_t *destroyed, uint32_t *failed, uint32_t *gone)
{
	struct diag_result done = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->n; i++)
		r = lists_walk(kernel, job, job->ids[i], &done);
	*destroyed += done.destroyed;
	*failed += done.failed;
	*gone += done.gone;
	if (done.unsupported) /* CONFIG_INET_DIAG_DESTROY is off (TCP and UDP both have it): no need to try again */
		kernel->lists.off = true;
	return r;
}

void lists_recheck_later(struct kernel *kernel, const struct cut_job *job)
{
	struct cut_lists *lists = &kernel->lists;

	while (lists->n_recheck + job->n > ARRAY_SIZE(lists->recheck))
		lists_recheck(kernel);
	if (!lists->n_recheck)
		recheck_in(kernel, NP_RECHECK_MS);
	memcpy(lists->recheck + lists->n_recheck, job->ids, job->n * sizeof(*job->ids));
	lists->n_recheck += job->n;
}
