/* SPDX-License-Identifier: MIT */
/*
 * Host names. One canonical form serves the policy, DNS, SNI, Host and the dial:
 * lower case, A-labels, no trailing dot. What has none is refused, here and nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox.h"

#define NAME_SIZE 254 /* 253 bytes and a NUL */

/* 0; -EINVAL when text is no host name: an empty or overlong label, a byte that does not belong there, an xn-- label
 * that is not what its Unicode form encodes to, a last label that is a number (it would be read as an address).
 * Letters, digits, hyphens inside of labels and underscores pass; other scripts go through libidn2 (UTS 46,
 * non-transitional). One trailing dot is dropped. -ENOMEM. */
int name_canonical(const char *text, size_t len, char ret[static NAME_SIZE]);

/* The form of a canonical name that people read: UTF-8, other scripts as such. -EINVAL when it has none; -E2BIG; -ENOMEM. */
int name_unicode(const char *name, char *ret, size_t size);

/* localhost, and every name below it: everybody's own (RFC 6761), and hardly a resolver says anything else. */
bool name_is_localhost(const char *name);

/* One label of a pattern, no dots: the same rules, but "*" is not special here and refused. For patterns. */
int label_canonical(const char *text, size_t len, char ret[static 64]);

struct host {
	bool is_addr;
	struct np_addr addr; /* v4 as ::ffff:a.b.c.d */
	char name[NAME_SIZE];
};
bool host_equal(const struct host *a, const struct host *b);
/* A host as URLs and Host headers write it: a name, a dotted quad (four decimal numbers without leading zeros), or
 * an IPv6 address in brackets, without a zone. -EINVAL for anything else. */
int host_parse(const char *text, size_t len, struct host *ret);

/* An address in its usual form, no brackets, no zone. v4-mapped IPv6 is the IPv4 address. -EINVAL. */
int addr_parse(const char *text, size_t len, struct np_addr *ret);
