/* SPDX-License-Identifier: MIT */
/* What HTTP's grammar says about single bytes, many at a time where that pays. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Letters of ASCII in lower case, other bytes as they are. */
static inline void bytes_lower_word(char *to, const char *from)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
	uint64_t w, low, upper;

	memcpy(&w, from, 8);
	low = w & ~high;
	/* The high bit of each byte: is it above Z, or at least A? Nothing carries into the next one. */
	upper = (low + (0x80 - 'A') * ones) & ~(low + (0x7f - 'Z') * ones) & ~w & high;
	w |= upper >> 2;
	memcpy(to, &w, 8);
}

static inline void bytes_lower(char *to, const char *from, size_t len)
{
	if (len < 8) {
		for (size_t i = 0; i < len; i++)
			to[i] = (char)(from[i] >= 'A' && from[i] <= 'Z' ? from[i] | 0x20 : from[i]);
		return;
	}
	for (size_t i = 0; len - i >= 8; i += 8)
		bytes_lower_word(to + i, from + i);
	bytes_lower_word(to + len - 8, from + len - 8);
}

/* Of the eight bytes, the first control byte; 8 when there is none. */
static inline size_t bytes_control_in_word(const char *data)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
	uint64_t w, del, found;

	memcpy(&w, data, 8);
	w = le64toh(w);
	del = w ^ 0x7f * ones;
	/* Borrows run upwards only, so the lowest bit that is set is a true one. */
	found = (((w - 0x20 * ones) & ~w) | ((del - ones) & ~del)) & high;
	return found ? (size_t)__builtin_ctzll(found) / 8 : 8;
}

/* Where the first control byte is (tab and DEL are some), from i on; len when there is none. */
static inline size_t bytes_find_control(const char *data, size_t i, size_t len)
{
	size_t start = i;

#ifdef __SSE2__
	for (; len - i >= 16; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(data + i));
		__m128i fine = _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(0x20)), v);
		__m128i del = _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f));
		int found = _mm_movemask_epi8(_mm_andnot_si128(del, fine)) ^ 0xffff;

		if (found)
			return i + (size_t)__builtin_ctz((unsigned)found);
	}
#endif
	for (; len - i >= 8; i += 8) {
		size_t n = bytes_control_in_word(data + i);

		if (n < 8)
			return i + n;
	}
	/* The rest together with bytes that are known to be fine. */
	if (i < len && len - start >= 8)
		return len - 8 + bytes_control_in_word(data + len - 8);
	for (; i < len; i++)
		if ((unsigned char)data[i] < 0x20 || data[i] == 0x7f)
			return i;
	return len;
}
