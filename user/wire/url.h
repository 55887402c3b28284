/* SPDX-License-Identifier: MIT */
#ifndef NP_WIRE_URL_H
#define NP_WIRE_URL_H

#include <stdint.h>

#include "wire/name.h"

struct url {
	bool tls;
	struct host host;
	uint16_t port;	    /* 80 or 443 when none is written */
	const char *target; /* in the text that was parsed, from its first slash; "/" when there is none */
};

/* http:// or https://, a host, perhaps a port and a target. -EINVAL otherwise: user names and passwords too. */
int url_parse(const char *text, struct url *ret);

#endif
