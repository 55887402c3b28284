/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

/* For a process that reads bytes of strangers, and is root still: it gets a user of its own, an empty directory for all files,
 * at most so many descriptors, no core file and no child; it dies with who started it. 0 or -errno. */
int privileges_give_up(uid_t uid, const char *root, unsigned files);
