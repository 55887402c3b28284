/* SPDX-License-Identifier: MIT */
#include "policy/nets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/metadata.h"
#include "policy/net.h"

#define NO_PATTERN UINT32_MAX

/* A range as it is to be sorted. */
struct range {
	struct np_addr addr;
	uint8_t bits;
	bool v4;
	uint32_t order;	  /* of patterns: in the order of the rules */
	uint32_t pattern; /* NO_PATTERN: a metadata range */
};

static int place_compare(const struct range *a, const struct range *b)
{
	int c;

	if (a->v4 != b->v4)
		return a->v4 ? -1 : 1;
	c = memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b));
	return c ? c : (a->bits > b->bits) - (a->bits < b->bits);
}

static int range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	int c = place_compare(x, y);

	return c ? c : (x->order > y->order) - (x->order < y->order);
}

static size_t ranges_count(const struct policy *policy, const struct rule *rules, size_t n_rules)
{
	size_t n = n_metadata_ranges;

	for (size_t r = 0; r < n_rules; r++)
		for (uint32_t i = 0; i < rules[r].n_patterns; i++)
			n += policy->patterns[rules[r].pattern + i].kind == PATTERN_NET;
	return n;
}

static void ranges_collect(const struct policy *policy, const struct rule *rules, size_t n_rules, struct range *ranges)
{
	uint32_t n = 0;

	for (size_t r = 0; r < n_rules; r++)
		for (uint32_t i = 0; i < rules[r].n_patterns; i++) {
			const struct pattern *p = &policy->patterns[rules[r].pattern + i];

			if (p->kind != PATTERN_NET)
				continue;
			ranges[n] = (struct range){ p->addr, p->bits, p->v4, n, rules[r].pattern + i };
			n++;
		}
	for (size_t i = 0; i < n_metadata_ranges; i++) {
		const struct metadata_range *m = &metadata_ranges[i];

		ranges[n++] = (struct range){ m->addr, m->bits, m->v4, UINT32_MAX, NO_PATTERN };
	}
}

static bool node_holds(const struct net_node *node, bool v4, const struct np_addr *addr)
{
	return node->v4 == v4 && net_holds(&node->addr, node->bits, addr);
}

/* The one before it or one of those around that: what is sorted in between lies inside of it. */
static const struct net_node *node_around(const struct net_node *before, const struct net_node *node)
{
	while (before && !node_holds(before, node->v4, &node->addr))
		before = before->up;
	return before;
}

int net_table_make(struct arena *arena, const struct policy *policy, const struct rule *rules, size_t n_rules,
		   struct net_table **ret)
{
	size_t n = ranges_count(policy, rules, n_rules);
	_free_ struct range *ranges = calloc(n, sizeof(*ranges));
	struct net_table *table = arena_alloc(arena, 1, sizeof(*table));
	struct net_node *nodes = arena_alloc(arena, n, sizeof(*nodes)), *node = NULL;
	uint32_t *patterns = arena_alloc(arena, n, sizeof(*patterns)), n_patterns = 0;

	if (!ranges || !table || !nodes || !patterns)
		return -ENOMEM;
	ranges_collect(policy, rules, n_rules, ranges);
	qsort(ranges, n, sizeof(*ranges), range_compare);
	for (size_t i = 0; i < n; i++) {
		const struct range *range = &ranges[i];

		if (!i || place_compare(range - 1, range) != 0) {
			node = &nodes[table->n++];
			*node = (struct net_node){ range->addr, range->bits, range->v4,
						   .patterns = patterns + n_patterns };
			node->metadata = metadata_holds(&range->addr, range->bits, range->v4);
			node->up = node_around(node > nodes ? node - 1 : NULL, node);
		}
		if (range->pattern != NO_PATTERN) {
			patterns[n_patterns++] = range->pattern;
			node->n_patterns++;
		}
	}
	table->nodes = nodes;
	*ret = table;
	return 0;
}

const struct net_node *net_table_find(const struct net_table *table, const struct np_addr *addr)
{
	const struct range wanted = { .addr = *addr, .bits = 128, .v4 = np_addr_is_v4(addr) };
	const struct net_node *node;
	size_t low = 0, high = table->n;

	/* The last one that is not behind addr: it holds addr, or one around it does, or none. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct net_node *m = &table->nodes[middle];
		const struct range range = { .addr = m->addr, .bits = m->bits, .v4 = m->v4 };

		if (place_compare(&range, &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	node = low ? &table->nodes[low - 1] : NULL;
	while (node && !node_holds(node, wanted.v4, addr))
		node = node->up;
	return node;
}
