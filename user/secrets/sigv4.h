/* SPDX-License-Identifier: MIT */
/*
 * AWS Signature Version 4. A client signs with a key that is none (its placeholder); the request is signed again with the real one,
 * which it never had. Signatures in the Authorization header only: a presigned URL would be good for whoever sees it, and the
 * signatures of chunks would all have to be made anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct sigv4_header {
	const char *name; /* lower case */
	size_t name_len;
	const char *value;
	size_t value_len;
};

/* The request as it goes to the origin. */
struct sigv4_request {
	const char *method;
	const char *target; /* "/path?query", escaped */
	const char *host;   /* as the origin gets it */
	const struct sigv4_header *headers;
	size_t n;
};

/* The real key, and what it is for. */
struct sigv4_key {
	const char *id, *secret; /* NUL-terminated all */
	const char *token;	 /* NULL: none. The header x-amz-security-token is there then, with this value */
	const char *service, *region;
};

enum sigv4_kind {
	SIGV4_NONE,    /* the client has not signed it */
	SIGV4_READY,   /* sigv4_sign() has all that it needs */
	SIGV4_BODY,    /* it needs the hash of the body */
	SIGV4_REFUSED, /* *problem says why it cannot be signed again */
};

/* What the client has done. */
enum sigv4_kind sigv4_look(const struct sigv4_request *request, bool has_body, const char **problem);

/* Bytes of a hash in digits, without a NUL. */
#define SIGV4_HASH 64
void sigv4_hash(const char *data, size_t len, char ret[static SIGV4_HASH]);

/* The value of the header authorization. body: the hash of the body where sigv4_look() wants it, or NULL. 0; -EINVAL: the request
 * is none that can be signed; -ENOMEM, -E2BIG by out. */
int sigv4_sign(const struct sigv4_request *request, const struct sigv4_key *key, const char *body, struct buf *out);
