/* SPDX-License-Identifier: MIT */
/* Calls of the control API, with their failures told to the user. */
#ifndef NP_CLI_API_H
#define NP_CLI_API_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/api_http.h"

struct api_answer {
	int status;   /* HTTP; 0 when there was no answer */
	char *text;   /* the body */
	json_t *json; /* the same, an object; NULL unless the call succeeded */
};
void api_answer_free(struct api_answer *answer);
#define _api_answer_ cleanup(api_answer_free)

/* body (may be NULL) is taken over. CLI_OK; else the exit code to leave with, after the message was printed.
 * subject names what it is about in that message (may be NULL). *ret is to be freed in any case. */
int api_call(const struct cli *cli, const char *subject, const char *method, const char *path, json_t *body,
	     struct api_answer *ret);

/* The same for a subcommand that is one call: prints the JSON as it came, or hands it to print. */
int api_show(const struct cli *cli, const char *subject, const char *method, const char *path, json_t *body,
	     void (*print)(const json_t *answer));

/* Checks what json_pack() made: it makes nothing of text that is not UTF-8. CLI_OK, or the exit code. */
int api_body(const char *subject, json_t *body, json_t **ret);

/* Tells why there was no answer. Returns the exit code. */
int api_unreachable(const struct cli *cli, const char *subject, int error);
/* Tells what the daemon's error object says. Returns the exit code. */
int api_refused(const char *subject, int status, const char *text);

/* Is it written USER/SESSION? */
bool api_session_form(const char *session);
/* "/v1/sessions/USER/SESSION" and what follows, escaped; NULL after a message when it has not that form. */
char *api_session_path(const char *session, const char *suffix);
/* Appends text escaped for a path or a query; slashes stay. */
void api_escape(struct buf *out, const char *text);

#endif
