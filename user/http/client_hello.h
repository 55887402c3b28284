/* SPDX-License-Identifier: MIT */
/* The first bytes of a TLS client, read and not answered: for whom is it meant? Pure. */
#pragma once

#include <stddef.h>

#include "wire/hostname.h"

struct hello {
	bool has_name;
	char name[NAME_SIZE]; /* canonical */
	bool has_addr;	      /* server_name is an address: RFC 6066 does not have that, and some clients do */
	struct np_addr addr;
	bool h2, http1; /* offered by ALPN */
	bool has_alpn;
	unsigned char
		alert; /* of one that is refused: the TLS alert that is due (RFC 8446, 6.2); nothing else is set then */
};

/* 0; -EAGAIN: more bytes are needed, *ret_need in all at the least; -EPROTO: it is no ClientHello, or one that can be read in two ways (a server_name
 * that is no host or is there twice, extensions twice, lengths that do not add up); -E2BIG. */
int hello_parse(const unsigned char *data, size_t len, struct hello *ret, size_t *ret_need);
