/* SPDX-License-Identifier: MIT */
/* What the store forgets of sessions, and what it does not. */
#include <errno.h>

#include "session/store_internal.h"
#include "vocab/limits.h"

/*
 * levels has a row for each session that went and must not come back lower. Whoever writes to the file meets the triggers:
 * a session is deleted only when it has ended and its rung is in levels (or it was temporary, which is told when it is made
 * and never changes: LEVEL_INSERT wants a name beside that nobody comes back to); it does not come back below its row there; that row only rises, and is deleted only after it was
 * released, which is refused while the session is on record. So no order of these statements lowers a session, but for the
 * one that says so: released.
 *
 * What goes with a session is deleted by a trigger behind it, in the same statement: its datasets, its notices and how far
 * they were read. A sandbox on record keeps its session there by its reference.
 */
const char *const store_lifetime_schema =
	"ALTER TABLE sessions ADD COLUMN used_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sessions ADD COLUMN temporary INTEGER NOT NULL DEFAULT 0 CHECK (temporary IN (0, 1));"
	"ALTER TABLE sessions ADD COLUMN workspace_due INTEGER NOT NULL DEFAULT 0 CHECK (workspace_due IN (0, 1));"
	/* Nobody noted when the open ones were used last: their time begins now. */
	"UPDATE sessions SET used_us = coalesce(ended_us, CAST(strftime('%s', 'now') AS INTEGER) * 1000000);"
	"CREATE INDEX sessions_open ON sessions (name) WHERE ended_us IS NULL;"
	"CREATE INDEX sessions_idle ON sessions (used_us) WHERE ended_us IS NULL;"
	"CREATE INDEX sessions_old ON sessions (ended_us) WHERE ended_us IS NOT NULL;"
	"CREATE INDEX sessions_temporary ON sessions (used_us) WHERE temporary = 1;"
	"CREATE INDEX sessions_due ON sessions (name) WHERE workspace_due = 1;"
	"CREATE INDEX sandboxes_session ON sandboxes (session);"
	"CREATE TABLE levels ("
	" name TEXT PRIMARY KEY CHECK (length(name) BETWEEN 3 AND 129),"
	" level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),"
	" mode INTEGER NOT NULL CHECK (mode BETWEEN 1 AND 3),"
	" generation INTEGER NOT NULL CHECK (generation BETWEEN 0 AND 4294967295),"
	" gone_us INTEGER NOT NULL,"
	" released INTEGER NOT NULL DEFAULT 0 CHECK (released IN (0, 1))"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX levels_old ON levels (gone_us);"
	"DROP TRIGGER sessions_only_rise;"
	"DROP TRIGGER sessions_stay;"
	"DROP TRIGGER notices_stay;"
	"CREATE TRIGGER sessions_only_rise BEFORE UPDATE ON sessions"
	" WHEN NEW.level < OLD.level OR NEW.mode < OLD.mode OR NEW.generation < OLD.generation"
	" OR NEW.name <> OLD.name OR NEW.temporary <> OLD.temporary"
	" BEGIN SELECT RAISE(ABORT, 'a session only rises'); END;"
	"CREATE TRIGGER sessions_stay BEFORE DELETE ON sessions"
	" WHEN OLD.ended_us IS NULL OR (OLD.temporary = 0 AND (OLD.level > 0 OR OLD.mode > 1) AND NOT EXISTS"
	" (SELECT 1 FROM levels WHERE name = OLD.name AND level >= OLD.level AND mode >= OLD.mode"
	" AND generation >= OLD.generation AND released = 0))"
	" BEGIN SELECT RAISE(ABORT, 'a session goes when it has ended and its level is remembered'); END;"
	"CREATE TRIGGER sessions_take_along AFTER DELETE ON sessions BEGIN"
	" DELETE FROM datasets WHERE session = OLD.name;"
	" DELETE FROM notices WHERE session = OLD.name;"
	" DELETE FROM notice_readers WHERE session = OLD.name; END;"
	"CREATE TRIGGER sessions_come_back_as_high BEFORE INSERT ON sessions"
	" WHEN EXISTS (SELECT 1 FROM levels WHERE name = NEW.name"
	" AND (level > NEW.level OR mode > NEW.mode OR generation > NEW.generation))"
	" BEGIN SELECT RAISE(ABORT, 'the session was higher when it went'); END;"
	"CREATE TRIGGER notices_stay BEFORE DELETE ON notices"
	" WHEN EXISTS (SELECT 1 FROM sessions WHERE name = OLD.session)"
	" BEGIN SELECT RAISE(ABORT, 'a notice stays as long as its session'); END;"
	"CREATE TRIGGER levels_only_rise BEFORE UPDATE ON levels"
	" WHEN NEW.level < OLD.level OR NEW.mode < OLD.mode OR NEW.generation < OLD.generation"
	" OR NEW.name <> OLD.name"
	" OR (NEW.released = 1 AND EXISTS (SELECT 1 FROM sessions WHERE name = OLD.name))"
	" BEGIN SELECT RAISE(ABORT, 'a level only rises'); END;"
	"CREATE TRIGGER levels_stay BEFORE DELETE ON levels WHEN OLD.released = 0"
	" BEGIN SELECT RAISE(ABORT, 'a level stays until it is released'); END;"
	"CREATE TRIGGER levels_are_not_replaced BEFORE INSERT ON levels"
	" WHEN NEW.released <> 0 OR EXISTS (SELECT 1 FROM levels WHERE name = NEW.name)"
	" BEGIN SELECT RAISE(ABORT, 'a level is never replaced'); END;"
	"UPDATE meta SET value = 4 WHERE key = 'schema';";

