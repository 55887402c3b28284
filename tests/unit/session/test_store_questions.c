/* SPDX-License-Identifier: MIT */
/* Questions on record. What the store promises is asked of the file itself, by another connection without our settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "session/store_questions.c"

#include "store_v5.h"
#include "store_v6.h"
#include "stranger_fixture.h"

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, stranger_setup, stranger_teardown)

static struct question_row row_of(const char *host)
{
	struct question_row row = { .rule = UINT64_MAX - 3,
				    .place = "p.yaml:3",
				    .tls = true,
				    .headers = "accept: */*\n",
				    .port = 443,
				    .write = true,
				    .sandbox = "a.b.1",
				    .method = "POST",
				    .url = "https://h.example/x",
				    .body = UINT64_MAX,
				    .rung = { .level = LEVEL_INTERNAL, .mode = NP_PROXIED, .generation = 7 },
				    .policy = "hash",
				    .created_us = 10,
				    .expires_us = 1000 };
	const char *problem;

	assert_int_equal(session_name_parse("a/b", &row.session, &problem), 0);
	snprintf(row.host, sizeof(row.host), "%s", host);
	return row;
}

static uint64_t asked(const char *host)
{
	struct question_row row = row_of(host);
	uint64_t id = 0;

	assert_int_equal(store_question_put(store, &row, &id), 0);
	return id;
}

static struct question_row got(uint64_t id)
{
	struct question_row row;

	assert_int_equal(store_question_get(store, id, &row), 0);
	return row;
}

static int answered(uint64_t id, enum question_answer answer, uint64_t now_us)
{
	struct question_row row = { .id = id,
				    .state = answer == ANSWER_DENY ? QUESTION_DENIED : QUESTION_ALLOWED,
				    .answer = answer,
				    .who = "boss",
				    .reason = "because",
				    .answered_us = now_us };

	return store_question_answer(store, &row);
}

static void test_what_is_put_comes_back(void **state)
{
	struct question_row row = got(asked("h.example"));
	const struct question_row want = row_of("h.example");

	(void)state;
	assert_string_equal(row.session.text, "a/b");
	assert_string_equal(row.place, want.place);
	assert_string_equal(row.host, want.host);
	assert_string_equal(row.method, want.method);
	assert_string_equal(row.url, want.url);
	assert_true(row.write && row.tls && row.port == 443 && row.body == UINT64_MAX && row.rule == want.rule);
	assert_string_equal(row.headers, want.headers);
	assert_true(np_rung_equal(&row.rung, &want.rung));
	assert_int_equal(row.state, QUESTION_PENDING);
	assert_int_equal(store_question_get(store, 99, &row), -ENOENT);
}

static void test_an_answer_is_given_once(void **state)
{
	uint64_t id = asked("h.example");

	(void)state;
	assert_int_equal(answered(id, ANSWER_HOST, 20), 0);
	assert_int_equal(answered(id, ANSWER_DENY, 30), -EALREADY);
	assert_int_equal(store_question_end(store, id, QUESTION_VOID, 30), -EALREADY);
	assert_int_equal(got(id).state, QUESTION_ALLOWED);
	assert_string_equal(got(id).who, "boss");
	REFUSED("UPDATE questions SET state = 'denied', answer = 'deny' WHERE id = %d", (int)id);
	REFUSED("UPDATE questions SET answer = 'once' WHERE id = %d", (int)id);
	REFUSED("UPDATE questions SET who = 'me' WHERE id = %d", (int)id);
	REFUSED("UPDATE questions SET until_us = 99 WHERE id = %d", (int)id);
	REFUSED("UPDATE questions SET state = 'pending', answer = '' WHERE id = %d", (int)id);
}

static void test_an_answer_has_a_name(void **state)
{
	uint64_t id = asked("h.example");

	(void)state;
	assert_int_equal(answered(id, ANSWER_HOST, 0), -EPERM);
	assert_int_equal(got(id).state, QUESTION_PENDING);
	/* For a domain, and it says which; no other answer does. */
	assert_true(answered(id, ANSWER_DOMAIN, 20) < 0);
	REFUSED("UPDATE questions SET state = 'allowed', answer = 'host', domain = 'example', who = 'x', answered_us = "
		"20"
		" WHERE id = %d",
		(int)id);
	REFUSED("UPDATE questions SET state = 'allowed', answer = 'host', answered_us = 20 WHERE id = %d", (int)id);
	REFUSED("UPDATE questions SET state = 'allowed', answer = 'deny', who = 'x', answered_us = 20 WHERE id = %d",
		(int)id);
	REFUSED("UPDATE questions SET state = 'allowed', who = 'x', answered_us = 20 WHERE id = %d", (int)id);
	/* The control: with all of it. */
	assert_int_equal(sql("UPDATE questions SET state = 'allowed', answer = 'host', who = 'x', answered_us = 20"
			     " WHERE id = %d",
			     (int)id),
			 SQLITE_OK);
}

