/* SPDX-License-Identifier: MIT */
#include "base/beside.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct beside {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t begun, done;
	bool started, over;
	void (*fn)(void *data); /* NULL: nothing to do */
	bool taken;		/* somebody is at it */
	void *data;
};

struct beside *beside_new(void)
{
	struct beside *beside = calloc(1, sizeof(*beside));

	if (!beside)
		return NULL;
	pthread_mutex_init(&beside->mutex, NULL);
	pthread_cond_init(&beside->begun, NULL);
	pthread_cond_init(&beside->done, NULL);
	return beside;
}

/* With the mutex, which others may have meanwhile. */
static void task_run(struct beside *beside)
{
	beside->taken = true;
	pthread_mutex_unlock(&beside->mutex);
	beside->fn(beside->data);
	pthread_mutex_lock(&beside->mutex);
	beside->fn = NULL;
	beside->taken = false;
}

static void *thread_work(void *data)
{
	struct beside *beside = data;

	/* It shall use the time in which its caller waits, and not take the CPU from that before: one of this kind starts at once
	 * where a CPU is free, and drives nobody away when it is woken. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		pthread_setschedparam(pthread_self(), SCHED_BATCH, &(struct sched_param){ 0 });
	pthread_mutex_lock(&beside->mutex);
	while (!beside->over) {
		if (!beside->fn || beside->taken) {
			pthread_cond_wait(&beside->begun, &beside->mutex);
			continue;
		}
		task_run(beside);
		pthread_cond_signal(&beside->done);
	}
	pthread_mutex_unlock(&beside->mutex);
	return NULL;
}

/* Signals are the first thread's. */
static bool thread_start(struct beside *beside)
{
	sigset_t all, before;

	if (beside->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	beside->started = pthread_create(&beside->thread, NULL, thread_work, beside) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return beside->started;
}

void beside_begin(struct beside *beside, void (*fn)(void *data), void *data)
{
	if (!beside || !thread_start(beside)) {
		fn(data);
		return;
	}
	pthread_mutex_lock(&beside->mutex);
	beside->data = data;
	beside->fn = fn;
	pthread_mutex_unlock(&beside->mutex);
	pthread_cond_signal(&beside->begun);
}

void beside_wait(struct beside *beside)
{
	if (!beside)
		return;
	pthread_mutex_lock(&beside->mutex);
	while (beside->fn && beside->taken)
		pthread_cond_wait(&beside->done, &beside->mutex);
	if (beside->fn) /* a busy host has not let the thread run yet */
		task_run(beside);
	pthread_mutex_unlock(&beside->mutex);
}

void beside_free(struct beside *beside)
{
	if (!beside)
		return;
	if (beside->started) {
		pthread_mutex_lock(&beside->mutex);
		beside->over = true;
		pthread_mutex_unlock(&beside->mutex);
		pthread_cond_signal(&beside->begun);
		pthread_join(beside->thread, NULL);
	}
	pthread_cond_destroy(&beside->begun);
	pthread_cond_destroy(&beside->done);
	pthread_mutex_destroy(&beside->mutex);
	free(beside);
}
