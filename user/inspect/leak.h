/* SPDX-License-Identifier: MIT */
#pragma once

struct client;
struct secret_set;

/* A secret of the set, by its number, was about to leave. Reports it to the daemon, which raises the session if a credential with this value says
 * so: the name of that one. */
const char *leak_report(const struct client *client, const struct secret_set *set, int found);
/* The same of a token that is watched (token_watch.h), by its number there. */
const char *leak_report_token(const struct client *client, int found);
