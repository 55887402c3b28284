/* SPDX-License-Identifier: MIT */
#include "base/beside.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 300000 /* about one write to a disk */

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

struct beside {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t begun, done;
	bool started, over;
	bool spins;		/* there is another CPU that the task may run on */
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
	beside->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	return beside;
}

/* With the mutex, which others may have meanwhile. */
static void task_run(struct beside *beside)
{
	__atomic_store_n(&beside->taken, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&beside->mutex);
	beside->fn(beside->data);
	pthread_mutex_lock(&beside->mutex);
	__atomic_store_n(&beside->taken, false, __ATOMIC_RELEASE);
	__atomic_store_n(&beside->fn, NULL, __ATOMIC_RELEASE);
}

static void *thread_work(void *data)
{
	struct beside *beside = data;

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

/* To sleep and be woken up takes longer than what is left of most tasks, above all in a virtual machine. */
static void task_await(const struct beside *beside)
{
	struct timespec now, end;

	if (!beside->spins || !__atomic_load_n(&beside->taken, __ATOMIC_ACQUIRE))
		return; /* nobody has begun it: that is to be done, and not to be waited for */
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += SPIN_NS;
	do {
		for (int i = 0; i < 32; i++) {
			if (!__atomic_load_n(&beside->fn, __ATOMIC_ACQUIRE))
				return;
			spin_pause();
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 0);
}

void beside_wait(struct beside *beside)
{
	if (!beside)
		return;
	task_await(beside);
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
