/* SPDX-License-Identifier: MIT */
#include "policy/metadata.h"

#include "base/cleanup.h"
#include "policy/net.h"

#define V4(w, x, y, z)                                                                    \
	{                                                                                 \
		.b = { [10] = 0xff, [11] = 0xff, [12] = w, [13] = x, [14] = y, [15] = z } \
	}

const struct metadata_range metadata_ranges[] = {
	{ V4(169, 254, 0, 0), 96 + 16, true },
	{ V4(100, 100, 100, 200), 128, true },
	{ V4(168, 63, 129, 16), 128, true },
	{ V4(192, 0, 0, 192), 128, true },
	{ { .b = { 0xfe, 0x80 } }, 10, false },
	{ { .b = { 0xfd, 0x00, 0x0e, 0xc2 } }, 32, false },
	{ { .b = { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 } }, 128, false },
	{ { .b = { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 } }, 128, false },
};
const size_t n_metadata_ranges = ARRAY_SIZE(metadata_ranges);

bool metadata_holds(const struct np_addr *addr, uint8_t bits, bool v4)
{
	for (size_t i = 0; i < n_metadata_ranges; i++) {
		const struct metadata_range *range = &metadata_ranges[i];

		if (range->v4 == v4 && range->bits <= bits && net_holds(&range->addr, range->bits, addr))
			return true;
	}
	return false;
}
