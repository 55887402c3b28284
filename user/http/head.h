/* SPDX-License-Identifier: MIT */
/*
 * The head of a request or a response, in a form that HTTP/1.1 and HTTP/2 share.
 * Both legs of an exchange speak it, so that either may be either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"

struct field {
	const char *name;  /* lower case, a token */
	const char *value; /* no leading or trailing space, no control byte */
	uint32_t name_len, value_len;
};

/* Fields of a head, or trailers. The list owns all text, and text never moves. */
struct fields {
	struct field *items; /* moves when one is added */
	uint32_t n, room;    /* never above NP_HEAD_FIELDS */
	char *text;	     /* the newest block */
	size_t used, size;   /* of it. All together never above NP_HEAD_BYTES */
};

void fields_init(struct fields *fields);
void fields_clear(struct fields *fields); /* empties it; keeps the memory */
void fields_free(struct fields *fields);
/* Copies, the name in lower case. 0, -E2BIG (too many or too long) or -ENOMEM. */
int fields_add(struct fields *fields, const char *name, size_t name_len, const char *value, size_t value_len);
/* Adds all of them. */
int fields_copy(struct fields *to, const struct fields *from);
/* A copy with memory of its own, and the end of one; *fields may be NULL. */
int fields_clone(struct fields **ret, const struct fields *from);
void fields_delete(struct fields **fields);
/* All of that name. name is lower case. */
void fields_remove(struct fields *fields, const char *name);
/* Another value of the field at that place. 0, -E2BIG or -ENOMEM, and it is as it was. */
int fields_set(struct fields *fields, uint32_t at, const char *value, size_t len);
void fields_wipe(
	struct fields *fields); /* overwrites all text, replaced values included; after that it may only be freed */
/* The first of that name, or NULL. name is lower case. */
const struct field *fields_find(const struct fields *fields, const char *name);

#define BODY_UNKNOWN UINT64_MAX

struct head {
	/* A request has a method, a response a status. Strings belong to fields, NUL-terminated. */
	const char *method;
	const char *authority; /* Host or :authority as sent, never empty in a request */
	const char *target;    /* "/path?query"; "*" for OPTIONS; "" for CONNECT */
	const char *scheme;    /* "http" or "https" as HTTP/2 and absolute-form have it; NULL in origin-form */
	unsigned status;
	/* Without those that belong to one connection: connection, keep-alive, proxy-connection, transfer-encoding,
	 * upgrade, te (but "te: trailers"), http2-settings, host, content-length, expect. What matters of them is below. */
	struct fields fields;
	bool has_body;	 /* a body follows, perhaps an empty one */
	uint64_t length; /* content-length, or BODY_UNKNOWN. Of a response to HEAD and of a 304 what they announce */
	bool has_length; /* content-length was there */
	bool expects_continue; /* expect: 100-continue */
	const char *
		upgrade; /* HTTP/1.1: token asked for with connection: upgrade, lower case; HTTP/2: ":protocol"; or NULL */
	bool te_trailers;
};

void head_init(struct head *head);
void head_clear(struct head *head);
void head_free(struct head *head);
/* Copies a text to where the fields have theirs. 0, -E2BIG or -ENOMEM. */
int head_set_method(struct head *head, const char *text, size_t len);
int head_set_authority(struct head *head, const char *text, size_t len);
int head_set_target(struct head *head, const char *text, size_t len);
int head_set_scheme(struct head *head, const char *text, size_t len);
int head_set_upgrade(struct head *head, const char *text, size_t len);

/* Into an empty one, which is empty again if it fails. */
int head_copy(struct head *to, const struct head *from);
/* Into an empty one. from is empty then. */
void head_move(struct head *to, struct head *from);

/* Field names and values by the grammar of RFC 9110, with nothing lenient about it. */
bool field_name_is_valid(const char *text, size_t len); /* token; any case */
/* RFC 9110, 6.5.1: such a field means nothing behind a body, or comes too late. name is in lower case. */
bool field_is_for_heads(const char *name, size_t len);
/* A method that a policy can speak of. Methods are in capital letters; some servers take "post" for POST. */
bool method_is_valid(const char *text, size_t len);
bool field_value_is_valid(const char *text, size_t len); /* no control byte but tab, no leading or trailing space */
