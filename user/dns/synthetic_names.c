/* SPDX-License-Identifier: MIT */
#include "dns/synthetic_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "synth.h"
#include "vocab/limits.h"
#include "wire/hostname.h"

_Static_assert(NP_NAMES_PER_SESSION < UINT16_MAX && NP_REFUSED_NAMES < UINT16_MAX, "numbers are kept in 16 bits");
_Static_assert(NAMES_ALL < NP_SYNTH4_COUNT, "each has an IPv4 address");

static const struct budget {
	uint32_t before, max; /* indexes before + 1 to before + max */
	uint64_t rest_ms;     /* how long one is not given to another name */
} budgets[NAMES_KINDS] = {
	[NAMES_ALLOWED] = { 0, NP_NAMES_PER_SESSION, NP_NAME_REST_MS },
	[NAMES_REFUSED] = { NP_NAMES_PER_SESSION, NP_REFUSED_NAMES, NP_REFUSED_REST_MS },
};

struct entry {
	char *name; /* NULL: the index was never given out */
	uint64_t used_ms;
	/* Other entries, by their index; 0: none */
	uint16_t chain; /* of the same bucket */
	uint16_t newer, older;
};

/* Not base/table.h: strangers fill it, and its nodes of 24 bytes with pointers between them would take a fifth more than
 * indexes of 16 bits do. */
struct name_pool {
	struct hash_key key;
	const struct budget *budget;
	struct entry *entries; /* of number 1 and up: an index is that and what its budget begins with */
	size_t size;
	uint16_t *buckets; /* n_buckets, a power of two, at least as many as entries */
	size_t n_buckets;
	size_t count;
	uint32_t fresh; /* no index below was never given out */
	uint16_t newest, oldest;
};

static struct entry *entry_at(const struct name_pool *pool, uint32_t index)
{
	return &pool->entries[index - 1];
}

/* -- by name ------------------------------------------------------------------- */

static uint16_t *bucket_of(const struct name_pool *pool, const char *name)
{
	return &pool->buckets[hash_text(&pool->key, name) & (pool->n_buckets - 1)];
}

static void bucket_add(struct name_pool *pool, uint32_t index)
{
	struct entry *e = entry_at(pool, index);
	uint16_t *bucket = bucket_of(pool, e->name);

	e->chain = *bucket;
	*bucket = (uint16_t)index;
}

static void bucket_remove(struct name_pool *pool, uint32_t index)
{
	struct entry *e = entry_at(pool, index);
	uint16_t *p = bucket_of(pool, e->name);

	while (*p != index)
		p = &entry_at(pool, *p)->chain;
	*p = e->chain;
}

/* 0: none */
static uint32_t index_of(const struct name_pool *pool, const char *name)
{
	uint32_t index = pool->n_buckets ? *bucket_of(pool, name) : 0;

	while (index && strcmp(entry_at(pool, index)->name, name) != 0)
		index = entry_at(pool, index)->chain;
	return index;
}

/* -- by use -------------------------------------------------------------------- */

static void use_unlink(struct name_pool *pool, uint32_t index)
{
	struct entry *e = entry_at(pool, index);

	*(e->newer ? &entry_at(pool, e->newer)->older : &pool->newest) = e->older;
	*(e->older ? &entry_at(pool, e->older)->newer : &pool->oldest) = e->newer;
}

static void use_link(struct name_pool *pool, uint32_t index, uint64_t now_ms)
{
	struct entry *e = entry_at(pool, index);

	e->used_ms = now_ms;
	e->newer = 0;
	e->older = pool->newest;
	*(e->older ? &entry_at(pool, e->older)->newer : &pool->oldest) = (uint16_t)index;
	pool->newest = (uint16_t)index;
}

static void entry_use(struct name_pool *pool, uint32_t index, uint64_t now_ms)
{
	/* A clock that goes back must not make an entry look older than it is. */
	if (now_ms < entry_at(pool, index)->used_ms)
		now_ms = entry_at(pool, index)->used_ms;
	use_unlink(pool, index);
	use_link(pool, index, now_ms);
}

static bool entry_rests(const struct name_pool *pool, const struct entry *e, uint64_t now_ms)
{
	return now_ms >= e->used_ms && now_ms - e->used_ms >= pool->budget->rest_ms;
}

/* -- indexes --------------------------------------------------------------------- */

/* Room for an entry of that index, and for a list in each bucket that is one long, about. */
static int pool_grow(struct name_pool *pool, uint32_t index)
{
	size_t size = pool->size;
	uint16_t *buckets;
	int e = ARRAY_RESERVE(pool->entries, pool->size, index);

	if (e < 0)
		return e;
	memset(pool->entries + size, 0, (pool->size - size) * sizeof(*pool->entries));
	if (pool->n_buckets >= pool->size)
		return 0;
	buckets = calloc(pool->size, sizeof(*buckets)); /* sizes double from 16, so they are powers of two */
	if (!buckets)
		return -ENOMEM;
	free(pool->buckets);
	pool->buckets = buckets;
	pool->n_buckets = pool->size;
	for (uint32_t i = 1; i <= size; i++)
		if (entry_at(pool, i)->name)
			bucket_add(pool, i);
	return 0;
}