static void test_what_was_asked_does_not_change(void **state)
{
	static const char *const changes[] = { "host = 'other.example'",
					       "port = 80",
					       "url = 'https://x/'",
					       "session = 'c/d'",
					       "generation = 8",
					       "level = 0",
					       "expires_us = 99999",
					       "writes = 0",
					       "place = 'p.yaml:4'",
					       "rule = 1",
					       "tls = 0",
					       "headers = ''" };
	uint64_t id = asked("h.example");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		REFUSED("UPDATE OR REPLACE questions SET %s WHERE id = %d", changes[i], (int)id);
}

#define INSERT                                                                                                        \
	"INSERT OR REPLACE INTO questions (id, session, rule, host, port, writes, tls, place, sandbox, method, url, " \
	"body, "                                                                                                      \
	"level, mode, generation, policy, created_us, expires_us, state, answer, who) VALUES "

static void test_a_question_enters_as_pending_and_is_not_replaced(void **state)
{
	uint64_t id = asked("h.example");
	struct question_row row = row_of("h.example");

	(void)state;
	assert_int_equal(store_question_put(store, &row, &id), -EPERM); /* one with that key waits */
	REFUSED(INSERT "(50, 'a/b', 9, 'h', 1, 1, 0, 'p', '', '', 'u', 0, 0, 1, 1, '', 1, 9, 'allowed', 'host', 'me')");
	REFUSED(INSERT "(50, 'a/b', 9, 'h', 1, 1, 0, 'p', '', '', 'u', 0, 0, 1, 1, '', 1, 9, 'pending', 'host', 'me')");
	REFUSED(INSERT "(%d, 'a/b', 9, 'h', 1, 1, 0, 'p', '', '', 'u', 0, 0, 1, 1, '', 1, 9, 'pending', '', '')",
		(int)id);
	REFUSED(INSERT "(51, 'a/b', -4, 'h.example', 443, 1, 1, '', '', 'PUT', 'https:u', 0, 0, 1, 1, '', 1, 9, "
		       "'pending', '', '')");
	assert_int_equal(
		sql(INSERT "(50, 'a/b', 9, 'h', 1, 1, 0, 'p', '', '', 'u', 0, 0, 1, 1, '', 1, 9, 'pending', '', '')"),
		SQLITE_OK);
}

static void test_what_is_over_stays_over(void **state)
{
	uint64_t once = asked("h.example"), other = asked("o.example");

	(void)state;
	assert_int_equal(store_answer_end(store, once, "", 15), -EALREADY); /* there is none */
	assert_int_equal(answered(once, ANSWER_ONCE, 20), 0);
	assert_int_equal(store_answer_end(store, once, "", 30), 0);
	assert_int_equal(store_answer_end(store, once, "", 40), -EALREADY);
	assert_int_equal(got(once).over_us, 30);
	REFUSED("UPDATE questions SET over_us = 0 WHERE id = %d", (int)once);
	REFUSED("DELETE FROM questions WHERE id = %d", (int)other);
	REFUSED("UPDATE questions SET over_us = 5 WHERE id = %d", (int)other);
	assert_int_equal(store_question_end(store, other, QUESTION_EXPIRED, 50), 0);
	assert_int_equal(got(other).state, QUESTION_EXPIRED);
	REFUSED("UPDATE questions SET state = 'allowed', answer = 'host', who = 'x', answered_us = 20 WHERE id = %d",
		(int)other);
	assert_int_equal(sql("DELETE FROM questions WHERE id = %d", (int)other), SQLITE_OK);
	/* The key is free again, the id is not. */
	assert_true(asked("o.example") > other);
}

static int count_one(void *data, const struct question_row *row)
{
	(void)row;
	++*(int *)data;
	return 0;
}

