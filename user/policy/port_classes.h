/* SPDX-License-Identifier: MIT */
/* What rules say of the ports at an address, and the same said at many addresses kept once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "vocab/limits.h"

/* What rules say of one protocol's ports at an address. */
struct port_rule {
	uint16_t protocol;
	uint16_t first, last;
	uint32_t action, rule;
};

/* All that rules say at an address. */
struct port_rules {
	struct port_rule *items;
	size_t n, size;
};

struct classes {
	struct buf port_rule; /* every class's struct said, one class behind the other */
	size_t *ends;	      /* of class i + 1 in said; class 0 says nothing */
	size_t n, size;
	uint32_t *slots; /* open addressing by content -> class */
	size_t n_slots;
};

#define CLASSES_INIT                                    \
	{                                               \
		.port_rule = BUF_INIT(NP_POLICY_MEMORY) \
	}

/* Appends, or lengthens the last one when it says the same of the port before. 0 or -ENOMEM. */
int port_rule_add(struct port_rules *port_rules, const struct port_rule *port_rule);

/* The class that says just this; a new one when there is none, and *ret_new tells. 0 is the class that says nothing. */
int classes_find(struct classes *classes, const struct port_rules *port_rules, uint32_t *ret, bool *ret_new);
void classes_free(struct classes *classes);
