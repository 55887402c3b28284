/* SPDX-License-Identifier: MIT */
/* The store's verbs. */
#include "session/store.h"

#include <errno.h>
#include <string.h>

#include "session/store_internal.h"
#include "vocab/limits.h"

/*
 * Without the fsync: for what ends with the kernel. The rows of a sandbox and of a temporary session are for a daemon that
 * starts anew on a kernel that goes on, and such a daemon finds them: they were written. What an fsync guards against, the end
 * of the kernel, is the end of every cgroup, too: a sandbox whose cgroup is gone is forgotten at the next start, and a temporary
 * session without a sandbox soon after. Nothing that is synced later can be on the disk without what was written before it.
 * Adopted ones are synced: an engine starts a container again after the end of the kernel, and by its row it is awaited (restarted.c).
 */
int begin_unsynced(struct store *store)
{
	int r = store_catch_up(store);

	if (r)
		return r;
	store->unsynced = true;
	r = sql_exec(store->db, "PRAGMA synchronous = NORMAL");
	return r ? r : sql_begin(store->db);
}

/* Every other transaction, single statements too: nothing is committed as if it were synced while FULL could not be had again, or on top of
 * what is in pieces. */
int begin_synced(struct store *store)
{
	int r = store_catch_up(store);

	if (!r)
		r = wal_mend(store); /* what was committed before may be in pieces */
	if (!r && store->unsynced)
		r = sql_exec(store->db, "PRAGMA synchronous = FULL");
	if (r)
		return r;
	store->unsynced = false;
	return sql_begin(store->db);
}

int end_unsynced(struct store *store, int r)
{
	int back;

	r = sql_end(store->db, r);
	back = sql_exec(store->db, "PRAGMA synchronous = FULL");
	store->unsynced = back != 0;
	return r ? r : back;
}

static int run_unsynced(struct store *store, sqlite3_stmt *one, sqlite3_stmt *two)
{
	int r = begin_unsynced(store);

	if (!r)
		r = sql_run(one, NULL);
	if (!r && two)
		r = sql_run(two, NULL);
	return end_unsynced(store, r);
}

int run_synced(struct store *store, sqlite3_stmt *one, sqlite3_stmt *two)
{
	int r = begin_synced(store);

	if (!r)
		r = sql_run(one, NULL);
	if (!r && two)
		r = sql_run(two, NULL);
	return sql_end(store->db, r);
}

int row_update(struct store *store, sqlite3_stmt *statement, sqlite3_stmt *get, uint64_t id)
{
	const bool alone = sqlite3_get_autocommit(store->db); /* else the caller has begun */
	int changes = 0;
	int r = alone ? begin_synced(store) : 0;

	if (!r)
		r = sql_run(SQL_BIND(statement, sql_n(id)), &changes);
	if (alone)
		r = sql_end(store->db, r);
	if (r || changes)
		return r;
	r = sql_row(SQL_BIND(get, sql_n(id)));
	sql_done(get);
	return r ? r : -EALREADY;
}

int session_exists(struct store *store, const char *name)
{
	sqlite3_stmt *statement = store->statements[STORE_SESSION_EXISTS];
	int r = sql_row(SQL_BIND(statement, sql_t(name)));

	sql_done(statement);
	return r;
}

static void bind_session(sqlite3_stmt *statement, const char *name, const struct np_rung *rung)
{
	SQL_BIND(statement, sql_t(name), sql_n(rung->level), sql_n(rung->mode), sql_n(rung->generation));
}

static int session_insert(struct store *store, const struct session_row *row)
{
	sqlite3_stmt *statement = store->statements[STORE_SESSION_INSERT];
	int r = session_exists(store, row->name.text);

	if (r != -ENOENT)
		return r ? r : -EEXIST;
	bind_session(statement, row->name.text, &row->rung);
	sql_bind_number(statement, 5, row->created_us);
	sql_bind_number(statement, 6, row->temporary);
	return sql_run(statement, NULL);
}

int store_session_put(struct store *store, const struct session_row *row, struct notice_row *notice)
{
	sqlite3_stmt *revive = store->statements[STORE_SESSION_REVIVE];
	int revived = 0;
	int r = row->temporary ? begin_unsynced(store) : begin_synced(store);

	if (!r) {
		bind_session(revive, row->name.text, &row->rung);
		sql_bind_number(revive, 5, row->created_us);
		r = sql_run(revive, &revived);
	}
	if (!r && !revived)
		r = session_insert(store, row);
	if (!r && notice)
		r = notice_insert(store, row->name.text, notice);
	r = row->temporary ? end_unsynced(store, r) : sql_end(store->db, r);
	if (!r && revived)
		store->ended--;
	else if (!r)
		store->sessions++;
	return r;
}

int rung_read(sqlite3_stmt *statement, int column, struct np_rung *ret)
{
	sqlite3_int64 level = sqlite3_column_int64(statement, column);
	sqlite3_int64 mode = sqlite3_column_int64(statement, column + 1);

	/* The CHECK constraints keep the ranges; a damaged file does not know them. */
	if (level < 0 || level >= NP_LEVELS || mode < NP_FULL || mode > NP_NONE)
		return -EUCLEAN;
	*ret = (struct np_rung){ .level = (uint8_t)level, .mode = (enum np_mode)mode };
	return 0;
}

