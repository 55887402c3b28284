/* SPDX-License-Identifier: MIT */
/* The hash of all tables. Strangers choose what is in many of them: without its key nobody can pick names that fall into
 * one bucket. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct hash_key {
	uint64_t words[2]; /* random, and secret */
};

/* 0 or -EIO */
static inline int hash_key_make(struct hash_key *ret)
{
	return getrandom(ret, sizeof(*ret), 0) == sizeof(*ret) ? 0 : -EIO;
}

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_bytes(const struct hash_key *key, const char *data, size_t len)
{
	uint64_t hash = key->words[0] ^ len, piece;

	for (; len >= sizeof(piece); data += sizeof(piece), len -= sizeof(piece)) {
		memcpy(&piece, data, sizeof(piece));
		hash = hash_mix(hash ^ piece, key->words[1]);
	}
	piece = 0;
	memcpy(&piece, data, len);
	return hash_mix(hash ^ piece, key->words[1]);
}

static inline uint64_t hash_text(const struct hash_key *key, const char *text)
{
	return hash_bytes(key, text, strlen(text));
}

static inline uint64_t hash_number(const struct hash_key *key, uint64_t number)
{
	return hash_mix(hash_mix(number ^ key->words[0], key->words[1]) ^ key->words[0], key->words[1]);
}

/* The same in every process, for bytes that nobody has chosen to meet others: numbers of the kernel, an operator's. */
static inline uint64_t hash_mark(const void *data, size_t len)
{
	static const struct hash_key key = { { 0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u } };

	return hash_bytes(&key, data, len);
}
