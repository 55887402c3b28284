/* SPDX-License-Identifier: MIT */
#include "events/flood.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BUCKETS	     1024
#define QUIET_SWEEPS 60

struct account {
	struct account *next;
	uint64_t cgroup_id;
	uint64_t reported;
	unsigned quiet; /* sweeps since the total last grew */
};

/* Bounded by the sandboxes there are: an account is opened by an event of one. */
struct flood {
	struct account *buckets[BUCKETS];
};

int flood_new(struct flood **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void flood_free(struct flood *flood)
{
	if (!flood)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (flood->buckets[i]) {
			struct account *a = flood->buckets[i];

			flood->buckets[i] = a->next;
			free(a);
		}
	free(flood);
}

static struct account *account_of(struct flood *flood, uint64_t cgroup_id)
{
	struct account **bucket = &flood->buckets[cgroup_id * 0x9e3779b97f4a7c15ull >> 54], *a;

	for (a = *bucket; a; a = a->next)
		if (a->cgroup_id == cgroup_id)
			return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->cgroup_id = cgroup_id;
	a->next = *bucket;
	*bucket = a;
	return a;
}

static uint32_t account_take(struct account *a, uint64_t total)
{
	uint64_t news = total > a->reported ? total - a->reported : 0;

	a->reported += news;
	if (news)
		a->quiet = 0;
	return news > UINT32_MAX ? UINT32_MAX : (uint32_t)news;
}

uint32_t flood_note(struct flood *flood, uint64_t cgroup_id, uint64_t total)
{
	struct account *a = account_of(flood, cgroup_id);

	if (!a)
		return 0;
	a->quiet = 0;
	return account_take(a, total);
}

void flood_sweep(struct flood *flood, int (*current)(void *data, uint64_t cgroup_id, uint64_t *ret_total),
		 void (*report)(void *data, uint64_t cgroup_id, uint32_t suppressed), void *data)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct account **p = &flood->buckets[i]; *p;) {
			struct account *a = *p;
			uint64_t total = a->reported;
			int r = current(data, a->cgroup_id, &total);
			uint32_t news = account_take(a, total);

			if (news)
				report(data, a->cgroup_id, news);
			/* Forgetting one whose total is not 0 would make all of it news again. */
			if (r < 0 || (++a->quiet > QUIET_SWEEPS && !a->reported)) {
				*p = a->next;
				free(a);
				continue;
			}
			p = &a->next;
		}
}
