/* SPDX-License-Identifier: MIT */
/*
 * Cutting what is open. The gate's iterators judge every socket, and destroy it
 * by bpf_sock_destroy or, where the kernel does not have that, let us destroy
 * it by SOCK_DESTROY. Called after the raise.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "kernel/sock_diag.h"
#include "kernel/internal.h"
#include "vocab/limits.h"

/* A connect() that passed the socket layer just before the raise may enter the table behind the iterator's
 * back. Its packets do not pass, so another round only spares its caller the wait. */
#define ROUNDS_MAX    3
#define DRAIN_STEP_US 200

int cut_open(struct kernel *kernel)
{
	kernel->cut_tcp = bpf_link_create(program_fd(kernel, kernel->skel->progs.np_cut_tcp), 0, BPF_TRACE_ITER, NULL);
	kernel->cut_udp = bpf_link_create(program_fd(kernel, kernel->skel->progs.np_cut_udp), 0, BPF_TRACE_ITER, NULL);
	return kernel->cut_tcp >= 0 && kernel->cut_udp >= 0 ? 0 : -errno;
}

/* Runs an iterator to its end. What it writes, on kernels where it cannot destroy sockets by itself, are orders for
 * us: a read gives whole ones, because its size is a multiple of theirs. Adds those not carried out to *failed. */
static int cut_iterate_it(int link, uint32_t *failed)
{
	_close_ int fd = bpf_iter_create(link);
	struct np_cut_order orders[64];

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, orders, sizeof(orders));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (size_t i = 0; i < (size_t)n / sizeof(*orders); i++)
			*failed += diag_destroy(&orders[i]) < 0;
	}
}

static int cut_pass(struct kernel *kernel, enum np_cut_pass pass, enum gate_cut why, uint32_t final,
		    struct np_cut_state *state)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut), r;
	const __u32 zero = 0;
	uint32_t failed = 0;

	*state = (struct np_cut_state){ .pass = pass, .final = final, .reload = why == GATE_CUT_RELOADED };
	if (bpf_map_update_elem(fd, &zero, state, BPF_ANY) < 0)
		return -errno;
	r = cut_iterate_it(kernel->cut_tcp, &failed);
	if (r == 0 && (pass == NP_CUT_LOOK || pass == NP_CUT_LOCAL)) /* a UDP socket ends when it is closed */
		r = cut_iterate_it(kernel->cut_udp, &failed);
	if (r == 0 && bpf_map_lookup_elem(fd, &zero, state) < 0)
		r = -errno;
	if (r < 0)
		return r;
	state->destroyed -= failed;
	state->failed += failed;
	return 0;
}

static void forget_flows(struct kernel *kernel)
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

/*
 * A socket whose bytes still lie in a device's queue is left until they are gone, for since the raise nothing
 * new gets there: then the acknowledgement is true of them as well. All of it within NP_DRAIN_US; a sandbox
 * that keeps bytes there on purpose is cut with them.
 */
static int cut_iterate(struct kernel *kernel, enum gate_cut why, unsigned *ret_cut)
{
	uint64_t deadline = now_us() + NP_DRAIN_US;
	struct np_cut_state state;
	bool remembered = false;
	int r = 0;

	*ret_cut = 0;
	if (why == GATE_CUT_ENDED) {
		r = cut_pass(kernel, NP_CUT_ENDED, why, 1, &state);
		*ret_cut = r == 0 ? state.destroyed : 0;
		return r;
	}
	for (int round = 0; round < ROUNDS_MAX;) {
		uint32_t destroyed, final = now_us() >= deadline || round == ROUNDS_MAX - 1;

		r = cut_pass(kernel, NP_CUT_LOOK, why, final, &state);
		if (r < 0)
			break;
		destroyed = state.destroyed;
		remembered |= state.remembered > 0;
		if (state.local) {
			uint64_t in_flight = state.in_flight;

			r = cut_pass(kernel, NP_CUT_LOCAL, why, final, &state);
			if (r < 0)
				break;
			destroyed += state.destroyed;
			state.in_flight = in_flight;
		}
		*ret_cut += destroyed;
		if (state.in_flight && !final)
			nanosleep(&(struct timespec){ .tv_nsec = DRAIN_STEP_US * 1000 }, NULL);
		else if (!destroyed || final)
			break;
		else
			round++;
	}
	if (remembered)
		forget_flows(kernel);
	return r;
}

static int sandboxes_name(struct kernel *kernel, const uint64_t *ids, size_t n)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets);
	const __u8 named = NP_CUT_NAMED;

	for (size_t i = 0; i < n; i++)
		if (bpf_map_update_elem(fd, &ids[i], &named, BPF_ANY) < 0)
			return -errno;
	return 0;
}

static void sandboxes_forget(struct kernel *kernel, const uint64_t *ids, size_t n)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets);

	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(fd, &ids[i]);
}

int cut_sandboxes(struct kernel *kernel, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut)
{
	int r = sandboxes_name(kernel, ids, n);
	unsigned cut = 0;

	if (r == 0)
		r = cut_iterate(kernel, why, &cut);
	sandboxes_forget(kernel, ids, n);
	*ret_cut = cut;
	return r;
}

int cut_orphans_find(struct kernel *kernel, const uint64_t *ids, size_t n, bool *ret_has)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_cut_targets), r = sandboxes_name(kernel, ids, n);
	struct np_cut_state state;

	if (r == 0)
		r = cut_pass(kernel, NP_CUT_ORPHANS, GATE_CUT_ENDED, 0, &state);
	for (size_t i = 0; r == 0 && i < n; i++) {
		__u8 found = NP_CUT_HAS_ORPHAN;

		if (bpf_map_lookup_elem(fd, &ids[i], &found) < 0)
			r = -errno;
		ret_has[i] = found == NP_CUT_HAS_ORPHAN;
	}
	sandboxes_forget(kernel, ids, n);
	return r;
}
