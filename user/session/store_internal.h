/* SPDX-License-Identifier: MIT */
/* Shared by store.c (the verbs), store_notices.c (those on notices), store_runs.c (those on runs), store_questions.c, store_lifetime.c (what
 * is forgotten, and what is not), store_wal.c (the database's log),
 * store_raises.c (the log in front of it) and store_open.c (the file, the schema, the settings). */
#pragma once

#include "base/sql.h"
#include "session/store.h"
#include "vocab/limits.h"

/* Another process may only be a person who looks: whoever holds the file for longer is not waited for. */
#define STORE_BUSY_MS 250

/* For what no clock of the daemon's is told. */
#define STORE_NOW_US "CAST(strftime('%s', 'now') AS INTEGER) * 1000000"

/* "uid 7" of "uid 7 pid 8"; all of what has no pid. */
#define STORE_PERSON(who) "substr(" who ", 1, instr(" who " || ' pid ', ' pid '))"

/* Statements that are prepared once. X(NAME, SQL) */
#define STORE_STATEMENTS(X)                                                                                      \
	X(RAISES_GET, "SELECT value + 1 FROM meta WHERE key = 'raises'")                                         \
	X(RAISES_PUT, "INSERT INTO meta (key, value) VALUES ('raises', ?1)"                                      \
		      " ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)")                     \
	X(SESSION_REVIVE, "UPDATE sessions SET ended_us = NULL, level = max(level, ?2), mode = max(mode, ?3),"   \
			  " generation = max(generation, ?4), used_us = ?5"                                      \
			  " WHERE name = ?1 AND ended_us IS NOT NULL")                                           \
	X(SESSION_INSERT, "INSERT INTO sessions (name, level, mode, generation, created_us, used_us, temporary)" \
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)")                                                \
	X(SESSION_EXISTS, "SELECT 1 FROM sessions WHERE name = ?1")                                              \
	X(OPEN_BY_LEVEL, "SELECT n FROM temp.open_sessions WHERE level = ?1")                                    \
	X(SESSION_GET, STORE_SESSION_SELECT " WHERE name = ?1")                                                  \
	X(SESSION_END, "UPDATE sessions SET ended_us = ?2, used_us = ?2, workspace_due = ?3"                     \
		       " WHERE name = ?1 AND ended_us IS NULL")                                                  \
	X(SESSION_SEEN_TO, "UPDATE sessions SET workspace_due = 0 WHERE name = ?1")                              \
	X(SESSION_DELETE, "DELETE FROM sessions WHERE name = ?1 AND ended_us IS NOT NULL")                       \
	X(LEVEL_RAISE, "UPDATE levels SET level = max(levels.level, s.level), mode = max(levels.mode, s.mode),"  \
		       " generation = max(levels.generation, s.generation), gone_us = ?2, released = 0"          \
		       " FROM sessions AS s WHERE levels.name = ?1 AND s.name = ?1")                             \
	X(LEVEL_INSERT, "INSERT INTO levels (name, level, mode, generation, gone_us)"                            \
			" SELECT name, level, mode, generation, ?2 FROM sessions WHERE name = ?1"                \
			" AND NOT (temporary = 1 AND name GLOB '*/" NP_TEMPORARY_NAME "*')"                      \
			" AND (level > 0 OR mode > 1)")                                                          \
	X(LEVEL_JOIN,                                                                                            \
	  "UPDATE levels SET level = max(level, ?2), mode = max(mode, ?3), generation = max(generation, ?4),"    \
	  " gone_us = max(gone_us, " STORE_NOW_US "), released = 0 WHERE name = ?1")                             \
	X(LEVEL_PUT, "INSERT INTO levels (name, level, mode, generation, gone_us)"                               \
		     " VALUES (?1, ?2, ?3, ?4, " STORE_NOW_US ")")                                               \
	X(LEVEL_GET, "SELECT level, mode, generation FROM levels WHERE name = ?1")                               \
	X(LEVEL_RELEASE, "UPDATE levels SET released = 1 WHERE name = ?1")                                       \
	X(LEVEL_DELETE, "DELETE FROM levels WHERE name = ?1")                                                    \
	X(LEVEL_RENEW, "UPDATE levels SET gone_us = ?2 WHERE name = ?1")                                         \
	X(SESSION_RAISE, "UPDATE sessions SET level = max(level, ?2), mode = max(mode, ?3),"                     \
			 " generation = max(generation, ?4) WHERE name = ?1")                                    \
	X(DATASET_RAISE, "UPDATE datasets SET level = max(level, ?3) WHERE session = ?1 AND name = ?2")          \
	X(CONTEXT_PUT,                                                                                           \
	  "INSERT INTO contexts (session, purpose, context) VALUES (?1, coalesce(?2, ''), coalesce(?3, ''))"     \
	  " ON CONFLICT (session) DO UPDATE SET purpose = coalesce(?2, purpose),"                                \
	  " context = coalesce(?3, context)")                                                                    \
	X(CONTEXT_GET, "SELECT purpose, context FROM contexts WHERE session = ?1")                               \
	X(DATASET_COUNT, "SELECT count(*) FROM datasets WHERE session = ?1")                                     \
	X(DATASET_INSERT, "INSERT INTO datasets (session, name, level, reason, added_us)"                        \
			  " VALUES (?1, ?2, ?3, ?4, ?5)")                                                        \
	X(NOTICE_INSERT, "INSERT INTO notices (session, number, made_us, level, mode, dataset, reason, text)"    \
			 " VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM notices WHERE session = ?1),"   \
			 " ?2, ?3, ?4, ?5, ?6, ?7) RETURNING number")                                            \
	X(NOTICE_EACH, "SELECT number, made_us, level, mode, dataset, reason, text FROM notices"                 \
		       " WHERE session = ?1 AND number > ?2 ORDER BY number")                                    \
	X(NOTICE_LAST, "SELECT coalesce(max(number), 0) FROM notices WHERE session = ?1")                        \
	X(READER_GET, "SELECT upto FROM notice_readers WHERE session = ?1 AND reader = ?2")                      \
	X(READER_COUNT, "SELECT count(*) FROM notice_readers WHERE session = ?1 AND reader <> ?2")               \
	X(READER_PUT, "INSERT INTO notice_readers (session, reader, upto) VALUES (?1, ?2, ?3)"                   \
		      " ON CONFLICT (session, reader) DO UPDATE SET upto = max(upto, excluded.upto)")            \
	X(SANDBOX_INSERT, "INSERT INTO sandboxes (id, session, cgroup_id, path, adopted, created_us, class)"     \
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                \
	X(SANDBOX_USED, "UPDATE sessions SET used_us = max(used_us, ?2)"                                         \
			" WHERE name = (SELECT session FROM sandboxes WHERE id = ?1)")                           \
	X(SANDBOX_AWAIT, "UPDATE sandboxes SET cgroup_id = 0 WHERE id = ?1")                                     \
	X(SANDBOX_DELETE, "DELETE FROM sandboxes WHERE id = ?1")                                                 \
	X(RUN_WAITING, "SELECT count(*) FROM runs WHERE state = 'pending'")                                      \
	X(RUN_WAITING_OF,                                                                                        \
	  "SELECT count(*) FROM runs WHERE state = 'pending' AND " STORE_PERSON("who") " = " STORE_PERSON("?1")) \
	X(RUN_ASKED, "SELECT count(*) FROM runs WHERE state = 'pending' AND class = 'write'"                     \
		     " AND NOT EXISTS (SELECT 1 FROM approvals WHERE run = id)")                                 \
	X(RUN_INSERT, "INSERT INTO runs (session, class, command, state, who, created_us, expires_us, options,"  \
		      " launched) VALUES (?1, ?2, ?3, 'pending', ?4, ?5, ?6, ?7, ?8)")                           \
	X(RUN_FORGET, "DELETE FROM runs WHERE state NOT IN ('pending', 'running') AND id <= ("                   \
		      "SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?1)")                                 \
	X(RUN_GET, STORE_RUN_SELECT " WHERE id = ?1")                                                            \
	X(RUN_DECIDE, "INSERT INTO approvals (run, approved, who, reason, decided_us)"                           \
		      " SELECT id, ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1 AND state = 'pending'"                 \
		      " AND NOT EXISTS (SELECT 1 FROM approvals WHERE run = ?1)")                                \
	X(RUN_GRANT, "UPDATE runs SET expires_us = ?2 WHERE id = ?1 AND state = 'pending'")                      \
	X(RUN_START, "UPDATE runs SET state = 'running', sandbox = ?2, started_us = ?3"                          \
		     " WHERE id = ?1 AND state = 'pending' AND expires_us > ?3")                                 \
	X(RUN_REJECT, "UPDATE runs SET state = 'rejected', ended_us = ?2 WHERE id = ?1 AND state = 'pending'")   \
	X(RUN_LOSE, "UPDATE runs SET lost_us = ?2 WHERE id = ?1 AND state = 'running'")                          \
	X(RUN_END, "UPDATE runs SET state = ?2, result = ?3, ended_us = ?4 WHERE id = ?1 AND state = 'running'") \
	X(STARTER_IS, "SELECT EXISTS (SELECT 1 FROM starters WHERE session = ?1 AND who = ?2)")                  \
	X(STARTER_OF_USER, "SELECT EXISTS (SELECT 1 FROM starters WHERE who = ?2 AND"                            \
			   " substr(session, 1, instr(session, '/')) = substr(?1, 1, instr(?1, '/')))")          \
	X(STARTER_INSERT, "INSERT INTO starters (session, who) VALUES (?1, ?2)")                                 \
	X(QUESTION_INSERT, "INSERT INTO questions (session, rule, host, port, writes, tls, place, sandbox,"      \
			   " method, url, headers, body, level, mode, generation, policy, created_us,"           \
			   " expires_us, pid, comm, program, preview, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7" \
			   ", ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"          \
			   " 'pending')")                                                                        \
	X(QUESTION_FORGET, "DELETE FROM questions WHERE over_us <> 0 AND id <= ("                                \
			   "SELECT id FROM questions ORDER BY id DESC LIMIT 1 OFFSET ?1)")                       \
	X(QUESTION_GET, STORE_QUESTION_SELECT " WHERE id = ?1")                                                  \
	X(QUESTION_BEFORE, "SELECT coalesce(sum(state = 'allowed'), 0), coalesce(sum(state = 'denied'), 0)"      \
			   " FROM questions WHERE session = ?1 AND host = ?2 AND id < ?3")                       \
	X(QUESTION_ANSWER, "UPDATE questions SET state = ?2, answer = ?3, who = ?4, reason = ?5,"                \
			   " answered_us = ?6, until_us = ?7, domain = ?8 WHERE id = ?1 AND state = 'pending'")  \
	X(ANSWER_RETURN, "UPDATE questions SET over_us = 0, returned = returned + 1 WHERE id = ?1"               \
			 " AND answer = 'once' AND over_us <> 0 AND ended_by = '' AND returned < ?2")            \
	X(QUESTION_END, "UPDATE questions SET state = ?2, over_us = ?3 WHERE id = ?1 AND state = 'pending'")     \
	X(GRANT_REVOKED, "UPDATE questions SET ended_by = ?2 WHERE id = ?1 AND answer = 'always'"                \
			 " AND over_us <> 0 AND ended_by = ''")                                                  \
	X(ANSWER_END, "UPDATE questions SET over_us = ?2, ended_by = ?3 WHERE id = ?1 AND over_us = 0"           \
		      " AND state IN ('allowed', 'denied')")

