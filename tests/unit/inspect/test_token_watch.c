/* SPDX-License-Identifier: MIT */
/* Which tokens a worker searches for, and on whose behalf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "vocab/limits.h"

#undef NP_TOKENS_WATCHED
#undef NP_TOKENS_ALL
#define NP_TOKENS_WATCHED 4
#define NP_TOKENS_ALL	  9

#include "inspect/token_watch.c"

#define SESSIONS 12

static struct worker worker;
static struct session sessions[SESSIONS];
static struct sandbox sandboxes[SESSIONS];
static struct client clients[SESSIONS];

static int begin(void **state)
{
	(void)state;
	memset(sessions, 0, sizeof(sessions));
	for (int i = 0; i < SESSIONS; i++) {
		snprintf(sessions[i].name, sizeof(sessions[i].name), "user/s%d", i);
		sandboxes[i].session = &sessions[i];
		clients[i].worker = &worker;
		clients[i].sandbox = &sandboxes[i];
		token_watch_come(&worker, &sessions[i]);
	}
	return 0;
}

static int over(void **state)
{
	(void)state;
	token_watch_free(&worker);
	for (int i = 0; i < SESSIONS; i++)
		assert_null(sessions[i].tokens);
	return 0;
}

static const char *text_of(int session, int number)
{
	static char text[64];

	snprintf(text, sizeof(text), "token-%d-of-session-%d;", number, session);
	return text;
}

static void note(int session, int number)
{
	const char *text = text_of(session, number);

	token_watch_note(&clients[session], &(struct token){ "oauth", false, text, strlen(text) });
}

/* Is it found in what this session says? */
static bool finds(int session, const char *text)
{
	size_t used;
	int found = token_watch_look(&clients[session], text, strlen(text), true, &used);

	assert_true(found >= -1);
	if (found >= 0)
		assert_string_equal(token_watch_credential(&clients[session], found), "oauth");
	return found >= 0;
}

static void test_found_for_its_own_session(void **state)
{
	(void)state;
	note(0, 1);
	note(1, 1);
	note(1, 1); /* once is enough */
	assert_true(finds(0, text_of(0, 1)));
	assert_false(finds(0, text_of(1, 1)));
	assert_true(finds(1, text_of(1, 1)));
	assert_false(finds(1, text_of(0, 1)));
	assert_false(finds(2, text_of(0, 1)));
	assert_int_equal(sessions[1].tokens->n, 1);
}

static void test_the_last_of_a_session(void **state)
{
	(void)state;
	note(0, 0);
	for (int i = 0; i < 2 * NP_TOKENS_WATCHED; i++)
		note(1, i);
	assert_true(finds(0, text_of(0, 0)));
	for (int i = 0; i < 2 * NP_TOKENS_WATCHED; i++)
		assert_int_equal(finds(1, text_of(1, i)), i >= NP_TOKENS_WATCHED);
}

/* Who has most gives one back: those that have few keep them. */
static void test_a_share_for_each_session(void **state)
{
	(void)state;
	note(0, 0);
	for (int s = 1; s < 3; s++)
		for (int i = 0; i < NP_TOKENS_WATCHED; i++)
			note(s, i);
	assert_true(TAILQ_EMPTY(&worker.tokens.free));
	note(3, 0);
	assert_true(finds(0, text_of(0, 0)) && finds(3, text_of(3, 0)));
	assert_int_equal(sessions[1].tokens->n + sessions[2].tokens->n, 2 * NP_TOKENS_WATCHED - 1);
	assert_int_not_equal(finds(1, text_of(1, 0)), finds(2, text_of(2, 0)));
	for (int s = 4; s < SESSIONS; s++) { /* more of them than there is room for */
		note(s, 0);
		assert_true(finds(s, text_of(s, 0)));
	}
}

static void test_a_session_that_comes_again(void **state)
{
	(void)state;
	note(0, 1);
	assert_true(finds(0, text_of(0, 1)));
	token_watch_go(&sessions[0]);
	assert_false(finds(0, text_of(0, 1)));
	note(1, 1);
	token_watch_come(&worker, &sessions[0]);
	assert_true(finds(0, text_of(0, 1)));
	token_watch_go(&sessions[1]);
	for (int i = 0; i < NP_TOKENS_ALL; i++) /* pushed out while it is gone */
		note(2 + i, 0);
	token_watch_come(&worker, &sessions[1]);
	assert_null(sessions[1].tokens);
}

/* Of a long one the end, which alone is kept. */
static void test_a_long_one(void **state)
{
	static char text[2000];
	struct buf word = BUF_INIT(4096);
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + (i * 7 + i / 26 * 5 + i * i / 97) % 26);
	token_watch_note(&clients[0], &(struct token){ "oauth", false, text, sizeof(text) });
	token_watch_note(&clients[0], &(struct token){ "oauth", false, text, sizeof(text) });
	assert_int_equal(sessions[0].tokens->n, 1);
	assert_int_equal(token_watch_look(&clients[0], text, 100, true, &used), -1);
	assert_true(token_watch_look(&clients[0], text + 1400, 600, true, &used) >= 0);
	token_watch_word(&clients[0], 0, &word);
	assert_int_equal(word.len, 8);
	assert_memory_equal(word.data, "(secret)", 8);
	buf_free(&word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found_for_its_own_session, begin, over),
		cmocka_unit_test_setup_teardown(test_the_last_of_a_session, begin, over),
		cmocka_unit_test_setup_teardown(test_a_share_for_each_session, begin, over),
		cmocka_unit_test_setup_teardown(test_a_session_that_comes_again, begin, over),
		cmocka_unit_test_setup_teardown(test_a_long_one, begin, over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
