/* SPDX-License-Identifier: MIT */
/* The trie of name_table.h in memory: name_table_make.c builds it, name_table.c reads it. */
#pragma once

#include <string.h>

#include "policy/name_table.h"

#define NAME_LINE_SIZE 64
#define NAME_SHORT_MAX 10 /* of a label that fits into half a line */
#define NAME_LONG_MAX  42 /* ... into a line */

enum name_has {
	NAME_EXACT = 1, /* a target for the name that ends here */
	NAME_DEEP = 2,	/* one for names that go on */
	NAME_MORE = 4,	/* see struct name_more; with none of the above */
};

/* With 100,000 names each node that is looked at comes from memory, and a decision should wait for one of them only, and
 * for few bytes, of which more stay in the caches. So nodes are the slots of their own hash table, a single target
 * is in its node, and so is the label: two nodes are a cache line, or one whose label is long. */
struct name_node {
	union {
		struct target only;
		uint32_t more; /* index into mores */
	};
	uint32_t parent;
	uint8_t has; /* bits of enum name_has */
	uint8_t len; /* of the label; 0: a free slot, or the root */
	char text[NAME_SHORT_MAX];
};
_Static_assert(2 * sizeof(struct name_node) == NAME_LINE_SIZE, "a node is half a cache line");
_Static_assert(offsetof(struct name_node, text) + NAME_SHORT_MAX == sizeof(struct name_node),
	       "and its text goes on behind it");

/* A run in targets. */
struct name_run {
	uint32_t first, n;
};

/* Of a node with several targets, or with a child "*". */
struct name_more {
	struct name_run exact, deep;
	uint32_t star; /* 0: none */
};

/* Open addressing by struct name_path, in lines; at most half of the slots are taken. Node 0 is the root, above all
 * top-level domains; the slots begin with the line behind its own. Long labels were placed first, and so are found
 * at the first slot of a line. */
struct name_table {
	struct name_node *nodes;
	uint32_t mask; /* of the number of slots */
	struct name_more *mores;
	struct target *targets;
};

static inline bool name_is_long(size_t len)
{
	return len > NAME_SHORT_MAX;
}

static inline uint32_t name_slot_first(const struct name_table *table, uint64_t hash)
{
	return ((uint32_t)hash & table->mask & ~1u) + 2;
}

/* Behind a slot that is taken. */
static inline uint32_t name_slot_next(const struct name_table *table, uint32_t slot)
{
	return ((slot - 2 + (name_is_long(table->nodes[slot].len) ? 2 : 1)) & table->mask) + 2;
}

/* Where the label is, or is to be written: of a long one in the second half of the line as well. A label that is even longer
 * has a pointer there. */
static inline char *name_node_text(struct name_node *node)
{
	return (char *)node + offsetof(struct name_node, text);
}

static inline const char *name_node_label(const struct name_node *node)
{
	const char *text = (const char *)node + offsetof(struct name_node, text), *far;

	if (node->len <= NAME_LONG_MAX)
		return text;
	memcpy(&far, text, sizeof(far));
	return far;
}

/* -- hashing ------------------------------------------------------------------- */

static inline uint64_t name_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t name_load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t name_load4(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The seed is no secret and need not be: who asks for names cannot put any into the table. */
static inline uint64_t name_hash(const char *text, size_t len)
{
	const uint64_t k = 0xd6e8feb86659fd93u;
	uint64_t hash = 0x9e3779b97f4a7c15u ^ len;

	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			hash = name_mix(hash ^ name_load8(text + i), k);
		return name_mix(hash ^ name_load8(text + len - 8), k);
	}
	if (len >= 4)
		return name_mix(hash ^ ((uint64_t)name_load4(text) << 32 | name_load4(text + len - 4)), k);
	if (!len)
		return hash;
	return name_mix(hash ^ ((uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[len / 2] << 8 |
				(uint8_t)text[len - 1]),
			k);
}

/* memcmp() would read a vector from each side, and so a second cache line. */
static inline bool name_equal(const char *a, const char *b, size_t len)
{
	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			if (name_load8(a + i) != name_load8(b + i))
				return false;
		return name_load8(a + len - 8) == name_load8(b + len - 8);
	}
	if (len >= 4)
		return name_load4(a) == name_load4(b) && name_load4(a + len - 4) == name_load4(b + len - 4);
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* -- labels -------------------------------------------------------------------- */

struct name_label {
	const char *text;
	size_t len;
};

/* The rightmost label of the first rest bytes of name. */
static inline struct name_label name_label_last(const char *name, size_t rest)
{
	size_t start = rest;

	while (start && name[start - 1] != '.')
		start--;
	return (struct name_label){ name + start, rest - start };
}

/* How much of name is left of its label. */
static inline size_t name_label_rest(const char *name, const struct name_label *label)
{
	return label->text == name ? 0 : (size_t)(label->text - name) - 1;
}

static inline bool name_label_is_star(const struct name_label *label)
{
	return label->len == 1 && label->text[0] == '*';
}

/* What decides on a node's slot: the text from its label to the end of the name. So the slot of a whole name is known,
 * and can be fetched, before the walk down to it has begun. Below a "*" that text is not the pattern's, and the slot is
 * known by the parent's. */
struct name_path {
	uint64_t hash;
	bool starred;
};

static inline struct name_path name_path_down(struct name_path parent, const struct name_label *label, const char *end)
{
	bool starred = parent.starred || name_label_is_star(label);

	if (!starred)
		return (struct name_path){ name_hash(label->text, (size_t)(end - label->text)), false };
	return (struct name_path){ name_mix(parent.hash + name_hash(label->text, label->len), 0xa0761d6478bd642fu),
				   true };
}
