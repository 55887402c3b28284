/* SPDX-License-Identifier: MIT */
/* A last look at the mount table, from inside: nothing is to be seen that the plan did not put there. Between the
 * launcher's look at the host and the sandbox's mounts something may have been mounted below what a sandbox is shown. */
#pragma once

#define WINDOWS_MOUNTS 4096 /* lines of the table; a sandbox has about thirty, and those of its binds */

/* table is the text of /proc/self/mountinfo, and is taken apart. Where the first window is that can be looked through,
 * as the table writes it; NULL: nowhere. A table that cannot be read counts as one. */
const char *windows_find(char *table);
