/* SPDX-License-Identifier: MIT */
#include "policy/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define LABELS_MAX 128 /* of a name of 253 bytes */
#define NEAR_SIZE  31
#define LINE_SIZE  64

/* A cache line. Node 0 is the root, above all top-level domains. */
struct name_node {
	uint32_t parent;
	uint32_t star; /* the child "*"; 0: none */
	/* Runs in targets: of the patterns that end here, and of those that go on with "**". */
	uint32_t exact, n_exact;
	uint32_t deep, n_deep;
	uint8_t len;
	char near[NEAR_SIZE]; /* the label; a longer one is at far */
	const char *far;
};
_Static_assert(sizeof(struct name_node) == LINE_SIZE, "a node is a cache line");

struct name_table {
	struct name_node *nodes;
	struct target *targets;
	/* Children but "*": open addressing by parent and label. The upper half of a slot is that of the hash, the lower
	 * half is the node; 0: free. At most half of them are taken. */
	uint64_t *slots;
	uint64_t mask;
};

struct label {
	const char *text;
	size_t len;
	uint64_t hash;
};

/* -- hashing ------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load4(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The seed is no secret and need not be: who asks for names cannot put any into the table. */
static inline uint64_t label_hash(const char *text, size_t len)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd6e8feb86659fd93u;
	uint64_t hash = k0 ^ len;

	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			hash = mix(hash ^ load8(text + i), k1);
		return mix(hash ^ load8(text + len - 8), k1);
	}
	if (len >= 4)
		return mix(hash ^ ((uint64_t)load4(text) << 32 | load4(text + len - 4)), k1);
	if (!len)
		return hash;
	return mix(hash ^ ((uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[len / 2] << 8 |
			   (uint8_t)text[len - 1]),
		   k1);
}

static inline uint64_t child_hash(uint32_t parent, uint64_t hash)
{
	return mix(hash ^ parent, 0xa0761d6478bd642fu);
}

/* -- the tree ------------------------------------------------------------------- */

/* The rightmost label of the first rest bytes of name. */
static inline struct label label_last(const char *name, size_t rest)
{
	const char *dot = memrchr(name, '.', rest);
	struct label label = { .text = dot ? dot + 1 : name };

	label.len = (size_t)(name + rest - label.text);
	label.hash = label_hash(label.text, label.len);
	return label;
}

static inline size_t label_rest(const char *name, const struct label *label)
{
	return label->text == name ? 0 : (size_t)(label->text - name) - 1;
}

static inline bool is_star(const struct label *label)
{
	return label->len == 1 && label->text[0] == '*';
}

static inline bool node_is(const struct name_node *node, uint32_t parent, const struct label *label)
{
	return node->parent == parent && node->len == label->len &&
	       memcmp(node->len <= NEAR_SIZE ? node->near : node->far, label->text, label->len) == 0;
}

/* 0 when there is no such child. */
static inline uint32_t child_find(const struct name_table *table, uint32_t parent, const struct label *label)
{
	uint64_t hash = child_hash(parent, label->hash), i = hash & table->mask;

	for (; table->slots[i]; i = (i + 1) & table->mask) {
		uint32_t child = (uint32_t)table->slots[i];

		if (table->slots[i] >> 32 == hash >> 32 && node_is(&table->nodes[child], parent, label))
			return child;
	}
	return 0;
}

static void slot_take(struct name_table *table, uint64_t hash, uint32_t node)
{
	uint64_t i = hash & table->mask;

	while (table->slots[i])
		i = (i + 1) & table->mask;
	table->slots[i] = hash >> 32 << 32 | node;
}

/* -- making it ------------------------------------------------------------------- */

/* Where a pattern ends. */
struct end {
	uint32_t node;
	bool deep; /* with "**" */
	struct target target;
};

/* Grows in memory of its own; what is in the arena has its final size. */
struct making {
	struct name_table table;
	uint32_t n_nodes, room; /* slots: twice as many as there is room */
	struct end *ends;	/* of all name patterns */
	size_t n_ends;
};

static void making_free(struct making *m)
{
	free(m->table.nodes);
	free(m->table.slots);
	free(m->ends);
}

static struct label node_label(const struct name_node *node)
{
	const char *text = node->len <= NEAR_SIZE ? node->near : node->far;

	return (struct label){ text, node->len, label_hash(text, node->len) };
}

static void slots_fill(struct name_table *table, uint32_t n_nodes)
{
	for (uint32_t i = 1; i < n_nodes; i++) {
		struct label label = node_label(&table->nodes[i]);

		if (!is_star(&label))
			slot_take(table, child_hash(table->nodes[i].parent, label.hash), i);
	}
}