/* An index that may be given out: a new one, or that of the entry which was not used for the longest time. */
static int index_pick(struct name_pool *pool, uint64_t now_ms, uint32_t *ret)
{
	while (pool->fresh <= pool->size && entry_at(pool, pool->fresh)->name)
		pool->fresh++;
	if (pool->fresh <= pool->budget->max) {
		*ret = pool->fresh;
		return pool_grow(pool, pool->fresh);
	}
	if (!entry_rests(pool, entry_at(pool, pool->oldest), now_ms))
		return -ENOSPC;
	*ret = pool->oldest;
	return 0;
}

static int entry_take(struct name_pool *pool, uint32_t index, const char *name, uint64_t now_ms)
{
	struct entry *e = entry_at(pool, index);
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	if (e->name) {
		bucket_remove(pool, index);
		use_unlink(pool, index);
		free(e->name);
		pool->count--;
	}
	e->name = copy;
	bucket_add(pool, index);
	use_link(pool, index, now_ms);
	pool->count++;
	return 0;
}

static bool is_name(const char *name)
{
	size_t len = strnlen(name, NAME_SIZE);

	return len > 0 && len < NAME_SIZE;
}

/* -- verbs ------------------------------------------------------------------------ */

struct names {
	struct name_pool pools[NAMES_KINDS];
};

int names_new(const struct hash_key *key, struct names **ret)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	for (unsigned i = 0; i < NAMES_KINDS; i++)
		names->pools[i] = (struct name_pool){ .key = *key, .budget = &budgets[i], .fresh = 1 };
	*ret = names;
	return 0;
}

static void pool_clear(struct name_pool *pool)
{
	for (size_t i = 0; i < pool->size; i++)
		free(pool->entries[i].name);
	free(pool->entries);
	free(pool->buckets);
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (unsigned i = 0; i < NAMES_KINDS; i++)
		pool_clear(&names->pools[i]);
	free(names);
}

/* Whose index it is, and its number there. An index that is nobody's is none of the first one's. */
static const struct name_pool *pool_of(const struct names *names, uint32_t index, uint32_t *ret_number)
{
	const struct name_pool *pool = &names->pools[index > NP_NAMES_PER_SESSION ? NAMES_REFUSED : NAMES_ALLOWED];

	*ret_number = index - pool->budget->before;
	return pool;
}

int names_get(struct names *names, enum names_kind kind, const char *name, uint64_t now_ms, uint32_t *ret_index)
{
	struct name_pool *pool = &names->pools[kind];
	uint32_t number;
	int e;

	if (!is_name(name))
		return -EINVAL;
	number = index_of(pool, name);
	if (number) {
		entry_use(pool, number, now_ms);
		*ret_index = pool->budget->before + number;
		return 0;
	}
	e = index_pick(pool, now_ms, &number);
	if (e < 0)
		return e;
	e = entry_take(pool, number, name, now_ms);
	if (e < 0)
		return e;
	*ret_index = pool->budget->before + number;
	return 0;
}

static struct entry *entry_find(const struct names *names, uint32_t index)
{
	uint32_t number;
	const struct name_pool *pool = pool_of(names, index, &number);

	return number >= 1 && number <= pool->size && entry_at(pool, number)->name ? entry_at(pool, number) : NULL;
}

const char *names_find(const struct names *names, uint32_t index)
{
	const struct entry *entry = entry_find(names, index);

	return entry ? entry->name : NULL;
}

uint32_t names_index(const struct names *names, enum names_kind kind, const char *name)
{
	uint32_t number = index_of(&names->pools[kind], name);

	return number ? budgets[kind].before + number : 0;
}

uint64_t names_used_ms(const struct names *names, uint32_t index)
{
	const struct entry *entry = entry_find(names, index);

	return entry ? entry->used_ms : 0;
}

void names_touch(struct names *names, uint32_t index, uint64_t now_ms)
{
	uint32_t number;
	struct name_pool *pool = (struct name_pool *)pool_of(names, index, &number);

	if (names_find(names, index))
		entry_use(pool, number, now_ms);
}

int names_restore(struct names *names, uint32_t index, const char *name, uint64_t now_ms)
{
	uint32_t there, number;
	struct name_pool *pool = (struct name_pool *)pool_of(names, index, &number);
	int e;

	if (number < 1 || number > pool->budget->max || !is_name(name))
		return -EINVAL;
	there = index_of(pool, name);
	if (there == number) {
		entry_use(pool, number, now_ms);
		return 0;
	}
	if (there)
		return -EEXIST;
	e = pool_grow(pool, number);
	if (e < 0)
		return e;
	return entry_take(pool, number, name, now_ms);
}

size_t names_count(const struct names *names, enum names_kind kind)
{
	return names->pools[kind].count;
}
