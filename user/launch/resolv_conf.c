/* SPDX-License-Identifier: MIT */
#include "launch/resolv_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum line { LINE_OTHER, LINE_SERVER, LINE_LOOPBACK };

/* line: without its end. */
static enum line line_read(const char *line, size_t len)
{
	static const char word[] = "nameserver";
	const size_t n = sizeof(word) - 1;
	const char *address;

	if (len <= n || strncmp(line, word, n) != 0 || !isblank((unsigned char)line[n]))
		return LINE_OTHER;
	address = line + n + strspn(line + n, " \t");
	len -= (size_t)(address - line) < len ? (size_t)(address - line) : len;
	if ((len >= 4 && !strncmp(address, "127.", 4)) ||
	    (len >= 3 && !strncmp(address, "::1", 3) && (len == 3 || !isxdigit((unsigned char)address[3]))))
		return LINE_LOOPBACK;
	return LINE_SERVER;
}

/* Copies the lines of a kind; how many there are. */
static size_t lines_copy(const char *text, enum line kind, struct buf *out)
{
	size_t n = 0;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (line_read(text, len) != kind)
			continue;
		n++;
		if (out)
			buf_printf(out, "%.*s\n", (int)len, text);
	}
	return n;
}

int resolv_conf_make(const char *text, const char *upstream, struct buf *out)
{
	/* No server at all stands for one on loopback. */
	if (!lines_copy(text, LINE_LOOPBACK, NULL) && lines_copy(text, LINE_SERVER, NULL))
		return 0;
	if (!lines_copy(text, LINE_SERVER, out) && (!upstream || !lines_copy(upstream, LINE_SERVER, out)))
		return -ENOENT;
	lines_copy(text, LINE_OTHER, out);
	return buf_error(out) ? -ENOMEM : 1;
}
