/* SPDX-License-Identifier: MIT */
/* Runs on record, and who decided on them. */
#include <errno.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "session/store_internal.h"
#include "vocab/limits.h"

/*
 * Whoever writes to this file meets the triggers: a run enters as pending; what was asked for does not change, so an
 * approval is for that very command and its options; an approval is given once, to a run that waits, and stays; only with
 * it, and in time, does a run of class write go on. Ids are never used again, so an old approval meets no new run: where
 * the row's id is not known before it is written, it is looked at afterwards.
 */
#define RUNS_TABLE(name, of)                                                                               \
	"CREATE TABLE " name " ("                                                                          \
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"                                                           \
	" session TEXT NOT NULL" of ","                                                                    \
	" class TEXT NOT NULL CHECK (class IN ('', 'none', 'read_only', 'write')),"                        \
	" command TEXT NOT NULL CHECK (length(command) BETWEEN 1 AND 16384),"                              \
	" state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'completed', 'rejected', 'failed'))," \
	" who TEXT NOT NULL,"                                                                              \
	" created_us INTEGER NOT NULL,"                                                                    \
	" expires_us INTEGER NOT NULL,"                                                                    \
	" started_us INTEGER,"                                                                             \
	" ended_us INTEGER,"                                                                               \
	" lost_us INTEGER,"                                                                                \
	" sandbox TEXT,"                                                                                   \
	" result TEXT CHECK (length(result) <= 8192),"                                                     \
	" options TEXT NOT NULL CHECK (length(options) BETWEEN 2 AND 8192),"                               \
	" launched INTEGER NOT NULL DEFAULT 0 CHECK (launched IN (0, 1))"                                  \
	") STRICT;"

#define RUNS_TRIGGERS                                                                                            \
	"CREATE INDEX runs_open ON runs (state) WHERE state IN ('pending', 'running');"                          \
	"CREATE TRIGGER runs_enter_pending BEFORE INSERT ON runs"                                                \
	" WHEN NEW.state <> 'pending' OR EXISTS (SELECT 1 FROM runs WHERE id = NEW.id)"                          \
	" OR EXISTS (SELECT 1 FROM approvals WHERE run = NEW.id)"                                                \
	" BEGIN SELECT RAISE(ABORT, 'a run enters as pending, under a new id'); END;"                            \
	"CREATE TRIGGER runs_meet_no_old_decision AFTER INSERT ON runs"                                          \
	" WHEN EXISTS (SELECT 1 FROM approvals WHERE run = NEW.id)"                                              \
	" BEGIN SELECT RAISE(ABORT, 'a run enters as pending, under a new id'); END;"                            \
	"CREATE TRIGGER runs_stay_what_they_are BEFORE UPDATE ON runs"                                           \
	" WHEN NEW.id IS NOT OLD.id OR NEW.session IS NOT OLD.session OR NEW.class IS NOT OLD.class"             \
	" OR NEW.command IS NOT OLD.command OR NEW.who IS NOT OLD.who OR NEW.created_us IS NOT OLD.created_us"   \
	" OR NEW.options IS NOT OLD.options OR NEW.launched IS NOT OLD.launched"                                 \
	" BEGIN SELECT RAISE(ABORT, 'what was asked for does not change'); END;"                                 \
	"CREATE TRIGGER runs_wait_no_longer BEFORE UPDATE ON runs"                                               \
	" WHEN NEW.expires_us IS NOT OLD.expires_us AND NEW.expires_us IS NOT"                                   \
	" (SELECT decided_us + 60000000 FROM approvals WHERE run = NEW.id AND approved = 1)"                     \
	" BEGIN SELECT RAISE(ABORT, 'an approval is good for a minute'); END;"                                   \
	"CREATE TRIGGER runs_start_in_time BEFORE UPDATE ON runs"                                                \
	" WHEN OLD.state = 'pending' AND NEW.state = 'running' AND"                                              \
	" (NEW.started_us IS NULL OR NEW.started_us >= NEW.expires_us)"                                          \
	" BEGIN SELECT RAISE(ABORT, 'its time is over'); END;"                                                   \
	"CREATE TRIGGER runs_go_on BEFORE UPDATE ON runs"                                                        \
	" WHEN NEW.state <> OLD.state AND (OLD.state || ' ' || NEW.state) NOT IN"                                \
	" ('pending running', 'pending rejected', 'running completed', 'running failed')"                        \
	" BEGIN SELECT RAISE(ABORT, 'a run does not go that way'); END;"                                         \
	"CREATE TRIGGER runs_of_class_write_are_approved BEFORE UPDATE ON runs"                                  \
	" WHEN NEW.class = 'write' AND NEW.state IN ('running', 'completed', 'failed')"                          \
	" AND NOT EXISTS (SELECT 1 FROM approvals WHERE run = NEW.id AND approved = 1)"                          \
	" BEGIN SELECT RAISE(ABORT, 'a run of class write needs an approval'); END;"                             \
	"CREATE TRIGGER runs_rejected_do_not_run BEFORE UPDATE ON runs"                                          \
	" WHEN NEW.state = 'running' AND EXISTS (SELECT 1 FROM approvals WHERE run = NEW.id AND approved = 0)"   \
	" BEGIN SELECT RAISE(ABORT, 'the run was rejected'); END;"                                               \
	"CREATE TRIGGER runs_stay_until_they_end BEFORE DELETE ON runs WHEN OLD.state IN ('pending', 'running')" \
	" BEGIN SELECT RAISE(ABORT, 'the run is not over'); END;"                                                \
	"CREATE TRIGGER approvals_are_for_pending_runs BEFORE INSERT ON approvals"                               \
	" WHEN NOT EXISTS (SELECT 1 FROM runs WHERE id = NEW.run AND state = 'pending'"                          \
	" AND (NEW.approved = 0 OR expires_us > NEW.decided_us))"                                                \
	" OR EXISTS (SELECT 1 FROM approvals WHERE run = NEW.run)"                                               \
	" BEGIN SELECT RAISE(ABORT, 'the run does not wait for a decision'); END;"                               \
	"CREATE TRIGGER approvals_stay_the_same BEFORE UPDATE ON approvals"                                      \
	" BEGIN SELECT RAISE(ABORT, 'a decision is never changed'); END;"                                        \
	"CREATE TRIGGER approvals_stay BEFORE DELETE ON approvals"                                               \
	" WHEN EXISTS (SELECT 1 FROM runs WHERE id = OLD.run)"                                                   \
	" BEGIN SELECT RAISE(ABORT, 'a decision stays as long as its run'); END;"

