/* SPDX-License-Identifier: MIT */
#include "base/lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct entry {
	struct entry *chain; /* next of the same bucket */
	struct entry *newer, *older;
	void *value;
	uint32_t hash;
	uint16_t len;
	unsigned char key[];
};

struct lru {
	struct entry **buckets;
	size_t mask, count, max;
	struct entry *newest, *oldest;
	void (*free_value)(void *);
};

int lru_new(size_t max, void (*free_value)(void *value), struct lru **ret)
{
	_free_ struct lru *lru = calloc(1, sizeof(*lru));
	size_t size = 16;

	while (size < max)
		size *= 2;
	if (!lru)
		return -ENOMEM;
	lru->buckets = calloc(size, sizeof(*lru->buckets));
	if (!lru->buckets)
		return -ENOMEM; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	lru->mask = size - 1;
	lru->max = max;
	lru->free_value = free_value;
	*ret = take_ptr(lru);
	return 0;
}

/* FNV-1a. Someone who finds names that collide makes his own table of at most max entries a list. */
static uint32_t hash_key(const unsigned char *key, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ key[i]) * 16777619u;
	return h ^ h >> 15;
}

static struct entry **lru_find(struct lru *lru, const void *key, size_t len, uint32_t hash)
{
	struct entry **p = &lru->buckets[hash & lru->mask];

	while (*p && ((*p)->hash != hash || (*p)->len != len || memcmp((*p)->key, key, len) != 0))
		p = &(*p)->chain;
	return p;
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

static void lru_remove(struct lru *lru, struct entry **p)
{
	struct entry *e = *p;

	*p = e->chain;
	lru_unlink(lru, e);
	lru->count--;
	lru->free_value(e->value);
	free(e);
}

void lru_free(struct lru *lru)
{
	if (!lru)
		return;
	while (lru->oldest)
		lru_remove(lru, lru_find(lru, lru->oldest->key, lru->oldest->len, lru->oldest->hash));
	free(lru->buckets);
	free(lru);
}

void *lru_get(struct lru *lru, const void *key, size_t len)
{
	struct entry *e = *lru_find(lru, key, len, hash_key(key, len));

	if (!e)
		return NULL;
	lru_unlink(lru, e);
	lru_link(lru, e);
	return e->value;
}

int lru_put(struct lru *lru, const void *key, size_t len, void *value)
{
	uint32_t hash = hash_key(key, len);
	struct entry *e = *lru_find(lru, key, len, hash);

	if (e) {
		lru->free_value(e->value);
		e->value = value;
		lru_unlink(lru, e);
		lru_link(lru, e);
		return 0;
	}
	if (len > LRU_KEY_MAX)
		return -EINVAL;
	e = malloc(sizeof(*e) + len);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){
		.chain = lru->buckets[hash & lru->mask], .value = value, .hash = hash, .len = (uint16_t)len
	};
	memcpy(e->key, key, len);
	lru->buckets[hash & lru->mask] = e;
	lru_link(lru, e);
	lru->count++;
	if (lru->count > lru->max)
		lru_remove(lru, lru_find(lru, lru->oldest->key, lru->oldest->len, lru->oldest->hash));
	return 0;
}

void lru_drop(struct lru *lru, const void *key, size_t len)
{
	struct entry **p = lru_find(lru, key, len, hash_key(key, len));

	if (*p)
		lru_remove(lru, p);
}

size_t lru_count(const struct lru *lru)
{
	return lru->count;
}
