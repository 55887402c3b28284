/* SPDX-License-Identifier: MIT */
/* What programs have to trust, on disk, for those that netpawl run does not start. */
#ifndef NP_CLI_TRUST_FILES_H
#define NP_CLI_TRUST_FILES_H

#include "launch/trust.h"

/* Into an existing directory. 0, or -errno after a message. */
int trust_files_write(const char *path, const struct trust *trust);
/* The variables that lead programs to them, with the files in dir; stops at an answer that is not 0, and returns it. */
int trust_variables_each(const char *dir, int (*fn)(void *data, const char *name, const char *value), void *data);

#endif
