/* SPDX-License-Identifier: MIT */
/* Sensitivity levels and the mode that each of them means. */
#pragma once

#include "vocab/words.h"
#include "rung.h"

/* Ordered: a larger number is more sensitive. Stored on disk: never renumber. */
enum level {
	LEVEL_PUBLIC = 0,
	LEVEL_INTERNAL = 1,
	LEVEL_CONFIDENTIAL = 2,
	LEVEL_SECRET = 3,
};
#define LEVEL_COUNT NP_LEVELS

int level_parse(const char *name, enum level *ret); /* 0 or -EINVAL; case does not matter */

/* Which mode a level means. The policy file may change it. */
struct level_modes {
	enum np_mode of[LEVEL_COUNT];
};
extern const struct level_modes level_modes_default; /* FULL, FULL, PROXIED, NONE */
