/* SPDX-License-Identifier: MIT */
/* A hash for tables whose keys strangers choose: without its key nobody can pick some that fall into one bucket. */
#ifndef NP_BASE_HASH_H
#define NP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash_key {
	uint64_t words[2]; /* random, and secret */
};

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

/* A name for bytes that nobody has chosen to meet others. */
static inline uint64_t hash_mark(const char *data, size_t len)
{
	static const struct hash_key key = { { 0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u } };

	return hash_bytes(&key, data, len);
}

#endif
