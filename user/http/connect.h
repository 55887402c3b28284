/* SPDX-License-Identifier: MIT */
/*
 * CONNECT to a proxy: the request for a tunnel, and what its answer says. Bytes in, a status out; no fd, no clock. Not a
 * byte behind the answer is taken: it is the tunnel's.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct connect;

int connect_new(struct connect **ret);
void connect_free(struct connect *connect);

/* Once: the request for a tunnel to authority ("host:port"), with credentials ("user:password") or, if NULL, without. Its
 * length, or -errno. Whoever has credentials wipes what is written. */
#define CONNECT_REQUEST_SIZE 2048
ssize_t connect_write(struct connect *connect, const char *authority, const char *credentials,
		      char out[static CONNECT_REQUEST_SIZE]);

/* How many of the bytes belong to the answer; -EPROTO with connect_problem(), -E2BIG. After that, and once it is answered,
 * nothing more may be read. */
ssize_t connect_read(struct connect *connect, const char *data, size_t len);
/* Its final status; 0: it is not there yet. 2xx: the tunnel begins here. Behind another one there may be more, of no use. */
unsigned connect_status(const struct connect *connect);
bool connect_is_open(const struct connect *connect);	    /* the status is 2xx */
const char *connect_problem(const struct connect *connect); /* "it does not begin with a status line" */
