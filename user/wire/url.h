/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "wire/hostname.h"

/* What a URL, Host and :authority say between the scheme and the path. */
struct authority {
	struct host host;
	uint16_t port; /* 80, or 443 with TLS, when none is written */
	bool has_port;
};

/* A port, as everybody writes it: 1 to 65535, no sign, no leading zero. 0 or -EINVAL. */
int port_parse(const char *text, size_t len, uint16_t *ret);

/* A host and perhaps a port. -EINVAL otherwise, and then ret is as it was. */
int authority_parse(const char *text, size_t len, bool tls, struct authority *ret);

struct url {
	bool tls;
	struct host host;
	uint16_t port; /* 80 or 443 when none is written */
	bool has_port;
	const char *target; /* in the text that was parsed, from its first slash; "/" when there is none */
};

/* http:// or https://, a host, perhaps a port and a target. -EINVAL otherwise: user names and passwords too. */
int url_parse(const char *text, struct url *ret);
