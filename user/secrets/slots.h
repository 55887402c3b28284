/* SPDX-License-Identifier: MIT */
/*
 * The places of a request that a placeholder may stand in, and what becomes of it there. Text in, text out: what a place needs
 * (percent-encoding, escapes of JSON, base64 of Basic) is done here. Whether the value may stand there is the caller's word.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "policy/credential.h"
#include "secrets/placeholder_set.h"
#include "secrets/secrets.h"

struct slot_place {
	enum slot_kind kind;
	const char *name; /* HEADER, QUERY: as it is in the request; not NUL-terminated */
	size_t name_len;
	bool json; /* WEBSOCKET: the message is JSON */
};

/* Is it one of the places that the policy names? */
bool slot_fits(const struct credential *credential, const struct slot_place *place);
/* The same of a token that was captured for it. A cookie goes back as a cookie. */
bool slot_fits_token(const struct credential *credential, bool is_cookie, const struct slot_place *place);

struct slot_finder {
	const struct placeholder_set *set;
	/* The value in the place of this placeholder; NULL: there is none, and the request is not to go. */
	const struct secret *(*value)(void *ctx, const struct placeholder *placeholder, const struct slot_place *place);
	void *ctx;
};

/* Each appends the whole text, with values, to out if there is a placeholder in it: then 1. 0: there is none, and out is as it
 * was. -EACCES: value() said no; -ENOMEM or -E2BIG. Whoever has out wipes it. */
int slot_replace(const struct slot_finder *finder, const struct slot_place *place, const char *text, size_t len,
		 struct buf *out);
/* The value of a header. Of Authorization, what scheme it is counts. name is lower case. */
int slot_header(const struct slot_finder *finder, const char *name, size_t name_len, const char *text, size_t len,
		struct buf *out);
/* "/path?query" */
int slot_target(const struct slot_finder *finder, const char *target, size_t len, struct buf *out);

/* A value in its place, where no placeholder stands: the header's value of BEARER, BASIC and HEADER; the parameter of QUERY. */
void slot_write(const struct credential_slot *slot, const struct secret *secret, struct buf *out);
/* target without the parameters of that name, then with this one. */
void slot_write_query(const struct credential_slot *slot, const struct secret *secret, const char *target,
		      struct buf *out);

void buf_wipe(struct buf *buf); /* and frees it */
#define _wiped_ __attribute__((__cleanup__(buf_wipe)))