unsigned store_sessions_count(const struct store *store)
{
	return store->sessions;
}

unsigned store_sessions_ended(const struct store *store)
{
	return store->ended;
}

unsigned store_levels_count(const struct store *store)
{
	return store->levels;
}

/*
 * How many have not ended, by level: kept by SQLite itself beside every change, in memory, for whoever asks every few seconds
 * how a million of them are doing.
 */
const char *const store_levels_tally =
	"PRAGMA temp_store = MEMORY;"
	"CREATE TEMP TABLE open_sessions (level INTEGER PRIMARY KEY, n INTEGER NOT NULL);"
	"INSERT INTO temp.open_sessions (level, n) VALUES (0, 0), (1, 0), (2, 0), (3, 0);"
	"UPDATE temp.open_sessions SET n = s.n FROM"
	" (SELECT level, count(*) AS n FROM main.sessions WHERE ended_us IS NULL GROUP BY level) AS s"
	" WHERE open_sessions.level = s.level;"
	"CREATE TEMP TRIGGER open_more AFTER INSERT ON main.sessions WHEN NEW.ended_us IS NULL"
	" BEGIN UPDATE open_sessions SET n = n + 1 WHERE level = NEW.level; END;"
	"CREATE TEMP TRIGGER open_less AFTER DELETE ON main.sessions WHEN OLD.ended_us IS NULL"
	" BEGIN UPDATE open_sessions SET n = n - 1 WHERE level = OLD.level; END;"
	"CREATE TEMP TRIGGER open_other AFTER UPDATE OF level, ended_us ON main.sessions"
	" WHEN OLD.level <> NEW.level OR (OLD.ended_us IS NULL) <> (NEW.ended_us IS NULL)"
	" BEGIN"
	" UPDATE open_sessions SET n = n - (OLD.ended_us IS NULL) WHERE level = OLD.level;"
	" UPDATE open_sessions SET n = n + (NEW.ended_us IS NULL) WHERE level = NEW.level;"
	" END;";
_Static_assert(LEVEL_COUNT == 4, "a row for each");

int store_sessions_by_level(struct store *store, unsigned ret[static LEVEL_COUNT])
{
	for (unsigned level = 0; level < LEVEL_COUNT; level++) {
		uint64_t n = 0;
		int r = sql_query(SQL_BIND(store->statements[STORE_OPEN_BY_LEVEL], sql_n(level)), &n);

		if (r)
			return r;
		ret[level] = (unsigned)n;
	}
	return 0;
}

/* -- lists ------------------------------------------------------------------- */

typedef int session_fn(void *data, const struct session_row *row);

static int each_session(sqlite3_stmt *statement, const struct each *each)
{
	struct session_row row;
	int r = session_row_read(statement, &row);

	return r ? r : (*(session_fn **)each->fn)(each->data, &row);
}

int store_sessions_page(struct store *store, const char *after, bool with_ended, unsigned limit,
			int (*fn)(void *data, const struct session_row *row), void *data)
{
	return each_row(store,
			with_ended ? STORE_SESSION_SELECT " WHERE name > ?1 ORDER BY name LIMIT ?2"
				   : STORE_SESSION_SELECT
				" WHERE name > ?1 AND ended_us IS NULL ORDER BY name LIMIT ?2",
			after, limit, each_session, &(struct each){ .fn = &fn, .data = data });
}

/* Neither a sandbox nor a run that is not over needs it. A container that is stopped (restarted.c) does not count. */
#define UNUSED                                                                              \
	" AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE session = name AND cgroup_id <> 0)" \
	" AND NOT EXISTS (SELECT 1 FROM runs WHERE session = name AND state IN ('pending', 'running'))"