/* clang-format off: one line a piece */
const char *const store_runs_schema =
	"ALTER TABLE sandboxes ADD COLUMN class TEXT NOT NULL DEFAULT ''"
	" CHECK (class IN ('', 'none', 'read_only', 'write'));" RUNS_TABLE(
		"runs",
		" REFERENCES sessions (name)") "CREATE TABLE approvals ("
					       " run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,"
					       " approved INTEGER NOT NULL CHECK (approved IN (0, 1)),"
					       " who TEXT NOT NULL,"
					       " reason TEXT NOT NULL,"
					       " decided_us INTEGER NOT NULL"
					       ") STRICT;" RUNS_TRIGGERS;

/*
 * From version 4 on a run stays on record when its session is forgotten. A reference cannot be dropped, so the table is made
 * anew, under its old name, and goes on with the ids that it gave. The triggers on approvals name it, so they go meanwhile.
 */
const char *const store_runs_apart =
	"DROP TRIGGER approvals_are_for_pending_runs;"
	"DROP TRIGGER approvals_stay_the_same;"
	"DROP TRIGGER approvals_stay;" RUNS_TABLE("runs_apart",
						  "") "INSERT INTO runs_apart SELECT * FROM runs;"
						      "DELETE FROM sqlite_sequence WHERE name = 'runs_apart';"
						      "INSERT INTO sqlite_sequence (name, seq) SELECT 'runs_apart', "
						      "seq FROM sqlite_sequence WHERE name = 'runs';"
						      "DROP TABLE runs;"
						      "ALTER TABLE runs_apart RENAME TO runs;" RUNS_TRIGGERS;
/* clang-format on */
_Static_assert(NP_RUN_COMMAND == 16384 && NP_RUN_RESULT == 8192 && NP_RUN_OPTIONS == 8192 && NP_RUN_START_S == 60,
	       "the CHECK constraints are on disk: another bound needs another schema version");

