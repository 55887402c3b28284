/* SPDX-License-Identifier: MIT */
/* What HTTP's grammar says about single bytes, eight at a time where that pays. */
#ifndef NP_WIRE_BYTES_H
#define NP_WIRE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern const bool token_bytes[256]; /* RFC 9110, 5.6.2 */

/* Where the first control byte is (tab and DEL are some), from i on; len when there is none. */
static inline size_t bytes_find_control(const char *data, size_t i, size_t len)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;

	for (; len - i >= 8; i += 8) {
		uint64_t w, del, found;

		memcpy(&w, data + i, 8);
		w = le64toh(w);
		del = w ^ 0x7f * ones;
		/* Borrows run upwards only, so the lowest bit that is set is a true one. */
		found = (((w - 0x20 * ones) & ~w) | ((del - ones) & ~del)) & high;
		if (found)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	for (; i < len; i++)
		if ((unsigned char)data[i] < 0x20 || data[i] == 0x7f)
			return i;
	return len;
}

#endif