#define STORE_SESSION_SELECT                                                                                      \
	"SELECT name, level, mode, generation, created_us, ended_us,"                                             \
	" (SELECT count(*) FROM datasets WHERE session = sessions.name), used_us, temporary, workspace_due FROM " \
	"sessions"

#define STORE_RUN_SELECT                                                                            \
	"SELECT id, session, class, state, command, runs.who, created_us, expires_us, started_us,"  \
	" ended_us, lost_us, coalesce(sandbox, ''), coalesce(result, ''), approved, approvals.who," \
	" coalesce(approvals.reason, ''), decided_us, options, launched"                            \
	" FROM runs LEFT JOIN approvals ON run = id"

#define STORE_QUESTION_SELECT                                                                            \
	"SELECT id, session, rule, host, port, writes, tls, place, sandbox, method, url, headers, body," \
	" level, mode, generation, policy, created_us, expires_us, state, answer, domain, who, reason,"  \
	" answered_us, until_us, over_us, ended_by, pid, comm, program, preview FROM questions"

enum store_statement {
#define X(name, sql) STORE_##name,
	STORE_STATEMENTS(X)
#undef X
		STORE_STATEMENT_COUNT
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[STORE_STATEMENT_COUNT];
	/* Rows, so that bounds can be kept without counting them each time. */
	unsigned sessions, ended, levels;
	/* Of the write-ahead log, in frames: what is in it after the last commit, what of that went into the database, and what
	 * the file has room for. */
	int frames, settled, placed;
	void (*on_due)(void *data); /* it is time for store_tend(); NULL: nobody asks */
	void *on_due_data;
	bool unsynced; /* commits may not wait for the disk: see begin_synced() */
	int wal_fd;
	bool wal_torn; /* a write to it has failed, or may have: nothing is said to be on the disk before wal_mend() */
	/* The log in front of it, and numbers of its entries: of the last one, of the last that is in the database, of the last that the
	 * database has on the disk. */
	struct raise_log *raises;
	uint64_t logged, written, synced;
	bool behind; /* the last entry is on the disk, and not in the database yet: store_catch_up() */
	bool refused; /* and was answered as one that could not be recorded: the database gets its number, and nothing of it */
	bool locked; /* somebody had the database locked when it should have followed, and was waited for then */
	struct replayed_raise replayed[STORE_REPLAYED];
	size_t n_replayed;
};

