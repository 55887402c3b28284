/* SPDX-License-Identifier: MIT */
#ifndef NP_CLI_PARENT_H
#define NP_CLI_PARENT_H

#include "api_client/api.h"
#include "cli/cli.h"

/* Has the daemon make the session's parent for containers, or find it. CLI_OK: "cgroup_parent" and "sandbox" are in the answer. */
int parent_ask(const struct cli *cli, const char *session, bool systemd, struct api_answer *ret);

#endif
