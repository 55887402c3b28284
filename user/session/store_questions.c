/* SPDX-License-Identifier: MIT */
/* Questions on record, and who answered them. */
#include <errno.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "session/store_internal.h"
#include "vocab/limits.h"

/*
 * Whoever writes to this file meets the triggers: a question enters as pending; what was asked for does not change, so that an
 * answer is for that very question; it is given once, by somebody, and stays; and what is over is not brought back.
 */
/* clang-format off: one line a piece */
/* Since version 7. */
#define QUESTIONS_PID	  " pid INTEGER NOT NULL DEFAULT 0"
#define QUESTIONS_COMM	  " comm TEXT NOT NULL DEFAULT '' CHECK (length(comm) < 16)"
#define QUESTIONS_PROGRAM " program TEXT NOT NULL DEFAULT '' CHECK (length(program) < 256)"
#define QUESTIONS_PREVIEW " preview BLOB NOT NULL DEFAULT x'' CHECK (length(preview) <= 256)"
/* Since version 8: how often an answer for once has come back unused. */
#define QUESTIONS_RETURNED " returned INTEGER NOT NULL DEFAULT 0 CHECK (returned BETWEEN 0 AND 8)"
#define QUESTIONS_TABLE                                                                                        \
	"CREATE TABLE questions ("                                                                             \
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"                                                               \
	" session TEXT NOT NULL,"                                                                              \
	" rule INTEGER NOT NULL," /* 64 bits, kept as a signed number */                                       \
	" host TEXT NOT NULL CHECK (length(host) > 0),"                                                        \
	" port INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),"                                             \
	" writes INTEGER NOT NULL CHECK (writes IN (0, 1)),"                                                   \
	" tls INTEGER NOT NULL CHECK (tls IN (0, 1)),"                                                         \
	" place TEXT NOT NULL,"                                                                                \
	" sandbox TEXT NOT NULL,"                                                                              \
	" method TEXT NOT NULL,"                                                                               \
	" url TEXT NOT NULL CHECK (length(url) < 2048),"                                                       \
	" headers TEXT NOT NULL DEFAULT '' CHECK (length(headers) < 1024),"                                    \
	" body INTEGER NOT NULL,"                                                                              \
	" level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),"                                               \
	" mode INTEGER NOT NULL CHECK (mode BETWEEN 1 AND 3),"                                                 \
	" generation INTEGER NOT NULL CHECK (generation BETWEEN 0 AND 4294967295),"                            \
	" policy TEXT NOT NULL,"                                                                               \
	" created_us INTEGER NOT NULL,"                                                                        \
	" expires_us INTEGER NOT NULL,"                                                                        \
	" state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', 'expired', 'void')),"           \
	" answer TEXT NOT NULL DEFAULT '' CHECK (answer IN ('', 'deny', 'once', 'host', 'domain', 'always'))," \
	" domain TEXT NOT NULL DEFAULT '' CHECK ((domain = '') = (answer <> 'domain')),"                       \
	" who TEXT NOT NULL DEFAULT '',"                                                                       \
	" reason TEXT NOT NULL DEFAULT '',"                                                                    \
	" answered_us INTEGER NOT NULL DEFAULT 0,"                                                             \
	" until_us INTEGER NOT NULL DEFAULT 0,"                                                                \
	" over_us INTEGER NOT NULL DEFAULT 0,"                                                                 \
	" ended_by TEXT NOT NULL DEFAULT ''," QUESTIONS_PID "," QUESTIONS_COMM "," QUESTIONS_PROGRAM           \
	"," QUESTIONS_PREVIEW "," QUESTIONS_RETURNED ") STRICT;"
/* What is over stays over; but for what was answered once, was given to a client that had left, and so was used by nobody. */
#define QUESTIONS_COMES_BACK                                                                                        \
	"(OLD.answer = 'once' AND OLD.over_us <> 0 AND NEW.over_us = 0 AND OLD.ended_by = '' AND NEW.ended_by = ''" \
	" AND NEW.returned = OLD.returned + 1)"
