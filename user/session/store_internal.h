/* SPDX-License-Identifier: MIT */
/* Shared by store.c (the verbs) and store_open.c (the file, the schema, the settings). */
#ifndef NP_STORE_INTERNAL_H
#define NP_STORE_INTERNAL_H

#include <sqlite3.h>

#include "session/store.h"

/* Statements that are prepared once. X(NAME, SQL) */
#define STORE_STATEMENTS(X)                                                                                    \
	X(BEGIN, "BEGIN IMMEDIATE")                                                                            \
	X(COMMIT, "COMMIT")                                                                                    \
	X(ROLLBACK, "ROLLBACK")                                                                                \
	X(SESSION_REVIVE, "UPDATE sessions SET ended_us = NULL, level = max(level, ?2), mode = max(mode, ?3)," \
			  " generation = max(generation, ?4) WHERE name = ?1 AND ended_us IS NOT NULL")        \
	X(SESSION_INSERT, "INSERT INTO sessions (name, level, mode, generation, created_us)"                   \
			  " VALUES (?1, ?2, ?3, ?4, ?5)")                                                      \
	X(SESSION_EXISTS, "SELECT 1 FROM sessions WHERE name = ?1")                                            \
	X(SESSION_GET, STORE_SESSION_SELECT " WHERE name = ?1")                                                \
	X(SESSION_END, "UPDATE sessions SET ended_us = ?2 WHERE name = ?1 AND ended_us IS NULL")               \
	X(SESSION_RAISE, "UPDATE sessions SET level = max(level, ?2), mode = max(mode, ?3),"                   \
			 " generation = max(generation, ?4) WHERE name = ?1")                                  \
	X(DATASET_RAISE, "UPDATE datasets SET level = max(level, ?3) WHERE session = ?1 AND name = ?2")        \
	X(DATASET_COUNT, "SELECT count(*) FROM datasets WHERE session = ?1")                                   \
	X(DATASET_INSERT, "INSERT INTO datasets (session, name, level, reason, added_us)"                      \
			  " VALUES (?1, ?2, ?3, ?4, ?5)")                                                      \
	X(SANDBOX_INSERT, "INSERT INTO sandboxes (id, session, cgroup_id, path, adopted, created_us)"          \
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                                  \
	X(SANDBOX_DELETE, "DELETE FROM sandboxes WHERE id = ?1")

#define STORE_SESSION_SELECT                                          \
	"SELECT name, level, mode, generation, created_us, ended_us," \
	" (SELECT count(*) FROM datasets WHERE session = sessions.name) FROM sessions"

enum store_statement {
#define X(name, sql) STORE_##name,
	STORE_STATEMENTS(X)
#undef X
		STORE_STATEMENT_COUNT
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[STORE_STATEMENT_COUNT];
	unsigned sessions; /* rows, so that a bound can be kept without counting them each time */
};

int store_error(struct store *store, int rc); /* what SQLite said, as -errno; 0 for its successes */

#endif
