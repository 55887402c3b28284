/* SPDX-License-Identifier: MIT */
/* The names of a hosts file, from its text: the process that uses them sees no files. */
#pragma once

#include <stdbool.h>

#include "wire/dns_answer.h"

struct hosts;

/* Lines of an address and names, "#" starts a comment. What is no address (one with a zone is none) or no host name is
 * skipped, as resolvers do. NULL is an empty file. 0, -ENOMEM, or -E2BIG beyond NP_HOSTS_BYTES. */
int hosts_new(const char *text, struct hosts **ret);
void hosts_free(struct hosts *hosts);

/* Is the name (canonical) in the file? Then only the file says what its addresses are, of both families. localhost, and
 * what is below it, is the loopback if the file does not say (RFC 6761, 6.3): no DNS server is asked for that. */
bool hosts_find(const struct hosts *hosts, const char *name, struct addresses ret[static FAMILY_COUNT]);
