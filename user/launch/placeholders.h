/* SPDX-License-Identifier: MIT */
/* What a sandbox holds in the place of credentials: variables, and files in the form in which tools want them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define PLACEHOLDERS_DIR "/run/netpawl/credentials"

enum placeholders_file {
	FILE_NETRC,
	FILE_NPMRC,
	FILE_PIP,
	FILE_AWS,
	FILE_DOCKER,
	PLACEHOLDERS_FILES,
};

struct placeholders {
	char **env; /* NAME=VALUE, ends with NULL */
	size_t n, size;
	unsigned helpers;		      /* of git, that are among them */
	struct buf files[PLACEHOLDERS_FILES]; /* empty: there is none */
};

/* Those that the session may use; files: of tools, too. *ret is to be freed in any case. 0; -1 after a message. */
int placeholders_fetch(const char *socket, const char *session, bool files, struct placeholders *ret);
void placeholders_free(struct placeholders *placeholders);
/* Where a sandbox sees the file: below PLACEHOLDERS_DIR. */
const char *placeholders_path(enum placeholders_file file);
