/* SPDX-License-Identifier: MIT */
/*
 * Cutting what is open. Called after the raise. The gate judges each socket of the sandboxes' lists (cut_table.c), which we
 * destroy by SOCK_DESTROY; or, when these do not do, each socket of the host, by iterators that destroy it by
 * bpf_sock_destroy where the kernel has that.
 */
#include <errno.h>
#include <time.h>

#include "kernel/sock_diag.h"
#include "kernel/internal.h"
#include "vocab/limits.h"

/* A connect() that passed the socket layer just before the raise may enter the table behind the iterator's
 * back; or, of a socket in the sandbox's list, be seen there before it leads anywhere. Its packets do not pass, so another
 * round only spares its caller the wait. */
#define ROUNDS_MAX    3
#define DRAIN_STEP_US 200

/* Runs an iterator to its end. What it writes, on kernels where it cannot destroy sockets by itself, are orders for
 * us: a read gives whole ones, because its size is a multiple of theirs. Adds those not carried out to *failed. */
static int cut_iterate_it(struct kernel *kernel, const struct kernel_netns *netns, int link, uint32_t *failed)
{
	_close_ int fd = namespace_iterate(netns, link);
	int diag = namespace_diag(kernel, netns);
	struct np_cut_order orders[64];
	struct diag_result done;

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = read(fd, orders, sizeof(orders));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		done = (struct diag_result){ 0 };
		diag_destroy(diag, orders, (size_t)n / sizeof(*orders), &done);
		*failed += done.failed + done.gone;
	}
}

static int cut_namespace(struct kernel *kernel, const struct kernel_netns *netns, enum np_cut_pass pass,
			 uint32_t *failed)
{
	int r = cut_iterate_it(kernel, netns, kernel->cut_tcp, failed);

	/* a UDP socket ends when it is closed */
	if (r == 0 && pass != NP_CUT_ORPHANS && pass != NP_CUT_ENDED)
		r = cut_iterate_it(kernel, netns, kernel->cut_udp, failed);
	return r;
}

/* The host's sockets, and those in the job's sandboxes' own namespaces. */
static int cut_namespaces(struct kernel *kernel, const struct cut_job *job, enum np_cut_pass pass, uint32_t *failed)
{
	const struct kernel_netns *netns;
	int r = cut_namespace(kernel, NULL, pass, failed);

	if (job->all)
		for (netns = kernel_netns_next(kernel, NULL); r == 0 && netns; netns = kernel_netns_next(kernel, netns))
			r = cut_namespace(kernel, netns, pass, failed);
	for (size_t i = 0; !job->all && r == 0 && i < job->n; i++) {
		netns = kernel_netns_find(kernel, job->ids[i]);
		r = netns ? cut_namespace(kernel, netns, pass, failed) : 0;
	}
	return r;
}

/* All sockets of the host; or, listed, those of the job's sandboxes. Afterwards *state is what the pass has counted. */
int cut_pass(struct kernel *kernel, const struct cut_job *job, enum np_cut_pass pass, bool final,
	     struct np_cut_state *state)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut), r;
	uint32_t destroyed = 0, failed = 0, gone = 0;
	const __u32 zero = 0;

	*state = (struct np_cut_state){ .pass = pass,
					.final = final,
					.reload = job->why == GATE_CUT_RELOADED,
					.all = job->all,
					.handed = job->why == GATE_CUT_HANDED };
	kernel->lists.left = 0;
	if (bpf_map_update_elem(fd, &zero, state, BPF_ANY) < 0)
		return -errno;
	if (job->listed) {
		r = lists_pass(kernel, job, &destroyed, &failed, &gone);
	} else {
		r = cut_namespaces(kernel, job, pass, &failed);
	}
	if (r == 0 && bpf_map_lookup_elem(fd, &zero, state) < 0)
		r = -errno;
	if (r < 0)
		return r;
	state->destroyed += destroyed;
	state->destroyed -= job->listed ? 0 : failed;
	state->failed += failed;
	/* Another socket with the same addresses was found in its place, or it was closed: the next round tells. */
	state->busy += gone;
	return job->listed && (failed || (final && gone)) ? -EAGAIN : 0;
}

void cut_forget_flows(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_flows);
	struct np_cut_flow key;

	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		if (bpf_map_delete_elem(fd, &key) < 0)
			return;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* One pass over what is open, and a second one where something stays on this host. *state: what both have counted. */
static int cut_look(struct kernel *kernel, const struct cut_job *job, bool final, struct np_cut_state *state,
		    unsigned *ret_left)
{
	int r = cut_pass(kernel, job, NP_CUT_LOOK, final, state);
	const struct np_cut_state look = *state;

	*ret_left = kernel->lists.left;
	if (r < 0 || !look.local)
		return r;
	r = cut_pass(kernel, job, NP_CUT_LOCAL, final, state);
	*ret_left += kernel->lists.left;
	state->destroyed += look.destroyed;
	state->busy += look.busy;
	state->remembered = look.remembered;
	state->in_flight = look.in_flight;
	state->idle = look.idle;
	return r;
}

/*
 * A socket whose bytes still lie in a device's queue is left until they are gone, for since the raise nothing
 * new gets there: then the acknowledgement is true of them as well. All of it within NP_DRAIN_US; a sandbox
 * that keeps bytes there on purpose is cut with them.
 */
