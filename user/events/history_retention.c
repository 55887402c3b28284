/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "events/history_internal.h"
#include "reason.h"
#include "vocab/limits.h"

/* Rows that one flush removes: a bound that was lowered is reached in steps, not in one long stop. Several times what it
 * can add, so that the steps gain on a flood. */
#define STEP_ROWS   (4 * NP_HISTORY_BATCH)
#define SHRINK_ROWS 64 /* of them at once: one update of the account instead of one for each */

struct row {
	uint64_t seq, wall_us, weight, bytes;
	enum keep_class class;
	char session[NP_SESSION_MAX + 1];
};

enum keep_class keep_class(unsigned reason)
{
	if (NP_REASON_ALLOWS(reason))
		return KEEP_ALLOWED;
	if (NP_REASON_REFUSES(reason) || reason == NP_R_SUPPRESSED || reason == NP_R_LOST)
		return KEEP_REFUSED;
	return KEEP_CHANGE;
}

int keep_totals(struct history *history)
{
	sqlite3_stmt *stmt = NULL;
	int r = sqlite3_prepare_v2(history->db, "SELECT class, sum(bytes) FROM account GROUP BY class", -1, &stmt,
				   NULL);

	memset(history->bytes, 0, sizeof(history->bytes));
	if (r == SQLITE_OK)
		while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
			int class = sqlite3_column_int(stmt, 0);

			if (class >= 0 && class < KEEP_CLASSES)
				history->bytes[class] = sql_column_number(stmt, 1);
		}
	sqlite3_finalize(stmt);
	return sql_errno(history->db, r);
}

int keep_open(struct history *history)
{
	static const char *const sql[KEEP_STATEMENTS] = {
		[KEEP_ENTER] = "INSERT INTO account (session, class, bytes) VALUES (?1, ?2, ?3) "
			       "ON CONFLICT DO UPDATE SET bytes = bytes + ?3",
		[KEEP_OLDEST] = "SELECT seq, wall_us, weight, bytes, class, session FROM event "
				"WHERE session = ?1 AND class = ?2 ORDER BY seq",
		[KEEP_LARGEST] = "SELECT session, bytes FROM account WHERE class = ?1 ORDER BY bytes DESC LIMIT 1",
		[KEEP_AGED] = "SELECT seq, wall_us, weight, bytes, class, session FROM event "
			      "WHERE class = ?1 AND wall_us < ?2 ORDER BY wall_us LIMIT 1",
		[KEEP_REMOVE] = "DELETE FROM event WHERE seq = ?1",
		[KEEP_COUNT] = "UPDATE account SET bytes = max(bytes - ?3, 0), dropped = dropped + ?4, "
			       "since_us = CASE WHEN dropped THEN min(since_us, ?5) ELSE ?5 END, "
			       "until_us = max(until_us, ?6), until_seq = max(until_seq, ?7) "
			       "WHERE session = ?1 AND class = ?2",
	};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < KEEP_STATEMENTS; i++)
		r = sql_prepare(history->db, sql[i], &history->keep[i]);
	if (r == 0)
		r = keep_totals(history);
	history->over = history->emptied = r == 0; /* the bounds may be lower than those of the last time */
	return r;
}

void keep_close(struct history *history)
{
	for (unsigned i = 0; i < KEEP_STATEMENTS; i++)
		sqlite3_finalize(history->keep[i]);
	memset(history->keep, 0, sizeof(history->keep));
}

int keep_enter(struct history *history, const struct pending *rows, unsigned n, unsigned *ret_entered)
{
	const char *session = history->text.data + rows->session;
	enum keep_class class = keep_class(rows->reason);
	uint64_t bytes = 0;
	unsigned i = 0;
	int r;

	do
		bytes += rows[i++].json_len;
	while (i < n && keep_class(rows[i].reason) == class &&
	       strcmp(history->text.data + rows[i].session, session) == 0);
	r = sql_run(SQL_BIND(history->keep[KEEP_ENTER], sql_t(session), sql_n(class), sql_n(bytes)), NULL);
	if (r == 0)
		history->bytes[class] += bytes;
	*ret_entered = i;
	return r;
}

static void row_fill(sqlite3_stmt *stmt, struct row *ret)
{
	const char *session = (const char *)sqlite3_column_text(stmt, 5);

	*ret = (struct row){
		.seq = sql_column_number(stmt, 0),
		.wall_us = sql_column_number(stmt, 1),
		.weight = sql_column_number(stmt, 2),
		.bytes = sql_column_number(stmt, 3),
		.class = (enum keep_class)sqlite3_column_int(stmt, 4),
	};
	if (session && strlen(session) < sizeof(ret->session))
		strcpy(ret->session, session);
}

