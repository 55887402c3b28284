/* SPDX-License-Identifier: MIT */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_SIZE_MIN 64

int table_reserve(struct table *table)
{
	struct table_node **buckets;
	size_t size;

	if (table->count < table->size)
		return 0;
	size = table->size ? table->size * 2 : TABLE_SIZE_MIN;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	for (size_t i = 0; i < table->size; i++) {
		struct table_node *node = table->buckets[i];

		while (node) {
			struct table_node *next = node->next;
			struct table_node **bucket = &buckets[node->hash & (size - 1)];

			node->next = *bucket;
			*bucket = node;
			node = next;
		}
	}
	free(table->buckets);
	table->buckets = buckets;
	table->size = size;
	return 0;
}

void table_add(struct table *table, struct table_node *node, uint64_t hash)
{
	struct table_node **bucket = &table->buckets[hash & (table->size - 1)];

	node->hash = hash;
	node->next = *bucket;
	*bucket = node;
	table->count++;
}

void table_remove(struct table *table, struct table_node *node)
{
	struct table_node **link = &table->buckets[node->hash & (table->size - 1)];

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	table->count--;
}

void table_clear(struct table *table)
{
	free(table->buckets);
	*table = (struct table){ 0 };
}

struct table_node *table_next(const struct table_node *node)
{
	struct table_node *next = node->next;

	while (next && next->hash != node->hash)
		next = next->next;
	return next;
}

struct table_node *table_first(const struct table *table, uint64_t hash)
{
	struct table_node *node;

	if (!table->size)
		return NULL;
	node = table->buckets[hash & (table->size - 1)];
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct table_node *table_walk(const struct table *table, const struct table_node *node)
{
	if (node && node->next)
		return node->next;
	for (size_t i = node ? (node->hash & (table->size - 1)) + 1 : 0; i < table->size; i++)
		if (table->buckets[i])
			return table->buckets[i];
	return NULL;
}
