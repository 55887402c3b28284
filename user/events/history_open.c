/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <unistd.h>

#include "events/history_internal.h"

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* Every index but that on reason ends in the row's id, which is seq, or is followed by it: each query walks one of them
 * and sorts nothing. reason is in the first so that a rare reason in a busy session is found without reading the rows.
 * session is '' for none. weight is 1, with the events that this one only counts; bytes are those of json: a row is
 * removed without reading it.
 *
 * account holds how much a session has of a class, and what was removed of it. It has at most a row for each event, and
 * NP_HISTORY_EMPTY more. */
static const char schema_sql[] =
	"CREATE TABLE event ("
	"  seq INTEGER PRIMARY KEY,"
	"  wall_us INTEGER NOT NULL,"
	"  session TEXT NOT NULL,"
	"  reason INTEGER NOT NULL,"
	"  class INTEGER NOT NULL,"
	"  weight INTEGER NOT NULL,"
	"  bytes INTEGER NOT NULL,"
	"  json TEXT NOT NULL);"
	"CREATE INDEX event_session ON event (session, seq, reason);"
	"CREATE INDEX event_reason ON event (reason);"
	"CREATE INDEX event_class ON event (session, class);"
	"CREATE INDEX event_age ON event (class, wall_us);"
	"CREATE TABLE account ("
	"  session TEXT NOT NULL,"
	"  class INTEGER NOT NULL,"
	"  bytes INTEGER NOT NULL,"
	"  dropped INTEGER NOT NULL DEFAULT 0,"
	"  since_us INTEGER NOT NULL DEFAULT 0,"
	"  until_us INTEGER NOT NULL DEFAULT 0,"
	"  until_seq INTEGER NOT NULL DEFAULT 0,"
	"  PRIMARY KEY (session, class)) WITHOUT ROWID;"
	"CREATE INDEX account_bytes ON account (class, bytes);"
	"PRAGMA application_id = " TEXT(HISTORY_APPLICATION) ";"
							     "PRAGMA user_version = " TEXT(HISTORY_VERSION) ";";

/* Version 1 had neither classes nor accounts. What it had removed it did not count. The classes are keep_class()'s. */
static const char rename_1_sql[] = "DROP INDEX event_session;"
				   "DROP INDEX event_reason;"
				   "ALTER TABLE event RENAME TO event_1;";
static const char copy_1_sql[] =
	"INSERT INTO event SELECT seq, wall_us, coalesce(session, ''), reason,"
	"  CASE WHEN reason < 32 THEN 2 WHEN reason < 128 OR reason IN (139, 140) THEN 1 ELSE 0 END,"
	"  (reason NOT IN (139, 140)) + CASE WHEN json_valid(json)"
	"    THEN coalesce(CAST(json_extract(json, '$.suppressed') AS INTEGER), 0) ELSE 0 END,"
	"  length(CAST(json AS BLOB)), json FROM event_1;"
	"DROP TABLE event_1;"
	"INSERT INTO account (session, class, bytes) SELECT session, class, sum(bytes) FROM event GROUP BY session, "
	"class;";

void history_close(struct history *history)
{
	sqlite3_finalize(history->insert);
	history->insert = NULL;
	keep_close(history);
	sqlite3_close(history->db);
	history->db = NULL;
}

/* Makes the tables, of the rows of a version 1 if there was one: whole or not at all. */
static int schema_make(sqlite3 *db, bool from_1)
{
	int r = sql_begin(db);

	if (r == 0 && from_1)
		r = sql_exec(db, rename_1_sql);
	if (r == 0)
		r = sql_exec(db, schema_sql);
	if (r == 0 && from_1)
		r = sql_exec(db, copy_1_sql);
	if (r < 0 && from_1 && (sqlite3_errcode(db) & 0xff) == SQLITE_ERROR)
		r = -EUCLEAN; /* it says that it is of version 1, and has not what that has */
	return sql_end(db, r);
}

/* -EUCLEAN when the database is not ours or of a version that is not known. */
static int history_schema(sqlite3 *db)
{
	uint64_t application = 0, version = 0, objects = 0;
	int r = sql_number(db, "PRAGMA application_id", &application);

	if (r == 0)
		r = sql_number(db, "PRAGMA user_version", &version);
	if (r == 0)
		r = sql_number(db, "SELECT count(*) FROM sqlite_schema", &objects);
	if (r < 0)
		return r;
	if (!application && !version && !objects)
		return schema_make(db, false);
	if (application == HISTORY_APPLICATION && version == 1)
		return schema_make(db, true);
	return application == HISTORY_APPLICATION && version == HISTORY_VERSION ? 0 : -EUCLEAN;
}

int history_open(struct history *history)
{
	static const char insert_sql[] = "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
	int fd, r;

	/* SQLite would make it 0644; the files beside it take its mode. */
	fd = open(history->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (fd < 0)
		return -errno;
	close(fd);
	r = sqlite3_open_v2(history->path, &history->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	r = sql_errno(history->db, r);
	if (r == 0)
		r = sql_exec(history->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
					  "PRAGMA journal_size_limit = 4194304;");
	if (r == 0)
		r = history_schema(history->db);
	if (r == 0)
		r = sql_number(history->db, "SELECT coalesce(max(seq), 0) FROM event", &history->last_seq);
	if (r == 0)
		r = sql_prepare(history->db, insert_sql, &history->insert);
	if (r == 0)
		r = keep_open(history);
	if (r == 0 && history->last_seq > INT64_MAX / 2) /* rubbish: the counter would run out */
		r = -EUCLEAN;
	if (r < 0)
		history_close(history);
	return r;
}

int history_move_aside(struct history *history)
{
	char from[PATH_MAX + 8], to[PATH_MAX + 16];

	history_close(history);
	snprintf(to, sizeof(to), "%s.bad", history->path);
	if (rename(history->path, to) < 0)
		return -errno;
	/* Gone from here before a new database is made: SQLite would take the old log for the new one's. */
	snprintf(from, sizeof(from), "%s-wal", history->path);
	snprintf(to, sizeof(to), "%s.bad-wal", history->path);
	if (rename(from, to) < 0) {
		if (errno != ENOENT)
			return -errno;
		unlink(to);
	}
	snprintf(from, sizeof(from), "%s-shm", history->path);
	unlink(from);
	return 0;
}

int history_reopen(struct history *history)
{
	int r = history_open(history);

	if (history_is_damaged(r)) {
		r = history_move_aside(history);
		if (r == 0)
			r = history_open(history);
	}
	return r;
}
