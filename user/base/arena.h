/* SPDX-License-Identifier: MIT */
/* Memory that is given out piece by piece and freed all at once, up to a bound. */
#pragma once

#include <stddef.h>

struct arena;

int arena_new(size_t max, struct arena **ret); /* 0 or -ENOMEM */
void arena_free(struct arena *arena);	       /* NULL is fine */

/* Zeroed, aligned for any type; NULL when max would be passed or memory ran out. count * size is checked. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
char *arena_text(struct arena *arena, const char *text, size_t len); /* a copy with a NUL behind it */

static inline void arena_free_cleanup(struct arena **arena)
{
	arena_free(*arena);
}
#define _arena_ __attribute__((__cleanup__(arena_free_cleanup)))