/* -- store.c: what its verbs and those of store_notices.c and store_runs.c are made of -- */

/* A transaction that is in the file when it ends, and not yet on the disk; store.c says for what. The end belongs to the begin,
 * one that failed too. */
int begin_unsynced(struct store *store);
int begin_synced(struct store *store);
int end_unsynced(struct store *store, int r);
/* One or two statements (two may be NULL) that are such a transaction. */
int run_synced(struct store *store, sqlite3_stmt *one, sqlite3_stmt *two);
/* Runs an update of one row, whose id is its first value, in a synced transaction: the caller's, or one of its own. -ENOENT: get finds no such row; -EALREADY: it is past that. */
int row_update(struct store *store, sqlite3_stmt *statement, sqlite3_stmt *get, uint64_t id);
int session_exists(struct store *store, const char *name);		 /* 0, or -ENOENT, or what went wrong */
int rung_read(sqlite3_stmt *statement, int column, struct np_rung *ret); /* a level and behind it a mode, or -EUCLEAN */
int session_row_read(sqlite3_stmt *statement, struct session_row *ret);	 /* of STORE_SESSION_SELECT */

/*
 * The lists prepare their statement anew, so that a callback may ask for a list itself. row_fn
 * reads one row and hands it to the caller's function.
 */
struct each {
	void *fn; /* holds a pointer to the caller's function pointer, whose type row_fn knows */
	void *data;
};
/* name (may be NULL) is parameter 1, after is 2 if the statement has it. */
int each_row(struct store *store, const char *sql, const char *name, uint64_t after,
	     int (*row_fn)(sqlite3_stmt *statement, const struct each *each), const struct each *each);
