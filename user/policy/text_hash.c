/* SPDX-License-Identifier: MIT */
#include "policy/text_hash.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>

void text_hash(const char *text, size_t len, char ret[static TEXT_HASH_SIZE])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx hash;

	sha256_init(&hash);
	sha256_update(&hash, len, (const uint8_t *)(text ? text : ""));
	sha256_digest(&hash, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