#define QUESTIONS_OVER                                                                                   \
	"CREATE TRIGGER questions_stay_over BEFORE UPDATE ON questions"                                  \
	" WHEN OLD.over_us <> 0 AND (NEW.over_us <> OLD.over_us OR (NEW.ended_by <> OLD.ended_by"        \
	" AND (OLD.answer <> 'always' OR OLD.ended_by <> '')))" /* who takes a grant back comes later */ \
	" AND NOT " QUESTIONS_COMES_BACK " BEGIN SELECT RAISE(ABORT, 'what is over stays over'); END;"   \
	"CREATE TRIGGER questions_come_back BEFORE UPDATE ON questions"                                  \
	" WHEN NEW.returned <> OLD.returned AND NOT " QUESTIONS_COMES_BACK                               \
	" BEGIN SELECT RAISE(ABORT, 'only what was answered once comes back'); END;"
#define QUESTIONS_TRIGGERS                                                                                            \
	"CREATE INDEX questions_open ON questions (session) WHERE over_us = 0;"                                       \
	"CREATE UNIQUE INDEX questions_are_shared ON questions (session, rule, host, port, writes, method = '', tls)" \
	" WHERE state = 'pending';"                                                                                   \
	"CREATE TRIGGER questions_enter_pending BEFORE INSERT ON questions"                                           \
	" WHEN NEW.state <> 'pending' OR NEW.answer <> '' OR NEW.over_us <> 0"                                        \
	" OR EXISTS (SELECT 1 FROM questions WHERE id = NEW.id)"                                                      \
	" OR EXISTS (SELECT 1 FROM questions WHERE state = 'pending' AND session = NEW.session AND rule = NEW.rule"   \
	" AND host = NEW.host AND port = NEW.port AND writes = NEW.writes AND (method = '') = (NEW.method = '')"      \
	" AND tls = NEW.tls)"                                                                                         \
	" BEGIN SELECT RAISE(ABORT, 'a question enters as pending, under a new id'); END;"                            \
	"CREATE TRIGGER questions_stay_what_they_are BEFORE UPDATE ON questions"                                      \
	" WHEN NEW.id IS NOT OLD.id OR NEW.session IS NOT OLD.session OR NEW.rule IS NOT OLD.rule"                    \
	" OR NEW.host IS NOT OLD.host OR NEW.port IS NOT OLD.port OR NEW.writes IS NOT OLD.writes"                    \
	" OR NEW.tls IS NOT OLD.tls OR NEW.place IS NOT OLD.place OR NEW.headers IS NOT OLD.headers"                  \
	" OR NEW.sandbox IS NOT OLD.sandbox OR NEW.method IS NOT OLD.method OR NEW.url IS NOT OLD.url"                \
	" OR NEW.body IS NOT OLD.body OR NEW.level IS NOT OLD.level OR NEW.mode IS NOT OLD.mode"                      \
	" OR NEW.generation IS NOT OLD.generation OR NEW.policy IS NOT OLD.policy"                                    \
	" OR NEW.created_us IS NOT OLD.created_us OR NEW.expires_us IS NOT OLD.expires_us"                            \
	" OR NEW.pid IS NOT OLD.pid OR NEW.comm IS NOT OLD.comm OR NEW.program IS NOT OLD.program"                    \
	" OR NEW.preview IS NOT OLD.preview"                                                                          \
	" BEGIN SELECT RAISE(ABORT, 'what was asked for does not change'); END;"                                      \
	"CREATE TRIGGER questions_are_answered_once BEFORE UPDATE ON questions"                                       \
	" WHEN OLD.state <> 'pending' AND (NEW.state <> OLD.state OR NEW.answer <> OLD.answer OR NEW.who <> OLD.who"  \
	" OR NEW.reason <> OLD.reason OR NEW.answered_us <> OLD.answered_us OR NEW.until_us <> OLD.until_us"          \
	" OR NEW.domain <> OLD.domain)"                                                                               \
	" BEGIN SELECT RAISE(ABORT, 'an answer is never changed'); END;"                                              \
	"CREATE TRIGGER questions_are_answered_by_name BEFORE UPDATE ON questions"                                    \
	" WHEN OLD.state = 'pending' AND NEW.state IN ('allowed', 'denied') AND (NEW.who = '' OR NEW.answer = ''"     \
	" OR (NEW.state = 'denied') <> (NEW.answer = 'deny') OR NEW.answered_us = 0)"                                 \
	" BEGIN SELECT RAISE(ABORT, 'an answer has a name'); END;"                                                    \
	"CREATE TRIGGER questions_without_an_answer BEFORE UPDATE ON questions"                                       \
	" WHEN NEW.state IN ('pending', 'expired', 'void') AND (NEW.answer <> '' OR (NEW.state = 'pending') <> "      \
	"(NEW.over_us = 0))"                                                                                          \
	" BEGIN SELECT RAISE(ABORT, 'nobody has answered'); END;" QUESTIONS_OVER                                      \
	"CREATE TRIGGER questions_stay_until_they_are_over BEFORE DELETE ON questions WHEN OLD.over_us = 0"           \
	" BEGIN SELECT RAISE(ABORT, 'the question is not over'); END;"

