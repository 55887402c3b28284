/* SPDX-License-Identifier: MIT */
#include "base/chars.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

int word_index(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; word && i < n; i++)
		if (words[i] && !strcmp(words[i], word))
			return (int)i;
	return -EINVAL;
}

int number_parse(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text[i] - '0', &n))
			return -ERANGE;
	}
	if (n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

unsigned char_decode(const char *text, size_t len, uint32_t *ret_char)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	unsigned n;
	uint32_t c;

	if (!len)
		return 0;
	if (s[0] < 0x80) {
		*ret_char = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > len)
		return 0;
	c = s[0] & (0x7fu >> n);
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret_char = c;
	return n;
}

bool char_is_printable(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x0000, 0x001f },   /* C0 controls */
		{ 0x007f, 0x009f },   /* DEL and the C1 controls: U+009B starts a terminal sequence */
		{ 0x00ad, 0x00ad },   /* soft hyphen */
		{ 0x061c, 0x061c },   /* Arabic letter mark */
		{ 0x180e, 0x180e },   /* Mongolian vowel separator: no width */
		{ 0x200b, 0x200f },   /* no width; direction marks */
		{ 0x2028, 0x202e },   /* line and paragraph separators; bidi embeddings and overrides */
		{ 0x2060, 0x206f },   /* no width; bidi isolates */
		{ 0xfeff, 0xfeff },   /* byte order mark */
		{ 0xfff9, 0xfffb },   /* interlinear annotation */
		{ 0xfffe, 0xffff },   /* no characters */
		{ 0xe0000, 0xe0fff }, /* tags and variation selectors */
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden) && c >= hidden[i].first; i++)
		if (c <= hidden[i].last)
			return false;
	return true;
}

static bool char_is_graphic(char c)
{
	return c > 0x20 && c < 0x7f;
}

void text_ascii(char *out, size_t size, const char *text)
{
	size_t len = strlen(text), room = size - 1;

	for (size_t i = 0; i < len && i < room; i++)
		out[i] = char_is_graphic(text[i]) ? text[i] : '?';
	out[len < room ? len : room] = '\0';
	if (len > room)
		memcpy(out + room - 3, "...", 3);
}

bool text_is_ascii(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	for (size_t i = 0; i < len; i++)
		if (!char_is_graphic(text[i]))
			return false;
	return len < size;
}

void text_printable(char *out, size_t size, const char *text)
{
	size_t len = strlen(text), used = 0, whole = 0;

	for (size_t at = 0; at < len;) {
		uint32_t c = 0;
		unsigned n = char_decode(text + at, len - at, &c);
		bool shown = n && char_is_printable(c);
		size_t need = shown ? n : 1;

		if (used + need > size - 1) {
			memcpy(out + whole, "...", 4);
			return;
		}
		memcpy(out + used, shown ? text + at : "?", need);
		used += need;
		if (used <= size - 4)
			whole = used;
		at += n ? n : 1;
	}
	out[used] = '\0';
}

bool text_is_printable(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	for (size_t at = 0; at < len;) {
		uint32_t c = 0;
		unsigned n = char_decode(text + at, len - at, &c);

		if (!n || !char_is_printable(c))
			return false;
		at += n;
	}
	return len < size;
}
