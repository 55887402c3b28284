/* SPDX-License-Identifier: MIT */
/*
 * The event loop: file descriptors, timers, signals. Time enters the program here, by
 * loop_now_ns(): parsers, policy and the store never read a clock, they get `now` as an argument.
 */
#ifndef NP_LOOP_LOOP_H
#define NP_LOOP_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

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

/* The fd, which is watched, does not wait for all others: while many have something to do, it is looked at every few
 * milliseconds. One at most. */
void loop_prefer(struct loop *loop, int fd);

/* Calls fn every period_ms until the loop is freed. */
int loop_every(struct loop *loop, unsigned period_ms, loop_timer_fn *fn, void *data);

/* Blocks the signals and calls fn from the loop instead. At most once a loop. signals ends with 0. */
int loop_signals(struct loop *loop, const int *signals, loop_signal_fn *fn, void *data);

/* Work for later: fn is called once, after the events at hand and before the loop sleeps. What is put off while such
 * work runs waits for another look at the file descriptors, so that nobody starves. The owner keeps the struct, zeroed
 * but for fn and data; putting it off twice is as once. */
struct loop_task {
	loop_task_fn *fn;
	void *data;
	struct loop_task *next, **link; /* the loop's; link is NULL unless it waits */
};
void loop_later(struct loop *loop, struct loop_task *task);
void loop_cancel(struct loop *loop, struct loop_task *task); /* fine when it does not wait */

int loop_run(struct loop *loop); /* until loop_stop(); 0 or -errno */
void loop_stop(struct loop *loop);

uint64_t loop_now_ns(void);  /* CLOCK_MONOTONIC: durations */
uint64_t loop_wall_us(void); /* CLOCK_REALTIME: what people read */

#endif
