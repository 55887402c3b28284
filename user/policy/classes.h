/* SPDX-License-Identifier: MIT */
/* What rules say of the ports at an address, and the same said at many addresses kept once. */
#ifndef NP_POLICY_CLASSES_H
#define NP_POLICY_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "limits.h"

/* What rules say of one protocol's ports at an address. */
struct said {
	uint16_t protocol;
	uint16_t first, last;
	uint32_t action, rule;
};

/* All that rules say at an address. */
struct saying {
	struct said *items;
	size_t n, size;
};

struct classes {
	struct buf said; /* every class's struct said, one class behind the other */
	size_t *ends;	 /* of class i + 1 in said; class 0 says nothing */
	size_t n, size;
	uint32_t *slots; /* open addressing by content -> class */
	size_t n_slots;
};

#define CLASSES_INIT                               \
	{                                          \
		.said = BUF_INIT(NP_POLICY_MEMORY) \
	}

/* Appends, or lengthens the last one when it says the same of the port before. 0 or -ENOMEM. */
int said_add(struct saying *saying, const struct said *said);

/* The class that says just this; a new one when there is none, and *ret_new tells. 0 is the class that says nothing. */
int classes_find(struct classes *classes, const struct saying *saying, uint32_t *ret, bool *ret_new);
void classes_free(struct classes *classes);

#endif
