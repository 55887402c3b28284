/* SPDX-License-Identifier: MIT */
#include "policy/port_ranges.h"

#include <stdlib.h>

#define NOBODY UINT32_MAX

static int bound_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Where pieces begin: each claim and each cut begins one and, behind its end, another. Sorted, once each. */
static size_t bounds_collect(const struct range *claims, size_t n, const uint16_t *cuts, size_t n_cuts,
			     uint32_t *bounds)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		bounds[count++] = claims[i].first;
		bounds[count++] = claims[i].last + 1u;
	}
	for (size_t i = 0; i < n_cuts; i++) {
		bounds[count++] = cuts[i];
		bounds[count++] = cuts[i] + 1u;
	}
	if (count)
		qsort(bounds, count, sizeof(*bounds), bound_compare);
	for (size_t i = 0; i < count; i++)
		if (!kept || bounds[kept - 1] != bounds[i])
			bounds[kept++] = bounds[i];
	return kept;
}

/* The first piece from i on that nobody has yet; shortens the way for the next who asks. */
static size_t next_free(uint32_t *skip, size_t i)
{
	while (skip[i] != i) {
		skip[i] = skip[skip[i]];
		i = skip[i];
	}
	return i;
}

size_t segments_make(const struct range *claims, size_t n, const uint16_t *cuts, size_t n_cuts, struct range *out)
{
	size_t room = segments_room(n, n_cuts), pieces, count = 0;
	uint32_t *bounds = calloc(3 * (room + 1), sizeof(*bounds)), *owner, *skip;

	if (!bounds)
		return SIZE_MAX;
	owner = bounds + room + 1;
	skip = owner + room + 1;
	pieces = bounds_collect(claims, n, cuts, n_cuts, bounds);
	for (size_t i = 0; i <= pieces; i++) {
		owner[i] = NOBODY;
		skip[i] = (uint32_t)i;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t first = claims[i].first;
		const uint32_t *at = bsearch(&first, bounds, pieces, sizeof(*bounds), bound_compare);

		for (size_t p = next_free(skip, (size_t)(at - bounds)); p < pieces && bounds[p] <= claims[i].last;
		     p = next_free(skip, p)) {
			owner[p] = claims[i].owner;
			skip[p] = (uint32_t)p + 1;
		}
	}
	for (size_t p = 0; p + 1 < pieces; p++)
		if (owner[p] != NOBODY)
			out[count++] = (struct range){ (uint16_t)bounds[p], (uint16_t)(bounds[p + 1] - 1), owner[p] };
	free(bounds);
	return count;
}

void range_blocks(uint16_t first, uint16_t last, void (*fn)(void *data, uint16_t first, unsigned bits), void *data)
{
	uint32_t at = first;

	while (at <= last) {
		unsigned bits = 16;

		/* As large as its alignment and the end of the range allow. */
		while (bits && !(at & (1u << (16 - bits))) && at + (2u << (16 - bits)) - 1 <= last)
			bits--;
		fn(data, (uint16_t)at, bits);
		at += 1u << (16 - bits);
	}
}
