/* SPDX-License-Identifier: MIT */
/*
 * Lists that come with netpawl, for policies that name them and have none of that name themselves. They are part of the
 * program, so that a policy that names one needs no file of another directory, and of the hash of policies that use them.
 */
#pragma once

struct loading; /* include.h */

extern const char shipped_lists[];	  /* a policy file with lists: and nothing else */
#define SHIPPED_FILE "shipped/lists.yaml" /* as messages call it */

/* Reads them behind the author's own lists, if one is named and is not there. As load.c's others. */
int shipped_read(struct loading *l);
