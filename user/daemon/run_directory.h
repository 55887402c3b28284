/* SPDX-License-Identifier: MIT */
/* The daemon as a process among others. */
#pragma once

#include <sys/types.h>

/* Everybody may come to the control socket, whose own mode says who may call; the rest in there is root's alone. */
#define RUN_DIRECTORY_MODE 0755

/* Makes the directory and takes its lock file: one daemon per directory. Logs what went wrong. */
int lock_take(const char *dir, mode_t mode, int *ret_fd);

unsigned cpus_count(void); /* that we may use; at most NP_WORKERS_MAX */

/* Tells a service manager that asked for it (sd_notify's protocol: one datagram). */
void systemd_notify(const char *state);
