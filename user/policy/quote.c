/* SPDX-License-Identifier: MIT */
#include "policy/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/chars.h"

/* How the character at text is shown: in out, with its length in bytes; *ret_used is what it took of text. */
static size_t quote_one(char out[static 16], const char *text, size_t len, size_t *ret_used)
{
	uint32_t c = 0;
	unsigned n = char_decode(text, len, &c);

	*ret_used = n ? n : 1;
	if (!n)
		return (size_t)snprintf(out, 16, "\\x%02x", (unsigned char)text[0]);
	if (!char_is_printable(c))
		return (size_t)snprintf(out, 16, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
	if (c == '"' || c == '\\') {
		out[0] = '\\';
		out[1] = (char)c;
		return 2;
	}
	memcpy(out, text, n);
	return n;
}

const char *text_quote(char out[static QUOTE_SIZE], const char *text, size_t len)
{
	const size_t most = QUOTE_SIZE - sizeof("...\""); /* the room before the dots and the last quote */
	char one[16];
	size_t at = 0, used;

	out[at++] = '"';
	while (len) {
		size_t n = quote_one(one, text, len, &used);

		if (at + n > most) {
			memcpy(out + at, "...", 3);
			at += 3;
			break;
		}
		memcpy(out + at, one, n);
		at += n;
		text += used;
		len -= used;
	}
	out[at++] = '"';
	out[at] = '\0';
	return out;
}

void text_clean(char *out, size_t size, const char *text, size_t len)
{
	size_t at = 0, cut = 0; /* cut: the last place where the three dots fit */

	while (len) {
		uint32_t c = 0;
		unsigned n = char_decode(text, len, &c), used = n ? n : 1;
		bool shown = n && char_is_printable(c);

		if (at + (shown ? n : 1) >= size) {
			memcpy(out + cut, "...", 4);
			return;
		}
		if (shown) {
			memmove(out + at, text, n);
			at += n;
		} else {
			out[at++] = '?';
		}
		if (at + 4 <= size)
			cut = at;
		text += used;
		len -= used;
	}
	out[at] = '\0';
}
