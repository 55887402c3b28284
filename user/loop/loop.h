/* SPDX-License-Identifier: MIT */
/*
 * The event loop: file descriptors, timers, signals. Time enters the program here, by
 * loop_now_ns(): parsers, policy and the store never read a clock, they get `now` as an argument.
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "loop/lanes.h"

struct loop;

typedef void loop_fd_fn(void *data, uint32_t events);
typedef void loop_timer_fn(void *data);
typedef void loop_signal_fn(void *data, int signo);
typedef void loop_task_fn(void *data);

int loop_new(struct loop **ret);
void loop_free(struct loop *loop);

/* The loop watches fd but does not own it; loop_unwatch() before it is closed. -EEXIST: it is watched already. An event
 * that was queued for it is not delivered after loop_unwatch(). */
int loop_watch(struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *data);
void loop_unwatch(struct loop *loop, int fd);

/* Calls fn every period_ms until the loop is freed. */
int loop_every(struct loop *loop, unsigned period_ms, loop_timer_fn *fn, void *data);

/* Blocks the signals and calls fn from the loop instead. At most once a loop. signals ends with 0. */
int loop_signals(struct loop *loop, const int *signals, loop_signal_fn *fn, void *data);

/* Work for later: fn is called once, from the loop. Tasks of one lane are called in the order in which they were put off;
 * lanes take turns, and there is a look at the file descriptors every few tasks, so that nobody starves. Tasks without a
 * lane are called when all that waited in lanes before is done; those that are put off by one of them wait for another look
 * at the file descriptors and another such round. The owner keeps the struct, zeroed but for fn, data and lane; putting it
 * off twice is as once. */
struct loop_task {
	loop_task_fn *fn;
	void *data;
	struct lane *lane; /* NULL: none */
	/* the loop's */
	struct lane *waits_in; /* NULL unless it waits */
	unsigned lap;
	TAILQ_ENTRY(loop_task) of_lane;
};
void loop_later(struct loop *loop, struct loop_task *task);
void loop_cancel(struct loop *loop, struct loop_task *task); /* fine when it does not wait */
void loop_forget(struct loop *loop, struct lane *lane);	     /* before it is freed; none of its tasks waits */

int loop_run(struct loop *loop); /* until loop_stop(); 0 or -errno */
void loop_stop(struct loop *loop);

uint64_t loop_now_ns(void);  /* CLOCK_MONOTONIC: durations */
uint64_t loop_boot_us(void); /* CLOCK_BOOTTIME: nobody sets it, and it goes on while the host sleeps */
uint64_t loop_wall_us(void); /* CLOCK_REALTIME: what people read */
