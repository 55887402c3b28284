/* SPDX-License-Identifier: MIT */
/* First match over ranges of ports: who has which ports, once all that came before have taken theirs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct range {
	uint16_t first, last; /* inclusive, 1..65535 */
	uint32_t owner;
};

/* In: ranges in the order of their claims. Out: ranges that do not overlap, ascending, each with the owner whose claim
 * came first; a port in cuts always begins and ends a range of its own. out has room for segments_room(n, n_cuts). */
size_t segments_make(const struct range *claims, size_t n, const uint16_t *cuts, size_t n_cuts, struct range *out);
static inline size_t segments_room(size_t n, size_t n_cuts)
{
	return 2 * (n + n_cuts) + 1;
}

/* Calls fn for each aligned block of ports (first, how many leading bits of 16 they share) that makes up a range. */
void range_blocks(uint16_t first, uint16_t last, void (*fn)(void *data, uint16_t first, unsigned bits), void *data);
