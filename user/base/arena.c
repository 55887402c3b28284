/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK	  (64u << 10)
#define HUGE_PAGE ((size_t)2 << 20)

struct chunk {
	struct chunk *next;
	alignas(max_align_t) char data[];
};

struct arena {
	struct chunk *chunks;
	char *at;
	size_t left; /* in the newest chunk */
	size_t used, max;
};

int arena_new(size_t max, struct arena **ret)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return -ENOMEM;
	arena->max = max;
	*ret = arena;
	return 0;
}

void arena_free(struct arena *arena)
{
	struct chunk *next;

	if (!arena)
		return;
	for (struct chunk *chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(arena);
}

/* A table of many megabytes is read here and there: with pages of 4 KiB each look would also wait for its page to be found.
 * Without such pages it is as it was. */
static void pages_enlarge(char *data, size_t bytes)
{
	char *first = data + (-(uintptr_t)data & (HUGE_PAGE - 1)), *end = data + bytes;

	end -= (uintptr_t)end & (HUGE_PAGE - 1);
	if (bytes >= 2 * HUGE_PAGE)
		madvise(first, (size_t)(end - first), MADV_HUGEPAGE);
}

/* A chunk of its own for what is large, so that the room left in the newest one is not lost. */
static void *arena_large(struct arena *arena, size_t bytes)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk) + bytes);

	if (!chunk)
		return NULL;
	pages_enlarge(chunk->data, bytes);
	if (arena->chunks) {
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
	} else {
		arena->chunks = chunk;
	}
	return chunk->data;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct chunk *chunk;
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > arena->max)
		return NULL;
	bytes = bytes ? (bytes + align - 1) / align * align : align; /* of nothing, too, there is an address */
	if (bytes > arena->max - arena->used)
		return NULL;
	arena->used += bytes;
	if (bytes > CHUNK / 4)
		return arena_large(arena, bytes);
	if (bytes > arena->left) {
		chunk = calloc(1, sizeof(*chunk) + CHUNK);
		if (!chunk)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->at = chunk->data;
		arena->left = CHUNK;
	}
	p = arena->at;
	arena->at += bytes;
	arena->left -= bytes;
	return p;
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1, 1) : NULL;

	if (copy)
		memcpy(copy, text, len);
	return copy;
}
