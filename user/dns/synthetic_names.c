/* SPDX-License-Identifier: MIT */
#include "dns/synthetic_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "vocab/limits.h"
#include "wire/hostname.h"

_Static_assert(NP_NAMES_PER_SESSION < UINT16_MAX, "indexes are kept in 16 bits");

struct entry {
	char *name; /* NULL: the index was never given out */
	uint64_t used_ms;
	/* Other entries, by their index; 0: none */
	uint16_t chain; /* of the same bucket */
	uint16_t newer, older;
};

/* Not base/table.h: strangers fill it, and its nodes of 24 bytes with pointers between them would take a fifth more than
 * indexes of 16 bits do. */
struct names {
	struct hash_key key;
	struct entry *entries; /* of index 1 and up */
	size_t size;
	uint16_t *buckets; /* n_buckets, a power of two, at least as many as entries */
	size_t n_buckets;
	size_t count;
	uint32_t fresh; /* no index below was never given out */
	uint16_t newest, oldest;
};

static struct entry *entry_at(const struct names *names, uint32_t index)
{
	return &names->entries[index - 1];
}

/* -- by name ------------------------------------------------------------------- */

static uint16_t *bucket_of(const struct names *names, const char *name)
{
	return &names->buckets[hash_text(&names->key, name) & (names->n_buckets - 1)];
}

static void bucket_add(struct names *names, uint32_t index)
{
	struct entry *e = entry_at(names, index);
	uint16_t *bucket = bucket_of(names, e->name);

	e->chain = *bucket;
	*bucket = (uint16_t)index;
}

static void bucket_remove(struct names *names, uint32_t index)
{
	struct entry *e = entry_at(names, index);
	uint16_t *p = bucket_of(names, e->name);

	while (*p != index)
		p = &entry_at(names, *p)->chain;
	*p = e->chain;
}

/* 0: none */
static uint32_t index_of(const struct names *names, const char *name)
{
	uint32_t index = names->n_buckets ? *bucket_of(names, name) : 0;

	while (index && strcmp(entry_at(names, index)->name, name) != 0)
		index = entry_at(names, index)->chain;
	return index;
}

/* -- by use -------------------------------------------------------------------- */

static void use_unlink(struct names *names, uint32_t index)
{
	struct entry *e = entry_at(names, index);

	*(e->newer ? &entry_at(names, e->newer)->older : &names->newest) = e->older;
	*(e->older ? &entry_at(names, e->older)->newer : &names->oldest) = e->newer;
}

static void use_link(struct names *names, uint32_t index, uint64_t now_ms)
{
	struct entry *e = entry_at(names, index);

	e->used_ms = now_ms;
	e->newer = 0;
	e->older = names->newest;
	*(e->older ? &entry_at(names, e->older)->newer : &names->oldest) = (uint16_t)index;
	names->newest = (uint16_t)index;
}

static void entry_use(struct names *names, uint32_t index, uint64_t now_ms)
{
	/* A clock that goes back must not make an entry look older than it is. */
	if (now_ms < entry_at(names, index)->used_ms)
		now_ms = entry_at(names, index)->used_ms;
	use_unlink(names, index);
	use_link(names, index, now_ms);
}

static bool entry_rests(const struct entry *e, uint64_t now_ms)
{
	return now_ms >= e->used_ms && now_ms - e->used_ms >= NP_NAME_REST_MS;
}

/* -- indexes --------------------------------------------------------------------- */

/* Room for an entry of that index, and for a list in each bucket that is one long, about. */
static int names_grow(struct names *names, uint32_t index)
{
	size_t size = names->size;
	uint16_t *buckets;
	int e = ARRAY_RESERVE(names->entries, names->size, index);

	if (e < 0)
		return e;
	memset(names->entries + size, 0, (names->size - size) * sizeof(*names->entries));
	if (names->n_buckets >= names->size)
		return 0;
	buckets = calloc(names->size, sizeof(*buckets)); /* sizes double from 16, so they are powers of two */
	if (!buckets)
		return -ENOMEM;
	free(names->buckets);
	names->buckets = buckets;
	names->n_buckets = names->size;
	for (uint32_t i = 1; i <= size; i++)
		if (entry_at(names, i)->name)
			bucket_add(names, i);
	return 0;
}

/* An index that may be given out: a new one, or that of the entry which was not used for the longest time. */
static int index_pick(struct names *names, uint64_t now_ms, uint32_t *ret)
{
	while (names->fresh <= names->size && entry_at(names, names->fresh)->name)
		names->fresh++;
	if (names->fresh <= NP_NAMES_PER_SESSION) {
		*ret = names->fresh;
		return names_grow(names, names->fresh);
	}
	if (!entry_rests(entry_at(names, names->oldest), now_ms))
		return -ENOSPC;
	*ret = names->oldest;
	return 0;
}

static void entry_take(struct names *names, uint32_t index, char *name, uint64_t now_ms)
{
	struct entry *e = entry_at(names, index);

	if (e->name) {
		bucket_remove(names, index);
		use_unlink(names, index);
		free(e->name);
		names->count--;
	}
	e->name = name;
	bucket_add(names, index);
	use_link(names, index, now_ms);
	names->count++;
}

static bool is_name(const char *name)
{
	size_t len = strnlen(name, NAME_SIZE);

	return len > 0 && len < NAME_SIZE;
}

/* -- verbs ------------------------------------------------------------------------ */

int names_new(const struct hash_key *key, struct names **ret)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->key = *key;
	names->fresh = 1;
	*ret = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->size; i++)
		free(names->entries[i].name);
	free(names->entries);
	free(names->buckets);
	free(names);
}

int names_get(struct names *names, const char *name, uint64_t now_ms, uint32_t *ret_index)
{
	uint32_t index;
	char *copy;
	int e;

	if (!is_name(name))
		return -EINVAL;
	index = index_of(names, name);
	if (index) {
		entry_use(names, index, now_ms);
		*ret_index = index;
		return 0;
	}
	e = index_pick(names, now_ms, &index);
	if (e < 0)
		return e;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	entry_take(names, index, copy, now_ms);
	*ret_index = index;
	return 0;
}

const char *names_find(const struct names *names, uint32_t index)
{
	return index >= 1 && index <= names->size ? entry_at(names, index)->name : NULL;
}

uint32_t names_index(const struct names *names, const char *name)
{
	return index_of(names, name);
}

uint64_t names_used_ms(const struct names *names, uint32_t index)
{
	return names_find(names, index) ? entry_at(names, index)->used_ms : 0;
}

void names_touch(struct names *names, uint32_t index, uint64_t now_ms)
{
	if (names_find(names, index))
		entry_use(names, index, now_ms);
}

int names_restore(struct names *names, uint32_t index, const char *name, uint64_t now_ms)
{
	uint32_t there;
	char *copy;
	int e;

	if (index < 1 || index > NP_NAMES_PER_SESSION || !is_name(name))
		return -EINVAL;
	there = index_of(names, name);
	if (there == index) {
		entry_use(names, index, now_ms);
		return 0;
	}
	if (there)
		return -EEXIST;
	e = names_grow(names, index);
	if (e < 0)
		return e;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	entry_take(names, index, copy, now_ms);
	return 0;
}

size_t names_count(const struct names *names)
{
	return names->count;
}
