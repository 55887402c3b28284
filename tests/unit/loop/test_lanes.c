/* SPDX-License-Identifier: MIT */
#include "loop/lanes.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LANES 4
#define TASKS 64

static struct lanes lanes;
static struct lane lane[LANES];
static struct loop_task tasks[LANES][TASKS];
static unsigned added[LANES];

static int setup(void **state)
{
	(void)state;
	lanes_init(&lanes);
	memset(lane, 0, sizeof(lane));
	memset(tasks, 0, sizeof(tasks));
	memset(added, 0, sizeof(added));
	return 0;
}

static void add(unsigned to, unsigned count)
{
	while (count--) {
		struct loop_task *task = &tasks[to][added[to]++ % TASKS];

		task->data = &lane[to];
		lanes_add(&lanes, &lane[to], task);
	}
}

/* Whose turn it is, and what it takes; -1: nobody's. */
static int turn(uint64_t ns)
{
	struct loop_task *task = lanes_next(&lanes);

	if (!task)
		return -1;
	assert_null(task->waits_in);
	lanes_charge(&lanes, ns);
	return (int)((struct lane *)task->data - lane);
}

static void assert_turns(const char *expected, uint64_t ns)
{
	char got[256] = "";

	for (size_t i = 0; expected[i]; i++) {
		int t = turn(ns);

		got[i] = t < 0 ? '-' : (char)('0' + t);
	}
	assert_string_equal(got, expected);
}

static void test_order_in_a_lane(void **state)
{
	(void)state;
	assert_int_equal(turn(1), -1);
	add(0, 3);
	lanes_remove(&lanes, &tasks[0][1]);
	assert_int_equal(lanes.waiting, 2);
	assert_ptr_equal(lanes_next(&lanes), &tasks[0][0]);
	assert_ptr_equal(lanes_next(&lanes), &tasks[0][2]);
	assert_null(lanes_next(&lanes));
}

/* Whatever the others have waiting: a lane that comes is next, and then takes turns with them. */
static void test_who_comes_is_next(void **state)
{
	(void)state;
	add(0, 20);
	add(1, 20);
	assert_turns("0101", LANE_TURN_NS);
	add(2, 2);
	assert_turns("2", LANE_TURN_NS);
	assert_turns("0210101", LANE_TURN_NS);
}

/* One that always has a little is not fresh each time: it would leave nothing to the others. */
static void test_little_by_little(void **state)
{
	unsigned others = 0;

	(void)state;
	add(0, 40);
	for (int i = 0; i < 40; i++) {
		add(1, 1);
		while (turn(LANE_TURN_NS) == 0)
			others++;
		if (others > 30)
			return;
	}
	fail_msg("only %u of 40 turns were the other's", others);
}

/* Turns are time, not tasks: one whose tasks take ten times as long gets a tenth of them. */
static void test_time_is_shared(void **state)
{
	uint64_t spent[2] = { 0 };

	(void)state;
	add(0, 60);
	add(1, 60);
	for (int i = 0; i < 66; i++) {
		struct loop_task *task = lanes_next(&lanes);
		unsigned who = task->data == &lane[1];
		uint64_t ns = who ? 10 * LANE_TURN_NS : LANE_TURN_NS;

		lanes_charge(&lanes, ns);
		spent[who] += ns;
	}
	assert_true(spent[0] < spent[1] + 11 * LANE_TURN_NS && spent[1] < spent[0] + 11 * LANE_TURN_NS);
}

/* Small ones share a turn: lanes do not change with each. */
static void test_small_ones(void **state)
{
	(void)state;
	add(0, 8);
	add(1, 8);
	assert_turns("0000111100001111-", LANE_TURN_NS / 4);
}

/* A machine that stood still is not the debt of whoever was at it. */
static void test_debt_is_bounded(void **state)
{
	(void)state;
	add(0, 2);
	add(1, TASKS);
	assert_int_equal(turn(1000000000000), 0);
	for (int i = 0; i < CHARGE_MAX_NS / LANE_TURN_NS + 1; i++) {
		if (turn(LANE_TURN_NS) == 0)
			return;
		add(1, 1);
	}
	fail_msg("it never came back");
}

/* A lap is over when what waited at its begin is done, or was taken back, however much came since. */
static void test_laps(void **state)
{
	(void)state;
	assert_true(lanes_lap(&lanes));
	assert_true(lanes_lap(&lanes));
	add(0, 2);
	add(1, 1);
	assert_true(lanes_lap(&lanes));
	assert_false(lanes_lap(&lanes));
	assert_turns("0", LANE_TURN_NS);
	add(0, 5);
	assert_false(lanes_lap(&lanes));
	lanes_remove(&lanes, &tasks[0][1]);
	assert_false(lanes_lap(&lanes));
	assert_turns("1", LANE_TURN_NS);
	assert_true(lanes_lap(&lanes));
	assert_false(lanes_lap(&lanes));
	lanes_remove(&lanes, &tasks[0][6]);
	assert_turns("0000-", LANE_TURN_NS);
	assert_true(lanes_lap(&lanes));
}

static void test_leave(void **state)
{
	(void)state;
	add(0, 2);
	add(1, 2);
	assert_ptr_equal(lanes_next(&lanes), &tasks[0][0]);
	lanes_remove(&lanes, &tasks[0][1]);
	lanes_leave(&lanes, &lane[0]); /* its owner is freed by its own task */
	memset(&lane[0], 0xff, sizeof(lane[0]));
	lanes_charge(&lanes, LANE_TURN_NS);
	assert_turns("11-", LANE_TURN_NS);
	lanes_leave(&lanes, &lane[1]);
	assert_true(TAILQ_EMPTY(&lanes.fresh) && TAILQ_EMPTY(&lanes.busy));
	lanes_leave(&lanes, &lane[2]); /* never had any */
}

int main(void)
{
	const struct CMUnitTest tests_[] = {
		cmocka_unit_test_setup(test_order_in_a_lane, setup),
		cmocka_unit_test_setup(test_who_comes_is_next, setup),
		cmocka_unit_test_setup(test_little_by_little, setup),
		cmocka_unit_test_setup(test_time_is_shared, setup),
		cmocka_unit_test_setup(test_small_ones, setup),
		cmocka_unit_test_setup(test_debt_is_bounded, setup),
		cmocka_unit_test_setup(test_laps, setup),
		cmocka_unit_test_setup(test_leave, setup),
	};

	return cmocka_run_group_tests(tests_, NULL, NULL);
}
