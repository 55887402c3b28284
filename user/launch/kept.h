/* SPDX-License-Identifier: MIT */
/*
 * A kept sandbox, from outside. Its directory is in the daemon's run directory, which no sandbox sees; in it are the
 * socket that its process 1 listens on, and a file that says what it was made with and is locked: shared by each run in
 * it, exclusively by whoever makes or removes it. Both are root's alone.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "vocab/kept_files.h"
#include "launch/orders.h"
#include "launch/plan.h"
#include "launch/stdio.h"

/* Both take the directory. The socket, or -errno; connecting: -ENOENT it was never made, -ECONNREFUSED it is dead,
 * -EAGAIN it is overrun. */
int kept_listen(int dir);
int kept_connect(int dir);

/* Orders a command: the plan's words, environment and directory, with the streams that stdio made, in the group that entry
 * leads to; -1 when its process 1 is of a build before such groups. 0 or -errno. */
int kept_order(int connection, const struct plan *plan, const sigset_t *mask, const struct stdio *stdio, int entry);

/* What came from process 1, which the sandbox may have taken over: false when it is no report. What it says is in bounds
 * afterwards, and its text is a string. */
bool report_read(const void *data, size_t len, struct init_report *ret);
