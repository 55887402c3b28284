/* SPDX-License-Identifier: MIT */
#include "wire/url.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/chars.h"

int port_parse(const char *text, size_t len, uint16_t *ret)
{
	uint64_t port;

	if (number_parse(text, len, UINT16_MAX, &port) < 0 || text[0] == '0')
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* Where the host ends: at the colon in front of a port, which an IPv6 address in brackets may have too. */
static size_t host_len(const char *text, size_t len)
{
	const char *end = len && text[0] == '[' ? memchr(text, ']', len) : NULL;

	if (end)
		return (size_t)(end + 1 - text);
	end = memchr(text, ':', len);
	return end ? (size_t)(end - text) : len;
}

int authority_parse(const char *text, size_t len, bool tls, struct authority *ret)
{
	struct authority authority = { .port = tls ? 443 : 80 };
	size_t host = host_len(text, len);
	int e = host_parse(text, host, &authority.host);

	if (e < 0)
		return e;
	if (host < len) {
		authority.has_port = true;
		e = text[host] == ':' ? port_parse(text + host + 1, len - host - 1, &authority.port) : -EINVAL;
		if (e < 0)
			return e;
	}
	*ret = authority;
	return 0;
}

int url_parse(const char *text, struct url *ret)
{
	struct url url = { .target = "/" };
	struct authority authority;
	size_t len;
	int e;

	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return -EINVAL;
	if (strncasecmp(text, "http://", 7) == 0) {
		text += 7;
	} else if (strncasecmp(text, "https://", 8) == 0) {
		text += 8;
		url.tls = true;
	} else {
		return -EINVAL;
	}
	len = strcspn(text, "/");
	if (text[len])
		url.target = text + len;
	e = authority_parse(text, len, url.tls, &authority);
	if (e < 0)
		return e;
	url.host = authority.host;
	url.port = authority.port;
	url.has_port = authority.has_port;
	*ret = url;
	return 0;
}
