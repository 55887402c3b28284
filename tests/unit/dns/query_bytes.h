/* SPDX-License-Identifier: MIT */
/* A query as clients send it, of class IN. */
#pragma once

#include <arpa/nameser.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline size_t query_bytes(uint8_t *out, const char *name, unsigned type, bool edns)
{
	const uint8_t head[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, edns };
	static const uint8_t opt[] = { 0, 0, ns_t_opt, 0x04, 0xd0, 0, 0, 0, 0, 0, 0 };
	uint8_t *p = out;

	memcpy(p, head, sizeof(head));
	p += sizeof(head);
	while (*name) {
		size_t len = strcspn(name, ".");

		*p++ = (uint8_t)len;
		memcpy(p, name, len);
		p += len;
		name += len + (name[len] == '.');
	}
	*p++ = 0;
	*p++ = (uint8_t)(type >> 8);
	*p++ = (uint8_t)type;
	*p++ = 0;
	*p++ = ns_c_in;
	if (edns)
		memcpy(p, opt, sizeof(opt));
	return (size_t)(p - out) + (edns ? sizeof(opt) : 0);
}