int cut_rounds(struct kernel *kernel, const struct cut_job *job, unsigned *ret_cut, unsigned *ret_left)
{
	uint64_t deadline = now_us() + NP_DRAIN_US;
	struct np_cut_state state;
	bool remembered = false;
	unsigned left = 0;
	int r = 0;

	if (job->why == GATE_CUT_ENDED) {
		r = cut_pass(kernel, job, NP_CUT_ENDED, true, &state);
		*ret_cut += r == 0 ? state.destroyed : 0;
		return r;
	}
	for (int round = 0; round < ROUNDS_MAX;) {
		bool final = now_us() >= deadline || round == ROUNDS_MAX - 1;

		r = cut_look(kernel, job, final, &state, &left);
		remembered |= state.remembered > 0;
		*ret_cut += state.destroyed;
		if (r < 0)
			break;
		if (state.in_flight && !final)
			nanosleep(&(struct timespec){ .tv_nsec = DRAIN_STEP_US * 1000 }, NULL);
		else if (final || (!state.busy && (left || !state.destroyed || (job->listed && !state.idle))))
			break;
		else
			round++;
	}
	if (remembered)
		cut_forget_flows(kernel);
	*ret_cut += r == 0 ? left : 0;
	*ret_left = r == 0 ? left : 0;
	return r;
}

/* Cgroups are gone that the next cut would never name again. */
static void cut_forget_gone(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets);
	struct np_rung ignored;
	__u64 key, next;
	bool more = bpf_map_get_next_key(fd, NULL, &key) == 0;

	while (more) {
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (gate_read(kernel, key, &ignored) == -ENOENT)
			bpf_map_delete_elem(fd, &key);
		key = next;
	}
}

int gate_cut_due(void *ctx, uint64_t id)
{
	struct kernel *kernel = ctx;
	return cut_name(kernel, &(struct cut_job){ .ids = &id, .n = 1 });
}

bool cut_is_due(struct kernel *kernel, uint64_t id)
{
	__u8 named;

	return bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_cut_targets), &id, &named) == 0;
}

int cut_name(struct kernel *kernel, const struct cut_job *job)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets);
	const __u8 named = NP_CUT_NAMED;

	for (size_t i = 0; !job->all && i < job->n; i++)
		if (bpf_map_update_elem(fd, &job->ids[i], &named, BPF_ANY) < 0)
			return -errno;
	return 0;
}

void cut_unname(struct kernel *kernel, const struct cut_job *job)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets);

	for (size_t i = 0; !job->all && i < job->n; i++)
		if (!tail_has(kernel, job->ids[i]))
			bpf_map_delete_elem(fd, &job->ids[i]);
}

int gate_cut(void *ctx, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut)
{
	struct kernel *kernel = ctx;
	struct cut_job job = { .ids = ids, .n = n, .why = why };
	const bool counted = tail_has_all(kernel, &job); /* what is left of these was, in the cut before this */
	unsigned cut = 0, left = 0;
	int r;

	job.listed = lists_serve(kernel, &job);
	job.most = why == GATE_CUT_RAISED && tail_has_room(kernel, &job) ? NP_CUT_AT_ONCE : 0;
	r = cut_name(kernel, &job);
	if (r == 0)
		r = cut_rounds(kernel, &job, &cut, &left);
	if (r < 0 && job.listed) { /* the host's tables have them all */
		job.listed = false;
		r = cut_rounds(kernel, &job, &cut, &left);
	}
	if (left)
		tail_add(kernel, &job, left); /* which are named until that is done */
	else if (r == 0)		      /* else the next daemon tries again, if this one does not get to it */
		cut_unname(kernel, &job);
	if (r == 0 && job.listed && why != GATE_CUT_ENDED)
		lists_recheck_later(kernel, &job);
	*ret_cut = counted ? cut - left : cut;
	return r;
}

int gate_orphans(void *ctx, const uint64_t *ids, size_t n, bool *ret_has)
{
	struct kernel *kernel = ctx;
	struct cut_job job = { .ids = ids, .n = n, .why = GATE_CUT_ENDED };
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets), r;
	struct np_cut_state state;

	job.listed = lists_serve(kernel, &job);
	r = cut_name(kernel, &job);
	if (r == 0)
		r = cut_pass(kernel, &job, NP_CUT_ORPHANS, false, &state);
	if (r < 0 && job.listed) {
		job.listed = false;
		r = cut_pass(kernel, &job, NP_CUT_ORPHANS, false, &state);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		__u8 found = NP_CUT_HAS_ORPHAN;

		if (bpf_map_lookup_elem(fd, &ids[i], &found) < 0)
			r = -errno;
		ret_has[i] = found == NP_CUT_HAS_ORPHAN;
	}
	cut_unname(kernel, &job);
	return r;
}

int cut_open(struct kernel *kernel)
{
	int r;

	kernel->cut_tcp = bpf_link_create(program_fd(kernel, kernel->skel->progs.np_cut_tcp), 0, BPF_TRACE_ITER, NULL);
	kernel->cut_udp = bpf_link_create(program_fd(kernel, kernel->skel->progs.np_cut_udp), 0, BPF_TRACE_ITER, NULL);
	if (kernel->cut_tcp < 0 || kernel->cut_udp < 0)
		return -errno;
	/* Of a predecessor that was killed in the middle of a cut. What it named is cut by the service. */
	cut_forget_flows(kernel);
	cut_forget_gone(kernel);
	r = tail_open(kernel);
	return r < 0 ? r : lists_open(kernel);
}