int session_row_read(sqlite3_stmt *statement, struct session_row *ret)
{
	const char *name = (const char *)sqlite3_column_text(statement, 0);
	const char *problem;
	struct session_row row = {
		.created_us = sql_column_number(statement, 4),
		.ended = sqlite3_column_type(statement, 5) != SQLITE_NULL,
		.ended_us = sql_column_number(statement, 5),
		.datasets = (unsigned)sqlite3_column_int(statement, 6),
		.used_us = sql_column_number(statement, 7),
		.temporary = sqlite3_column_int(statement, 8) != 0,
		.workspace_due = sqlite3_column_int(statement, 9) != 0,
	};

	if (!name || session_name_parse(name, &row.name, &problem) || rung_read(statement, 1, &row.rung))
		return -EUCLEAN;
	row.rung.generation = (uint32_t)sqlite3_column_int64(statement, 3);
	*ret = row;
	return 0;
}

int store_session_get(struct store *store, const char *name, struct session_row *ret)
{
	sqlite3_stmt *statement = store->statements[STORE_SESSION_GET];
	int r = raises_show(store);

	if (r)
		return r;
	r = sql_row(SQL_BIND(statement, sql_t(name)));
	if (!r)
		r = session_row_read(statement, ret);
	sql_done(statement);
	return r;
}

static int end_run(struct store *store, const char *name, bool workspace_due, uint64_t now_us, int *ret_changes)
{
	return sql_run(SQL_BIND(store->statements[STORE_SESSION_END], sql_t(name), sql_n(now_us), sql_n(workspace_due)),
		       ret_changes);
}

static int end_count(struct store *store, const char *name, int changes, int r)
{
	if (!r && changes)
		store->ended++;
	if (r || changes)
		return r;
	return session_exists(store, name); /* ended already is fine */
}

int store_session_end(struct store *store, const char *name, bool workspace_due, uint64_t now_us)
{
	int changes = 0;
	int r = begin_synced(store);

	if (!r)
		r = end_run(store, name, workspace_due, now_us, &changes);
	return end_count(store, name, changes, sql_end(store->db, r));
}

int store_temporary_end(struct store *store, const char *name, uint64_t now_us)
{
	int changes = 0;
	int r = begin_unsynced(store);

	if (!r)
		r = end_run(store, name, false, now_us, &changes);
	return end_count(store, name, changes, end_unsynced(store, r));
}

static int dataset_insert(struct store *store, const char *session, const struct dataset_row *dataset)
{
	sqlite3_stmt *insert = store->statements[STORE_DATASET_INSERT];
	uint64_t n = 0;
	int r = sql_query(SQL_BIND(store->statements[STORE_DATASET_COUNT], sql_t(session)), &n);

	if (!r && n >= NP_DATASETS_MAX)
		r = -E2BIG;
	if (r)
		return r;
	return sql_run(SQL_BIND(insert, sql_t(session), sql_t(dataset->name), sql_n(dataset->level),
				sql_t(dataset->reason), sql_n(dataset->added_us)),
		       NULL);
}

static int dataset_put(struct store *store, const char *session, const struct dataset_row *dataset, bool *ret_new)
{
	int changes = 0;
	int r = sql_run(SQL_BIND(store->statements[STORE_DATASET_RAISE], sql_t(session), sql_t(dataset->name),
				 sql_n(dataset->level)),
			&changes);

	if (r || changes)
		return r;
	if (ret_new)
		*ret_new = true;
	return dataset_insert(store, session, dataset);
}

int raise_write(struct store *store, const char *name, const struct np_rung *rung, const struct dataset_row *dataset,
		struct notice_row *notice, bool *ret_dataset_new)
{
	sqlite3_stmt *raise = store->statements[STORE_SESSION_RAISE];
	int changes = 0, r;

	bind_session(raise, name, rung);
	r = sql_run(raise, &changes);
	if (!r && !changes)
		r = -ENOENT;
	if (!r && dataset)
		r = dataset_put(store, name, dataset, ret_dataset_new);
	if (!r && notice)
		r = notice_insert(store, name, notice);
	return r;
}

int store_session_raise(struct store *store, const char *name, const struct np_rung *rung,
			const struct dataset_row *dataset, struct notice_row *notice, bool *ret_dataset_new)
{
	bool dataset_new = false;
	int r = begin_synced(store);

	if (!r)
		r = sql_end(store->db, raise_write(store, name, rung, dataset, notice, &dataset_new));
	if (!r && ret_dataset_new)
		*ret_dataset_new = dataset_new;
	return r;
}

/* By SQLite's own descriptor: a close() of another one would release the process's locks on the file, and whoever reads it
 * next from outside would take itself for the last one and remove the log that we go on writing to. */
