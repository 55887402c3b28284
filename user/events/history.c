/* SPDX-License-Identifier: MIT */
#include "events/history.h"

#include <errno.h>
#include <linux/limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "events/history_internal.h"
#include "reason.h"
#include "vocab/limits.h"

#define BATCH_BYTES (1u << 20)	/* kept between batches; a larger one is given back */
#define AGE_US	    60000000ull /* between looks for what is too old */

#define QUERY_SIZE 256

#define CLASS_REFUSED 1 /* KEEP_REFUSED, in a form that goes into SQL */
_Static_assert(CLASS_REFUSED == KEEP_REFUSED, "the class of refusals");

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

int history_new(const char *dir, const struct keep_limits *limits, struct history **ret)
{
	struct history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	history->limits = *limits;
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
	history_flush(history, 0);
	history_close(history);
	buf_free(&history->text);
	free(history->path);
	free(history);
}

uint64_t history_weight(unsigned reason, uint64_t suppressed)
{
	return suppressed + (reason != NP_R_SUPPRESSED && reason != NP_R_LOST);
}

uint64_t history_last_seq(const struct history *history)
{
	return history->last_seq;
}

static int insert_step(struct history *history, const struct pending *row)
{
	sqlite3_stmt *stmt = history->insert;
	const char *text = history->text.data;

	SQL_BIND(stmt, sql_n(row->seq), sql_n(row->wall_us), sql_t(text + row->session), sql_n(row->reason),
		 sql_n(keep_class(row->reason)), sql_n(row->weight), sql_n(row->json_len));
	sqlite3_bind_text(stmt, 8, text + row->json, (int)row->json_len, SQLITE_STATIC);
	return sql_run(stmt, NULL);
}

static int history_store(struct history *history)
{
	int r = sql_begin(history->db);

	for (unsigned i = 0; r == 0 && i < history->count; i++)
		r = insert_step(history, &history->waiting[i]);
	for (unsigned i = 0, n; r == 0 && i < history->count; i += n)
		r = keep_enter(history, &history->waiting[i], history->count - i, &n);
	if (r == 0)
		r = keep_bounds(history);
	r = sql_end(history->db, r);
	if (r < 0) {
		keep_totals(history);
		history->over = true;
	}
	return r;
}

static void waiting_clear(struct history *history)
{
	history->count = 0;
	if (history->text.cap > BATCH_BYTES)
		buf_free(&history->text);
	else
		buf_clear(&history->text);
}

static void clock_note(struct history *history, uint64_t now_us)
{
	uint64_t before = history->now_us, apart = now_us > before ? now_us - before : before - now_us;

	if (!now_us || apart < AGE_US)
		return;
	history->now_us = now_us;
	history->over |= history->limits.total_age_us || history->limits.change_age_us;
}

int history_flush(struct history *history, uint64_t now_us)
{
	int r = 0;

	clock_note(history, now_us);
	if (!history->count && history->db && !history->over)
		return 0;
	if (!history->db)
		r = history_reopen(history);
	if (r == 0)
		r = history_store(history);
	if (history_is_damaged(r)) {
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

	*p = (struct pending){ .seq = row->seq, .wall_us = row->wall_us, .weight = row->weight, .reason = row->reason };
	p->session = history->text.len;
	buf_append(&history->text, row->session ? row->session : "", row->session ? strlen(row->session) + 1 : 1);
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
	if (history->count == NP_HISTORY_BATCH && history_flush(history, 0) < 0) {
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
		reason = " AND class = " TEXT(CLASS_REFUSED);
	snprintf(sql, QUERY_SIZE,
		 "SELECT json FROM (SELECT seq, json FROM event WHERE seq > ?1%s%s ORDER BY seq %s LIMIT ?2) "
		 "ORDER BY seq",
		 filter->session ? " AND session = ?3" : "", reason, filter->forward ? "ASC" : "DESC");
}

static int query_run(sqlite3 *db, const struct history_filter *filter, struct buf *out)
{
	char sql[QUERY_SIZE];
	sqlite3_stmt *stmt = NULL;
	int r;

	query_text(filter, sql);
	r = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (r != SQLITE_OK)
		return sql_errno(db, r);
	SQL_BIND(stmt, sql_n(filter->after_seq > INT64_MAX ? INT64_MAX : filter->after_seq), sql_n(filter->limit));
	if (filter->session)
		sql_bind_text(stmt, 3, filter->session);
	if (filter->reason >= 0)
		sql_bind_number(stmt, 4, (unsigned)filter->reason);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW && !buf_error(out)) {
		const void *json = sqlite3_column_text(stmt, 0);

		buf_append(out, json, (size_t)sqlite3_column_bytes(stmt, 0));
	}
	sqlite3_finalize(stmt);
	return buf_error(out) ? buf_error(out) : sql_errno(db, r);
}

int history_query(struct history *history, const struct history_filter *filter, struct buf *out)
{
	size_t before = out->len;
	int r;

	history_flush(history, 0); /* a failure is in the stats; what was stored before can still be read */
	if (!history->db)
		return history->stats.error;
	r = query_run(history->db, filter, out);
	if (r < 0) {
		out->len = before;
		if (out->data)
			out->data[before] = '\0';
	}
	if (history_is_damaged(r) && history_move_aside(history) == 0)
		history->stats.error = history_open(history);
	return r;
}

/* Halves the range of seqs: the clock goes on with them, but for the moments at which it was set. */
int history_before(struct history *history, uint64_t wall_us, uint64_t *ret_seq)
{
	uint64_t low = 0, high = 0; /* low: of an event before that time, or 0 */
	sqlite3_stmt *stmt = NULL;
	int r;

	history_flush(history, 0);
	if (!history->db)
		return history->stats.error;
	r = sql_number(history->db, "SELECT coalesce(max(seq), 0) FROM event", &high);
	if (!r)
		r = sql_prepare(history->db, "SELECT seq, wall_us FROM event WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1",
				&stmt);
	while (!r && low < high) {
		const uint64_t middle = high - (high - low) / 2;

		r = sql_row(SQL_BIND(stmt, sql_n(middle)));
		if (!r && sql_column_number(stmt, 0) > low && sql_column_number(stmt, 1) >= wall_us)
			high = sql_column_number(stmt, 0) - 1;
		else if (!r || r == -ENOENT)
			low = middle;
		if (r == -ENOENT)
			r = 0;
		sql_done(stmt);
	}
	sqlite3_finalize(stmt);
	if (!r)
		*ret_seq = low;
	return r;
}

void history_stats(const struct history *history, struct history_stats *ret)
{
	*ret = history->stats;
}