static void test_the_oldest_that_are_over_go_first(void **state)
{
	unsigned allowed, denied;
	int n = 0;

	(void)state;
	assert_int_equal(
		sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		    " INSERT INTO questions (session, rule, host, port, writes, tls, place, sandbox, method, url, "
		    "body, level,"
		    " mode, generation, policy, created_us, expires_us, state)"
		    " SELECT 'a/b', 9, 'h' || i, 1, 1, 0, 'p', '', '', 'u', 0, 0, 1, 1, '', 1, 99, 'pending' FROM n;"
		    "UPDATE questions SET state = 'void', over_us = 5 WHERE id > 1",
		    NP_QUESTIONS_KEPT + 10),
		SQLITE_OK);
	asked("h.example");
	store_questions_each(store, NULL, false, count_one, &n);
	assert_int_equal(n, NP_QUESTIONS_KEPT + 1); /* the first still waits */
	n = 0;
	store_questions_each(store, "a/b", true, count_one, &n);
	assert_int_equal(n, 2);
	assert_int_equal(store_questions_before(store, &(struct question_row){ .id = 99999 }, &allowed, &denied), 0);
	assert_true(!allowed && !denied);
}

/* A file of an older version gets what it lacks, and what was asked and answered is there as it was; but for what was open,
 * whose rule is not known, nothing changes. */
