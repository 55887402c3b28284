/* SPDX-License-Identifier: MIT */
/*
 * When the time of a run is over. The record has times of the wall's clock, which people read; what is meant are durations. So while a daemon runs
 * each is kept by the clock that nobody sets, too, and a clock that is set ends no run and lets none wait longer. After a restart
 * the wall's clock is all there is, as for questions (question_due()).
 */
#include "session/run_times.h"

#include <string.h>

#include "base/array.h"
#include "vocab/limits.h"

struct run_time {
	uint64_t id;
	uint64_t until_us; /* as the record has it: what this is of */
	uint64_t due_us;   /* the same by boot_us() */
	bool seen;	   /* by this sweep */
};

/* The one of that run, or a new one; NULL: there is no memory, and the wall's clock has to do. They are in the order of the runs' numbers, in
 * which new ones come, too. */
static struct run_time *run_time_at(struct service *service, uint64_t id)
{
	size_t low = 0, high = service->n_run_times;
	struct run_time *at;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (service->run_times[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < service->n_run_times && service->run_times[low].id == id)
		return &service->run_times[low];
	if (ARRAY_RESERVE(service->run_times, service->size_run_times, service->n_run_times + 1) < 0)
		return NULL;
	at = &service->run_times[low];
	memmove(at + 1, at, (service->n_run_times++ - low) * sizeof(*at));
	*at = (struct run_time){ .id = id };
	return at;
}

void run_time_begin(struct service *service, uint64_t id, uint64_t until_us, uint64_t for_us)
{
	struct run_time *time = run_time_at(service, id);

	if (time)
		*time = (struct run_time){ id, until_us, service->config.boot_us() + for_us, true };
}

static bool is_due(struct service *service, uint64_t id, uint64_t from_us, uint64_t until_us)
{
	const uint64_t wall = service->config.wall_us();
	struct run_time *time = run_time_at(service, id);
	const bool over = wall < from_us || wall >= until_us;

	if (!time)
		return over;
	if (time->until_us != until_us) /* of before a restart */
		run_time_begin(service, id, until_us, over ? 0 : until_us - wall);
	time->seen = true;
	return time->due_us <= service->config.boot_us();
}

bool run_is_over(struct service *service, const struct run_row *run)
{
	return is_due(service, run->id, run->decided ? run->decided_us : run->created_us, run->expires_us);
}

bool run_is_lost(struct service *service, const struct run_row *run)
{
	return is_due(service, run->id, run->lost_us, run->lost_us + NP_RUN_LOST_S * 1000000ull);
}

uint64_t run_wall_us(const struct service *service, const struct run_row *run)
{
	const uint64_t wall = service->config.wall_us();

	return wall < run->expires_us ? wall : run->expires_us - 1;
}

void run_times_begin(struct service *service)
{
	for (size_t i = 0; i < service->n_run_times; i++)
		service->run_times[i].seen = false;
}

void run_times_end(struct service *service)
{
	size_t n = 0;

	for (size_t i = 0; i < service->n_run_times; i++)
		if (service->run_times[i].seen)
			service->run_times[n++] = service->run_times[i];
	service->n_run_times = n;
}
