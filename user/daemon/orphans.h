/* SPDX-License-Identifier: MIT */
/* What sandboxes leave behind when those who would clean up are killed. */
#pragma once

/* Removes the cgroup v1 groups of limits (netpawl.SLICE.SANDBOX) whose sandbox is not below the slice any more. slice is
 * its directory in the cgroup v2 mount. Nothing that has another name, or in which a process is, is touched. Returns how
 * many were removed. */
unsigned orphans_groups(const char *slice);

/* Empties a directory of kept sandboxes, whose sandboxes are gone. */
void orphans_kept(const char *dir);
