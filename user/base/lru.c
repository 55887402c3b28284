/* SPDX-License-Identifier: MIT */
#include "base/lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"

struct entry {
	struct table_node node;
	struct entry *newer, *older;
	void *value;
	uint16_t len;
	unsigned char key[];
};

struct lru {
	struct table table;
	struct hash_key key;
	size_t max;
	struct entry *newest, *oldest;
	void (*free_value)(void *);
};

int lru_new(size_t max, void (*free_value)(void *value), struct lru **ret)
{
	_free_ struct lru *lru = calloc(1, sizeof(*lru));
	int r = lru ? hash_key_make(&lru->key) : -ENOMEM;

	if (r < 0)
		return r;
	lru->max = max;
	lru->free_value = free_value;
	*ret = take_ptr(lru);
	return 0;
}

static struct entry *lru_find(const struct lru *lru, const void *key, size_t len, uint64_t hash)
{
	return TABLE_FIND(&lru->table, hash, struct entry, node, e, e->len == len && memcmp(e->key, key, len) == 0);
}

static void lru_unlink(struct lru *lru, struct entry *e)
{
	*(e->newer ? &e->newer->older : &lru->newest) = e->older;
	*(e->older ? &e->older->newer : &lru->oldest) = e->newer;
}

static void lru_link(struct lru *lru, struct entry *e)
{
	e->newer = NULL;
	e->older = lru->newest;
	*(lru->newest ? &lru->newest->newer : &lru->oldest) = e;
	lru->newest = e;
}

static void lru_remove(struct lru *lru, struct entry *e)
{
	table_remove(&lru->table, &e->node);
	lru_unlink(lru, e);
	lru->free_value(e->value);
	free(e);
}

void lru_free(struct lru *lru)
{
	if (!lru)
		return;
	while (lru->oldest)
		lru_remove(lru, lru->oldest);
	table_clear(&lru->table);
	free(lru);
}

void *lru_get(struct lru *lru, const void *key, size_t len)
{
	struct entry *e = lru_find(lru, key, len, hash_bytes(&lru->key, key, len));

	if (!e)
		return NULL;
	lru_unlink(lru, e);
	lru_link(lru, e);
	return e->value;
}

int lru_put(struct lru *lru, const void *key, size_t len, void *value)
{
	uint64_t hash = hash_bytes(&lru->key, key, len);
	struct entry *e = lru_find(lru, key, len, hash);

	if (e) {
		lru->free_value(e->value);
		e->value = value;
		lru_unlink(lru, e);
		lru_link(lru, e);
		return 0;
	}
	if (len > LRU_KEY_MAX)
		return -EINVAL;
	if (table_reserve(&lru->table) < 0)
		return -ENOMEM;
	e = malloc(sizeof(*e) + len);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){ .value = value, .len = (uint16_t)len };
	memcpy(e->key, key, len);
	table_add(&lru->table, &e->node, hash);
	lru_link(lru, e);
	if (lru->table.count > lru->max)
		lru_remove(lru, lru->oldest);
	return 0;
}

void lru_drop(struct lru *lru, const void *key, size_t len)
{
	struct entry *e = lru_find(lru, key, len, hash_bytes(&lru->key, key, len));

	if (e)
		lru_remove(lru, e);
}

size_t lru_count(const struct lru *lru)
{
	return lru->table.count;
}
