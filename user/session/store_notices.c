/* SPDX-License-Identifier: MIT */
/* The store's verbs on notices and on how far they were read. */
#include <errno.h>

#include "session/store_internal.h"
#include "vocab/limits.h"

int notice_insert(struct store *store, const char *session, struct notice_row *notice)
{
	uint64_t number = 0;
	int r = sql_query(SQL_BIND(store->statements[STORE_NOTICE_INSERT], sql_t(session), sql_n(notice->made_us),
				   sql_n(notice->rung.level), sql_n(notice->rung.mode), sql_t(notice->dataset),
				   sql_t(notice->reason), sql_t(notice->text)),
			  &number);

	notice->number = (uint32_t)number;
	return r;
}

typedef int notice_fn(void *data, const struct notice_row *row);

static int each_notice(sqlite3_stmt *statement, const struct each *each)
{
	struct notice_row row = {
		.number = (uint32_t)sqlite3_column_int64(statement, 0),
		.made_us = sql_column_number(statement, 1),
		.text = (const char *)sqlite3_column_text(statement, 6),
	};

	if (sql_column_copy(statement, 4, row.dataset, sizeof(row.dataset)) ||
	    sql_column_copy(statement, 5, row.reason, sizeof(row.reason)) || !row.text ||
	    rung_read(statement, 2, &row.rung))
		return -EUCLEAN;
	return (*(notice_fn **)each->fn)(each->data, &row);
}

int store_notices_each(struct store *store, const char *name, uint32_t after,
		       int (*fn)(void *data, const struct notice_row *row), void *data)
{
	int r = raises_show(store); /* the last one may not be there yet */

	return r ? r
		 : each_row_of(store, store->statements[STORE_NOTICE_EACH], name, after, each_notice,
			       &(struct each){ .fn = &fn, .data = data });
}

int store_reader_get(struct store *store, const char *name, const char *reader, uint32_t *ret_upto)
{
	uint64_t upto = 0;
	int r = sql_query(SQL_BIND(store->statements[STORE_READER_GET], sql_t(name), sql_t(reader)), &upto);

	if (!r)
		*ret_upto = (uint32_t)upto;
	return r;
}

static int reader_check(struct store *store, const char *name, const char *reader, uint32_t upto)
{
	sqlite3_stmt *last = store->statements[STORE_NOTICE_LAST], *count = store->statements[STORE_READER_COUNT];
	uint64_t newest = 0, others = 0;
	int r = session_exists(store, name);

	if (r)
		return r;
	r = sql_query(SQL_BIND(last, sql_t(name)), &newest);
	if (r)
		return r;
	if (upto > newest)
		return -ERANGE;
	r = sql_query(SQL_BIND(count, sql_t(name), sql_t(reader)), &others);
	return !r && others >= NP_NOTICE_READERS ? -E2BIG : r;
}

int store_reader_put(struct store *store, const char *name, const char *reader, uint32_t upto)
{
	int r = begin_synced(store);

	if (r)
		return r;
	r = reader_check(store, name, reader, upto);
	if (!r)
		r = sql_run(SQL_BIND(store->statements[STORE_READER_PUT], sql_t(name), sql_t(reader), sql_n(upto)),
			    NULL);
	return sql_end(store->db, r);
}