/* Removes rows, the oldest first, which are all of one session and class. */
static int rows_remove(struct history *history, const struct row *rows, size_t n)
{
	uint64_t bytes = 0, weight = 0, since_us = rows->wall_us, until_us = 0, until_seq = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct row *row = &rows[i];

		r = sql_run(SQL_BIND(history->keep[KEEP_REMOVE], sql_n(row->seq)), NULL);
		bytes += row->bytes;
		weight += row->weight;
		since_us = row->wall_us < since_us ? row->wall_us : since_us;
		until_us = row->wall_us > until_us ? row->wall_us : until_us;
		until_seq = row->seq > until_seq ? row->seq : until_seq;
	}
	if (r < 0)
		return r;
	history->emptied = true;
	r = sql_run(SQL_BIND(history->keep[KEEP_COUNT], sql_t(rows->session), sql_n(rows->class), sql_n(bytes),
			     sql_n(weight), sql_n(since_us), sql_n(until_us), sql_n(until_seq)),
		    NULL);
	if (rows->class < KEEP_CLASSES)
		history->bytes[rows->class] -=
			bytes < history->bytes[rows->class] ? bytes : history->bytes[rows->class];
	return r;
}

/* The session that has the most of a class, and how much; bytes is 0 when there is nothing of it. */
struct holder {
	enum keep_class class;
	char session[NP_SESSION_MAX + 1];
	uint64_t bytes;
};

static int holder_find(struct history *history, enum keep_class class, struct holder *ret)
{
	sqlite3_stmt *stmt = history->keep[KEEP_LARGEST];
	int r;

	*ret = (struct holder){ .class = class };
	SQL_BIND(stmt, sql_n(class));
	r = sqlite3_step(stmt);
	if (r == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);

		snprintf(ret->session, sizeof(ret->session), "%s", text ? text : "");
		ret->bytes = sql_column_number(stmt, 1);
	}
	sqlite3_reset(stmt);
	return sql_errno(history->db, r);
}

