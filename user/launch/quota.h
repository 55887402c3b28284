/* SPDX-License-Identifier: MIT */
/* How large a directory may grow, where its file system counts by project (ext4, XFS and others, mounted with prjquota). */
#pragma once

#include <stdint.h>

/* The project's number is that of the directory's owner, who owns no other. 0; -EOPNOTSUPP when the file system has no
 * such quotas; -errno. */
int quota_set(const char *dir, uint64_t bytes);
