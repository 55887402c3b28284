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

uint64_t hash_number(uint64_t seed, uint64_t number)
{
	uint64_t h = number ^ seed;

	/* The finalizer of MurmurHash3: every bit of the input moves every bit of the output. */
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

uint64_t hash_text(uint64_t seed, const char *text)
{
	uint64_t factor = hash_number(seed, 0) | 1;
	uint64_t h = seed;

	/* A polynomial in a secret factor: without the factor nobody finds short texts that
	 * collide. */
	for (; *text; text++)
		h = (h + (unsigned char)*text + 1) * factor;
	return hash_number(seed, h);
}
