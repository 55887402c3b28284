/* SPDX-License-Identifier: MIT */
/* What must hold of every screen of `netpawl ask`: for the unit test and the fuzz target. */
#pragma once

#include <string.h>

#include "cli/ask_screen.h"

/* NULL: its own commands at the beginning, then rows of printable ASCII, none of them as wide as the screen; else what is wrong. */
static const char *screen_problem(const struct ask_screen *screen, const struct buf *out)
{
	static const char begin[] = "\033[H\033[2J\033[7m", normal[] = "\033[m";
	const unsigned columns = screen->columns > 20 ? screen->columns : 21;
	const char *at = out->data, *end = out->data + out->len;
	unsigned column = 0, row = 0;

	if (out->len < strlen(begin) || strncmp(at, begin, strlen(begin)) != 0)
		return "it does not begin with a clear screen";
	for (at += strlen(begin); at < end; at++) {
		if (row == 1 && column == 0 && !strncmp(at, normal, strlen(normal))) {
			at += strlen(normal) - 1;
			continue;
		}
		if (*at == '\r' && at + 1 < end && at[1] == '\n') {
			at++;
			row++;
			column = 0;
			continue;
		}
		if (*at < ' ' || *at > '~')
			return "a byte that a terminal acts upon";
		if (++column >= columns)
			return "a row that is too wide";
	}
	return NULL;
}
