/* SPDX-License-Identifier: MIT */
#include "net/slab.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"

#define SMALLEST 8192 /* what is smaller is malloc()'s: an SSL has 7.5 KiB and stays */
#define SLOTS	 8192 /* of each size. When there are no more: malloc() */
#define WARM	 8    /* free slots that keep their memory although they were not used recently */
#define TRIM_MAX 512  /* slots of one size that one slab_trim() gives back: a millisecond */
#define PAGE	 ((size_t)4096)

/* Slots of one size, side by side. Which ones are free is noted elsewhere, for a note in a slot would take a page. */
struct pool {
	size_t size;
	char *base;
	unsigned used; /* slots that ever were */
	unsigned n_free;
	unsigned least;	 /* that were free since the last slab_trim() */
	unsigned n_cold; /* so many at the bottom of free have given their memory back */
	uint16_t free[SLOTS];
};

static struct pool pools[] = {
	{ .size = 6 * PAGE },  /* a record to write; a message of a handshake; a chunk of a queue */
	{ .size = 10 * PAGE }, /* two records that are read at once */
};

static struct pool *pool_of(const void *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++)
		if (pools[i].base && (uintptr_t)p - (uintptr_t)pools[i].base < pools[i].size * SLOTS)
			return &pools[i];
	return NULL;
}

static void *pool_take(struct pool *pool)
{
	unsigned slot;

	if (pool->n_free) {
		slot = pool->free[--pool->n_free];
		if (pool->least > pool->n_free)
			pool->least = pool->n_free;
		if (pool->n_cold > pool->n_free)
			pool->n_cold = pool->n_free;
	} else if (pool->base && pool->used < SLOTS) {
		slot = pool->used++;
	} else {
		return NULL;
	}
	return pool->base + slot * pool->size;
}

void *slab_alloc(size_t size)
{
	void *p = NULL;

	if (size > SMALLEST)
		for (size_t i = 0; !p && i < ARRAY_SIZE(pools); i++)
			if (size <= pools[i].size)
				p = pool_take(&pools[i]);
	return p ? p : malloc(size);
}

void slab_free(void *p)
{
	struct pool *pool = pool_of(p);

	if (!pool) {
		free(p);
		return;
	}
	if (pool->n_free == pool->used)
		abort(); /* one was freed twice */
	pool->free[pool->n_free++] = (uint16_t)((size_t)((char *)p - pool->base) / pool->size);
}

void slab_trim(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		struct pool *pool = &pools[i];
		unsigned most = pool->n_cold + TRIM_MAX;

		/* A failure costs memory and nothing else. */
		for (; pool->n_cold + WARM < pool->least && pool->n_cold < most; pool->n_cold++)
			madvise(pool->base + pool->free[pool->n_cold] * pool->size, pool->size, MADV_DONTNEED);
		pool->least = pool->n_free;
	}
}

void *slab_realloc(void *p, size_t size)
{
	const struct pool *pool = pool_of(p);
	void *larger;

	if (!p)
		return slab_alloc(size);
	if (!pool)
		return realloc(p, size);
	if (size && size <= pool->size)
		return p;
	larger = size ? slab_alloc(size) : NULL;
	if (larger)
		memcpy(larger, p, pool->size);
	if (larger || !size)
		slab_free(p);
	return larger;
}

/* -- OpenSSL's ------------------------------------------------------------- */

static void *openssl_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return slab_alloc(size);
}

static void *openssl_realloc(void *p, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return slab_realloc(p, size);
}

static void openssl_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	slab_free(p);
}

int slab_init(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 0; /* what is read behind the end of a slot, or after it was freed, is to be seen */
#endif
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		void *base = mmap(NULL, pools[i].size * SLOTS, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base == MAP_FAILED)
			return -errno;
		pools[i].base = base;
	}
	return CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) ? 0 : -EALREADY;
}
