/* SPDX-License-Identifier: MIT */
/*
 * Text for people. Much of it was chosen by strangers (names of files, of
 * processes, of sessions), so everything is cleaned on its way out: control
 * characters, broken UTF-8 and direction marks become '?'.
 */
#ifndef NP_CLI_OUTPUT_H
#define NP_CLI_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define OUTPUT_TEXT_MAX (1u << 20) /* one line or cell; the daemon's answers are bounded before */

void output_text(struct buf *out, const char *text, size_t len);
void output_clean(FILE *to, const char *text);
/* One line, cleaned, with its newline. */
void output_clean_line(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Flushes standard output. The exit code as given, or CLI_REFUSED when it could not be written. */
int output_finish(int code);

/* "netpawl: SUBJECT: sentence (token): detail" on stderr; subject and detail may be NULL. */
void error_print(const char *subject, unsigned reason, const char *detail);
void complain_text(const char *subject, const char *sentence, const char *token, const char *detail);

/* A table: cells in rows, aligned, the last column as long as it likes. */
#define TABLE_COLUMNS_MAX 10
struct table {
	size_t columns, used, size;
	char **cells;
	bool heading; /* the first row is one: bold on a terminal */
};
void table_free(struct table *table);
#define _table_ cleanup(table_free)
/* As many strings as there are columns; NULL is shown as "-". */
void table_row(struct table *table, const char *const *cells);
#define table_add(table, ...) table_row((table), (const char *const[]){ __VA_ARGS__ })
void table_print(const struct table *table, FILE *to);

static inline void json_decref_cleanup(json_t **json)
{
	json_decref(*json);
}
#define _json_ cleanup(json_decref_cleanup)

/* A member as text: NULL when it is missing or not a string. */
const char *member_text(const json_t *object, const char *name);
/* Any scalar in words, in memory that is the caller's; NULL for objects and arrays. */
char *scalar_text(const json_t *value);

#endif
