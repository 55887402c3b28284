/* SPDX-License-Identifier: MIT */
/* What inspectors say was about to leave, until it is handed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "supervisor/leaks.c"

#define MANY 1000

static struct supervisor supervisor;
static struct process process = { .supervisor = &supervisor, .pid = 10 };
static unsigned handed, later;
static char last[256];

/* Sandboxes 100 to 199 are of one session, those from 1000 on are nobody's. */
struct ledger_entry *ledgers_find(struct ledgers *ledgers, uint64_t cgroup_id)
{
	static struct ledger_entry entry;

	(void)ledgers;
	snprintf(entry.session, sizeof(entry.session), "alice/s%d", (int)cgroup_id / 100);
	return cgroup_id < 1000 ? &entry : NULL;
}

void loop_later(struct loop *loop, struct loop_task *task)
{
	(void)loop;
	assert_ptr_equal(task, &supervisor.receive);
	later++;
}

/* As a raise does: it receives at its end. */
static void on_leak(void *data, uint64_t cgroup_id, const char *session, const char *credential)
{
	static unsigned deep;

	assert_null(data);
	assert_int_equal(deep++, 0);
	snprintf(last, sizeof(last), "%d %s %s", (int)cgroup_id, session, credential);
	handed++;
	leaks_receive(&supervisor);
	deep--;
}

static int setup(void **state)
{
	(void)state;
	memset(&supervisor, 0, sizeof(supervisor));
	supervisor.config.on_leak = on_leak;
	TAILQ_INIT(&supervisor.leaks);
	handed = later = 0;
	return hash_key_make(&supervisor.key);
}

static int teardown(void **state)
{
	(void)state;
	leaks_clear(&supervisor);
	return 0;
}

static int says(uint64_t cgroup_id, const char *credential)
{
	struct link_leak message = { .cgroup_id = cgroup_id };

	snprintf(message.name, sizeof(message.name), "%s", credential);
	return leaks_learn(&process, (const char *)&message, sizeof(message));
}

static unsigned all_handed(void)
{
	do {
		later = 0;
		leaks_receive(&supervisor);
	} while (later);
	return handed;
}

static void test_what_it_was(void **state)
{
	(void)state;
	assert_int_equal(says(101, "key"), 0);
	leaks_receive(&supervisor);
	assert_string_equal(last, "101 alice/s1 key");
	assert_int_equal(says(1000, "key"), 0);
	assert_int_equal(all_handed(), 2);
	assert_string_equal(last, "1000  key");
	assert_int_equal(says(101, ""), -EPROTO);
	assert_int_equal(leaks_learn(&process, "x", 1), -EPROTO);
}

static void test_the_same_once(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(says(100 + (unsigned)i, "key"), 0); /* of one session */
		assert_int_equal(says(5000 + (unsigned)i % 2, "key"), 0);
	}
	assert_int_equal(says(200, "key"), 0);
	assert_int_equal(says(100, "other"), 0);
	assert_int_equal(all_handed(), 5);
	assert_int_equal(says(100, "key"), 0); /* again, later */
	assert_int_equal(all_handed(), 6);
}

/* Of many sandboxes at the same time, and none of them at fault. */
static void test_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(says(1000 + i, "key"), 0);
	leaks_receive(&supervisor);
	assert_in_range(handed, 1, MANY - 1); /* others have their turn */
	assert_int_equal(all_handed(), MANY);
}

static void test_a_flood(void **state)
{
	unsigned n = 0;

	(void)state;
	while (n <= NP_LEAKS_WAITING && says(1000 + n, "key") == 0)
		n++;
	assert_int_equal(n, NP_LEAKS_WAITING);
	assert_int_equal(says(1000, "key"), 0);
	assert_int_equal(says(1, "key"), -EPROTO);
	assert_int_equal(all_handed(), NP_LEAKS_WAITING);
	assert_int_equal(says(1, "key"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_same_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_flood, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
