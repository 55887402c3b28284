/* SPDX-License-Identifier: MIT */
/*
 * What an OCI runtime tells its hooks about a container, as JSON on standard input: its state (runtime-spec, "State"). Pure: bytes in,
 * facts out.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "containers/annotations.h"
#include "vocab/limits.h"

struct oci_state {
	char id[NP_CONTAINER_ID_MAX + 1];
	pid_t pid; /* its first process, which waits for us; as the runtime sees it */
	struct annotations wish;
};

/* 0; or -EINVAL with a sentence that says what is wrong, of which every part is ours. */
int oci_state_read(const char *data, size_t len, struct oci_state *ret, const char **ret_problem);