/* An account with a larger sum than there are rows: nothing can be removed, so the sum is corrected. */
static int account_empty(struct history *history, const struct holder *holder)
{
	sqlite3_stmt *stmt = NULL;
	int r = sqlite3_prepare_v2(history->db, "UPDATE account SET bytes = 0 WHERE session = ?1 AND class = ?2", -1,
				   &stmt, NULL);

	if (r == SQLITE_OK) {
		sql_bind_text(stmt, 1, holder->session);
		sql_bind_number(stmt, 2, holder->class);
		r = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	return r == SQLITE_DONE ? keep_totals(history) : sql_errno(history->db, r);
}

/* Removes the oldest of what it has, until so many bytes are gone or SHRINK_ROWS are. How many rows it was; 1 also when the
 * account was wrong. */
static int holder_shrink(struct history *history, const struct holder *holder, uint64_t excess)
{
	sqlite3_stmt *stmt = history->keep[KEEP_OLDEST];
	struct row rows[SHRINK_ROWS];
	uint64_t bytes = 0;
	int n = 0, r = SQLITE_ROW;

	SQL_BIND(stmt, sql_t(holder->session), sql_n(holder->class));
	while (n < SHRINK_ROWS && bytes < excess && (r = sqlite3_step(stmt)) == SQLITE_ROW) {
		row_fill(stmt, &rows[n]);
		bytes += rows[n++].bytes;
	}
	sqlite3_reset(stmt);
	r = sql_errno(history->db, r);
	if (r == 0)
		r = n ? rows_remove(history, rows, (size_t)n) : account_empty(history, holder);
	return r < 0 ? r : n ? n : 1;
}

/* One step towards a bound: how many rows were removed. 0: none is needed. */
static int session_step(struct history *history, enum keep_class class)
{
	struct holder holder;
	int r = holder_find(history, class, &holder);

	if (r < 0 || holder.bytes <= history->limits.session_bytes)
		return r;
	return holder_shrink(history, &holder, holder.bytes - history->limits.session_bytes);
}

static int total_step(struct history *history)
{
	struct holder holder, other;
	int r;

	if (history->bytes[KEEP_REFUSED] + history->bytes[KEEP_ALLOWED] <= history->limits.total_bytes)
		return 0;
	r = holder_find(history, KEEP_REFUSED, &holder);
	if (r == 0)
		r = holder_find(history, KEEP_ALLOWED, &other);
	if (r == 0)
		r = holder_shrink(history, other.bytes > holder.bytes ? &other : &holder, 1);
	return r;
}

static int change_step(struct history *history)
{
	struct holder holder;
	int r;

	if (history->bytes[KEEP_CHANGE] <= history->limits.change_bytes)
		return 0;
	r = holder_find(history, KEEP_CHANGE, &holder);
	if (r == 0)
		r = holder_shrink(history, &holder, 1);
	return r;
}

static int age_step(struct history *history, enum keep_class class)
{
	uint64_t age = class == KEEP_CHANGE ? history->limits.change_age_us : history->limits.total_age_us;
	struct row row = { 0 };
	int r;

	if (!age || history->now_us <= age)
		return 0;
	SQL_BIND(history->keep[KEEP_AGED], sql_n(class), sql_n((history->now_us - age)));
	r = sqlite3_step(history->keep[KEEP_AGED]);
	if (r == SQLITE_ROW)
		row_fill(history->keep[KEEP_AGED], &row);
	sqlite3_reset(history->keep[KEEP_AGED]);
	if (r != SQLITE_ROW)
		return sql_errno(history->db, r);
	r = rows_remove(history, &row, 1);
	return r < 0 ? r : 1;
}

static int any_step(struct history *history)
{
	int r = session_step(history, KEEP_REFUSED);

	if (r == 0)
		r = session_step(history, KEEP_ALLOWED);
	if (r == 0)
		r = total_step(history);
	if (r == 0)
		r = change_step(history);
	for (enum keep_class class = 0; r == 0 && class < KEEP_CLASSES; class ++)
		r = age_step(history, class);
	return r;
}

/*
 * An account without events says what was not kept of its session. Names of sessions come and never come again, so of many such
 * accounts the oldest become one, of nobody's name: all together still add up. An eighth at once, so that they are seldom sorted.
 */
#define EMPTY  "class IN (0, 1, 2) AND bytes = 0 AND session <> '*'"
#define OLDEST "(SELECT until_seq FROM account WHERE " EMPTY " ORDER BY until_seq LIMIT 1 OFFSET %llu)"
#define BEFORE EMPTY " AND until_seq < " OLDEST
_Static_assert(KEEP_CLASSES == 3, "EMPTY names them, for the sake of the index");

static int accounts_fold(struct history *history)
{
	uint64_t empty = 0;
	char sql[1024];
	int r;

	if (!history->emptied)
		return 0;
	r = sql_number(history->db, "SELECT count(*) FROM account WHERE " EMPTY, &empty);
	if (r == 0 && empty > NP_HISTORY_EMPTY) {
		const unsigned long long n = empty - NP_HISTORY_EMPTY + NP_HISTORY_EMPTY / 8;

		snprintf(sql, sizeof(sql),
			 "INSERT INTO account SELECT '*', class, 0, sum(dropped), min(since_us), max(until_us), "
			 "max(until_seq)"
			 " FROM account WHERE dropped > 0 AND " BEFORE " GROUP BY class"
			 " ON CONFLICT DO UPDATE SET dropped = dropped + excluded.dropped,"
			 " since_us = min(since_us, excluded.since_us), until_us = max(until_us, excluded.until_us),"
			 " until_seq = max(until_seq, excluded.until_seq)",
			 n);
		r = sql_exec(history->db, sql);
		snprintf(sql, sizeof(sql), "DELETE FROM account WHERE " BEFORE, n);
		if (r == 0)
			r = sql_exec(history->db, sql);
	}
	history->emptied = r < 0;
	return r;
}

int keep_bounds(struct history *history)
{
	int r = 1;

	for (int n = 0; r > 0 && n < STEP_ROWS; n += r)
		r = any_step(history);
	history->over = r > 0;
	return r < 0 ? r : accounts_fold(history);
}

int history_dropped(struct history *history, const char *session, struct keep_dropped *ret)
{
	static const char sql[] =
		"SELECT class, sum(dropped), min(since_us), max(until_us), max(until_seq) FROM account "
		"WHERE dropped > 0 AND (?1 IS NULL OR session = ?1) GROUP BY class";
	sqlite3_stmt *stmt = NULL;
	int r;

	*ret = (struct keep_dropped){ 0 };
	if (!history->db)
		return history->stats.error;
	r = sqlite3_prepare_v2(history->db, sql, -1, &stmt, NULL);
	if (r == SQLITE_OK && session)
		sql_bind_text(stmt, 1, session);
	if (r == SQLITE_OK)
		while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
			int class = sqlite3_column_int(stmt, 0);

			if (class < 0 || class >= KEEP_CLASSES)
				continue;
			ret->count[class] = sql_column_number(stmt, 1);
			ret->since_us[class] = sql_column_number(stmt, 2);
			ret->until_us[class] = sql_column_number(stmt, 3);
			ret->until_seq[class] = sql_column_number(stmt, 4);
		}
	sqlite3_finalize(stmt);
	return sql_errno(history->db, r);
}
