/* SPDX-License-Identifier: MIT */
/* What programs have to trust, on disk, for those that netpawl run does not start: processes of adopted cgroups, containers. */
#pragma once

#include <stdbool.h>

#include "base/fs.h"
#include "launch/trust.h"

/* Where images keep the roots that their programs trust by themselves, and what is mounted there. Over a bundle that is mounted, the
 * programs that make bundles anew cannot put theirs. To them TRUST_CA is an anchor: one certificate more. */
struct trust_place {
	const char *path, *file;
};
extern const struct trust_place trust_places[];
extern const size_t trust_places_n;

/* Into an existing directory. 0, or -errno after a message. */
int trust_files_write(const char *path, const struct trust *trust);
/* The variables that lead programs to them, with the files in dir; stops at an answer that is not 0, and returns it. */
int trust_variables_each(const char *dir, int (*fn)(void *data, const char *name, const char *value), void *data);
/* For containers: the session's parent in the daemon, which it answers with, and what they trust in a directory of that parent's, which
 * goes with it. *ret_has false: there is no inspector, and so nothing to trust. CLI_OK, or an exit code after a message. */
struct api_answer;
int container_trust(const char *socket, const char *session, bool systemd, struct api_answer *ret_parent,
		    char ret_dir[static FS_PATH_SIZE], bool *ret_has);