const char *const store_questions_schema = QUESTIONS_TABLE QUESTIONS_TRIGGERS;

/*
 * From version 5, which knew a rule by its place and TLS by the URL. Which rule was meant is not known: these
 * numbers are no rule's, so that what was open ends at the first look and is asked about anew.
 */
const char *const store_questions_again =
	"CREATE TABLE questions_5 AS SELECT * FROM questions;"
	"CREATE TABLE questions_seq AS SELECT seq FROM sqlite_sequence WHERE name = 'questions';"
	"DROP TABLE questions;" QUESTIONS_TABLE "INSERT INTO questions (id, session, rule, host, port, writes, tls, "
	"place, sandbox, method, url, body, level, mode,"
	" generation, policy, created_us, expires_us, state, answer, who, reason, answered_us, until_us, over_us)"
	" SELECT id, session, -id, host, port, writes, substr(url, 1, 6) = 'https:', place, sandbox, method, url, "
	"body, level,"
	" mode, generation, policy, created_us, expires_us, state, answer, who, reason, answered_us, until_us, over_us"
	" FROM questions_5;"
	"DELETE FROM sqlite_sequence WHERE name = 'questions';"
	"INSERT INTO sqlite_sequence (name, seq) SELECT 'questions', seq FROM questions_seq;"
	"DROP TABLE questions_5;"
	"DROP TABLE questions_seq;";
const char *const store_questions_triggers = QUESTIONS_TRIGGERS;

/* From version 6, which did not say which process asked. */
const char *const store_questions_more = "ALTER TABLE questions ADD COLUMN" QUESTIONS_PID ";"
					 "ALTER TABLE questions ADD COLUMN" QUESTIONS_COMM ";"
					 "ALTER TABLE questions ADD COLUMN" QUESTIONS_PROGRAM ";"
					 "ALTER TABLE questions ADD COLUMN" QUESTIONS_PREVIEW ";"
					 "ALTER TABLE questions ADD COLUMN" QUESTIONS_RETURNED ";"
					 "DROP INDEX questions_open;"
					 "DROP INDEX questions_are_shared;"
					 "DROP TRIGGER questions_enter_pending;"
					 "DROP TRIGGER questions_stay_what_they_are;"
					 "DROP TRIGGER questions_are_answered_once;"
					 "DROP TRIGGER questions_are_answered_by_name;"
					 "DROP TRIGGER questions_without_an_answer;"
					 "DROP TRIGGER questions_stay_over;"
					 "DROP TRIGGER questions_stay_until_they_are_over;" QUESTIONS_TRIGGERS
					 "UPDATE meta SET value = 8 WHERE key = 'schema'";

/* From version 7, in which an answer for once did not come back. */
const char *const store_questions_return =
	"ALTER TABLE questions ADD COLUMN" QUESTIONS_RETURNED ";"
	"DROP TRIGGER questions_stay_over;" QUESTIONS_OVER "UPDATE meta SET value = 8 WHERE key = 'schema'";
/* clang-format on */
_Static_assert(NP_QUESTION_URL == 2048 && NP_QUESTION_HEADERS == 1024 && NP_PROGRAM_SIZE == 256 &&
		       NP_QUESTION_PREVIEW == 256 && NP_ANSWER_RETURNS == 8,
	       "the CHECK constraints are on disk: another bound needs another schema version");

/* -- words ----------------------------------------------------------------------------- */

static const char *const states[] = { "pending", "allowed", "denied", "expired", "void" };
static const char *const answers[] = { "", "deny", "once", "host", "domain", "always" };

const char *question_state_name(enum question_state state)
{
	return states[state];
}

int question_state_parse(const char *name, enum question_state *ret)
{
	return WORD_PARSE(states, name, ret);
}

const char *question_answer_name(enum question_answer answer)
{
	return answers[answer];
}

int question_answer_parse(const char *name, enum question_answer *ret)
{
	return WORD_PARSE(answers, name, ret);
}

/* -- reading --------------------------------------------------------------------------- */

