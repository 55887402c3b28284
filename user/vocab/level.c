/* SPDX-License-Identifier: MIT */
#include "vocab/level.h"

#include <errno.h>
#include <strings.h>

const struct level_modes level_modes_default = {
	.of = {
		[LEVEL_PUBLIC] = NP_FULL,
		[LEVEL_INTERNAL] = NP_FULL,
		[LEVEL_CONFIDENTIAL] = NP_PROXIED,
		[LEVEL_SECRET] = NP_NONE,
	},
};

int level_parse(const char *name, enum level *ret)
{
	for (unsigned i = 0; i < LEVEL_COUNT; i++) {
		if (!strcasecmp(name, level_name(i))) {
			*ret = (enum level)i;
			return 0;
		}
	}
	return -EINVAL;
}
