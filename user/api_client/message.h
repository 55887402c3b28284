/* SPDX-License-Identifier: MIT */
/*
 * What netpawl and netpawl-run print for people, and the codes that they leave with. Much of the text was chosen by
 * strangers (names of files, of processes, of sessions), so everything is cleaned on its way out: control characters,
 * broken UTF-8 and direction marks become '?'.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define CLI_SOCKET "/run/netpawl/control.sock"

enum cli_exit {
	CLI_OK = 0,
	CLI_REFUSED = 1,   /* the daemon refused, or the operation failed */
	CLI_USAGE = 2,	   /* wrong usage */
	CLI_NO_DAEMON = 3, /* the daemon is not reachable */
	CLI_MISSING = 4,   /* doctor: this kernel lacks something */
};

#define OUTPUT_TEXT_MAX (1u << 20) /* one line or cell; the daemon's answers are bounded before */

void output_text(struct buf *out, const char *text, size_t len);
/* One line, cleaned, with its newline. */
void output_clean_line(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Flushes standard output. The exit code as given, or CLI_REFUSED when it could not be written. */
int output_finish(int code);

/* "netpawl: SUBJECT: sentence (token): detail" on stderr; subject and detail may be NULL. */
void error_print(const char *subject, unsigned reason, const char *detail);
void complain_text(const char *subject, const char *sentence, const char *token, const char *detail);
/* "netpawl: COMMAND: message; see netpawl COMMAND --help". Returns CLI_USAGE. */
int usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void json_decref_cleanup(json_t **json)
{
	json_decref(*json);
}
#define _json_ cleanup(json_decref_cleanup)

/* A member as text: NULL when it is missing or not a string. */
const char *member_text(const json_t *object, const char *name);
long long member_number(const json_t *object, const char *name); /* likewise; 0 */
/* What the daemon says where it refuses: "message: detail", or otherwise if it says nothing. */
void refusal_text(const json_t *answer, const char *otherwise, char *text, size_t size);
