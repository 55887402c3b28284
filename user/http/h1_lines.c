/* SPDX-License-Identifier: MIT */
/* Lines, before anybody asks what they mean. */
#include "http/h1_internal.h"

#include "base/bytes.h"
#include "vocab/limits.h"

static bool is_folded(const char *line)
{
	return *line == ' ' || *line == '\t';
}

/*
 * Looks for the empty line behind a head or behind trailers. Lines end in CRLF, no CR, LF or other control byte is
 * anywhere else, and no line begins with space. Returns how long it is with the empty line; 0 when more is to come.
 * *scanned: bytes that were looked at in an earlier call; all in front of it are in order.
 */
static ssize_t lines_scan(struct h1 *h1, const char *data, size_t len, size_t *scanned)
{
	size_t i = *scanned;

	if (len && is_folded(data))
		return h1_refuse(h1, "a line begins with space");
	for (;;) {
		i = bytes_find_control(data, i, len);
		*scanned = i;
		if (i == len)
			return 0;
		if (data[i] == '\t') {
			i++;
			continue;
		}
		if (data[i] != '\r')
			return h1_refuse(h1, data[i] == '\n' ? "a line ends without CR"
							     : "there is a control byte in the head");
		if (len - i < 2)
			return 0;
		if (data[i + 1] != '\n')
			return h1_refuse(h1, "there is a CR without LF");
		if (i == 0 || data[i - 1] == '\n')
			return (ssize_t)i + 2;
		if (len - i < 3)
			return 0;
		if (is_folded(data + i + 2))
			return h1_refuse(h1, "a line begins with space");
		i += 2;
	}
}

ssize_t h1_lines_collect(struct h1 *h1, const char *data, size_t len, const char **ret, size_t *ret_len)
{
	size_t before = h1->raw.len, room = NP_HEAD_BYTES - before, scanned = h1->scanned;
	const char *lines = data;
	ssize_t end;

	*ret = NULL;
	if (len > room)
		len = room;
	if (before) {
		buf_append(&h1->raw, data, len);
		lines = h1->raw.data;
	}
	if (buf_error(&h1->raw))
		return buf_error(&h1->raw);
	end = lines_scan(h1, lines, before + len, &scanned);
	if (end < 0)
		return end;
	if (end > 0) {
		h1->scanned = 0;
		*ret = lines;
		*ret_len = (size_t)end;
		return end - (ssize_t)before;
	}
	if (len == room)
		return -E2BIG;
	if (!before)
		buf_append(&h1->raw, data, len);
	h1->scanned = scanned;
	return buf_error(&h1->raw) ? buf_error(&h1->raw) : (ssize_t)len;
}
