/* SPDX-License-Identifier: MIT */
/*
 * What an OCI runtime tells its hooks about a container, as JSON on standard input: its state (runtime-spec, "State"). Of the
 * annotations, which came from whoever started the container, ours count and no others. Pure: bytes in, facts out.
 */
#ifndef NP_HOOK_STATE_H
#define NP_HOOK_STATE_H

#include <stddef.h>
#include <sys/types.h>

#include "vocab/level.h"
#include "vocab/session_name.h"

#define ANNOTATION_SESSION "netpawl.dev/session"
#define ANNOTATION_LEVEL   "netpawl.dev/level"

struct oci_state {
	char id[NP_CONTAINER_ID_MAX + 1];
	pid_t pid;		     /* its first process, which waits for us; as the runtime sees it */
	struct session_name session; /* an empty text: it names none */
	bool has_level;
	enum level level;
};

/* 0; or -EINVAL with a sentence that says what is wrong, of which every part is ours. */
int oci_state_read(const char *data, size_t len, struct oci_state *ret, const char **ret_problem);

#endif
