/* SPDX-License-Identifier: MIT */
/* A terminal of the command's own, for a sandbox that outlives it: the caller's would stay with whoever is left there. */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct terminal {
	bool raw; /* ours is, and *before is how it was */
	struct termios before;
};

/* A pair with the settings and the size of our standard input; ours becomes raw, for what is typed is the other one's
 * business now. Both ends above 2; the master does not block. 0 or -errno. */
int terminal_open(struct terminal *terminal, int *ret_master, int *ret_slave);
/* Ours has another size. */
void terminal_resize(int master);
void terminal_close(struct terminal *terminal);
