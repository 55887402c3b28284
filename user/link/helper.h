/* SPDX-License-Identifier: MIT */
/* The beginning of a program that netpawld starts with a link to it: an inspector, netpawl-decide, netpawl-export. */
#pragma once

#include <sys/types.h>

/* It is called as "NAME UID ROOT ...", with n words: the uid. 0: it was called in another way, and has said so. */
uid_t helper_begin(const char *name, int argc, int n, char **argv);

/* For a process that reads bytes of strangers, and is root still: it gets a user of its own, an empty directory for all files,
 * at most so many descriptors, no core file and no child. It dies with netpawld. 0 or -errno. */
int privileges_give_up(uid_t uid, const char *root, unsigned files);
