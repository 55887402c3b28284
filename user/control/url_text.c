/* SPDX-License-Identifier: MIT */
#include "control/url_text.h"

#include <errno.h>
#include <string.h>

#include "base/chars.h"

static bool is_control(int byte)
{
	return byte < 0x20 || byte == 0x7f;
}

/* The byte at *text, decoded, or -EINVAL; moves *text behind it. */
static int url_next(const char **text)
{
	const char *t = *text;
	int byte = (unsigned char)*t;

	*text = t + 1;
	if (byte == '%') {
		int high = hex_digit(t[1]), low = high < 0 ? -1 : hex_digit(t[2]);

		if (low < 0)
			return -EINVAL;
		byte = high << 4 | low;
		*text = t + 3;
	}
	return is_control(byte) ? -EINVAL : byte;
}

int url_decode(char *text)
{
	const char *from = text;

	while (*from)
		if (url_next(&from) < 0)
			return -EINVAL;
	from = text;
	while (*from)
		*text++ = (char)url_next(&from);
	*text = '\0';
	return 0;
}

int url_number(const char *text, uint64_t max, uint64_t *ret)
{
	return number_parse(text, strlen(text), max, ret);
}

int url_flag(const char *text, bool *ret)
{
	if (text && strcmp(text, "1") != 0 && strcmp(text, "0") != 0)
		return -EINVAL;
	*ret = text && *text == '1';
	return 0;
}
