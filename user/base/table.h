/* SPDX-License-Identifier: MIT */
/*
 * A hash table whose nodes live inside the things it finds: adding to a table that was
 * reserved cannot fail. It owns no thing. Keys are the caller's: it hashes (base/hash.h) and compares.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table_node {
	struct table_node *next;
	uint64_t hash;
};

struct table {
	struct table_node **buckets;
	size_t size; /* a power of two, or 0 */
	size_t count;
};

int table_reserve(struct table *table);					     /* room for one more: 0 or -ENOMEM */
void table_add(struct table *table, struct table_node *node, uint64_t hash); /* after table_reserve() */
void table_remove(struct table *table, struct table_node *node);
void table_clear(struct table *table);

/* The nodes of a hash, one after another; NULL at the end. Different keys may share a hash. */
struct table_node *table_first(const struct table *table, uint64_t hash);
struct table_node *table_next(const struct table_node *node);

/* All nodes, in no order: the first for NULL, then the one after node, which must still be in the table. */
struct table_node *table_walk(const struct table *table, const struct table_node *node);

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* The thing, of that type and with its node in that member, that has the hash and for which `match`, an expression in `thing`,
 * holds; NULL when there is none. */
#define TABLE_FIND(table, hash, type, member, thing, match)          \
	({                                                           \
		type *thing = NULL;                                  \
		struct table_node *node_ = table_first(table, hash); \
		for (; node_; node_ = table_next(node_)) {           \
			thing = container_of(node_, type, member);   \
			if (match)                                   \
				break;                               \
		}                                                    \
		node_ ? thing : NULL;                                \
	})
