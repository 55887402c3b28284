/* SPDX-License-Identifier: MIT */
#include "base/sql.h"

#include <errno.h>
#include <string.h>

static int constraint_errno(int rc)
{
	switch (rc) {
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return -EEXIST;
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return -ENOENT;
	case SQLITE_CONSTRAINT_TRIGGER:
		return -EPERM;
	default:
		return -EIO;
	}
}

/* What is behind an error of the disk. */
static int system_errno(sqlite3 *db)
{
	switch (sqlite3_system_errno(db)) {
	case ENOSPC:
	case EDQUOT:
		return -ENOSPC;
	case EROFS:
		return -EROFS;
	default:
		return -EIO;
	}
}

int sql_errno(sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CORRUPT:
		return -EUCLEAN;
	case SQLITE_NOTADB:
		return -EPROTO;
	case SQLITE_CONSTRAINT:
		return constraint_errno(rc);
	default:
		return system_errno(db);
	}
}

const char *sql_strerror(int error)
{
	switch (error) {
	case -EBUSY:
		return "the database is locked by another process";
	case -EUCLEAN:
		return "the database is corrupt";
	case -EPROTO:
		return "the file is not a database";
	case -EROFS:
		return "the database is read-only";
	case -ENOSPC:
		return "there is no space left for the database";
	case -ESTALE:
		return "the database's file was removed, or is another";
	default:
		return strerror(-error);
	}
}

int sql_exec(sqlite3 *db, const char *sql)
{
	return sql_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int sql_number(sqlite3 *db, const char *sql, uint64_t *ret)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		*ret = sql_column_number(statement, 0);
	sqlite3_finalize(statement);
	return rc == SQLITE_DONE ? -ENODATA : sql_errno(db, rc);
}

int sql_use_wal(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	char mode[8] = "";
	int r = sql_errno(db, sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &statement, NULL));

	if (!r)
		r = sql_row(statement);
	if (!r)
		r = sql_column_copy(statement, 0, mode, sizeof(mode));
	sqlite3_finalize(statement);
	return r || strcmp(mode, "wal") == 0 ? r : -EIO;
}

int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	return sql_errno(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL));
}

void sql_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

void sql_bind_number(sqlite3_stmt *statement, int at, uint64_t number)
{
	sqlite3_bind_int64(statement, at, (sqlite3_int64)number);
}

sqlite3_stmt *sql_bind(sqlite3_stmt *statement, const struct sql_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].is_text)
			sql_bind_text(statement, (int)i + 1, values[i].text);
		else
			sql_bind_number(statement, (int)i + 1, values[i].number);
	return statement;
}

void sql_done(sqlite3_stmt *statement)
{
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
}

int sql_row(sqlite3_stmt *statement)
{
	int rc = sqlite3_step(statement);

	return rc == SQLITE_DONE ? -ENOENT : sql_errno(sqlite3_db_handle(statement), rc);
}

int sql_run(sqlite3_stmt *statement, int *ret_changes)
{
	sqlite3 *db = sqlite3_db_handle(statement);
	int r = sql_errno(db, sqlite3_step(statement));

	if (!r && ret_changes)
		*ret_changes = sqlite3_changes(db);
	sql_done(statement);
	return r;
}

int sql_query(sqlite3_stmt *statement, uint64_t *ret)
{
	int r = sql_row(statement);

	if (!r || r == -ENOENT)
		*ret = r ? 0 : sql_column_number(statement, 0);
	sql_done(statement);
	return r == -ENOENT ? 0 : r;
}

uint64_t sql_column_number(sqlite3_stmt *statement, int column)
{
	return (uint64_t)sqlite3_column_int64(statement, column);
}

int sql_column_copy(sqlite3_stmt *statement, int column, char *to, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	if (!text || strlen(text) >= size)
		return -EUCLEAN;
	strcpy(to, text);
	return 0;
}

int sql_begin(sqlite3 *db)
{
	return sql_exec(db, "BEGIN IMMEDIATE");
}

int sql_moved(sqlite3 *db)
{
	int moved = 0;

	return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved ? -ESTALE : 0;
}

int sql_end(sqlite3 *db, int r)
{
	if (!r)
		r = sql_moved(db);
	if (!r)
		r = sql_exec(db, "COMMIT");
	/* Some failures have rolled back already; then there is nothing left to do. */
	if (r && !sqlite3_get_autocommit(db))
		sql_exec(db, "ROLLBACK");
	return r;
}
