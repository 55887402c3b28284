/* SPDX-License-Identifier: MIT */
#include "inspect/hold.h"

#include <errno.h>

#include "inspect/sandboxes.h"
#include "vocab/limits.h"

void holds_init(struct holds *holds)
{
	TAILQ_INIT(&holds->list);
}

int hold_begin(struct hold *hold, struct worker *worker, struct sandbox *sandbox, const struct hold_terms *terms,
	       const struct hold_events *events)
{
	if (worker->holds.n >= NP_HELD_MAX || sandbox->n_held >= NP_HELD_PER_SANDBOX)
		return -EBUSY;
	*hold = (struct hold){ .number = ++worker->holds.last,
			       .worker = worker,
			       .sandbox = sandbox,
			       .events = events,
			       .terms = *terms,
			       .since_ns = loop_now_ns() };
	if (hold->terms.ms > NP_HOLD_MAX_MS)
		hold->terms.ms = NP_HOLD_MAX_MS;
	TAILQ_INSERT_TAIL(&worker->holds.list, hold, of_worker);
	worker->holds.n++;
	sandbox->n_held++;
	return 0;
}

void hold_renew(struct hold *hold, const struct hold_terms *terms)
{
	const uint64_t ms = (loop_now_ns() - hold->since_ns) / 1000000 + terms->ms;

	hold->terms = *terms;
	hold->terms.ms = ms < NP_HOLD_MAX_MS ? (uint32_t)ms : NP_HOLD_MAX_MS;
}

void hold_read(struct hold *hold, size_t body, void (*wake)(struct hold *hold), uint32_t ms)
{
	hold->terms.body = body;
	hold->terms.wake = wake;
	hold->terms.wake_ms = (uint32_t)((loop_now_ns() - hold->since_ns) / 1000000) + ms;
	hold->events->read(hold);
}

void hold_wake(struct hold *hold)
{
	hold->terms.wake_ms = 0;
}

void hold_end(struct hold *hold)
{
	if (!hold_is_on(hold))
		return;
	if (hold->terms.over)
		hold->terms.over(hold);
	TAILQ_REMOVE(&hold->worker->holds.list, hold, of_worker);
	hold->worker->holds.n--;
	hold->sandbox->n_held--;
	hold->number = 0;
}

struct hold *hold_find(const struct worker *worker, uint64_t number)
{
	struct hold *hold;

	TAILQ_FOREACH(hold, &worker->holds.list, of_worker)
		if (hold->number == number)
			return hold;
	return NULL;
}

void hold_resume(struct hold *hold)
{
	hold_end(hold);
	hold->events->resume(hold);
}

void hold_refuse(struct hold *hold, enum np_reason reason, const char *words)
{
	hold_end(hold);
	hold->events->refuse(hold, reason, words);
}

static struct hold *hold_late(const struct worker *worker, uint64_t now_ns)
{
	struct hold *hold;

	TAILQ_FOREACH(hold, &worker->holds.list, of_worker)
		if (now_ns > hold->since_ns + hold->terms.ms * 1000000ull)
			return hold;
	return NULL;
}

static struct hold *hold_to_wake(const struct worker *worker, uint64_t now_ns)
{
	struct hold *hold;

	TAILQ_FOREACH(hold, &worker->holds.list, of_worker)
		if (hold->terms.wake && now_ns >= hold->since_ns + hold->terms.wake_ms * 1000000ull)
			return hold;
	return NULL;
}

/* From the start for each: one that is refused may end others, of the same connection. */
void holds_tick(struct worker *worker, uint64_t now_ns)
{
	struct hold *hold;

	while ((hold = hold_to_wake(worker, now_ns))) {
		void (*wake)(struct hold * hold) = hold->terms.wake;

		hold->terms.wake = NULL;
		wake(hold);
	}
	while ((hold = hold_late(worker, now_ns)))
		hold_refuse(hold, hold->terms.late, hold->terms.words);
}
