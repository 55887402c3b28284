/* SPDX-License-Identifier: MIT */
/* What the console gives up before its first request: everything but sockets and threads. */
#pragma once

/* No capability, no new privileges, no core file, a filter of system calls: no file is opened and nothing executed from here on.
 * The user stays: the daemon judges the console by it. 0 or -errno. */
int jail_enter(void);
