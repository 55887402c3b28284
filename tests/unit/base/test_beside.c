/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <unistd.h>

#include "base/beside.c"

struct task {
	pthread_t thread;
	int gate[2]; /* it ends when a byte comes */
	bool begun;
	unsigned done;
};

static void run(void *data)
{
	struct task *task = data;
	char byte;

	__atomic_store_n(&task->begun, true, __ATOMIC_RELEASE);
	assert_int_equal(read(task->gate[0], &byte, 1), 1);
	task->thread = pthread_self();
	task->done++;
}

static void test_beside_and_waited_for(void **state)
{
	struct beside *beside = beside_new();
	struct task task = { 0 };

	(void)state;
	assert_int_equal(pipe(task.gate), 0);
	beside_wait(beside); /* for nothing */
	for (unsigned i = 1; i <= 100; i++) {
		task.begun = false;
		beside_begin(beside, run, &task);
		for (int ms = 0; i % 2 && ms < 60000 && !__atomic_load_n(&task.begun, __ATOMIC_ACQUIRE); ms++)
			usleep(1000);
		/* We are here although it is not done: only this lets it end. */
		assert_int_equal(write(task.gate[1], "x", 1), 1);
		beside_wait(beside);
		assert_int_equal(task.done, i);
		assert_true(i % 2 == 0 || !pthread_equal(task.thread, pthread_self()));
	}
	beside_free(beside);
	close(task.gate[0]);
	close(task.gate[1]);
}

static void test_without_a_thread(void **state)
{
	struct task task = { 0 };

	(void)state;
	assert_int_equal(pipe(task.gate), 0);
	assert_int_equal(write(task.gate[1], "x", 1), 1);
	beside_begin(NULL, run, &task);
	assert_int_equal(task.done, 1);
	beside_wait(NULL);
	beside_free(NULL);
	beside_free(beside_new()); /* one that never had a task */
	close(task.gate[0]);
	close(task.gate[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_and_waited_for),
		cmocka_unit_test(test_without_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
