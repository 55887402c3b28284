/* SPDX-License-Identifier: MIT */
/* Facts from the words that people write: in .case files and for `netpawl policy explain`. Pure. */
#pragma once

#include "policy/decide.h"

bool attempt_is_method(const char *word); /* made of the characters that methods are made of */

/* Each fills its part of facts and returns 0; -EINVAL with a sentence in *ret_problem; -ENOMEM. What facts then point
 * to is in arena, and the words given may go. */

/* A request: "GET", "https://api.example/v1?x=1". */
int attempt_request(struct arena *arena, const char *method, const char *url, struct facts *facts,
		    const char **ret_problem);
/* A connection: "db.example:5432", "192.0.2.7:53/udp", "[2001:db8::1]:443/tcp". */
int attempt_connect(struct arena *arena, const char *text, struct facts *facts, const char **ret_problem);

/* A lookup: "MX", "corp.example". */
int attempt_query(struct arena *arena, const char *type, const char *name, struct facts *facts,
		  const char **ret_problem);

/* What may be said on top of it; the request or connection comes first. */
typedef int attempt_list_fn(struct arena *arena, const char *list, struct facts *facts, const char **ret_problem);
int attempt_headers(struct arena *arena, const char *list, struct facts *facts, const char **ret_problem); /* "a, b" */
int attempt_body(const char *size, struct facts *facts, const char **ret_problem);	/* "20MiB", "1234" */
int attempt_resolving(const char *addr, struct facts *facts, const char **ret_problem); /* where the name leads */
int attempt_local(struct facts *facts, const char **ret_problem); /* that is an address of this host */
/* What the name is an alias of, on the way to its address: "a.example, b.example". */
int attempt_aliases(struct arena *arena, const char *list, struct facts *facts, const char **ret_problem);
int attempt_websocket(struct facts *facts, const char **ret_problem);
