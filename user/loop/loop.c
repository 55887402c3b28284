/* SPDX-License-Identifier: MIT */
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"

#define LOOK_NS 50000 /* between looks at the file descriptors: so long who comes waits for what is put off */
#define EVENTS	256

enum source_kind { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNAL };

struct source {
	struct source *next; /* of those unwatched */
	enum source_kind kind;
	int fd; /* owned unless SOURCE_FD; -1 once unwatched */
	union {
		loop_fd_fn *on_fd;
		loop_timer_fn *on_timer;
		loop_signal_fn *on_signal;
	};
	void *data;
};

struct loop {
	int epoll_fd;
	bool stopped;
	struct source **by_fd; /* NULL where nothing is watched */
	size_t by_fd_size;
	struct source *gone; /* unwatched in this round: an event for one may already be queued */
	struct lanes lanes;
	struct lane later;     /* tasks without a lane */
	struct loop_task mark; /* where those of this round end */
};

int loop_new(struct loop **ret)
{
	_free_ struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	lanes_init(&loop->lanes);
	TAILQ_INIT(&loop->later.tasks);
	*ret = take_ptr(loop);
	return 0;
}

static void loop_sweep(struct loop *loop)
{
	for (struct source *s = loop->gone, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	loop->gone = NULL;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (lanes_next(&loop->lanes))
		;
	while (!TAILQ_EMPTY(&loop->later.tasks))
		loop_cancel(loop, TAILQ_FIRST(&loop->later.tasks));
	for (size_t fd = 0; fd < loop->by_fd_size; fd++) {
		struct source *s = loop->by_fd[fd];

		if (s && s->kind != SOURCE_FD)
			close(s->fd);
		free(s);
	}
	loop_sweep(loop);
	free(loop->by_fd);
	close(loop->epoll_fd);
	free(loop);
}

static int loop_reserve(struct loop *loop, int fd)
{
	size_t old = loop->by_fd_size;
	int r = ARRAY_RESERVE(loop->by_fd, loop->by_fd_size, (size_t)fd + 1);

	if (r == 0)
		memset(loop->by_fd + old, 0, (loop->by_fd_size - old) * sizeof(*loop->by_fd));
	return r;
}

/* NULL with errno set. Takes over fd only on success, and only for timers and signals. */
static struct source *loop_add(struct loop *loop, enum source_kind kind, int fd, uint32_t events)
{
	_free_ struct source *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (fd < 0 || (loop->by_fd_size > (size_t)fd && loop->by_fd[fd])) {
		errno = fd < 0 ? EBADF : EEXIST;
		return NULL;
	}
	if (!s || loop_reserve(loop, fd) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return NULL;
	s->kind = kind;
	s->fd = fd;
	loop->by_fd[fd] = s;
	return take_ptr(s);
}

int loop_watch(struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *data)
{
	struct source *s = loop_add(loop, SOURCE_FD, fd, events);

	if (!s)
		return -errno;
	s->on_fd = fn;
	s->data = data;
	return 0;
}

void loop_unwatch(struct loop *loop, int fd)
{
	struct source *s = fd >= 0 && (size_t)fd < loop->by_fd_size ? loop->by_fd[fd] : NULL;

	if (!s || s->kind != SOURCE_FD)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	loop->by_fd[fd] = NULL;
	s->fd = -1;
	s->next = loop->gone;
	loop->gone = s;
}

void loop_later(struct loop *loop, struct loop_task *task)
{
	if (task->waits_in)
		return;
	if (task->lane) {
		lanes_add(&loop->lanes, task->lane, task);
		return;
	}
	task->waits_in = &loop->later;
	TAILQ_INSERT_TAIL(&loop->later.tasks, task, of_lane);
}

void loop_cancel(struct loop *loop, struct loop_task *task)
{
	if (!task->waits_in)
		return;
	if (task->waits_in != &loop->later) {
		lanes_remove(&loop->lanes, task);
		return;
	}
	TAILQ_REMOVE(&loop->later.tasks, task, of_lane);
	task->waits_in = NULL;
}

void loop_forget(struct loop *loop, struct lane *lane)
{
	lanes_leave(&loop->lanes, lane);
}

static void loop_dispatch(struct source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	uint64_t ticks;

	if (s->fd < 0)
		return;
	switch (s->kind) {
	case SOURCE_FD:
		s->on_fd(s->data, events);
		break;
	case SOURCE_TIMER:
		if (read(s->fd, &ticks, sizeof(ticks)) == sizeof(ticks))
			s->on_timer(s->data);
		break;
	case SOURCE_SIGNAL:
		while (read(s->fd, &info, sizeof(info)) == sizeof(info))
			s->on_signal(s->data, (int)info.ssi_signo);
		break;
	}
}

static void loop_run_lanes(struct loop *loop)
{
	uint64_t start = loop_now_ns(), before = start, now = start;
	struct loop_task *task;

	while (now - start < LOOK_NS && (task = lanes_next(&loop->lanes))) {
		task->fn(task->data);
		now = loop_now_ns();
		lanes_charge(&loop->lanes, now - before);
		before = now;
	}
}

/* What is put off meanwhile goes behind the mark and waits its turn. */
static void loop_run_later(struct loop *loop)
{
	loop_later(loop, &loop->mark);
	while (TAILQ_FIRST(&loop->later.tasks) != &loop->mark) {
		struct loop_task *task = TAILQ_FIRST(&loop->later.tasks);

		loop_cancel(loop, task);
		task->fn(task->data);
	}
	loop_cancel(loop, &loop->mark);
}

int loop_every(struct loop *loop, unsigned period_ms, loop_timer_fn *fn, void *data)
{
	struct itimerspec spec = {
		.it_interval = { .tv_sec = period_ms / 1000, .tv_nsec = (long)(period_ms % 1000) * 1000000 },
	};
	_close_ int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct source *s;

	if (fd < 0)
		return -errno;
	spec.it_value = spec.it_interval;
	if (timerfd_settime(fd, 0, &spec, NULL) < 0)
		return -errno;
	s = loop_add(loop, SOURCE_TIMER, fd, EPOLLIN);
	if (!s)
		return -errno;
	s->on_timer = fn;
	s->data = data;
	take_fd(fd);
	return 0;
}

int loop_signals(struct loop *loop, const int *signals, loop_signal_fn *fn, void *data)
{
	_close_ int fd = -1;
	struct source *s;
	sigset_t set;

	sigemptyset(&set);
	for (; *signals; signals++)
		sigaddset(&set, *signals);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	s = loop_add(loop, SOURCE_SIGNAL, fd, EPOLLIN);
	if (!s)
		return -errno;
	s->on_signal = fn;
	s->data = data;
	take_fd(fd);
	return 0;
}

static bool loop_has_work(const struct loop *loop)
{
	return loop->lanes.waiting || !TAILQ_EMPTY(&loop->later.tasks);
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[EVENTS];

	while (!loop->stopped) {
		int n = epoll_wait(loop->epoll_fd, events, EVENTS, loop_has_work(loop) ? 0 : -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			loop_dispatch(events[i].data.ptr, events[i].events);
		if (loop->lanes.waiting)
			loop_run_lanes(loop);
		if (lanes_lap(&loop->lanes) && !TAILQ_EMPTY(&loop->later.tasks))
			loop_run_later(loop);
		loop_sweep(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t loop_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t loop_boot_us(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000;
}

uint64_t loop_wall_us(void)
{
	return clock_ns(CLOCK_REALTIME) / 1000;
}