static int making_grow(struct making *m)
{
	uint32_t room = m->room ? 2 * m->room : 1024;
	struct name_node *nodes;
	uint64_t *slots;

	nodes = reallocarray(m->table.nodes, room, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	m->table.nodes = nodes;
	slots = calloc(room, 2 * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(m->table.slots);
	m->table.slots = slots;
	m->table.mask = 2 * (uint64_t)room - 1;
	m->room = room;
	slots_fill(&m->table, m->n_nodes);
	return 0;
}

static int child_make(struct making *m, uint32_t parent, const struct label *label, uint32_t *ret)
{
	struct name_node node = { .parent = parent, .len = (uint8_t)label->len, .far = label->text };
	int e;

	if (m->n_nodes == m->room) {
		e = making_grow(m);
		if (e < 0)
			return e;
	}
	if (node.len <= NEAR_SIZE)
		memcpy(node.near, label->text, node.len);
	m->table.nodes[m->n_nodes] = node;
	if (is_star(label))
		m->table.nodes[parent].star = m->n_nodes;
	else if (m->n_nodes)
		slot_take(&m->table, child_hash(parent, label->hash), m->n_nodes);
	*ret = m->n_nodes++;
	return 0;
}

static int pattern_add(struct making *m, const struct policy *policy, const struct rule *rule, uint32_t index)
{
	const char *name = policy->patterns[index].name;
	struct end end = { .target = target_make(policy, rule, index) };
	size_t rest = strlen(name);
	uint32_t child;
	int e;

	while (rest && !end.deep) {
		struct label label = label_last(name, rest);

		rest = label_rest(name, &label);
		if (label.len == 2 && memcmp(label.text, "**", 2) == 0) {
			end.deep = true;
			continue;
		}
		child = is_star(&label) ? m->table.nodes[end.node].star : child_find(&m->table, end.node, &label);
		if (!child) {
			e = child_make(m, end.node, &label, &child);
			if (e < 0)
				return e;
		}
		end.node = child;
	}
	if (end.deep)
		m->table.nodes[end.node].n_deep++;
	else
		m->table.nodes[end.node].n_exact++;
	m->ends[m->n_ends++] = end;
	return 0;
}

/* In the order of the rules, for the runs of targets to be in it. */
static int patterns_add(struct making *m, const struct policy *policy)
{
	const struct label root = { .text = "" };
	uint32_t at;
	int e;

	m->ends = calloc(policy->n_patterns + 1, sizeof(*m->ends));
	e = m->ends ? child_make(m, 0, &root, &at) : -ENOMEM;
	for (size_t r = 0; e == 0 && r < policy->n_rules; r++) {
		const struct rule *rule = &policy->rules[r];

		for (uint32_t i = 0; e == 0 && i < rule->n_patterns; i++)
			if (policy->patterns[rule->pattern + i].kind == PATTERN_NAME)
				e = pattern_add(m, policy, rule, rule->pattern + i);
	}
	return e;
}

/* Gives each node its runs, empty as yet. */
static void runs_place(struct name_node *nodes, uint32_t n_nodes)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < n_nodes; i++) {
		nodes[i].exact = at;
		at += nodes[i].n_exact;
		nodes[i].deep = at;
		at += nodes[i].n_deep;
		nodes[i].n_exact = nodes[i].n_deep = 0;
	}
}

static void runs_fill(const struct making *m, struct name_table *table)
{
	for (size_t i = 0; i < m->n_ends; i++) {
		const struct end *end = &m->ends[i];
		struct name_node *node = &table->nodes[end->node];

		table->targets[end->deep ? node->deep + node->n_deep++ : node->exact + node->n_exact++] = end->target;
	}
}

static void *arena_lines(struct arena *arena, size_t count, size_t size)
{
	char *p = arena_alloc(arena, count + LINE_SIZE / size + 1, size);

	return p ? p + (-(uintptr_t)p & (LINE_SIZE - 1)) : NULL;
}

int name_table_make(struct arena *arena, const struct policy *policy, struct name_table **ret)
{
	cleanup(making_free) struct making m = { 0 };
	struct name_table *table = arena_alloc(arena, 1, sizeof(*table));
	uint64_t n_slots = 2;
	int e = table ? patterns_add(&m, policy) : -ENOMEM;

	if (e < 0)
		return e;
	while (n_slots < 2 * (uint64_t)m.n_nodes)
		n_slots *= 2;
	table->mask = n_slots - 1;
	table->nodes = arena_lines(arena, m.n_nodes, sizeof(*table->nodes));
	table->slots = arena_lines(arena, n_slots, sizeof(*table->slots));
	table->targets = arena_lines(arena, m.n_ends + 1, sizeof(*table->targets));
	if (!table->nodes || !table->slots || !table->targets)
		return -ENOMEM;
	memcpy(table->nodes, m.table.nodes, m.n_nodes * sizeof(*table->nodes));
	slots_fill(table, m.n_nodes);
	runs_place(table->nodes, m.n_nodes);
	runs_fill(&m, table);
	*ret = table;
	return 0;
}

/* -- using it ------------------------------------------------------------------- */

/* A node that matches the labels right of rest; depth is how many these are. */
struct reached {
	uint32_t node;
	uint16_t rest, depth;
};

void name_table_visit(const struct name_table *table, const char *name, name_visitor *visit, void *ctx)
{
	struct label labels[LABELS_MAX]; /* the first known of them have been looked at */
	struct reached stack[LABELS_MAX], at = { .rest = (uint16_t)strlen(name) };
	size_t known = 0, waiting = 0;

	for (;;) {
		const struct name_node *node = &table->nodes[at.node];
		const struct label *label;
		uint32_t star, child;

		if (!at.rest && node->n_exact && !visit(ctx, table->targets + node->exact, node->n_exact))
			return;
		if (at.rest && node->n_deep && !visit(ctx, table->targets + node->deep, node->n_deep))
			return;
		if (!at.rest || at.depth == LABELS_MAX || (at.rest == 2 && memcmp(name, "**", 2) == 0)) {
			if (!waiting)
				return;
			at = stack[--waiting];
			continue;
		}
		label = &labels[at.depth];
		if (at.depth == known)
			labels[known++] = label_last(name, at.rest);
		star = node->star;
		child = is_star(label) ? 0 : child_find(table, at.node, label);
		at.rest = (uint16_t)label_rest(name, label);
		at.depth++;
		if (star && child)
			stack[waiting++] = (struct reached){ star, at.rest, at.depth };
		at.node = child ? child : star;
		if (!at.node) {
			if (!waiting)
				return;
			at = stack[--waiting];
		}
	}
}
