/* SPDX-License-Identifier: MIT */
/*
 * The tail of a cut: a sandbox with many open connections. An acknowledgement says that no byte of the sandbox leaves any more
 * by a way that its mode forbids. That takes the raise, and a look at every socket of the sandbox that found nothing of it in
 * the queues of devices; both have been when this begins. From then on nothing that a socket does gets past the packet layer,
 * whatever lies in its send queue, is sent again, or was handed to another process: the packet layer judges by the sandbox that the
 * socket was made in, and each packet anew.
 *
 * What is left is to end the sockets, so that programs get an error instead of silence. The kernel takes 2 us for each, and a
 * thousand of them need not keep the acknowledgement waiting: up to NP_CUT_AT_ONCE are ended while the disk writes, more than
 * these here, right after the answer. Until that is done np_cut_targets has the sandbox, so that the next daemon
 * does it if this one dies.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "kernel/internal.h"
#include "vocab/limits.h"

static void tail_wake(struct cut_tail *tail)
{
	eventfd_write(tail->wake_fd, 1);
}

/* most: as in cut_job. True: there is more. */
static bool tail_cut(struct kernel *kernel, unsigned most)
{
	struct cut_tail *tail = &kernel->tail;
	struct cut_job job = { .ids = tail->ids, .n = tail->n, .why = GATE_CUT_RAISED, .most = most };
	unsigned cut = 0, left = 0;
	int r;

	job.listed = lists_serve(kernel, &job);
	r = cut_rounds(kernel, &job, &cut, &left);
	if (r < 0 && job.listed) {
		job.listed = false;
		r = cut_rounds(kernel, &job, &cut, &left);
	}
	if (r < 0) /* the packet layer holds them; and there is one more look, a second later */
		log_error("open connections could not be ended: %s", strerror(-r));
	if (left && tail->turns)
		return true;
	tail->n = 0;
	if (r == 0) /* else the next daemon tries again */
		cut_unname(kernel, &job);
	return false;
}

static void on_tail(void *data, uint32_t events)
{
	struct kernel *kernel = data;
	eventfd_t count;

	(void)events;
	if (eventfd_read(kernel->tail.wake_fd, &count) < 0 || !kernel->tail.n)
		return;
	failpoint("before_tail");
	kernel->tail.turns--;
	if (tail_cut(kernel, NP_CUT_TURN))
		tail_wake(&kernel->tail);
}

int tail_open(struct kernel *kernel)
{
	struct cut_tail *tail = &kernel->tail;

	tail->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (tail->wake_fd < 0)
		return -errno;
	return loop_watch(kernel->config.loop, tail->wake_fd, EPOLLIN, on_tail, kernel);
}

void tail_close(struct kernel *kernel)
{
	struct cut_tail *tail = &kernel->tail;

	if (tail->n)
		tail_cut(kernel, 0);
	if (tail->wake_fd >= 0)
		loop_unwatch(kernel->config.loop, tail->wake_fd);
	cleanup_close(&tail->wake_fd);
}

bool tail_has(const struct kernel *kernel, uint64_t cgroup_id)
{
	size_t i = 0;

	while (i < kernel->tail.n && kernel->tail.ids[i] != cgroup_id)
		i++;
	return i < kernel->tail.n;
}

bool tail_has_all(const struct kernel *kernel, const struct cut_job *job)
{
	size_t i = 0;

	while (i < job->n && tail_has(kernel, job->ids[i]))
		i++;
	return i == job->n;
}

bool tail_has_room(const struct kernel *kernel, const struct cut_job *job)
{
	return kernel->tail.wake_fd >= 0 && kernel->tail.n + job->n <= ARRAY_SIZE(kernel->tail.ids);
}

_Static_assert(NP_CUT_ORDERS <= NP_CUT_TURN, "what one walk has named is ended in one turn");

/* A sandbox may bind its UDP sockets anew as fast as they are ended, and others wait for the loop: as many turns as what there is needs,
 * and a few. What is no longer ended in a turn, because a walk has named too many, are fewer than were. */
void tail_add(struct kernel *kernel, const struct cut_job *job, unsigned left)
{
	struct cut_tail *tail = &kernel->tail;

	tail->turns = (tail->n ? tail->turns : 0) + 2 * left / NP_CUT_TURN + 3;
	for (size_t i = 0; i < job->n; i++)
		if (!tail_has(kernel, job->ids[i]))
			tail->ids[tail->n++] = job->ids[i];
	tail_wake(tail);
}