/* The same with one that is prepared, for a callback that asks for nothing. */
int each_row_of(struct store *store, sqlite3_stmt *statement, const char *name, uint64_t after,
		int (*row_fn)(sqlite3_stmt *statement, const struct each *each), const struct each *each);

/* store_wal.c */
void wal_watch(struct store *store);
int wal_open(struct store *store);
bool wal_has_room(const struct store *store); /* a commit does not make its file grow */
int wal_mend(struct store *store); /* if a write of it has failed since it was asked last, all of it is written again */

/* Inside of a transaction: what store_session_raise() does. */
int raise_write(struct store *store, const char *name, const struct np_rung *rung, const struct dataset_row *dataset,
		struct notice_row *notice, bool *ret_dataset_new);
/* store_raises.c */
int raises_open(struct store *store, const char *path);
/* Before rows are read: who starts from one must not start below what was acknowledged. */
int raises_show(struct store *store);
int raises_replay(struct store *store);	 /* what the database lost, at a start */
void raises_settle(struct store *store); /* all that was committed is on the disk */

/* store_notices.c: inside of a transaction. */
int notice_insert(struct store *store, const char *session, struct notice_row *notice); /* sets its number */
/* What versions of the schema add. */
extern const char *const store_runs_schema, *const store_runs_apart; /* store_runs.c: of version 3, of 4 */
extern const char *const store_lifetime_schema;			     /* store_lifetime.c: of version 4 */
/* store_questions.c: of this version, where there is none; from 5, to be followed by the triggers; from 6 */
extern const char store_context_schema[];
extern const char *const store_levels_tally;
extern const char *const store_questions_schema,
	*const store_questions_again, *const store_questions_triggers, *const store_questions_more,
									       *const store_questions_return;
