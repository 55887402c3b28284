/* SPDX-License-Identifier: MIT */
/* A pseudo-terminal for a command in a kept sandbox. With the caller's own terminal, processes that stay in the sandbox when the
 * command is over could go on reading what is typed there. */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct terminal {
	bool raw; /* the terminal on our standard input is in raw mode; before has its settings from earlier */
	struct termios before;
};

/* Opens a pair with the settings and the size of the terminal on our standard input, and puts that into raw mode, so that the new one
 * interprets what is typed. Both descriptors are above 2; the master does not block. 0 or -errno. */
int terminal_open(struct terminal *terminal, int *ret_master, int *ret_slave);
/* Gives the pair the size that our terminal has now. */
void terminal_resize(int master);
void terminal_close(struct terminal *terminal);
