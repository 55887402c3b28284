/* SPDX-License-Identifier: MIT */
/* Calls of netpawld by whom it has started, over the link. */
#pragma once

#include "api_client/api_http.h"
#include "link/export_message.h"

/* GET. As client_get_by() has it; -EPIPE: the daemon is gone. */
int daemon_get(const char *path, const char *accept, struct client_answer *ret);
/* To be said when it has its place: what happens from here on is handed on. */
void daemon_ready(void);
void daemon_report(const struct export_state *state);

/* Waits so long, or until the daemon is gone: false then. */
bool daemon_wait(int ms);
