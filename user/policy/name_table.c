/* SPDX-License-Identifier: MIT */
#include "policy/name_table.h"

#include "policy/name_table_internal.h"

#define LABELS_MAX 128 /* of a name of 253 bytes */

static inline bool node_is(const struct name_node *node, uint32_t parent, const struct name_label *label)
{
	return node->parent == parent && node->len == label->len &&
	       name_equal(name_node_label(node), label->text, label->len);
}

/* 0 when there is no such child. */
static inline uint32_t child_find(const struct name_table *table, uint32_t parent, uint64_t hash,
				  const struct name_label *label)
{
	uint32_t slot = name_slot_first(table, hash);

	while (table->nodes[slot].len && !node_is(&table->nodes[slot], parent, label))
		slot = name_slot_next(table, slot);
	return table->nodes[slot].len ? slot : 0;
}

/* Shows what a node has for a name that goes on to the left, or ends here. */
static inline bool node_visit(const struct name_table *table, const struct name_node *node, bool goes_on,
			      name_visitor *visit, void *ctx)
{
	if (node->has & NAME_MORE) {
		const struct name_more *more = &table->mores[node->more];
		const struct name_run *run = goes_on ? &more->deep : &more->exact;

		return !run->n || visit(ctx, table->targets + run->first, run->n);
	}
	return !(node->has & (goes_on ? NAME_DEEP : NAME_EXACT)) || visit(ctx, &node->only, 1);
}

/* 0: none. */
static inline uint32_t node_star(const struct name_table *table, const struct name_node *node)
{
	return node->has & NAME_MORE ? table->mores[node->more].star : 0;
}

/* A node that matches all of the name but its first rest bytes. */
struct reached {
	struct name_path path;
	uint32_t node, rest;
};

void name_table_visit(const struct name_table *table, const char *name, name_visitor *visit, void *ctx)
{
	const struct name_label star = { "*", 1 };
	const size_t len = strlen(name);
	struct reached stack[LABELS_MAX + 1], at; /* each step down leaves one behind at most */
	unsigned waiting = 1;

	__builtin_prefetch(&table->nodes[name_slot_first(table, name_hash(name, len))]);
	stack[0] = (struct reached){ .rest = (uint32_t)len };
	while (waiting) {
		for (at = stack[--waiting];;) {
			const struct name_node *node = &table->nodes[at.node];
			uint32_t below = node_star(table, node);
			struct name_label label;

			if (!node_visit(table, node, at.rest > 0, visit, ctx))
				return;
			/* What matches "**" has been shown. */
			if (!at.rest || (at.rest == 2 && memcmp(name, "**", 2) == 0))
				break;
			label = name_label_last(name, at.rest);
			at.rest = (uint32_t)name_label_rest(name, &label);
			if (below && waiting <= LABELS_MAX)
				stack[waiting++] =
					(struct reached){ name_path_down(at.path, &star, NULL), below, at.rest };
			if (name_label_is_star(&label))
				break;
			at.path = name_path_down(at.path, &label, name + len);
			at.node = child_find(table, at.node, at.path.hash, &label);
			if (!at.node)
				break;
		}
	}
}