/* -- words ----------------------------------------------------------------------------- */

static const char *const classes[] = { "", "none", "read_only", "write" };
static const char *const states[] = { "pending", "running", "completed", "rejected", "failed" };

enum np_mode class_mode(enum run_class class)
{
	return class == CLASS_NONE ? NP_NONE : class == CLASS_READ_ONLY ? NP_PROXIED : NP_FULL;
}

const char *class_name(enum run_class class)
{
	return classes[class];
}

int class_parse(const char *name, enum run_class *ret)
{
	return WORD_PARSE(classes, name, ret);
}

const char *run_state_name(enum run_state state)
{
	return states[state];
}

int run_state_parse(const char *name, enum run_state *ret)
{
	return WORD_PARSE(states, name, ret);
}

/* -- reading --------------------------------------------------------------------------- */

static int run_read(sqlite3_stmt *statement, struct run_row *row)
{
	const char *session = (const char *)sqlite3_column_text(statement, 1), *problem;

	*row = (struct run_row){
		.id = sql_column_number(statement, 0),
		.created_us = sql_column_number(statement, 6),
		.expires_us = sql_column_number(statement, 7),
		.started_us = sql_column_number(statement, 8),
		.ended_us = sql_column_number(statement, 9),
		.lost_us = sql_column_number(statement, 10),
		.decided = sqlite3_column_type(statement, 13) != SQLITE_NULL,
		.approved = sqlite3_column_int(statement, 13) == 1,
		.decided_us = sql_column_number(statement, 16),
		.launched = sqlite3_column_int(statement, 18) == 1,
	};
	if (!session || session_name_parse(session, &row->session, &problem) ||
	    class_parse((const char *)sqlite3_column_text(statement, 2), &row->class) ||
	    run_state_parse((const char *)sqlite3_column_text(statement, 3), &row->state) ||
	    sql_column_copy(statement, 4, row->command, sizeof(row->command)) ||
	    sql_column_copy(statement, 5, row->who, sizeof(row->who)) ||
	    sql_column_copy(statement, 11, row->sandbox, sizeof(row->sandbox)) ||
	    sql_column_copy(statement, 12, row->result, sizeof(row->result)) ||
	    (row->decided && sql_column_copy(statement, 14, row->decider, sizeof(row->decider))) ||
	    sql_column_copy(statement, 15, row->reason, sizeof(row->reason)) ||
	    sql_column_copy(statement, 17, row->options, sizeof(row->options)))
		return -EUCLEAN;
	return 0;
}

int store_run_get(struct store *store, uint64_t id, struct run_row *ret)
{
	sqlite3_stmt *statement = store->statements[STORE_RUN_GET];
	int r = sql_row(SQL_BIND(statement, sql_n(id)));

	if (!r)
		r = run_read(statement, ret);
	sql_done(statement);
	return r;
}

typedef int run_fn(void *data, const struct run_row *row);

static int each_run(sqlite3_stmt *statement, const struct each *each)
{
	struct run_row row;
	int r = run_read(statement, &row);

	return r ? r : (*(run_fn **)each->fn)(each->data, &row);
}

int store_runs_each(struct store *store, const char *session, int (*fn)(void *data, const struct run_row *row),
		    void *data)
{
	return each_row(store,
			session ? STORE_RUN_SELECT " WHERE session = ?1 ORDER BY id DESC"
				: STORE_RUN_SELECT " ORDER BY id DESC",
			session, 0, each_run, &(struct each){ .fn = &fn, .data = data });
}

int store_runs_open_each(struct store *store, int (*fn)(void *data, const struct run_row *row), void *data)
{
	return each_row(store, STORE_RUN_SELECT " WHERE state IN ('pending', 'running') ORDER BY id", NULL, 0, each_run,
			&(struct each){ .fn = &fn, .data = data });
}

unsigned store_runs_asked(struct store *store)
{
	uint64_t n = 0;

	return sql_query(store->statements[STORE_RUN_ASKED], &n) ? 0 : (unsigned)n;
}

/* -- writing --------------------------------------------------------------------------- */

