/* SPDX-License-Identifier: MIT */
/* Calls of the daemon that the OCI hook, the CNI plugin and netpawl share: all three put containers into sandboxes. subject names the
 * container in messages. */
#pragma once

#include <stdbool.h>

#include "vocab/level.h"
#include "vocab/session_name.h"

/* What the policy (containers: unknown:) says of a container that names no session. CLI_OK: with *ret_go_on it is for
 * session *ret, without it is left alone. Else the exit code, after the message was printed. */
int container_unknown(const char *socket, const char *subject, struct session_name *ret, bool *ret_go_on);
/* The session has at least this level afterwards. CLI_OK, or the exit code. */
int container_raise(const char *socket, const char *subject, const char *session, enum level level);

/* The session's parent for containers, made if it has none. CLI_OK: "cgroup_parent" and "sandbox" are in the answer. */
struct api_answer;
int container_parent(const char *socket, const char *session, bool systemd, struct api_answer *ret);
