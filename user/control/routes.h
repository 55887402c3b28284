/* SPDX-License-Identifier: MIT */
/* Every call of the API, in one table. */
#ifndef NP_CONTROL_ROUTES_H
#define NP_CONTROL_ROUTES_H

#include "control/request.h"

struct route {
	const char *method;
	const char *pattern; /* a segment that is "*" matches any one that is not empty */
	request_fn *fn;
	const char *query[REQUEST_QUERY_MAX]; /* names of the parameters it takes */
};

struct route_match {
	const struct route *route;
	const char *args[REQUEST_ARGS_MAX]; /* point into path */
	char allow[32];			    /* set with -EOPNOTSUPP: the methods that the path does take */
};

/* HEAD is taken where GET is. Returns 0, -ENOENT (no such path) or -EOPNOTSUPP (not that method).
 * path is decoded; it is cut up on success and unchanged otherwise. */
int route_find(const char *method, char *path, struct route_match *ret);

/* True when a request of that method may carry a body. */
bool route_takes_body(const struct route *route);

#endif
