/* SPDX-License-Identifier: MIT */
/*
 * SQLite with this program's habits: -errno instead of its codes, and words for what is wrong with a database. Statements
 * are prepared once and left ready for the next use by whatever runs them.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What SQLite said, as -errno; 0 for its successes. -EBUSY: locked by somebody else; -EUCLEAN: corrupt; -EPROTO: no
 * database; -EROFS; -ENOSPC; -ENOMEM; -EACCES. With extended codes (SQLITE_OPEN_EXRESCODE) a constraint is -EEXIST (primary
 * key), -ENOENT (foreign key) or -EPERM (trigger). -EIO: everything else. db (may be NULL) knows what the system said. */
int sql_errno(sqlite3 *db, int rc);
/* The same for people: "the database is locked by another process"; strerror() for what is not the database's. */
const char *sql_strerror(int error);

int sql_exec(sqlite3 *db, const char *sql);
/* The number in the first column of the first row. -ENODATA when there is no row. */
int sql_number(sqlite3 *db, const char *sql, uint64_t *ret);
/* Write-ahead logging, which readers do not wait for. -EIO when the file system cannot do it. */
int sql_use_wal(sqlite3 *db);
int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret);

/* The text is borrowed until the statement has run. */
void sql_bind_text(sqlite3_stmt *statement, int at, const char *text);
void sql_bind_number(sqlite3_stmt *statement, int at, uint64_t number);
/* All parameters from the first on: SQL_BIND(statement, sql_t(name), sql_n(number), ...). Returns the statement. */
struct sql_value {
	bool is_text;
	const char *text;
	uint64_t number;
};
static inline struct sql_value sql_t(const char *text)
{
	return (struct sql_value){ .is_text = true, .text = text };
}
static inline struct sql_value sql_n(uint64_t number)
{
	return (struct sql_value){ .number = number };
}
sqlite3_stmt *sql_bind(sqlite3_stmt *statement, const struct sql_value *values, size_t n);
#define SQL_BIND(statement, ...)                                       \
	sql_bind(statement, (const struct sql_value[]){ __VA_ARGS__ }, \
		 sizeof((const struct sql_value[]){ __VA_ARGS__ }) / sizeof(struct sql_value))
/* Runs a statement that answers nothing; ret_changes (may be NULL): how many rows it changed. */
int sql_run(sqlite3_stmt *statement, int *ret_changes);
/* Runs one that answers a number; 0 when it has no row. */
int sql_query(sqlite3_stmt *statement, uint64_t *ret);
/* Steps to the one row that a statement answers: 0, -ENOENT when it has none. sql_done() comes after, either way. */
int sql_row(sqlite3_stmt *statement);
void sql_done(sqlite3_stmt *statement); /* leaves it ready for the next use */

uint64_t sql_column_number(sqlite3_stmt *statement, int column); /* NULL is 0 */
/* -EUCLEAN when the column has no text, or more than fits: another program wrote it. */
int sql_column_copy(sqlite3_stmt *statement, int column, char *to, size_t size);

/* A transaction that is one from the start: nobody else writes between its reads and its writes. */
int sql_begin(sqlite3 *db);
/* -ESTALE when the name of the database's file leads elsewhere by now: what is written goes with the last descriptor. */
int sql_moved(sqlite3 *db);
/* Commits when all went well so far (r is 0) and the file has its name, else takes everything back. The first error. */
int sql_end(sqlite3 *db, int r);
