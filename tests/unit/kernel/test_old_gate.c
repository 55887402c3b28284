/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/old_gate.c"

/* As ABI 4 had it: mode, generation, level. */
static bool read_abi4(__u32 mode, __u32 generation, __u32 level, struct np_rung *ret)
{
	__u32 value[216 / 4] = { mode, generation, level };

	return old_gate_find(4)->rung_read(value, ret);
}

static void test_every_rung_of_abi4(void **state)
{
	(void)state;
	for (__u32 mode = 1; mode <= 3; mode++) {
		for (__u32 level = 0; level < 8; level++) {
			struct np_rung rung;

			assert_true(read_abi4(mode, 7, level, &rung));
			assert_int_equal(rung.mode, mode);
			assert_int_equal(rung.level, level & 3);
			assert_int_equal(rung.flags, level & 4 ? NP_READ_ONLY : 0);
			assert_int_equal(rung.generation, 7);
			assert_true(np_rung_is_valid(&rung));
		}
	}
}

static void test_what_abi4_never_wrote_is_closed(void **state)
{
	static const __u32 wrong[][2] = { { 0, 0 }, { 4, 0 }, { 0x101, 0 }, { 1, 8 }, { 1, 0x80000000 }, { ~0u, ~0u } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct np_rung rung;

		assert_false(read_abi4(wrong[i][0], 9, wrong[i][1], &rung));
		assert_int_equal(rung.mode, NP_NONE);
		assert_int_equal(rung.level, NP_LEVELS - 1);
		assert_int_equal(rung.generation, 9);
		assert_true(np_rung_is_valid(&rung));
	}
}

static void test_rungs_of_abi5_are_as_they_are(void **state)
{
	__u64 value[232 / 8] = { 0 };
	struct np_rung rung = { .mode = NP_PROXIED, .level = 2, .flags = NP_READ_ONLY, .generation = 9 }, ret;

	(void)state;
	memcpy(value, &rung, sizeof(rung));
	assert_true(old_gate_find(5)->rung_read(value, &ret));
	assert_true(np_rung_equal(&rung, &ret));
	rung.mode = 4;
	memcpy(value, &rung, sizeof(rung));
	assert_false(old_gate_find(5)->rung_read(value, &ret));
	assert_int_equal(ret.mode, NP_NONE);
	assert_int_equal(ret.level, NP_LEVELS - 1);
	assert_int_equal(ret.generation, 9);
}

static void test_homes_of_abi6(void **state)
{
	__u64 value[72 / 8] = { [8] = 4711 }, id = 0;
	struct np_home home = { .bound = 1 };

	(void)state;
	assert_int_equal(old_gate_find(6)->home_size, sizeof(value));
	old_gate_find(6)->home_read(99, value, &id, &home);
	assert_int_equal(id, 4711);
	assert_int_equal(home.netns, 99);
	assert_int_equal(home.bound, 0);
	assert_null(old_gate_find(5)->homes);
}

static void test_homes_of_abi7(void **state)
{
	__u64 value[16 / 8] = { 99, 1 }, id = 0;
	struct np_home home = { 0 };

	(void)state;
	assert_int_equal(old_gate_find(7)->home_size, sizeof(value));
	old_gate_find(7)->home_read(4711, value, &id, &home);
	assert_int_equal(id, 4711);
	assert_int_equal(home.netns, 99);
	assert_int_equal(home.bound, 1);
}

static void test_only_older_versions_are_in_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; old_gate_at(i); i++)
		assert_true(old_gate_at(i)->version < NP_ABI_VERSION);
	assert_ptr_equal(old_gate_find(4), old_gate_at(0));
	assert_null(old_gate_find(3));
	assert_null(old_gate_find(NP_ABI_VERSION));
	/* The version before this one always can be taken over from. */
	assert_non_null(old_gate_find(NP_ABI_VERSION - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rung_of_abi4),
		cmocka_unit_test(test_what_abi4_never_wrote_is_closed),
		cmocka_unit_test(test_rungs_of_abi5_are_as_they_are),
		cmocka_unit_test(test_homes_of_abi6),
		cmocka_unit_test(test_homes_of_abi7),
		cmocka_unit_test(test_only_older_versions_are_in_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
