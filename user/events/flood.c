/* SPDX-License-Identifier: MIT */
#include "events/flood.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"

#define QUIET_SWEEPS 60

struct account {
	struct table_node node;
	uint64_t cgroup_id;
	uint64_t reported;
	unsigned quiet; /* sweeps since the total last grew */
};

/* Bounded by the sandboxes there are: an account is opened by an event of one. */
struct flood {
	struct table accounts;
};

int flood_new(struct flood **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void account_drop(struct flood *flood, struct account *a)
{
	table_remove(&flood->accounts, &a->node);
	free(a);
}

void flood_free(struct flood *flood)
{
	struct table_node *n;

	if (!flood)
		return;
	while ((n = table_walk(&flood->accounts, NULL)))
		account_drop(flood, container_of(n, struct account, node));
	table_clear(&flood->accounts);
	free(flood);
}

static struct account *account_of(struct flood *flood, uint64_t cgroup_id)
{
	uint64_t hash = hash_mark(&cgroup_id, sizeof(cgroup_id));
	struct account *a;

	for (struct table_node *n = table_first(&flood->accounts, hash); n; n = table_next(n))
		if (container_of(n, struct account, node)->cgroup_id == cgroup_id)
			return container_of(n, struct account, node);
	a = table_reserve(&flood->accounts) == 0 ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	a->cgroup_id = cgroup_id;
	table_add(&flood->accounts, &a->node, hash);
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
	for (struct table_node *n = table_walk(&flood->accounts, NULL), *next; n; n = next) {
		struct account *a = container_of(n, struct account, node);
		uint64_t total = a->reported;
		int r = current(data, a->cgroup_id, &total);
		uint32_t news = account_take(a, total);

		if (news)
			report(data, a->cgroup_id, news);
		next = table_walk(&flood->accounts, n);
		/* Forgetting one whose total is not 0 would make all of it news again. */
		if (r < 0 || (++a->quiet > QUIET_SWEEPS && !a->reported))
			account_drop(flood, a);
	}
}
