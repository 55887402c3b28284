/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sandbox.h"

/* Are the first bits of addr those of net? Both of the same family. */
static inline bool net_holds(const struct np_addr *net, uint8_t bits, const struct np_addr *addr)
{
	uint8_t whole = bits / 8, rest = bits % 8;

	if (memcmp(net->b, addr->b, whole) != 0)
		return false;
	return !rest || ((net->b[whole] ^ addr->b[whole]) >> (8 - rest)) == 0;
}
