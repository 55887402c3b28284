/* SPDX-License-Identifier: MIT */
/* The store's verbs on raises that are on the disk by the log in front of it (raise_log.h), before they are in the database's own. */
#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "session/raise_log.h"
#include "session/store_internal.h"

int raises_open(struct store *store, const char *path)
{
	char log[FS_PATH_SIZE];
	int r = fs_path(log, "%s-raises", path);

	return r < 0 ? r : raise_log_open(log, &store->raises);
}

/* Entries up to this number are in the database. Whether one is cannot be told from what it says: of a session that was forgotten and made
 * again generations begin anew, and two raises may have the same one when the first could not be recorded. */
static int raises_note(struct store *store, uint64_t number)
{
	return sql_run(SQL_BIND(store->statements[STORE_RAISES_PUT], sql_n(number)), NULL);
}

/* Inside of a transaction, which notes that this entry is in the database. Bookkeeping is no reason to lose a raise: one dataset too many is left
 * out. */
static int raise_apply(struct store *store, const struct raise_read *read)
{
	const struct raise_entry *entry = &read->entry;
	struct notice_row notice = read->notice, *due = entry->notice ? &notice : NULL;
	int r = raise_write(store, entry->session, &entry->rung, entry->dataset, due, NULL);

	if (r == -E2BIG)
		r = raise_write(store, entry->session, &entry->rung, NULL, due, NULL);
	return r ? r : raises_note(store, read->number);
}

/* -- at a start --------------------------------------------------------------------------- */

struct replay {
	struct store *store;
	bool known; /* else the database is of a build that noted no number: a row that has an entry's generation has all of it, then */
	uint64_t upto;
};

/* What has its entry in the log was acknowledged, or about to be. One without a row was forgotten since: rows are on the disk before they
 * are raised. */
static int raise_replay(void *data, const struct raise_read *read)
{
	const struct replay *replay = data;
	struct store *store = replay->store;
	struct session_row row;
	int r;

	if (replay->known && read->number <= replay->upto)
		return 0;
	r = store_session_get(store, read->entry.session, &row);
	if (r == -ENOENT || (r == 0 && !replay->known && row.rung.generation >= read->entry.rung.generation))
		return 0;
	if (r == 0)
		r = begin_synced(store);
	if (r == 0)
		r = sql_end(store->db, raise_apply(store, read));
	if (r == 0)
		store->replayed[store->n_replayed++ % STORE_REPLAYED] =
			(struct replayed_raise){ read->session, read->entry.rung };
	return r;
}

int raises_replay(struct store *store)
{
	struct replay replay = { .store = store };
	uint64_t next = 0, last;
	int r = sql_query(store->statements[STORE_RAISES_GET], &next);

	replay.known = next > 0;
	replay.upto = next - 1;
	if (!r)
		r = raise_log_each(store->raises, raise_replay, &replay);
	if (r)
		return r;
	/* A log that was made anew goes on where the one before ended. */
	last = raise_log_follow(store->raises, replay.known ? replay.upto : 0);
	if (replay.known && last == replay.upto)
		return 0; /* nothing to note, and no disk to wait for */
	r = begin_synced(store);
	return sql_end(store->db, r ? r : raises_note(store, last));
}

void store_replayed_each(struct store *store, void (*fn)(void *data, const struct replayed_raise *raise), void *data)
{
	for (size_t i = 0; i < store->n_replayed && i < STORE_REPLAYED; i++)
		fn(data, &store->replayed[i]);
	store->n_replayed = 0;
}

/* -- one raise ---------------------------------------------------------------------------- */

int store_raise_begin(struct store *store, const struct raise_entry *entry)
{
	int r = store_catch_up(store);

	if (!r && !wal_has_room(store))
		r = -EAGAIN;
	return r ? r : raise_log_put(store->raises, entry, &store->logged);
}

void store_raise_write(struct store *store)
{
	raise_log_write(store->raises);
}

int store_raise_wait(struct store *store)
{
	return raise_log_wait(store->raises);
}

/* The transaction has nothing in it, and ends with nothing: it is there to see that nobody else has the database locked. */
int store_raise_check(struct store *store, const char *name, uint32_t *ret_number)
{
	uint64_t last = 0;
	int r = sql_begin(store->db);

	if (!r)
		r = sql_moved(store->db);
	if (!r)
		r = sql_query(SQL_BIND(store->statements[STORE_NOTICE_LAST], sql_t(name)), &last);
	if (!r)
		*ret_number = (uint32_t)last + 1;
	sql_end(store->db, -ECANCELED);
	return r;
}

int store_raise_end(struct store *store, int written, int checked)
{
	int r;

	store->behind = true;
	if (!written && !checked) {
		if (store->on_due)
			store->on_due(store->on_due_data);
		return 0;
	}
	r = store_catch_up(store);
	if (!r && written)
		r = store_sync(store);
	return r;
}

int store_catch_up(struct store *store)
{
	struct raise_read read;
	int r;

	if (!store->behind)
		return 0;
	store->behind = false; /* for begin_unsynced(), which asks */
	r = begin_unsynced(store);
	if (!r)
		r = raise_log_last(store->raises, &read);
	if (!r)
		r = raise_apply(store, &read);
	r = end_unsynced(store, r);
	if (!r)
		store->written = store->logged;
	store->behind = r != 0;
	return r;
}

void raises_settle(struct store *store)
{
	raise_log_settled(store->raises, store->written);
	store->synced = store->written;
}
