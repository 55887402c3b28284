/* SPDX-License-Identifier: MIT */
/* Of `netpawl policy explain`: who would be asked, and what was answered before. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"
#include "policy/asked_whom.h"

/* What a session's request would meet now, of questions and answers, as the daemon says: *ret is its answer, NULL if the verdict asks
 * nobody. connect: HOST:PORT; NULL: it is a request of this method and URL. CLI_OK; else the exit code, after a message. */
int asked_now(const struct cli *cli, const char *session, const char *connect, const char *url,
	      const struct facts *facts, const struct verdict *verdict, json_t **ret);

/* now may be NULL. Nothing is printed, and the object is null, of a verdict that asks nobody. */
void asked_print(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		 const json_t *now);
json_t *asked_json(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		   const json_t *now);
