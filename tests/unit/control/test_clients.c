/* SPDX-License-Identifier: MIT */
/* Who goes when somebody comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "control/clients.c"

#include "vocab/limits.h"

static struct clients set;
static uint64_t now;

static int end(void **state)
{
	(void)state;
	while (set.first)
		clients_remove(&set, set.first);
	assert_null(set.processes);
	assert_int_equal(set.count, 0);
	assert_int_equal(set.others, 0);
	return 0;
}

/* As the server does: whoever has to leaves. NULL: not admitted. */
static struct client *come(uid_t uid, pid_t pid)
{
	struct client *leaves = NULL, *c = NULL;

	if (clients_place(&set, uid, pid, &leaves) < 0)
		return NULL;
	if (leaves)
		clients_leave(&set, leaves);
	assert_int_equal(clients_join(&set, uid, pid, &c), 0);
	c->since_ns = ++now;
	return c;
}

static void one_process_is_bounded(void **state)
{
	struct client *first, *second, *stays;

	(void)state;
	stays = come(0, 2);
	first = come(0, 1);
	second = come(0, 1);
	for (unsigned i = 2; i < NP_CLIENTS_PER_PROCESS; i++)
		come(0, 1);
	assert_non_null(first->process);
	assert_non_null(come(0, 1));
	assert_null(first->process); /* the oldest of its own */
	assert_non_null(second->process);
	assert_non_null(stays->process);
	assert_int_equal(set.count, NP_CLIENTS_PER_PROCESS + 1);
	clients_leave(&set, first); /* twice is once */
	assert_int_equal(set.count, NP_CLIENTS_PER_PROCESS + 1);
}

static void the_silent_go_first(void **state)
{
	struct client *answered, *waits, *silent;

	(void)state;
	answered = come(0, 1);
	answered->state = CLIENT_ANSWERED;
	waits = come(0, 1);
	waits->state = CLIENT_WAITS;
	for (unsigned i = 3; i < NP_CLIENTS_PER_PROCESS; i++)
		come(0, 1)->state = CLIENT_ANSWERED;
	silent = come(0, 1);
	come(0, 1)->state = CLIENT_ANSWERED;
	assert_null(silent->process);
	assert_non_null(waits->process);
	come(0, 1)->state = CLIENT_ANSWERED;
	assert_null(waits->process);
	assert_non_null(answered->process);
	come(0, 1)->state = CLIENT_ANSWERED; /* even when all of them read */
	assert_null(answered->process);
}

/* Whoever has few connections keeps them, however many processes there are. */
static void the_largest_pays(void **state)
{
	struct client *one, *hog;

	(void)state;
	one = come(0, 1);
	hog = come(0, 2);
	for (unsigned i = 1; i < NP_CLIENTS_PER_PROCESS; i++)
		come(0, 2);
	for (unsigned i = 1; set.count < NP_CLIENTS_MAX; i++)
		come(0, (pid_t)(100 + i));
	assert_non_null(come(0, 3));
	assert_null(hog->process);
	assert_non_null(one->process);
	assert_int_equal(set.count, NP_CLIENTS_MAX);
}

static void many_processes(void **state)
{
	struct client *first = come(0, 1000);

	(void)state;
	for (unsigned i = 1; i < NP_CLIENTS_MAX; i++)
		come(0, (pid_t)(1000 + i));
	assert_non_null(first->process);
	assert_non_null(come(0, 1));
	assert_null(first->process);
}

static void other_users_are_bounded(void **state)
{
	struct client *mine, *root;

	(void)state;
	root = come(0, 1);
	mine = come(1001, 7);
	for (unsigned i = 0; i < 1000; i++) { /* many processes of two users */
		come(1002, (pid_t)(2000 + i));
		come(1003, (pid_t)(4000 + i));
	}
	assert_int_equal(set.others, NP_CLIENTS_MAX - NP_CLIENTS_RESERVE);
	assert_int_equal(user_clients(&set, 1002), NP_CLIENTS_PER_USER);
	assert_true(user_clients(&set, 1003) <= NP_CLIENTS_PER_USER);
	assert_non_null(root->process);
	(void)mine;
	for (unsigned i = 0; i < NP_CLIENTS_RESERVE - 1; i++)
		come(0, 1);
	assert_int_equal(set.others, NP_CLIENTS_MAX - NP_CLIENTS_RESERVE); /* the reserve took no place of theirs */
	assert_int_equal(set.count, NP_CLIENTS_MAX);
}

static void root_may_have_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NP_CLIENTS_MAX; i++)
		come(0, (pid_t)(100 + i));
	assert_null(come(1001, 1)); /* nobody of root's goes for it */
	assert_int_equal(set.count, NP_CLIENTS_MAX);
	assert_non_null(come(0, 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(one_process_is_bounded), TEST(the_silent_go_first),     TEST(the_largest_pays),
		TEST(many_processes),	      TEST(other_users_are_bounded), TEST(root_may_have_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
