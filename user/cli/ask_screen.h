/* SPDX-License-Identifier: MIT */
/* The screen of `netpawl ask`, as bytes for a terminal: no descriptor, no clock. */
#pragma once

#include "base/buf.h"

/* Each text may hold whatever a stranger wrote: what is not printable ASCII is drawn as '?', and nothing is wider than the screen. */
struct ask_screen {
	unsigned rows, columns;
	const char *head;
	const char *text; /* lines; those that begin with WARNING_MARK are drawn before the others */
	const char *clock, *message, *keys, *prompt; /* a row each; NULL: none */
};

#define WARNING_MARK "    ! "

/* Clears the screen and draws it. What does not fit is left out, and that is said. */
void ask_screen_draw(const struct ask_screen *screen, struct buf *out);
