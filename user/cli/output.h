/* SPDX-License-Identifier: MIT */
/* Answers of the daemon, and tables, for people. */
#pragma once

#include "api_client/message.h"
#include "cli/cli.h"

/* A table: cells in rows, aligned, the last column as long as it likes. */
#define TABLE_COLUMNS_MAX 12
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
/* Rows of two: each of these members that is there, and its value. */
void table_members(struct table *table, const json_t *object, const char *const *names, size_t n);

/* Prints a list of objects as a table: of each column the heading, and the name of the member that stands there. What is neither
 * text nor number is shown as JSON. */
void rows_print(const json_t *list, const char *const (*columns)[2], size_t n, bool heading);

/* Any scalar in words, in memory that is the caller's; NULL for objects, arrays and NULL. */
char *scalar_text(const json_t *value);

/* Prints json, which it takes over; NULL: memory ran out. The exit code as given, or CLI_REFUSED. */
int json_print(json_t *json, int code);
/* As it came; a newline at the end is ours when it has none. */
void json_text_print(const char *text);

/* api_call() for a subcommand that is that one call: prints the JSON as it came, or hands it to print. */
int api_show(const struct cli *cli, const char *subject, const char *method, const char *path, json_t *body,
	     void (*print)(const json_t *answer));
