/* SPDX-License-Identifier: MIT */
/* From the launching program to netpawl-init: what it is given, and how it is started. */
#pragma once

#include <stdbool.h>

#include "launch/orders.h"
#include "launch/plan.h"

struct handover {
	int orders, program; /* descriptors: struct orders, netpawl-init */
	bool filtered;
	char **argv;	      /* ends with NULL; the command's own words are borrowed */
	char *const *environ; /* the command's; borrowed */
};

#define HANDOVER_PROBLEM_SIZE 512
/* Everything that can fail outside. 0, or -errno with the reason in words. handover_free() in any case. */
int handover_prepare(const struct plan *plan, const sigset_t *mask, struct handover *ret,
		     char problem[static HANDOVER_PROBLEM_SIZE]);
/* Best while nobody waits for us: the last one who closes the program waits for the kernel. */
void handover_free(struct handover *handover);

/* In the process that is to become the sandbox, and in its root: puts report, control and the rest at their numbers, closes all
 * others, loads the filter, and executes. Returns -errno. */
int handover_execute(const struct handover *handover, int report, int control);
