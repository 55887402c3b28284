/* SPDX-License-Identifier: MIT */
/* A table that keeps its most recently used entries, so many and no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct lru;

int lru_new(size_t max, void (*free_value)(void *value), struct lru **ret); /* 0, -ENOMEM or -EIO */
void lru_free(struct lru *lru);						    /* NULL is fine */

void *lru_get(struct lru *lru, const void *key, size_t len); /* the lru's; NULL when there is none */
/* Takes value on success only, and frees the one that was there. 0, -ENOMEM or -EINVAL (a key over LRU_KEY_MAX). */
int lru_put(struct lru *lru, const void *key, size_t len, void *value);
void lru_drop(struct lru *lru, const void *key, size_t len);
size_t lru_count(const struct lru *lru);

#define LRU_KEY_MAX 288