static int question_read(sqlite3_stmt *statement, struct question_row *row)
{
	const char *session = (const char *)sqlite3_column_text(statement, 1), *problem;

	*row = (struct question_row){
		.id = sql_column_number(statement, 0),
		.rule = sql_column_number(statement, 2),
		.port = (uint16_t)sqlite3_column_int(statement, 4),
		.write = sqlite3_column_int(statement, 5) == 1,
		.tls = sqlite3_column_int(statement, 6) == 1,
		.body = sql_column_number(statement, 12),
		.created_us = sql_column_number(statement, 17),
		.expires_us = sql_column_number(statement, 18),
		.answered_us = sql_column_number(statement, 24),
		.until_us = sql_column_number(statement, 25),
		.over_us = sql_column_number(statement, 26),
		.pid = (uint32_t)sql_column_number(statement, 28),
		.preview_len = (size_t)sqlite3_column_bytes(statement, 31),
	};
	if (row->preview_len > sizeof(row->preview))
		return -EUCLEAN;
	if (row->preview_len)
		memcpy(row->preview, sqlite3_column_blob(statement, 31), row->preview_len);
	if (!session || session_name_parse(session, &row->session, &problem) ||
	    sql_column_copy(statement, 3, row->host, sizeof(row->host)) ||
	    sql_column_copy(statement, 7, row->place, sizeof(row->place)) ||
	    sql_column_copy(statement, 8, row->sandbox, sizeof(row->sandbox)) ||
	    sql_column_copy(statement, 9, row->method, sizeof(row->method)) ||
	    sql_column_copy(statement, 10, row->url, sizeof(row->url)) ||
	    sql_column_copy(statement, 11, row->headers, sizeof(row->headers)) ||
	    rung_read(statement, 13, &row->rung) || sql_column_copy(statement, 16, row->policy, sizeof(row->policy)) ||
	    question_state_parse((const char *)sqlite3_column_text(statement, 19), &row->state) ||
	    question_answer_parse((const char *)sqlite3_column_text(statement, 20), &row->answer) ||
	    sql_column_copy(statement, 21, row->domain, sizeof(row->domain)) ||
	    sql_column_copy(statement, 22, row->who, sizeof(row->who)) ||
	    sql_column_copy(statement, 23, row->reason, sizeof(row->reason)) ||
	    sql_column_copy(statement, 27, row->ended_by, sizeof(row->ended_by)) ||
	    sql_column_copy(statement, 29, row->comm, sizeof(row->comm)) ||
	    sql_column_copy(statement, 30, row->program, sizeof(row->program)))
		return -EUCLEAN;
	row->rung.generation = (uint32_t)sql_column_number(statement, 15);
	return 0;
}

int store_question_get(struct store *store, uint64_t id, struct question_row *ret)
{
	sqlite3_stmt *statement = store->statements[STORE_QUESTION_GET];
	int r;

	sql_bind_number(statement, 1, id);
	r = sql_row(statement);
	if (!r)
		r = question_read(statement, ret);
	sql_done(statement);
	return r;
}

typedef int question_fn(void *data, const struct question_row *row);

static int each_question(sqlite3_stmt *statement, const struct each *each)
{
	struct question_row row;
	int r = question_read(statement, &row);

	return r ? r : (*(question_fn **)each->fn)(each->data, &row);
}

int store_questions_each(struct store *store, const char *session, bool open,
			 int (*fn)(void *data, const struct question_row *row), void *data)
{
	const char *sql = open ? (session ? STORE_QUESTION_SELECT " WHERE session = ?1 AND over_us = 0 ORDER BY id DESC"
					  : STORE_QUESTION_SELECT " WHERE over_us = 0 ORDER BY id DESC")
			       : (session ? STORE_QUESTION_SELECT " WHERE session = ?1 ORDER BY id DESC"
					  : STORE_QUESTION_SELECT " ORDER BY id DESC");

	return each_row(store, sql, session, 0, each_question, &(struct each){ .fn = &fn, .data = data });
}

int store_questions_before(struct store *store, const struct question_row *row, unsigned *ret_allowed,
			   unsigned *ret_denied)
{
	sqlite3_stmt *statement = store->statements[STORE_QUESTION_BEFORE];
	int r;

	sql_bind_text(statement, 1, row->session.text);
	sql_bind_text(statement, 2, row->host);
	sql_bind_number(statement, 3, row->id);
	r = sql_row(statement);
	*ret_allowed = r ? 0 : (unsigned)sqlite3_column_int(statement, 0);
	*ret_denied = r ? 0 : (unsigned)sqlite3_column_int(statement, 1);
	sql_done(statement);
	return r;
}

