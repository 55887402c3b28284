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
	uint32_t parent, star, n_ends, n_exact, n_deep;
	uint8_t len;
};

/* Where a pattern ends. */
struct end {
	uint32_t draft;
	uint8_t has; /* NAME_DEEP: with "**"; both: it has a "." in front */
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
	struct end end = { .has = *name == '.' ? NAME_EXACT | NAME_DEEP : NAME_EXACT,
			   .target = target_make(policy, rule, index) };
	size_t len = strlen(name), rest = len;
	int e = 0;

	while (rest && end.has != NAME_DEEP && e == 0) {
		struct name_label label = name_label_last(name, rest);

		rest = name_label_rest(name, &label);
		if (label.len == 2 && memcmp(label.text, "**", 2) == 0)
			end.has = NAME_DEEP;
		else
			e = child_get(m, end.draft, &label, name + len, &end.draft);
	}
	if (e < 0)
		return e;
	m->drafts[end.draft].n_ends++;
	m->drafts[end.draft].n_exact += !!(end.has & NAME_EXACT);
	m->drafts[end.draft].n_deep += !!(end.has & NAME_DEEP);
	m->ends[m->n_ends++] = end;
	return 0;
}

/* In the order of the rules, for the runs of targets to be in it. */
static int patterns_add(struct making *m, const struct policy *policy)
{
	const struct draft draft = { 0 };
	uint32_t root;
	int e;

	m->ends = calloc(policy->n_patterns + 1, sizeof(*m->ends));
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

static bool draft_needs_more(const struct draft *draft)
{
	return draft->star || draft->n_ends > 1;
}

static uint32_t slots_needed(const struct draft *draft)
{
	return name_is_long(draft->len) ? 2 : 1;
}

static uint32_t node_place(struct name_table *table, const struct draft *draft)
{
	uint32_t slot = name_slot_first(table, draft->path.hash);
	struct name_node *node;

	while (table->nodes[slot].len)
		slot = name_slot_next(table, slot);
	node = &table->nodes[slot];
	node->len = draft->len;
	if (draft->len <= NAME_LONG_MAX)
		memcpy(name_node_text(node), draft->text, draft->len);
	else
		memcpy(name_node_text(node), &draft->text, sizeof(draft->text));
	return slot;
}

/* Every draft gets its slot; long ones first, see struct name_table. */
static void nodes_place(struct name_table *table, const struct making *m, uint32_t *places)
{
	for (uint32_t slots = 2; slots; slots--)
		for (uint32_t i = 1; i < m->n; i++)
			if (slots_needed(&m->drafts[i]) == slots)
				places[i] = node_place(table, &m->drafts[i]);
	for (uint32_t i = 1; i < m->n; i++)
		table->nodes[places[i]].parent = places[m->drafts[i].parent];
}

/* Runs of targets, which are still empty. */
static void mores_place(struct name_table *table, const struct making *m, const uint32_t *places)
{
	uint32_t n = 0, targets = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct draft *draft = &m->drafts[i];
		struct name_node *node = &table->nodes[places[i]];

		if (!draft_needs_more(draft))
			continue;
		node->has = NAME_MORE;
		node->more = n;
		table->mores[n++] = (struct name_more){ .exact = { .first = targets },
							.deep = { .first = targets + draft->n_exact },
							.star = draft->star ? places[draft->star] : 0 };
		targets += draft->n_exact + draft->n_deep;
	}
}

static void target_add(struct name_table *table, struct name_node *node, const struct end *end)
{
	struct name_more *more;

	if (node->has != NAME_MORE) {
		node->only = end->target;
		node->has = end->has;
		return;
	}
	more = &table->mores[node->more];
	if (end->has & NAME_EXACT)
		table->targets[more->exact.first + more->exact.n++] = end->target;
	if (end->has & NAME_DEEP)
		table->targets[more->deep.first + more->deep.n++] = end->target;
}

static void *arena_lines(struct arena *arena, size_t count, size_t size)
{
	char *p = arena_alloc(arena, count + NAME_LINE_SIZE / size, size);

	return p ? p + (-(uintptr_t)p & (NAME_LINE_SIZE - 1)) : NULL;
}

/* Room for what the drafts come to. */
static int table_alloc(struct arena *arena, const struct making *m, struct name_table *table)
{
	uint64_t n_slots = 2, need = 0, n_mores = 0, n_targets = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct draft *draft = &m->drafts[i];

		need += 2 * slots_needed(draft);
		if (draft_needs_more(draft)) {
			n_mores++;
			n_targets += draft->n_exact + draft->n_deep;
		}
	}
	while (n_slots < need)
		n_slots *= 2;
	table->mask = (uint32_t)(n_slots - 1);
	table->nodes = arena_lines(arena, n_slots + 2, sizeof(*table->nodes));
	table->mores = arena_alloc(arena, n_mores, sizeof(*table->mores));
	table->targets = arena_lines(arena, n_targets, sizeof(*table->targets));
	return table->nodes && table->mores && table->targets ? 0 : -ENOMEM;
}

int name_table_make(struct arena *arena, const struct policy *policy, struct name_table **ret)
{
	cleanup(making_free) struct making m = { 0 };
	struct name_table *table = arena_alloc(arena, 1, sizeof(*table));
	_free_ uint32_t *places = NULL;
	int e = table ? patterns_add(&m, policy) : -ENOMEM;

	if (e < 0)
		return e;
	places = calloc(m.n, sizeof(*places));
	e = places ? table_alloc(arena, &m, table) : -ENOMEM;
	if (e < 0)
		return e; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	nodes_place(table, &m, places);
	mores_place(table, &m, places);
	for (size_t i = 0; i < m.n_ends; i++)
		target_add(table, &table->nodes[places[m.ends[i].draft]], &m.ends[i]);
	*ret = table;
	return 0;
}
