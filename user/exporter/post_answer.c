/* SPDX-License-Identifier: MIT */
#include "exporter/post_answer.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/chars.h"

#define STATUS_LINE 12	     /* "HTTP/1.1 200" */
#define RETRY_S_MAX 1000000u /* more is as much */

static bool status_read(const char *line, size_t len, unsigned *ret)
{
	if (len < STATUS_LINE || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return false;
	*ret = 0;
	for (size_t i = 9; i < STATUS_LINE; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		*ret = *ret * 10 + (unsigned)(line[i] - '0');
	}
	return *ret >= 100 && (len == STATUS_LINE || line[STATUS_LINE] == ' ');
}

static void header_read(const char *line, size_t len, struct post_answer *answer)
{
	static const char name[] = "Retry-After:";
	uint64_t seconds;

	if (len < sizeof(name) - 1 || strncasecmp(line, name, sizeof(name) - 1) != 0)
		return;
	line += sizeof(name) - 1;
	len -= sizeof(name) - 1;
	for (; len && (*line == ' ' || *line == '\t'); line++, len--)
		;
	for (; len && (line[len - 1] == ' ' || line[len - 1] == '\t'); len--)
		;
	if (len && number_parse(line, len, RETRY_S_MAX, &seconds) == 0)
		answer->retry_after_ms = (unsigned)seconds * 1000;
}

int post_answer_read(const char *data, size_t len, struct post_answer *ret)
{
	struct post_answer answer = { 0 };
	bool first = true;

	while (len) {
		const char *newline = memchr(data, '\n', len);
		const size_t whole = newline ? (size_t)(newline - data) + 1 : len;
		size_t line = newline ? whole - 1 : whole;

		if (!newline)
			return 0;
		if (line && data[line - 1] == '\r')
			line--;
		if (first && !status_read(data, line, &answer.status))
			return -EPROTO;
		if (!line && answer.status >= 200) {
			*ret = answer;
			return 1;
		}
		if (!first)
			header_read(data, line, &answer);
		first = !line; /* behind 100 Continue comes the answer itself */
		if (first)
			answer = (struct post_answer){ 0 };
		data += whole;
		len -= whole;
	}
	return 0;
}
