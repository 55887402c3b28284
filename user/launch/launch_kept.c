/* SPDX-License-Identifier: MIT */
/* Sandboxes that outlive the command that they were made for. */
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "launch/kept.h"
#include "launch/launch_internal.h"
#include "vocab/limits.h"

#define MAKE_MS 60000 /* a sandbox that takes longer is not made: a file system does not answer */

static struct launch l; /* too large for a stack */

bool launch_keep(const struct launch_order *order, int listener, struct groups *ret_groups, struct launch_result *ret)
{
	bool made = false;

	l = (struct launch){ .order = order,
			     .result = ret,
			     .child = -1,
			     .signals = -1,
			     .report = -1,
			     .control = -1,
			     .listener = listener,
			     .group = { .entry = -1 } };
	*ret = (struct launch_result){ .exit_code = LAUNCH_FAILED };
	for (int fd = 0; fd < 3; fd++)
		l.stdio.inside[fd] = l.stdio.relays[fd].from = l.stdio.relays[fd].to = -1;
	signal(SIGCHLD, SIG_DFL);
	if (launch_start(&l)) {
		l.ends_ms = now_ms() + MAKE_MS;
		made = launch_settle(&l) && l.ready && !ret->timed_out;
		if (!made)
			launch_reap(&l);
	}
	if (made)
		*ret_groups = l.groups;
	for (size_t i = 0; made && i < ret_groups->n_v1; i++) {
		close(l.groups.v1[i].tasks);
		ret_groups->v1[i].tasks = -1;
	}
	launch_finish(&l);
	if (!made)
		groups_remove(&l.groups);
	return made;
}

/* What the sandbox as a whole has used is more than what the command has. */
static void usage_less(struct usage *usage, const struct usage *before)
{
	usage->cpu_us -= before->cpu_us < usage->cpu_us ? before->cpu_us : usage->cpu_us;
	usage->memory_kills -= before->memory_kills < usage->memory_kills ? before->memory_kills : usage->memory_kills;
}

void launch_leave(struct launch *of)
{
	struct launch_result *ret = of->result;

	usage_less(&ret->usage, &of->before);
	ret->started = of->ready && !of->failed;
	if (ret->timed_out) {
		ret->exit_code = LAUNCH_TIMED_OUT;
		ret->problem[0] = '\0';
	} else if (of->failed || of->ended) {
		return;
	} else if (of->ready) { /* with all that was in the sandbox */
		ret->signal = SIGKILL;
		ret->exit_code = 128 + SIGKILL;
	} else {
		ret->lost = true;
		launch_problem(ret, 0, "the kept sandbox does not answer");
	}
}

void launch_within(const struct launch_order *order, const struct groups *groups, int connection,
		   struct launch_result *ret)
{
	const struct plan *plan = order->plan;
	int err;

	if (launch_prepare(&l, order, ret)) {
		l.within = true;
		l.groups = *groups;
		l.control = connection;
		connection = -1;
		l.report = fcntl(l.control, F_DUPFD_CLOEXEC, 3);
		groups_usage(&l.groups, &l.before);
		run_groups_sweep(order->cgroup);
		err = l.report < 0 ? -errno : 0;
		if (err == 0 && order->apart)
			err = run_group_make(order->cgroup, order->run, &l.group);
		if (err == 0)
			err = kept_order(l.control, plan, order->mask, &l.stdio, l.group.entry);
		stdio_leave(&l.stdio);
		l.ready_ms = now_ms() + NP_KEPT_READY_MS;
		if (plan->limits.timeout)
			l.ends_ms = now_ms() + plan->limits.timeout;
		if (err == 0) {
			if (launch_settle(&l) && l.ready) /* before that no input is taken */
				launch_serve(&l);
			else
				launch_leave(&l);
		} else {
			/* A process 1 that closes the connection in the middle of an order, without an answer, is
			 * dead. An error of our own says nothing about it. */
			for (unsigned i = 0; i < 2 && !l.failed;
			     i++) /* the first read may be told of the reset alone */
				reports_read(&l);
			ret->lost = !l.failed && (err == -EPIPE || err == -ECONNRESET || err == -EAGAIN);
			if (!l.failed)
				launch_problem(ret, -err, "cannot order the command");
		}
	}
	cleanup_close(&connection);
	launch_finish(&l);
}
