/* SPDX-License-Identifier: MIT */
/* The ranges that np_addr_is_metadata() speaks of, as ranges: where clouds keep credentials for whoever asks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox.h"

struct metadata_range {
	struct np_addr addr;
	uint8_t bits; /* of 128 */
	bool v4;
};
extern const struct metadata_range metadata_ranges[];
extern const size_t n_metadata_ranges;

/* True when every address of the range lies in one of them. */
bool metadata_holds(const struct np_addr *addr, uint8_t bits, bool v4);