static int run_insert(struct store *store, const struct run_row *row, uint64_t *ret_id)
{
	sqlite3_stmt *insert = store->statements[STORE_RUN_INSERT], *forget = store->statements[STORE_RUN_FORGET];
	uint64_t waiting = 0;
	int r = session_exists(store, row->session.text);

	if (!r)
		r = sql_query(store->statements[STORE_RUN_WAITING], &waiting);
	if (r)
		return r;
	if (waiting >= NP_RUNS_PENDING)
		return -E2BIG;
	r = sql_query(SQL_BIND(store->statements[STORE_RUN_WAITING_OF], sql_t(row->who)), &waiting);
	if (r || waiting >= NP_RUNS_PER_USER)
		return r ? r : -EDQUOT;
	r = sql_run(SQL_BIND(insert, sql_t(row->session.text), sql_t(class_name(row->class)), sql_t(row->command),
			     sql_t(row->who), sql_n(row->created_us), sql_n(row->expires_us), sql_t(row->options),
			     sql_n(row->launched)),
		    NULL);
	if (r)
		return r;
	*ret_id = (uint64_t)sqlite3_last_insert_rowid(store->db);
	return sql_run(SQL_BIND(forget, sql_n(NP_RUNS_KEPT)), NULL);
}

int store_run_put(struct store *store, const struct run_row *row, uint64_t *ret_id)
{
	uint64_t id = 0;
	int r = begin_synced(store);

	if (r)
		return r;
	r = sql_end(store->db, run_insert(store, row, &id));
	if (!r)
		*ret_id = id;
	return r;
}

static int run_update(struct store *store, uint64_t id, sqlite3_stmt *statement)
{
	return row_update(store, statement, store->statements[STORE_RUN_GET], id);
}

static int decision_insert(struct store *store, uint64_t id, bool approved, const char *who, const char *reason,
			   uint64_t now_us)
{
	sqlite3_stmt *statement = store->statements[STORE_RUN_DECIDE];

	sql_bind_number(statement, 2, approved);
	sql_bind_text(statement, 3, who);
	sql_bind_text(statement, 4, reason);
	sql_bind_number(statement, 5, now_us);
	return run_update(store, id, statement);
}

/* To a run that has its decision: until when it may start, or when it ended. */
static int run_then(struct store *store, uint64_t id, enum store_statement which, uint64_t time_us)
{
	sqlite3_stmt *statement = store->statements[which];

	sql_bind_number(statement, 2, time_us);
	return run_update(store, id, statement);
}

int store_run_decide(struct store *store, uint64_t id, bool approved, const char *who, const char *reason,
		     uint64_t now_us)
{
	int r = begin_synced(store);

	if (r)
		return r;
	r = decision_insert(store, id, approved, who, reason, now_us);
	if (!r)
		r = approved ? run_then(store, id, STORE_RUN_GRANT, now_us + NP_RUN_START_S * 1000000ull)
			     : run_then(store, id, STORE_RUN_REJECT, now_us);
	return sql_end(store->db, r);
}

int store_run_withdraw(struct store *store, uint64_t id, const char *who, const char *reason, uint64_t now_us)
{
	int r = begin_synced(store);

	if (r)
		return r;
	r = decision_insert(store, id, false, who, reason, now_us);
	if (!r || r == -EALREADY)
		r = run_then(store, id, STORE_RUN_REJECT, now_us);
	return sql_end(store->db, r);
}

int store_run_start(struct store *store, uint64_t id, const char *sandbox, uint64_t now_us)
{
	sqlite3_stmt *statement = store->statements[STORE_RUN_START];

	sql_bind_text(statement, 2, sandbox);
	sql_bind_number(statement, 3, now_us);
	return run_update(store, id, statement);
}

int store_run_lose(struct store *store, uint64_t id, uint64_t now_us)
{
	return run_then(store, id, STORE_RUN_LOSE, now_us);
}

int store_run_end(struct store *store, uint64_t id, enum run_state state, const char *result, uint64_t now_us)
{
	sqlite3_stmt *statement = store->statements[STORE_RUN_END];

	sql_bind_text(statement, 2, run_state_name(state));
	sql_bind_text(statement, 3, result);
	sql_bind_number(statement, 4, now_us);
	return run_update(store, id, statement);
}
