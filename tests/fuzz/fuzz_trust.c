/* SPDX-License-Identifier: MIT */
/* Random bytes as certificates: a key store whose lengths add up, or an error. */
#include "launch/nssdb.c"
#include "launch/sqlite_file.c"
#include "launch/trust.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t number(const struct buf *b, size_t at, size_t width)
{
	size_t value = 0;

	check(at + width <= b->len);
	for (size_t i = 0; i < width; i++)
		value = value << 8 | (uint8_t)b->data[at + i];
	return value;
}

static void store_check(const struct buf *store)
{
	size_t at = 12, count = number(store, 8, 4);

	check(count >= 1);
	for (size_t i = 0; i < count; i++) {
		at += 4;
		at += 2 + number(store, at, 2) + 8;
		at += 2 + number(store, at, 2);
		at += 4 + number(store, at, 4);
	}
	check(at + SHA1_DIGEST_SIZE == store->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t half = size ? data[0] * size / 256 : 0;
	char *system = malloc(half + 1), *authority = malloc(size - half + 1); /* they end where the bytes end */
	struct trust trust;

	check(system && authority);
	memcpy(system, data, half);
	memcpy(authority, data + half, size - half);
	if (trust_make(system, half, authority, size - half, &trust) == 0)
		store_check(&trust.store);
	trust_free(&trust);
	free(system);
	free(authority);
	return 0;
}
