/* SPDX-License-Identifier: MIT */
/*
 * Whose output is kept when there is no room for all. What has ended gives way, the oldest of the user who has most: nobody who has little loses
 * it, or cannot have any, because somebody else has had much printed.
 */
#include "daemon/launches_internal.h"

/* Whoever is attached and has not read all of it is about to; one whose reader has never come gives way (unread) when nothing else does: perhaps
 * nobody ever comes. */
static bool gives_way(const struct launch *launch, bool unread)
{
	return launch_ended(launch) && (!launch->attach || !launch->lines.len || (unread && !launch->read));
}

/* Of what is attached nothing is kept: what waits for its reader is little, and must not be thrown away. */
static size_t kept_of(const struct launches *l, uid_t caller)
{
	const struct launch *launch;
	size_t bytes = 0;

	TAILQ_FOREACH(launch, &l->all, of_all) {
		bytes += launch->caller == caller && !launch->attach ? launch->lines.len : 0;
	}
	return bytes;
}

static size_t count_of(const struct launches *l, uid_t caller)
{
	const struct launch *launch;
	size_t n = 0;

	TAILQ_FOREACH(launch, &l->all, of_all) {
		n += launch->caller == caller;
	}
	return n;
}

/* The oldest of the user who has most. */
static struct launch *oldest_of_most(const struct launches *l, size_t (*has)(const struct launches *, uid_t),
				     bool output, bool unread)
{
	struct launch *launch, *found = NULL;
	size_t most = 0;

	TAILQ_FOREACH(launch, &l->all, of_all) {
		const bool may = gives_way(launch, unread) && (!output || launch->lines.len);
		const size_t n = may ? has(l, launch->caller) : 0;

		if (n > most) { /* not the next one of the same user */
			most = n;
			found = launch;
		}
	}
	return found;
}

/* The one to go next, of those with output or of all. */
static struct launch *next_to_go(const struct launches *l, size_t (*has)(const struct launches *, uid_t), bool output)
{
	struct launch *launch = oldest_of_most(l, has, output, false);

	return launch ? launch : oldest_of_most(l, count_of, output, true);
}

static struct launch *oldest_of(const struct launches *l, uid_t caller)
{
	struct launch *launch;

	TAILQ_FOREACH(launch, &l->all, of_all) {
		if (launch->caller == caller && launch->lines.len && gives_way(launch, false))
			break;
	}
	return launch;
}

bool launch_room_make(struct launches *l)
{
	struct launch *launch;

	if (l->count < NP_LAUNCHES_MAX)
		return true;
	launch = next_to_go(l, count_of, false);
	if (!launch)
		return false;
	launch_free(launch);
	return true;
}

bool launch_output_room(const struct launch *launch, size_t len)
{
	struct launches *l = launch->launches;
	const uid_t caller = launch->caller;
	const size_t all = NP_LAUNCH_OUTPUT_ALL - (caller ? NP_LAUNCH_OUTPUT_USER : 0); /* root always has as much */
	struct launch *old;

	while (caller && !launch->attach && l->bytes + len > NP_LAUNCH_OUTPUT_USER &&
	       kept_of(l, caller) + len > NP_LAUNCH_OUTPUT_USER) {
		old = oldest_of(l, caller);
		if (!old)
			return false;
		launch_free(old);
	}
	while (l->bytes + len > all) {
		old = next_to_go(l, kept_of, true);
		if (!old)
			return false;
		launch_free(old);
	}
	return true;
}
