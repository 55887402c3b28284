/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/name_table_internal.h"

/* A node while it is not known how many there will be; parents come before their children. */
struct draft {
	struct name_path path;
	const char *text;
	uint32_t parent, star, n_exact, n_deep;
	uint8_t len;
};

/* Where a pattern ends. */
struct end {
	uint32_t draft;
	bool deep; /* with "**", or a "." in front */
	struct target target;
};

/* Grows in memory of its own; what is in the arena has its final size. */
struct making {
	struct draft *drafts;
	uint32_t n, room;
	uint32_t *slots; /* twice the room: by path -> draft; 0: free */
	struct end *ends;
	size_t n_ends;
};

static void making_free(struct making *m)
{
	free(m->drafts);
	free(m->slots);
	free(m->ends);
}

static void slot_take(struct making *m, uint32_t draft)
{
	uint32_t mask = 2 * m->room - 1, i = (uint32_t)m->drafts[draft].path.hash & mask;

	while (m->slots[i])
		i = (i + 1) & mask;
	m->slots[i] = draft;
}

static int making_grow(struct making *m)
{
	uint32_t room = m->room ? 2 * m->room : 1024;
	struct draft *drafts = reallocarray(m->drafts, room, sizeof(*drafts));
	uint32_t *slots;

	if (!drafts)
		return -ENOMEM;
	m->drafts = drafts;
	slots = calloc(room, 2 * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(m->slots);
	m->slots = slots;
	m->room = room;
	for (uint32_t i = 1; i < m->n; i++)
		slot_take(m, i);
	return 0;
}

static int draft_add(struct making *m, const struct draft *draft, uint32_t *ret)
{
	int e = m->n == m->room ? making_grow(m) : 0;

	if (e < 0)
		return e;
	m->drafts[m->n] = *draft;
	if (m->n)
		slot_take(m, m->n);
	*ret = m->n++;
	return 0;
}

static int child_get(struct making *m, uint32_t parent, const struct name_label *label, const char *end, uint32_t *ret)
{
	struct draft draft = { .path = name_path_down(m->drafts[parent].path, label, end),
			       .text = label->text,
			       .parent = parent,
			       .len = (uint8_t)label->len };
	uint32_t mask = 2 * m->room - 1;
	int e;

	for (uint32_t i = (uint32_t)draft.path.hash & mask; m->slots[i]; i = (i + 1) & mask) {
		const struct draft *other = &m->drafts[m->slots[i]];

		if (other->path.hash == draft.path.hash && other->parent == parent && other->len == draft.len &&
		    memcmp(other->text, draft.text, draft.len) == 0) {
			*ret = m->slots[i];
			return 0;
		}
	}
	e = draft_add(m, &draft, ret);
	if (e == 0 && name_label_is_star(label))
		m->drafts[parent].star = *ret;
	return e;
}

static int pattern_add(struct making *m, const struct policy *policy, const struct rule *rule, uint32_t index)
{
	const char *name = policy->patterns[index].name;
	struct end end = { .target = target_make(policy, rule, index) };
	size_t len = strlen(name), rest = len;
	int e = 0;

	while (rest && !end.deep && e == 0) {
		struct name_label label = name_label_last(name, rest);

		rest = name_label_rest(name, &label);
		if (label.len == 2 && memcmp(label.text, "**", 2) == 0)
			end.deep = true;
		else
			e = child_get(m, end.draft, &label, name + len, &end.draft);
	}
	if (e < 0)
		return e;
	if (!end.deep) {
		m->drafts[end.draft].n_exact++;
		m->ends[m->n_ends++] = end;
	}
	if (end.deep || *name == '.') {
		m->drafts[end.draft].n_deep++;
		end.deep = true;
		m->ends[m->n_ends++] = end;
	}
	return 0;
}

/* In the order of the rules, for the runs of targets to be in it. */
static int patterns_add(struct making *m, const struct policy *policy)
{
	const struct draft draft = { 0 };
	uint32_t root;
	int e;

	m->ends = calloc(2 * policy->n_patterns + 1, sizeof(*m->ends)); /* a "." in front ends twice */
	e = m->ends ? draft_add(m, &draft, &root) : -ENOMEM;
	for (size_t r = 0; e == 0 && r < policy->n_rules; r++) {
		const struct rule *rule = &policy->rules[r];

		for (uint32_t i = 0; e == 0 && i < rule->n_patterns; i++)
			if (policy->patterns[rule->pattern + i].kind == PATTERN_NAME)
				e = pattern_add(m, policy, rule, rule->pattern + i);
	}
	return e;
}

/* -- what stays ------------------------------------------------------------------- */

static uint32_t node_place(struct name_table *table, const struct draft *draft)
{
	uint32_t slot = name_slot_first(table, draft->path.hash);

	while (table->nodes[slot].len)
		slot = name_slot_next(table, slot);
	return slot;
}

/* Every draft gets its slot, and its runs, which are still empty. */
static void nodes_place(struct name_table *table, const struct making *m, uint32_t *places)
{
	uint32_t targets = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct draft *draft = &m->drafts[i];
		struct name_node *node;

		places[i] = i ? node_place(table, draft) : 0;
		node = &table->nodes[places[i]];
		node->len = draft->len;
		if (draft->len <= NAME_NEAR_SIZE)
			memcpy(node->near, draft->text ? draft->text : "", draft->len);
		else
			node->far = draft->text;
		node->parent = places[draft->parent];
		if (draft->n_exact > 1) {
			node->exact = targets;
			targets += draft->n_exact;
		}
		node->deep = targets;
		targets += draft->n_deep;
	}
	for (uint32_t i = 0; i < m->n; i++)
		table->nodes[places[i]].star = m->drafts[i].star ? places[m->drafts[i].star] : 0;
}

static void targets_place(struct name_table *table, const struct making *m, const uint32_t *places)
{
	for (size_t i = 0; i < m->n_ends; i++) {
		const struct end *end = &m->ends[i];
		struct name_node *node = &table->nodes[places[end->draft]];

		if (end->deep)
			table->targets[node->deep + node->n_deep++] = end->target;
		else if (m->drafts[end->draft].n_exact > 1)
			table->targets[node->exact + node->n_exact++] = end->target;
		else {
			node->only = end->target;
			node->n_exact = 1;
		}
	}
}

static void *arena_lines(struct arena *arena, size_t count, size_t size)
{
	char *p = arena_alloc(arena, count + NAME_LINE_SIZE / size, size);

	return p ? p + (-(uintptr_t)p & (NAME_LINE_SIZE - 1)) : NULL;
}

int name_table_make(struct arena *arena, const struct policy *policy, struct name_table **ret)
{
	cleanup(making_free) struct making m = { 0 };
	struct name_table *table = arena_alloc(arena, 1, sizeof(*table));
	_free_ uint32_t *places = NULL;
	uint64_t n_slots = 2;
	int e = table ? patterns_add(&m, policy) : -ENOMEM;

	if (e < 0)
		return e;
	while (n_slots < 2 * (uint64_t)m.n)
		n_slots *= 2;
	table->mask = n_slots - 1;
	table->nodes = arena_lines(arena, n_slots + 1, sizeof(*table->nodes));
	table->targets = arena_lines(arena, m.n_ends + 1, sizeof(*table->targets));
	places = calloc(m.n, sizeof(*places));
	if (!table->nodes || !table->targets || !places)
		return -ENOMEM;
	nodes_place(table, &m, places);
	targets_place(table, &m, places);
	*ret = table;
	return 0;
}