int store_check(struct store *store)
{
	static const char magic[] = "SQLite format 3";
	char head[sizeof(magic)] = "";
	sqlite3_file *file = NULL;
	int rc, r = sql_moved(store->db);

	if (r)
		return r;
	rc = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (rc == SQLITE_OK)
		rc = file->pMethods->xRead(file, head, sizeof(head), 0);
	if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
		return sql_errno(store->db, rc);
	return memcmp(head, magic, sizeof(magic)) ? -EPROTO : 0;
}

int store_sandbox_put(struct store *store, const struct sandbox_row *row)
{
	sqlite3_stmt *statement = store->statements[STORE_SANDBOX_INSERT],
		     *used = store->statements[STORE_SANDBOX_USED];

	SQL_BIND(statement, sql_t(row->id), sql_t(row->session.text), sql_n(row->cgroup_id), sql_t(row->path),
		 sql_n(row->adopted), sql_n(row->created_us), sql_t(class_name(row->class)));
	SQL_BIND(used, sql_t(row->id), sql_n(row->created_us));
	return row->adopted ? run_synced(store, statement, used) : run_unsynced(store, statement, used);
}

int store_sandbox_remove(struct store *store, const char *id, uint64_t now_us)
{
	sqlite3_stmt *used = store->statements[STORE_SANDBOX_USED], *delete = store->statements[STORE_SANDBOX_DELETE];

	SQL_BIND(used, sql_t(id), sql_n(now_us));
	SQL_BIND(delete, sql_t(id));
	return run_unsynced(store, used, delete);
}

int store_sandbox_await(struct store *store, const char *id, uint64_t now_us)
{
	sqlite3_stmt *used = store->statements[STORE_SANDBOX_USED], *await = store->statements[STORE_SANDBOX_AWAIT];

	SQL_BIND(used, sql_t(id), sql_n(now_us));
	SQL_BIND(await, sql_t(id));
	return run_unsynced(store, used, await);
}

int each_row_of(struct store *store, sqlite3_stmt *statement, const char *name, uint64_t after,
		int (*row_fn)(sqlite3_stmt *statement, const struct each *each), const struct each *each)
{
	int rc, r = 0;

	if (name)
		sql_bind_text(statement, 1, name);
	if (sqlite3_bind_parameter_count(statement) > 1)
		sql_bind_number(statement, 2, after);
	while (!r && (rc = sqlite3_step(statement)) != SQLITE_DONE) {
		r = sql_errno(store->db, rc);
		if (!r)
			r = row_fn(statement, each);
		if (r > 0)
			r = 0;
	}
	sql_done(statement);
	return r;
}

int each_row(struct store *store, const char *sql, const char *name, uint64_t after,
	     int (*row_fn)(sqlite3_stmt *statement, const struct each *each), const struct each *each)
{
	sqlite3_stmt *statement = NULL;
	int r = sql_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL));

	if (!r)
		r = each_row_of(store, statement, name, after, row_fn, each);
	sqlite3_finalize(statement);
	return r;
}

typedef int dataset_fn(void *data, const struct dataset_row *row);
typedef int sandbox_fn(void *data, const struct sandbox_row *row);

static int each_dataset(sqlite3_stmt *statement, const struct each *each)
{
	struct dataset_row row = {
		.level = (enum level)sqlite3_column_int(statement, 1),
		.added_us = sql_column_number(statement, 3),
	};

	if (sql_column_copy(statement, 0, row.name, sizeof(row.name)) ||
	    sql_column_copy(statement, 2, row.reason, sizeof(row.reason)) || (unsigned)row.level >= LEVEL_COUNT)
		return -EUCLEAN;
	return (*(dataset_fn **)each->fn)(each->data, &row);
}

int store_datasets_each(struct store *store, const char *name, int (*fn)(void *data, const struct dataset_row *row),
			void *data)
{
	return each_row(store,
			"SELECT name, level, reason, added_us FROM datasets WHERE session = ?1"
			" ORDER BY added_us, name",
			name, 0, each_dataset, &(struct each){ .fn = &fn, .data = data });
}

static int each_sandbox(sqlite3_stmt *statement, const struct each *each)
{
	struct sandbox_row row = {
		.cgroup_id = sql_column_number(statement, 2),
		.adopted = sqlite3_column_int(statement, 4) != 0,
		.created_us = sql_column_number(statement, 5),
	};
	const char *session = (const char *)sqlite3_column_text(statement, 1);
	const char *problem;

	if (sql_column_copy(statement, 0, row.id, sizeof(row.id)) ||
	    sql_column_copy(statement, 3, row.path, sizeof(row.path)) || !session ||
	    session_name_parse(session, &row.session, &problem) ||
	    class_parse((const char *)sqlite3_column_text(statement, 6), &row.class))
		return -EUCLEAN;
	return (*(sandbox_fn **)each->fn)(each->data, &row);
}

int store_sandboxes_each(struct store *store, int (*fn)(void *data, const struct sandbox_row *row), void *data)
{
	return each_row(store,
			"SELECT id, session, cgroup_id, path, adopted, created_us, class FROM sandboxes"
			" ORDER BY created_us, id",
			NULL, 0, each_sandbox, &(struct each){ .fn = &fn, .data = data });
}
