/* SPDX-License-Identifier: MIT */
/* Calls of the control API, with their failures told to the user. */
#pragma once

#include <jansson.h>

#include "api_client/api_http.h"
#include "api_client/message.h"

struct api_answer {
	int status;   /* HTTP; 0 when there was no answer */
	char *text;   /* the body */
	json_t *json; /* the same, an object; NULL unless the call succeeded */
};
void api_answer_free(struct api_answer *answer);
#define _api_answer_ cleanup(api_answer_free)

/* body (may be NULL) is taken over. CLI_OK; else the exit code to leave with, after the message was printed.
 * subject names what it is about in that message (may be NULL). *ret is to be freed in any case. */
int api_call(const char *socket, const char *subject, const char *method, const char *path, json_t *body,
	     struct api_answer *ret);

/* Checks what json_pack() made: it makes nothing of text that is not UTF-8. CLI_OK, or the exit code. */
int api_body(const char *subject, json_t *body, json_t **ret);

/* Tells why there was no answer. Returns the exit code. */
int api_unreachable(const char *socket, const char *subject, int error);
/* Tells what the daemon's error object says. Returns the exit code. */
int api_refused(const char *subject, int status, const char *text);

/* CLI_OK when it is written USER/SESSION; else wrong usage. Whether the names are allowed is the daemon's to say. */
int session_check(const char *command, const char *session);
/* CLI_OK when it is the word of a level; else wrong usage. */
int level_check(const char *command, const char *level);
/* "/v1/sessions/USER/SESSION" and what follows, escaped; NULL after a message when it has not that form. */
char *api_session_path(const char *session, const char *suffix);
/* Appends text escaped for a path or a query; slashes stay. */
void api_escape(struct buf *out, const char *text);
/* Adds a parameter to a path, escaped; none where the value is NULL. */
void api_query(struct buf *path, const char *name, const char *value);
