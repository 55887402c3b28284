/* SPDX-License-Identifier: MIT */
#include "base/json.h"

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
	static const char plain[] = "\"\\\n\t", escaped[] = "\"\\nt";
	const char *at = c && c < 0x80 ? strchr(plain, (int)c) : NULL;

	if (at) {
		buf_append(out, (const char[]){ '\\', escaped[at - plain] }, 2);
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

/* Bytes up to end as they stand between quotes; `ahead` is where the text itself ends, and a character that lies across
 * `end` is left out. A byte that is not UTF-8 is written as `stray`, or as itself when that is 0. Returns where it stopped. */
static const char *put_characters(struct buf *out, const char *s, const char *end, const char *ahead, uint32_t stray)
{
	const char *run = s; /* first byte not yet written */

	while (s < end) {
		uint32_t c;
		unsigned len;

		if (is_plain((unsigned char)*s)) {
			s++;
			continue;
		}
		len = char_decode(s, (size_t)(ahead - s), &c);
		if (len > end - s)
			break;
		if (len && c != '"' && c != '\\' && char_is_printable(c)) {
			s += len;
			continue;
		}
		buf_append(out, run, (size_t)(s - run));
		put_escaped(out, len ? c : stray ? stray : (unsigned char)*s);
		s += len ? len : 1;
		run = s;
	}
	buf_append(out, run, (size_t)(s - run));
	return s;
}

void json_quote(struct buf *out, const char *text, size_t max)
{
	const char *end = text + strnlen(text, max), *stop;

	buf_append(out, "\"", 1);
	stop = put_characters(out, text, end, end + strnlen(end, 3), 0);
	buf_puts(out, *stop ? "...\"" : "\"");
}

/* What stands before a value: a comma, unless it is the first one here, and its key. */
static void put_key(struct buf *out, const char *key)
{
	if (out->len && !strchr("{[:\n", out->data[out->len - 1]))
		buf_append(out, ",", 1);
	if (!key)
		return;
	json_quote(out, key, SIZE_MAX);
	buf_append(out, ":", 1);
}

void json_open_object(struct buf *out, const char *key)
{
	put_key(out, key);
	buf_append(out, "{", 1);
}

void json_close_object(struct buf *out)
{
	buf_append(out, "}", 1);
}

void json_open_array(struct buf *out, const char *key)
{
	put_key(out, key);
	buf_append(out, "[", 1);
}

void json_close_array(struct buf *out)
{
	buf_append(out, "]", 1);
}

void json_put_text(struct buf *out, const char *key, const char *text, size_t max)
{
	put_key(out, key);
	if (text)
		json_quote(out, text, max);
	else
		buf_append(out, "null", 4);
}

void json_put_bytes(struct buf *out, const char *key, const char *data, size_t len)
{
	put_key(out, key);
	buf_append(out, "\"", 1);
	put_characters(out, data, data + len, data + len, 0xfffd);
	buf_append(out, "\"", 1);
}

void json_put_number(struct buf *out, const char *key, uint64_t number)
{
	char text[20];
	size_t at = sizeof(text);

	put_key(out, key);
	do
		text[--at] = (char)('0' + number % 10);
	while (number /= 10);
	buf_append(out, text + at, sizeof(text) - at);
}

void json_put_bool(struct buf *out, const char *key, bool value)
{
	put_key(out, key);
	buf_puts(out, value ? "true" : "false");
}

void json_put_json(struct buf *out, const char *key, const char *value)
{
	put_key(out, key);
	buf_puts(out, value);
}
