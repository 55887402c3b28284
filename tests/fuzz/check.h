/* SPDX-License-Identifier: MIT */
/* What must hold, whatever comes. */
#ifndef NP_FUZZ_CHECK_H
#define NP_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(holds)                                                                               \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
