/* SPDX-License-Identifier: MIT */
#include "events/history.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "limits.h"
#include "reason.h"

#define HISTORY_APPLICATION 0x6e706576 /* "npev" */
#define HISTORY_VERSION	    1
#define BATCH_BYTES	    (1u << 20) /* kept between batches; a larger one is given back */

#define QUERY_SIZE 256

#define HISTORY_SUPPRESSED 139 /* NP_R_SUPPRESSED, in a form that goes into SQL */
_Static_assert(HISTORY_SUPPRESSED == NP_R_SUPPRESSED, "the code of suppressed");

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* Both indexes end in the row's id, which is seq: each query below walks one of them backwards and sorts nothing.
 * reason is in the first so that a rare reason in a busy session is found without reading the rows. */
static const char schema_sql[] =
	"BEGIN;"
	"CREATE TABLE event ("
	"  seq INTEGER PRIMARY KEY,"
	"  wall_us INTEGER NOT NULL,"
	"  session TEXT,"
	"  reason INTEGER NOT NULL,"
	"  json TEXT NOT NULL);"
	"CREATE INDEX event_session ON event (session, seq, reason);"
	"CREATE INDEX event_reason ON event (reason);"
	"PRAGMA application_id = " TEXT(HISTORY_APPLICATION) ";"
							     "PRAGMA user_version = " TEXT(HISTORY_VERSION) ";"
													    "COMMIT;";

struct pending {
	uint64_t seq, wall_us;
	unsigned reason;
	bool has_session;
	size_t session; /* where in `text` the session begins, with its NUL; the JSON follows */
	size_t json, json_len;
};

struct history {
	char *path;
	sqlite3 *db; /* NULL while it cannot be opened */
	sqlite3_stmt *insert;
	sqlite3_stmt *prune;
	uint64_t rows;	   /* in the table */
	uint64_t last_seq; /* when opened */
	unsigned count;	   /* of waiting */
	struct pending waiting[NP_HISTORY_BATCH];
	struct buf text;
	struct history_stats stats;
};

