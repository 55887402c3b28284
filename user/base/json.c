/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/chars.h"

static void put_unit(struct buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };

	buf_append(out, text, sizeof(text));
}

static void put_escaped(struct buf *out, uint32_t c)
{
	switch (c) {
	case '"':
		buf_append(out, "\\\"", 2);
		return;
	case '\\':
		buf_append(out, "\\\\", 2);
		return;
	case '\n':
		buf_append(out, "\\n", 2);
		return;
	case '\t':
		buf_append(out, "\\t", 2);
		return;
	}
	if (c > 0xffff) {
		put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
		c = 0xdc00 + ((c - 0x10000) & 0x3ff);
	}
	put_unit(out, c);
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_quote(struct buf *out, const char *value, size_t max)
{
	const unsigned char *s = (const unsigned char *)value;
	const unsigned char *end = s + strnlen(value, max);
	const unsigned char *run = s; /* first byte not yet written */

	buf_append(out, "\"", 1);
	while (s < end) {
		uint32_t c;
		unsigned len;

		if (is_plain(*s)) {
			s++;
			continue;
		}
		/* To the NUL, not to end: a character that the bound falls into is left out as a whole. */
		len = char_decode((const char *)s, strnlen((const char *)s, 4), &c);
		if (len > end - s)
			break;
		if (len && c != '"' && c != '\\' && char_is_printable(c)) {
			s += len;
			continue;
		}
		buf_append(out, run, (size_t)(s - run));
		put_escaped(out, len ? c : *s);
		s += len ? len : 1;
		run = s;
	}
	buf_append(out, run, (size_t)(s - run));
	buf_puts(out, *s ? "...\"" : "\"");
}
