/* SPDX-License-Identifier: MIT */
/* What a DNS server says about the addresses of a name, read from its message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sandbox.h"
#include "vocab/limits.h"

enum family { FAMILY_V6, FAMILY_V4, FAMILY_COUNT }; /* in the order in which they are tried */

struct addresses {
	unsigned count;
	struct np_addr addrs[NP_ADDRS_PER_NAME]; /* v4 as ::ffff:a.b.c.d */
};

/* The names that it went through: lower case, each with its NUL, and an empty one behind the last. A byte that is in no
 * host name is a question mark there, so no rule but one with a star in that place speaks of such a name. */
struct alias_names {
	size_t len; /* without the empty one */
	char text[NP_ALIASES_BYTES];
};

/* Reads the addresses of the name in the question, through at most NP_CNAMES_MAX aliases, in whatever order the records
 * come. The first NP_ADDRS_PER_NAME are kept. ret_ttl_s is the shortest of all records that were used.
 * 0; -ENOENT the name does not exist; -ENODATA it has no such address; -EREMOTEIO the server failed or refused;
 * -EBADMSG when this is no answer to such a question. Nothing is allocated; the work is linear in len. */
int answer_read(const uint8_t *data, size_t len, enum family family, struct addresses *ret,
		struct alias_names *ret_names, uint32_t *ret_ttl_s);

/* Likewise the records of such a type (dns_record_bit() in wire/dns.h) that the name has, one after another as struct
 * dns_records has them. Names in them are whole, and hosts' or the root: a record with another one is left out, as is one
 * that is not what its type says. Nothing but the answer section counts. -EMSGSIZE: they have more than NP_RECORDS_BYTES. */
struct record_bytes {
	unsigned count;
	size_t len;
	uint8_t data[NP_RECORDS_BYTES];
};
int answer_read_records(const uint8_t *data, size_t len, uint16_t type, struct record_bytes *ret, uint32_t *ret_ttl_s);
