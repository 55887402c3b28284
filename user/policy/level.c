/* SPDX-License-Identifier: MIT */
#include "policy/level.h"

#include <errno.h>
#include <strings.h>

static const char *const level_names[LEVEL_COUNT] = {
	[LEVEL_PUBLIC] = "PUBLIC",
	[LEVEL_INTERNAL] = "INTERNAL",
	[LEVEL_CONFIDENTIAL] = "CONFIDENTIAL",
	[LEVEL_SECRET] = "SECRET",
};

const struct level_modes level_modes_default = {
	.of = {
		[LEVEL_PUBLIC] = NP_FULL,
		[LEVEL_INTERNAL] = NP_FULL,
		[LEVEL_CONFIDENTIAL] = NP_PROXIED,
		[LEVEL_SECRET] = NP_NONE,
	},
};

const char *level_name(unsigned level)
{
	return level < LEVEL_COUNT ? level_names[level] : "?";
}

int level_parse(const char *name, enum level *ret)
{
	for (unsigned i = 0; i < LEVEL_COUNT; i++) {
		if (!strcasecmp(name, level_names[i])) {
			*ret = (enum level)i;
			return 0;
		}
	}
	return -EINVAL;
}
