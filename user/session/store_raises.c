/* SPDX-License-Identifier: MIT */
/* The store's verbs on raises that are on the disk by the log in front of it (raise_log.h), before they are in the database's own. */
#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "session/raise_log.h"
#include "session/store_internal.h"

int raises_open(struct store *store, const char *path)
{
	char log[FS_PATH_SIZE];
	int r = fs_path(log, "%s-raises", path);

	if (r == 0)
		r = raise_log_open(log, &store->raises);
	if (r < 0)
		log_error("%s-raises: %s", path, strerror(-r)); /* whoever opens the store knows one file */
	return r;
}

/* Entries up to this number are in the database. Whether one is cannot be told from what it says: of a session that was forgotten and made
 * again generations begin anew, and two raises may have the same one when the first could not be recorded. */
static int raises_note(struct store *store, uint64_t number)
{
	return sql_run(SQL_BIND(store->statements[STORE_RAISES_PUT], sql_n(number)), NULL);
}

/* Inside of a transaction, which notes that this entry is in the database. noticed: its notice is there already. Bookkeeping is no reason to
 * lose a raise: one dataset too many is left out. */
static int raise_apply(struct store *store, const struct raise_read *read, bool noticed)
{
	const struct raise_entry *entry = &read->entry;
	struct notice_row notice = read->notice, *due = entry->notice && !noticed ? &notice : NULL;
	int r = raise_write(store, entry->session, &entry->rung, entry->dataset, due, NULL);

	if (r == -E2BIG)
		r = raise_write(store, entry->session, &entry->rung, NULL, due, NULL);
	return r ? r : raises_note(store, read->number);
}

/* -- at a start --------------------------------------------------------------------------- */

struct replay {
	struct store *store;
	bool known; /* else the database is of a build that noted no number: a row that has an entry's rung has all of it, then */
	uint64_t upto;
};

/*
 * The database lost the session's row with the raise, as one has that was restored from a copy: who forgets a session has its raises
 * noted first. So it comes back as high, like one that was forgotten.
 */
static int raise_remember(struct store *store, const struct raise_read *read)
{
	const struct np_rung *rung = &read->entry.rung;
	int changes = 0;
	int r = begin_synced(store);

	if (!r)
		r = sql_run(SQL_BIND(store->statements[STORE_LEVEL_JOIN], sql_t(read->session.text), sql_n(rung->level),
				     sql_n(rung->mode), sql_n(rung->generation)),
			    &changes);
	if (!r && !changes)
		r = sql_run(SQL_BIND(store->statements[STORE_LEVEL_PUT], sql_t(read->session.text), sql_n(rung->level),
				     sql_n(rung->mode), sql_n(rung->generation)),
			    NULL);
	r = sql_end(store->db, r ? r : raises_note(store, read->number));
	if (!r && !changes)
		store->levels++;
	return r;
}

static int raise_again(struct store *store, const struct raise_read *read, bool noticed)
{
	int r = begin_synced(store);

	return sql_end(store->db, r ? r : raise_apply(store, read, noticed));
}

/* What has its entry in the log was acknowledged, or about to be. Without a row: nobody comes back under a temporary name, and a database
 * without numbers does not tell what it has lost from what it has forgotten. */
static int raise_replay(void *data, const struct raise_read *read)
{
	const struct replay *replay = data;
	struct store *store = replay->store;
	const struct np_rung *rung = &read->entry.rung;
	struct session_row row;
	bool has, gone;
	int r;

	if (replay->known && read->number <= replay->upto)
		return 0;
	r = store_session_get(store, read->entry.session, &row);
	gone = r == -ENOENT;
	if (r && !gone)
		return r;
	has = !gone && row.rung.generation >= rung->generation && !np_rung_is_looser(&row.rung, rung);
	if (replay->known ? gone && session_name_is_temporary(&read->session) : gone || has)
		return 0;
	/* Of two raises of one generation the first was refused; its notice came in here with it. */
	r = gone ? raise_remember(store, read) : raise_again(store, read, has);
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

	/* One that has not come to its end has the block, and the database still needs it. */
	if (!r && (store->logged != store->written || !wal_has_room(store)))
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

/* Inside of a transaction. A raise that was refused is made, with its notice, when it is asked for again. Its number is noted all the same:
 * the next start would take it for one that the database lost. */
static int last_apply(struct store *store)
{
	struct raise_read read;
	int r;

	if (store->refused)
		return raises_note(store, store->logged);
	r = raise_log_last(store->raises, &read);
	return r ? r : raise_apply(store, &read, false);
}

static int database_follow(struct store *store, bool synced)
{
	int r;

	store->behind = false; /* for what begins a transaction, and asks */
	/* Whoever locks it was waited for. Everybody who comes along now would wait as long again. */
	if (store->locked)
		sqlite3_busy_timeout(store->db, 0);
	r = synced ? begin_synced(store) : begin_unsynced(store);
	if (!r)
		r = last_apply(store);
	r = synced ? sql_end(store->db, r) : end_unsynced(store, r);
	sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
	store->locked = r == -EBUSY;
	store->behind = r != 0;
	if (r)
		return r;
	store->refused = false;
	store->written = store->logged;
	if (synced)
		raises_settle(store);
	return 0;
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
	store->locked = checked == -EBUSY;
	r = database_follow(store, true);
	store->refused = r != 0;
	return r;
}

int store_catch_up(struct store *store)
{
	return store->behind ? database_follow(store, false) : 0;
}

int raises_show(struct store *store)
{
	return store->refused ? 0 : store_catch_up(store);
}

void raises_settle(struct store *store)
{
	raise_log_settled(store->raises, store->written);
	store->synced = store->written;
}
