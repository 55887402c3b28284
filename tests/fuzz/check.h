/* SPDX-License-Identifier: MIT */
/* What must hold, whatever comes. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define check(holds)                                                                               \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
