/* SPDX-License-Identifier: MIT */
/* The store's file: who may read it, how it is written, and what is in it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "session/raise_log.h"
#include "session/store_internal.h"
#include "vocab/limits.h"

#define STORE_VERSION 8

/*
 * Sessions are never lowered, whoever writes: the triggers are in the file. The one on INSERT is there for "INSERT OR
 * REPLACE", which deletes without asking the DELETE trigger. Until version 4 they were never deleted either.
 */
static const char *const store_schema =
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE TABLE sessions ("
	" name TEXT PRIMARY KEY CHECK (length(name) BETWEEN 3 AND 129),"
	" level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),"
	" mode INTEGER NOT NULL CHECK (mode BETWEEN 1 AND 3),"
	" generation INTEGER NOT NULL CHECK (generation BETWEEN 0 AND 4294967295),"
	" created_us INTEGER NOT NULL,"
	" ended_us INTEGER"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE datasets ("
	" session TEXT NOT NULL REFERENCES sessions (name),"
	" name TEXT NOT NULL CHECK (length(name) > 0),"
	" level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),"
	" reason TEXT NOT NULL,"
	" added_us INTEGER NOT NULL,"
	" PRIMARY KEY (session, name)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY,"
	" session TEXT NOT NULL REFERENCES sessions (name),"
	" cgroup_id INTEGER NOT NULL," /* 64 bits, kept as a signed number */
	" path TEXT NOT NULL,"
	" adopted INTEGER NOT NULL CHECK (adopted IN (0, 1)),"
	" created_us INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;"
	"CREATE TRIGGER sessions_only_rise BEFORE UPDATE ON sessions"
	" WHEN NEW.level < OLD.level OR NEW.mode < OLD.mode OR NEW.generation < OLD.generation"
	" OR NEW.name <> OLD.name"
	" BEGIN SELECT RAISE(ABORT, 'a session only rises'); END;"
	"CREATE TRIGGER sessions_stay BEFORE DELETE ON sessions"
	" BEGIN SELECT RAISE(ABORT, 'a session is never deleted'); END;"
	"CREATE TRIGGER sessions_are_not_replaced BEFORE INSERT ON sessions"
	" WHEN EXISTS (SELECT 1 FROM sessions WHERE name = NEW.name)"
	" BEGIN SELECT RAISE(ABORT, 'a session is never replaced'); END;"
	"CREATE TRIGGER datasets_only_rise BEFORE UPDATE ON datasets"
	" WHEN NEW.level < OLD.level OR NEW.session <> OLD.session OR NEW.name <> OLD.name"
	" BEGIN SELECT RAISE(ABORT, 'a dataset only rises'); END;"
	"INSERT INTO meta (key, value) VALUES ('schema', 1);";

/* From version 1, which had none of these, to 2. A notice is what somebody was told: it stays as it is. */
static const char *const store_upgrade =
	"CREATE TABLE notices ("
	" session TEXT NOT NULL REFERENCES sessions (name),"
	" number INTEGER NOT NULL CHECK (number > 0),"
	" made_us INTEGER NOT NULL,"
	" level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),"
	" mode INTEGER NOT NULL CHECK (mode BETWEEN 1 AND 3),"
	" dataset TEXT NOT NULL,"
	" reason TEXT NOT NULL,"
	" text TEXT NOT NULL,"
	" PRIMARY KEY (session, number)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE notice_readers ("
	" session TEXT NOT NULL REFERENCES sessions (name),"
	" reader TEXT NOT NULL CHECK (length(reader) > 0),"
	" upto INTEGER NOT NULL CHECK (upto >= 0),"
	" PRIMARY KEY (session, reader)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TRIGGER notices_stay_the_same BEFORE UPDATE ON notices"
	" BEGIN SELECT RAISE(ABORT, 'a notice is never changed'); END;"
	"CREATE TRIGGER notices_stay BEFORE DELETE ON notices"
	" BEGIN SELECT RAISE(ABORT, 'a notice is never deleted'); END;"
	"CREATE TRIGGER readers_only_go_on BEFORE UPDATE ON notice_readers WHEN NEW.upto < OLD.upto"
	" BEGIN SELECT RAISE(ABORT, 'a reader only goes on'); END;"
	"UPDATE meta SET value = 2 WHERE key = 'schema';";
_Static_assert(NP_SESSION_MAX == 129 && LEVEL_COUNT == 4 && NP_FULL == 1 && NP_NONE == 3,
	       "the CHECK constraints are on disk: another range needs another schema version");

static int path_sync(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

/*
 * A predecessor that was killed between a write and its fsync left records that can be read but may
 * be lost with the power. From here on they are answers that we give, so they go to the disk first.
 * A new file is there for good when its directory is on the disk.
 */
static int store_file_sync(const char *path)
{
	char name[PATH_MAX];
	int r;

	if ((size_t)snprintf(name, sizeof(name), "%s-wal", path) >= sizeof(name))
		return -ENAMETOOLONG;
	r = path_sync(path);
	if (!r)
		r = path_sync(name);
	return r ? r : fs_sync_name(path);
}

/* Makes the file before SQLite does, so that nobody else could ever read it; -wal and -shm get its mode. */
static int store_file_prepare(const char *path)
{
	_close_ int fd = fs_open_private(path);

	return fd < 0 ? fd : store_file_sync(path);
}

/* 0 for an empty file, else the schema version; -EPROTO when something else is in it. */
static int store_version(struct store *store)
{
	uint64_t tables = 0, meta = 0, version = 0;
	int r = sql_number(store->db, "SELECT count(*) FROM sqlite_schema", &tables);

	if (r || !tables)
		return r;
	r = sql_number(store->db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'", &meta);
	if (r)
		return r;
	if (!meta)
		return -EPROTO;
	r = sql_number(store->db, "SELECT value FROM meta WHERE key = 'schema'", &version);
	if (r && r != -EIO && r != -ENODATA)
		return r;
	/* A meta table of another shape is another program's. */
	return r || version < 1 || version > STORE_VERSION ? -EPROTO : (int)version;
}

/* Runs came with version 3. */
static int store_upgrade_runs(struct store *store)
{
	int r = sql_exec(store->db, store_runs_schema);

	return r ? r : sql_exec(store->db, "UPDATE meta SET value = 3 WHERE key = 'schema'");
}

/* Sessions are forgotten from version 4 on. Tables are made anew, so references are looked at afterwards. */
static int store_upgrade_lifetime(struct store *store)
{
	uint64_t broken = 0;
	int r = sql_exec(store->db, store_runs_apart);

	if (!r)
		r = sql_exec(store->db, store_lifetime_schema);
	if (!r)
		r = sql_number(store->db, "SELECT count(*) FROM pragma_foreign_key_check", &broken);
	return r ? r : broken ? -EUCLEAN : 0;
}

/* Questions came with version 5, knew their rule from 6 on, say who asks from 7 on, and from 8 on what was answered once
 * comes back from who has left; with 6 came, too, who has started something in a session. */
static int store_upgrade_questions(struct store *store, int version)
{
	int r = sql_exec(store->db, version < 5 ? store_questions_schema : store_questions_again);

	if (!r && version == 5)
		r = sql_exec(store->db, store_questions_triggers);
	if (!r)
		r = sql_exec(store->db, "CREATE TABLE starters ("
					" session TEXT NOT NULL REFERENCES sessions (name) ON DELETE CASCADE,"
					" who TEXT NOT NULL,"
					" PRIMARY KEY (session, who)"
					") STRICT, WITHOUT ROWID;");
	if (!r)
		r = sql_exec(store->db, store_context_schema);
	return r ? r : sql_exec(store->db, "UPDATE meta SET value = 8 WHERE key = 'schema'");
}

/* Whole or not at all: a crash on the way leaves the file of the version before. */
static int store_upgrade_from(struct store *store, int version)
{
	int r = begin_synced(store);

	if (!r && version < 1)
		r = sql_exec(store->db, store_schema);
	if (!r && version < 2)
		r = sql_exec(store->db, store_upgrade);
	if (!r && version < 3)
		r = store_upgrade_runs(store);
	if (!r && version < 4)
		r = store_upgrade_lifetime(store);
	if (!r)
		r = version < 6	   ? store_upgrade_questions(store, version)
		    : version == 6 ? sql_exec(store->db, store_questions_more)
				   : sql_exec(store->db, store_questions_return);
	return sql_end(store->db, r);
}

static int store_settle(struct store *store)
{
	uint64_t sessions = 0, ended = 0, levels = 0;
	int version = store_version(store); /* first: a stranger's file is left as it is */
	int r;

	if (version < 0)
		return version;
	r = sql_use_wal(store->db);
	if (!r && version < STORE_VERSION)
		r = store_upgrade_from(store, version);
	if (!r)
		r = sql_number(store->db, "SELECT count(*) FROM sessions", &sessions);
	if (!r)
		r = sql_number(store->db, "SELECT count(*) FROM sessions WHERE ended_us IS NOT NULL", &ended);
	if (!r)
		r = sql_number(store->db, "SELECT count(*) FROM levels", &levels);
	if (r)
		return r;
	store->sessions = (unsigned)sessions;
	store->ended = (unsigned)ended;
	store->levels = (unsigned)levels;
	r = sql_exec(store->db, store_levels_tally);
	if (r)
		return r;
	/* Only now: an upgrade drops tables that others refer to. */
	return sql_exec(store->db, "PRAGMA foreign_keys = ON");
}

static int store_prepare(struct store *store)
{
	static const char *const sql[STORE_STATEMENT_COUNT] = {
#define X(name, text) [STORE_##name] = text,
		STORE_STATEMENTS(X)
#undef X
	};
	int r = 0;

	for (unsigned i = 0; !r && i < STORE_STATEMENT_COUNT; i++)
		r = sql_prepare(store->db, sql[i], &store->statements[i]);
	return r;
}

int store_open(const char *path, struct store **ret)
{
	struct store *store;
	int r = store_file_prepare(path);

	if (r)
		return r;
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->wal_fd = -1;
	r = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
	r = sql_errno(store->db, r);
	if (!r) {
		sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
		sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		/* FULL: in WAL mode a commit is on the disk when it returns, at the price of one fsync. */
		r = sql_exec(store->db, "PRAGMA synchronous = FULL; PRAGMA recursive_triggers = ON");
	}
	if (!r)
		r = store_settle(store);
	if (!r)
		r = store_prepare(store);
	if (!r)
		r = wal_open(store);
	if (!r)
		r = raises_open(store, path);
	if (!r)
		r = raises_replay(store);
	if (!r)
		wal_watch(store);
	if (r) {
		store_close(store);
		return r;
	}
	*ret = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_catch_up(store); /* what fails here is done at the next start */
	for (unsigned i = 0; i < STORE_STATEMENT_COUNT; i++)
		sqlite3_finalize(store->statements[i]);
	/* The database must not get what is not in a log that a start reads to its end. */
	if (wal_mend(store))
		sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(store->db);
	cleanup_close(&store->wal_fd);
	raise_log_close(store->raises);
	free(store);
}