/* -- writing --------------------------------------------------------------------------- */

static int question_insert(struct store *store, const struct question_row *row, uint64_t *ret_id)
{
	sqlite3_stmt *insert = store->statements[STORE_QUESTION_INSERT],
		     *forget = store->statements[STORE_QUESTION_FORGET];
	int r;

	sql_bind_text(insert, 1, row->session.text);
	sql_bind_number(insert, 2, row->rule);
	sql_bind_text(insert, 3, row->host);
	sql_bind_number(insert, 4, row->port);
	sql_bind_number(insert, 5, row->write);
	sql_bind_number(insert, 6, row->tls);
	sql_bind_text(insert, 7, row->place);
	sql_bind_text(insert, 8, row->sandbox);
	sql_bind_text(insert, 9, row->method);
	sql_bind_text(insert, 10, row->url);
	sql_bind_text(insert, 11, row->headers);
	sql_bind_number(insert, 12, row->body);
	sql_bind_number(insert, 13, row->rung.level);
	sql_bind_number(insert, 14, row->rung.mode);
	sql_bind_number(insert, 15, row->rung.generation);
	sql_bind_text(insert, 16, row->policy);
	sql_bind_number(insert, 17, row->created_us);
	sql_bind_number(insert, 18, row->expires_us);
	sql_bind_number(insert, 19, row->pid);
	sql_bind_text(insert, 20, row->comm);
	sql_bind_text(insert, 21, row->program);
	if (row->preview_len)
		sqlite3_bind_blob(insert, 22, row->preview, (int)row->preview_len, SQLITE_STATIC);
	else
		sqlite3_bind_zeroblob(insert, 22, 0);
	r = sql_run(insert, NULL);
	if (r)
		return r;
	*ret_id = (uint64_t)sqlite3_last_insert_rowid(store->db);
	sql_bind_number(forget, 1, NP_QUESTIONS_KEPT);
	return sql_run(forget, NULL);
}

int store_question_put(struct store *store, const struct question_row *row, uint64_t *ret_id)
{
	uint64_t id = 0;
	int r = begin_synced(store);

	if (r)
		return r;
	r = sql_end(store->db, question_insert(store, row, &id));
	if (!r)
		*ret_id = id;
	return r;
}

static int question_update(struct store *store, uint64_t id, sqlite3_stmt *statement)
{
	return row_update(store, statement, store->statements[STORE_QUESTION_GET], id);
}

int store_question_answer(struct store *store, const struct question_row *row)
{
	sqlite3_stmt *statement = store->statements[STORE_QUESTION_ANSWER];

	sql_bind_text(statement, 2, question_state_name(row->state));
	sql_bind_text(statement, 3, question_answer_name(row->answer));
	sql_bind_text(statement, 4, row->who);
	sql_bind_text(statement, 5, row->reason);
	sql_bind_number(statement, 6, row->answered_us);
	sql_bind_number(statement, 7, row->until_us);
	sql_bind_text(statement, 8, row->domain);
	return question_update(store, row->id, statement);
}

int store_question_end(struct store *store, uint64_t id, enum question_state state, uint64_t now_us)
{
	sqlite3_stmt *statement = store->statements[STORE_QUESTION_END];

	sql_bind_text(statement, 2, question_state_name(state));
	sql_bind_number(statement, 3, now_us);
	return question_update(store, id, statement);
}

int store_answer_end(struct store *store, uint64_t id, const char *who, uint64_t now_us)
{
	sqlite3_stmt *statement = store->statements[STORE_ANSWER_END];

	sql_bind_number(statement, 2, now_us);
	sql_bind_text(statement, 3, who);
	return question_update(store, id, statement);
}

int store_answer_return(struct store *store, uint64_t id)
{
	sqlite3_stmt *statement = store->statements[STORE_ANSWER_RETURN];

	sql_bind_number(statement, 2, NP_ANSWER_RETURNS);
	return question_update(store, id, statement);
}

int store_grant_revoked(struct store *store, uint64_t id, const char *who)
{
	sqlite3_stmt *statement = store->statements[STORE_GRANT_REVOKED];

	sql_bind_text(statement, 2, who);
	return question_update(store, id, statement);
}

int store_questions_begin(struct store *store)
{
	return begin_synced(store);
}

int store_questions_commit(struct store *store, int r)
{
	return sql_end(store->db, r);
}