static void old_file(const char *questions, int version)
{
	const char *drop =
		version < 6 ? "DROP TABLE questions; DROP TABLE starters; DROP TABLE contexts" : "DROP TABLE questions";
	char text[64];
	sqlite3 *old;

	store_close(store);
	store = NULL;
	snprintf(text, sizeof(text), "UPDATE meta SET value = %d", version);
	assert_int_equal(sqlite3_open(path, &old), SQLITE_OK);
	assert_int_equal(sqlite3_exec(old, drop, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(old, questions, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(old, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(old);
	assert_int_equal(store_open(path, &store), 0);
}

/* Nobody else brings anything back: not another answer, not one that was taken back, and not without saying so. */
static void test_what_was_answered_once_comes_back_so_often(void **state)
{
	static const enum question_answer given[] = { ANSWER_ONCE, ANSWER_HOST, ANSWER_ONCE };
	uint64_t ids[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct question_row row;
		char host[16];

		snprintf(host, sizeof(host), "h%u.example", i);
		ids[i] = asked(host);
		row = got(ids[i]);
		row.state = QUESTION_ALLOWED;
		row.answer = given[i];
		row.answered_us = 20;
		snprintf(row.who, sizeof(row.who), "boss");
		assert_int_equal(store_question_answer(store, &row), 0);
	}
	assert_int_equal(store_answer_return(store, ids[0]), -EALREADY); /* it was not used */
	assert_int_equal(store_answer_end(store, ids[0], "", 30), 0);
	assert_int_equal(store_answer_end(store, ids[1], "", 30), 0);
	assert_int_equal(store_answer_end(store, ids[2], "uid 1", 30), 0);
	assert_int_equal(store_answer_return(store, ids[1]), -EALREADY);
	assert_int_equal(store_answer_return(store, ids[2]), -EALREADY);
	assert_int_equal(store_answer_return(store, 99), -ENOENT);
	REFUSED("UPDATE questions SET over_us = 0 WHERE id = 1");
	REFUSED("UPDATE questions SET returned = returned + 1");
	REFUSED("UPDATE questions SET over_us = 0, returned = returned + 1 WHERE id = 2");
	REFUSED("UPDATE questions SET over_us = 0, returned = returned + 1 WHERE id = 3");
	for (int i = 0; i < NP_ANSWER_RETURNS; i++) {
		assert_int_equal(store_answer_return(store, ids[0]), 0);
		assert_int_equal(got(ids[0]).over_us, 0);
		assert_int_equal(store_answer_end(store, ids[0], "", 40), 0);
	}
	assert_int_equal(store_answer_return(store, ids[0]), -EALREADY);
	assert_int_equal(got(ids[0]).over_us, 40);
}

/* In version 7 what was used stayed so, whoever it was used for. */
static void test_a_file_of_version_7(void **state)
{
	sqlite3 *old;

	(void)state;
	asked("w.example");
	store_close(store);
	store = NULL;
	assert_int_equal(sqlite3_open(path, &old), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(old,
			     "DROP TRIGGER questions_come_back; DROP TRIGGER questions_stay_over;"
			     "ALTER TABLE questions DROP COLUMN returned;"
			     "CREATE TRIGGER questions_stay_over BEFORE UPDATE ON questions"
			     " WHEN OLD.over_us <> 0 AND (NEW.over_us <> OLD.over_us OR (NEW.ended_by <> OLD.ended_by"
			     " AND (OLD.answer <> 'always' OR OLD.ended_by <> '')))"
			     " BEGIN SELECT RAISE(ABORT, 'what is over stays over'); END;"
			     "UPDATE questions SET state = 'allowed', answer = 'once', who = 'boss', answered_us = 20;"
			     "UPDATE questions SET over_us = 30;"
			     "UPDATE meta SET value = 7",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(old);
	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(got(1).over_us, 30);
	REFUSED("UPDATE questions SET over_us = 0");
	assert_int_equal(store_answer_return(store, 1), 0);
	assert_int_equal(got(1).over_us, 0);
}

static void test_a_file_of_version_6(void **state)
{
	struct question_row row;

	(void)state;
	old_file(store_v6_questions, 6);
	row = got(1);
	assert_true(row.state == QUESTION_PENDING && row.rule == 77 && !row.pid && !row.preview_len);
	assert_string_equal(row.program, "");
	assert_string_equal(row.url, "https://w.example/x");
	assert_true(got(2).answer == ANSWER_ALWAYS && got(3).state == QUESTION_DENIED);
	REFUSED("UPDATE questions SET pid = 5 WHERE id = 1");
	REFUSED("DELETE FROM questions WHERE id = 1");
	REFUSED("UPDATE questions SET ended_by = 'me' WHERE id = 3");
	assert_int_equal(asked("new.example"), 4);
}

/* A grant is taken back after its question is over: by whom is known then, once. */
static void test_who_takes_a_grant_back_is_recorded_once(void **state)
{
	struct question_row row;
	const uint64_t id = asked("h.example"), other = asked("i.example");

	(void)state;
	row = got(id);
	row.state = QUESTION_ALLOWED;
	row.answer = ANSWER_ALWAYS;
	row.answered_us = 20;
	snprintf(row.who, sizeof(row.who), "boss");
	assert_int_equal(store_question_answer(store, &row), 0);
	assert_int_equal(store_grant_revoked(store, id, "uid 1"), -EALREADY); /* it is not in the policy yet */
	assert_int_equal(store_answer_end(store, id, "", 30), 0);
	assert_int_equal(store_grant_revoked(store, id, "uid 1"), 0);
	assert_string_equal(got(id).ended_by, "uid 1");
	assert_int_equal(got(id).over_us, 30);
	assert_int_equal(store_grant_revoked(store, id, "uid 2"), -EALREADY);
	assert_int_equal(store_grant_revoked(store, other, "uid 1"), -EALREADY);
	REFUSED("UPDATE questions SET ended_by = 'another'");
}

static void test_a_file_of_version_5(void **state)
{
	struct question_row row;

	(void)state;
	old_file(store_v5_questions, 5);
	row = got(1);
	assert_true(row.tls && row.write && row.state == QUESTION_PENDING && row.rule == (uint64_t)-1);
	assert_string_equal(row.url, "https://w.example/x");
	assert_string_equal(row.place, "p.yaml:3");
	assert_false(got(2).tls);
	row = got(3);
	assert_true(row.answer == ANSWER_HOST && row.answered_us == 20 && row.until_us == 900 && !row.over_us);
	assert_string_equal(row.who, "boss");
	assert_string_equal(row.reason, "fine");
	assert_true(got(4).state == QUESTION_DENIED && got(4).over_us == 30);
	assert_string_equal(got(5).method, "");
	REFUSED("UPDATE questions SET answer = 'always' WHERE id = 3");
	REFUSED("DELETE FROM questions WHERE id = 1");
	assert_int_equal(asked("new.example"), 7); /* 6 was given, and never comes again */
	assert_int_equal(store_question_end(store, 1, QUESTION_VOID, 50), 0);
}

static void test_a_file_of_version_4(void **state)
{
	(void)state;
	old_file("", 4);
	assert_int_equal(asked("new.example"), 1);
	REFUSED("DELETE FROM questions WHERE id = 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_what_is_put_comes_back),
		store_test(test_an_answer_is_given_once),
		store_test(test_an_answer_has_a_name),
		store_test(test_what_was_asked_does_not_change),
		store_test(test_a_question_enters_as_pending_and_is_not_replaced),
		store_test(test_what_is_over_stays_over),
		store_test(test_the_oldest_that_are_over_go_first),
		store_test(test_who_takes_a_grant_back_is_recorded_once),
		store_test(test_what_was_answered_once_comes_back_so_often),
		store_test(test_a_file_of_version_7),
		store_test(test_a_file_of_version_6),
		store_test(test_a_file_of_version_5),
		store_test(test_a_file_of_version_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
