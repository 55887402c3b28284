/* SPDX-License-Identifier: MIT */
/* Every call of the API, in one table. */
#pragma once

#include "control/request.h"

/* Where the session of a request is found, for a caller who may have some and not the others. */
enum scope {
	SCOPE_NONE,    /* it is not for platforms */
	SCOPE_ANY,     /* it is about no session */
	SCOPE_LIST,    /* about all that the caller may see: the handler leaves the others out, see access_sees() */
	SCOPE_PATH,    /* the path names it */
	SCOPE_BODY,    /* "session" of the body */
	SCOPE_QUERY,   /* the first parameter; without it the request is about all of them */
	SCOPE_RUN,     /* that of the run which the path names */
	SCOPE_SANDBOX, /* that of the sandbox */
};

struct route {
	const char *method;
	const char *pattern; /* a segment that is "*" matches any one that is not empty */
	request_fn *fn;
	unsigned roles;			      /* enum role: who may, for every session; an operator may always */
	enum scope platform;		      /* for which sessions a platform may */
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
/* The largest one, for those who may call it. */
size_t route_body_max(const struct route *route);