static const char *const due_sql[] = {
	[DUE_TEMPORARY] =
		"SELECT name FROM sessions WHERE temporary = 1 AND (ended_us IS NOT NULL OR used_us < ?2)" UNUSED,
	[DUE_WORKSPACE] = "SELECT name FROM sessions WHERE workspace_due = 1 AND ?2",
	[DUE_IDLE] = "SELECT name FROM sessions WHERE ended_us IS NULL AND temporary = 0 AND used_us < ?2" UNUSED
		     " ORDER BY used_us",
	[DUE_OLD] = "SELECT name FROM sessions WHERE ended_us < ?2 AND workspace_due = 0" UNUSED " ORDER BY ended_us",
	[DUE_LEVEL] = "SELECT name FROM levels WHERE gone_us < ?2"
		      " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.name = levels.name) ORDER BY gone_us",
};

static int name_collect(sqlite3_stmt *statement, const struct each *each)
{
	const char *name = (const char *)sqlite3_column_text(statement, 0), *problem;
	struct store_names *names = each->data;

	if (names->count >= names->max)
		return -E2BIG;
	return name && !session_name_parse(name, &names->names[names->count++], &problem) ? 0 : -EUCLEAN;
}

int store_due(struct store *store, enum store_due due, uint64_t before_us, unsigned max, struct store_names *ret)
{
	int r;

	ret->count = 0;
	ret->max = max < STORE_BATCH ? max : STORE_BATCH;
	r = each_row(store, due_sql[due], NULL, before_us, name_collect, &(struct each){ .data = ret });
	return r == -E2BIG ? 0 : r;
}

/* -- what goes ----------------------------------------------------------------- */

int store_session_seen_to(struct store *store, const char *name)
{
	return run_synced(store, SQL_BIND(store->statements[STORE_SESSION_SEEN_TO], sql_t(name)), NULL);
}

/* Inside of a transaction. *levels counts the rows that are new. */
static int session_forget(struct store *store, const char *name, uint64_t now_us, unsigned *levels)
{
	sqlite3_stmt *raise = store->statements[STORE_LEVEL_RAISE], *insert = store->statements[STORE_LEVEL_INSERT],
		     *delete = store->statements[STORE_SESSION_DELETE];
	int changes = 0;
	int r = sql_run(SQL_BIND(raise, sql_t(name), sql_n(now_us)), &changes);

	if (!r && !changes) {
		r = sql_run(SQL_BIND(insert, sql_t(name), sql_n(now_us)), &changes);
		*levels += changes > 0;
	}
	if (!r && store->levels + *levels > NP_LEVELS_MAX)
		r = -E2BIG;
	if (r)
		return r;
	r = sql_run(SQL_BIND(delete, sql_t(name)), &changes);
	if (r || changes)
		return r;
	r = session_exists(store, name);
	return r ? r : -EPERM;
}

static int sessions_forget(struct store *store, const struct session_name *names, size_t n, uint64_t now_us,
			   bool synced)
{
	unsigned levels = 0;
	int r = synced ? begin_synced(store) : begin_unsynced(store);

	for (size_t i = 0; i < n && !r; i++)
		r = session_forget(store, names[i].text, now_us, &levels);
	r = synced ? sql_end(store->db, r) : end_unsynced(store, r);
	if (r)
		return r;
	store->sessions -= (unsigned)n;
	store->ended -= (unsigned)n;
	store->levels += levels;
	return 0;
}

int store_sessions_forget(struct store *store, const struct session_name *names, size_t n, uint64_t now_us)
{
	return sessions_forget(store, names, n, now_us, true);
}

int store_temporary_forget(struct store *store, const struct session_name *names, size_t n, uint64_t now_us)
{
	return sessions_forget(store, names, n, now_us, false);
}

/* -- levels ---------------------------------------------------------------------- */

int store_level_get(struct store *store, const char *name, struct np_rung *ret)
{
	sqlite3_stmt *statement = store->statements[STORE_LEVEL_GET];
	struct np_rung rung;
	int r = sql_row(SQL_BIND(statement, sql_t(name)));

	if (!r)
		r = rung_read(statement, 0, &rung);
	if (!r) {
		rung.generation = (uint32_t)sqlite3_column_int64(statement, 2);
		*ret = rung;
	}
	sql_done(statement);
	return r;
}

int store_level_release(struct store *store, const char *name)
{
	sqlite3_stmt *release = store->statements[STORE_LEVEL_RELEASE], *delete = store->statements[STORE_LEVEL_DELETE];
	int changes = 0;
	int r = begin_synced(store);

	if (r)
		return r;
	r = sql_run(SQL_BIND(release, sql_t(name)), NULL);
	if (!r)
		r = sql_run(SQL_BIND(delete, sql_t(name)), &changes);
	r = sql_end(store->db, r);
	if (!r)
		store->levels -= changes > 0;
	return r;
}

int store_level_renew(struct store *store, const char *name, uint64_t now_us)
{
	return run_synced(store, SQL_BIND(store->statements[STORE_LEVEL_RENEW], sql_t(name), sql_n(now_us)), NULL);
}
