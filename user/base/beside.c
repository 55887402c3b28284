/* SPDX-License-Identifier: MIT */
#include "base/beside.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct beside {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t begun, done;
	bool started, over;
	void (*fn)(void *data); /* NULL: nothing to do */
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

static void *work(void *data)
{
	struct beside *beside = data;

	pthread_mutex_lock(&beside->mutex);
	while (!beside->over) {
		if (!beside->fn) {
			pthread_cond_wait(&beside->begun, &beside->mutex);
			continue;
		}
		pthread_mutex_unlock(&beside->mutex);
		beside->fn(beside->data);
		pthread_mutex_lock(&beside->mutex);
		beside->fn = NULL;
		pthread_cond_signal(&beside->done);
	}
	pthread_mutex_unlock(&beside->mutex);
	return NULL;
}

/* Signals are the first thread's. */
static bool start(struct beside *beside)
{
	sigset_t all, before;

	if (beside->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	beside->started = pthread_create(&beside->thread, NULL, work, beside) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return beside->started;
}

void beside_begin(struct beside *beside, void (*fn)(void *data), void *data)
{
	if (!beside || !start(beside)) {
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
	while (beside->fn)
		pthread_cond_wait(&beside->done, &beside->mutex);
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