static int sql_errno(int code)
{
	switch (code & 0xff) {
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
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

static int sql_exec(sqlite3 *db, const char *sql)
{
	return sql_errno(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* The one number of a one-row query. */
static int sql_number(sqlite3 *db, const char *sql, uint64_t *ret)
{
	sqlite3_stmt *stmt = NULL;
	int r = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (r == SQLITE_OK)
		r = sqlite3_step(stmt);
	if (r == SQLITE_ROW)
		*ret = (uint64_t)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return r == SQLITE_DONE ? -EIO : sql_errno(r);
}

static void history_close(struct history *history)
{
	sqlite3_finalize(history->insert);
	sqlite3_finalize(history->prune);
	sqlite3_close(history->db);
	history->insert = history->prune = NULL;
	history->db = NULL;
}

/* Makes the tables of an empty database; -EUCLEAN when it is not ours or not of this version. */
static int history_schema(sqlite3 *db)
{
	uint64_t application = 0, version = 0, objects = 0;
	int r;

	r = sql_number(db, "PRAGMA application_id", &application);
	if (r == 0)
		r = sql_number(db, "PRAGMA user_version", &version);
	if (r == 0)
		r = sql_number(db, "SELECT count(*) FROM sqlite_schema", &objects);
	if (r < 0)
		return r;
	if (!application && !version && !objects)
		return sql_exec(db, schema_sql);
	return application == HISTORY_APPLICATION && version == HISTORY_VERSION ? 0 : -EUCLEAN;
}

static int history_open(struct history *history)
{
	static const char insert_sql[] = "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?)";
	static const char prune_sql[] =
		"DELETE FROM event WHERE seq <= (SELECT seq FROM event ORDER BY seq LIMIT 1 OFFSET ?)";
	int fd, r;

	/* SQLite would make it 0644; the files beside it take its mode. */
	fd = open(history->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (fd < 0)
		return -errno;
	close(fd);
	r = sql_errno(sqlite3_open_v2(history->path, &history->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
	if (r == 0)
		r = sql_exec(history->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
					  "PRAGMA journal_size_limit = 4194304;");
	if (r == 0)
		r = history_schema(history->db);
	if (r == 0)
		r = sql_number(history->db, "SELECT count(*) FROM event", &history->rows);
	if (r == 0)
		r = sql_number(history->db, "SELECT coalesce(max(seq), 0) FROM event", &history->last_seq);
	if (r == 0)
		r = sql_errno(sqlite3_prepare_v3(history->db, insert_sql, -1, SQLITE_PREPARE_PERSISTENT,
						 &history->insert, NULL));
	if (r == 0)
		r = sql_errno(sqlite3_prepare_v3(history->db, prune_sql, -1, SQLITE_PREPARE_PERSISTENT, &history->prune,
						 NULL));
	if (r == 0 && history->last_seq > INT64_MAX / 2) /* rubbish: the counter would run out */
		r = -EUCLEAN;
	if (r < 0)
		history_close(history);
	return r;
}

/* events.db -> events.db.bad, with its log, which may hold rows that a person still wants. */
static int history_move_aside(struct history *history)
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

static int history_reopen(struct history *history)
{
	int r = history_open(history);

	if (r == -EUCLEAN) {
		r = history_move_aside(history);
		if (r == 0)
			r = history_open(history);
	}
	return r;
}

int history_new(const char *dir, struct history **ret)
{
	struct history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	history->text = BUF_INIT((size_t)NP_HISTORY_BATCH * (NP_EVENT_LINE_MAX + NP_EVENT_STRING_MAX));
	if (strlen(dir) + sizeof("/events.db") > PATH_MAX || asprintf(&history->path, "%s/events.db", dir) < 0) {
		free(history);
		return -ENOMEM;
	}
	history->stats.error = history_reopen(history);
	*ret = history;
	return 0;
}

void history_free(struct history *history)
{
	if (!history)
		return;
	history_flush(history);
	history_close(history);
	buf_free(&history->text);
	free(history->path);
	free(history);
}

uint64_t history_last_seq(const struct history *history)
{
	return history->last_seq;
}

static int insert_step(struct history *history, const struct pending *row)
{
	sqlite3_stmt *stmt = history->insert;
	const char *text = history->text.data;
	int r;

	sqlite3_bind_int64(stmt, 1, (sqlite3_int64)row->seq);
	sqlite3_bind_int64(stmt, 2, (sqlite3_int64)row->wall_us);
	if (row->has_session)
		sqlite3_bind_text(stmt, 3, text + row->session, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(stmt, 3);
	sqlite3_bind_int64(stmt, 4, row->reason);
	sqlite3_bind_text(stmt, 5, text + row->json, (int)row->json_len, SQLITE_STATIC);
	r = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	return sql_errno(r);
}

/* A few batches at a time: a bound that was lowered is reached in steps, not in one long stop. */
static int prune_step(struct history *history, uint64_t *rows)
{
	const uint64_t most = (uint64_t)4 * NP_HISTORY_BATCH;
	uint64_t excess;
	int r;

	if (*rows <= NP_HISTORY_ROWS)
		return 0;
	excess = *rows - NP_HISTORY_ROWS;
	if (excess > most)
		excess = most;
	sqlite3_bind_int64(history->prune, 1, (sqlite3_int64)excess - 1);
	r = sql_errno(sqlite3_step(history->prune));
	sqlite3_reset(history->prune);
	if (r == 0)
		*rows -= (uint64_t)sqlite3_changes64(history->db);
	return r;
}

static int history_store(struct history *history)
{
	uint64_t rows = history->rows + history->count;
	int r = sql_exec(history->db, "BEGIN IMMEDIATE");

	for (unsigned i = 0; r == 0 && i < history->count; i++)
		r = insert_step(history, &history->waiting[i]);
	if (r == 0)
		r = prune_step(history, &rows);
	if (r == 0)
		r = sql_exec(history->db, "COMMIT");
	if (r < 0) {
		if (!sqlite3_get_autocommit(history->db))
			sql_exec(history->db, "ROLLBACK");
		return r;
	}
	history->rows = rows;
	return 0;
}

static void waiting_clear(struct history *history)
{
	history->count = 0;
	if (history->text.cap > BATCH_BYTES)
		buf_free(&history->text);
	else
		buf_clear(&history->text);
}

int history_flush(struct history *history)
{
	int r = 0;

	if (!history->count && history->db && history->rows <= NP_HISTORY_ROWS)
		return 0;
	if (!history->db)
		r = history_reopen(history);
	if (r == 0)
		r = history_store(history);
	if (r == -EUCLEAN) {
		r = history_move_aside(history);
		if (r == 0)
			r = history_open(history);
		if (r == 0)
			r = history_store(history);
	}
	if (r == 0)
		waiting_clear(history);
	history->stats.error = r;
	return r;
}

void history_put(struct history *history, const struct history_row *row, const char *json, size_t len)
{
	struct pending *p = &history->waiting[history->count];
	size_t before = history->text.len;

	*p = (struct pending){ .seq = row->seq, .wall_us = row->wall_us, .reason = row->reason };
	if (row->session) {
		p->has_session = true;
		p->session = history->text.len;
		buf_append(&history->text, row->session, strlen(row->session) + 1);
	}
	p->json = history->text.len;
	p->json_len = len;
	buf_append(&history->text, json, len);
	if (buf_error(&history->text)) {
		history->stats.error = buf_error(&history->text);
		history->stats.dropped++;
		history->text.error = 0;
		history->text.len = before;
		return;
	}
	history->count++;
	if (history->count == NP_HISTORY_BATCH && history_flush(history) < 0) {
		history->stats.dropped += history->count;
		waiting_clear(history);
	}
}

/* +reason: with a session given, the index on reason alone is the wrong one. */
static void query_text(const struct history_filter *filter, char sql[static QUERY_SIZE])
{
	const char *reason = "";

	if (filter->reason >= 0)
		reason = filter->session ? " AND +reason = ?4" : " AND reason = ?4";
	else if (filter->refused)
		reason = " AND (+reason BETWEEN 32 AND 127 OR +reason = " TEXT(HISTORY_SUPPRESSED) ")";
	snprintf(sql, QUERY_SIZE,
		 "SELECT json FROM (SELECT seq, json FROM event WHERE seq > ?1%s%s ORDER BY seq DESC LIMIT ?2) "
		 "ORDER BY seq",
		 filter->session ? " AND session = ?3" : "", reason);
}

static int query_run(sqlite3 *db, const struct history_filter *filter, struct buf *out)
{
	char sql[QUERY_SIZE];
	sqlite3_stmt *stmt = NULL;
	int r;

	query_text(filter, sql);
	r = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (r != SQLITE_OK)
		return sql_errno(r);
	sqlite3_bind_int64(stmt, 1, filter->after_seq > INT64_MAX ? INT64_MAX : (sqlite3_int64)filter->after_seq);
	sqlite3_bind_int64(stmt, 2, filter->limit);
	if (filter->session)
		sqlite3_bind_text(stmt, 3, filter->session, -1, SQLITE_STATIC);
	if (filter->reason >= 0)
		sqlite3_bind_int(stmt, 4, filter->reason);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW && !buf_error(out)) {
		const void *json = sqlite3_column_text(stmt, 0);

		buf_append(out, json, (size_t)sqlite3_column_bytes(stmt, 0));
	}
	sqlite3_finalize(stmt);
	return buf_error(out) ? buf_error(out) : sql_errno(r);
}

int history_query(struct history *history, const struct history_filter *filter, struct buf *out)
{
	size_t before = out->len;
	int r;

	history_flush(history); /* a failure is in the stats; what was stored before can still be read */
	if (!history->db)
		return history->stats.error;
	r = query_run(history->db, filter, out);
	if (r < 0) {
		out->len = before;
		if (out->data)
			out->data[before] = '\0';
	}
	if (r == -EUCLEAN && history_move_aside(history) == 0)
		history->stats.error = history_open(history);
	return r;
}

void history_stats(const struct history *history, struct history_stats *ret)
{
	*ret = history->stats;
}
