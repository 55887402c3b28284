/* SPDX-License-Identifier: MIT */
#include "launch/identity.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void names_and_numbers(void **state)
{
	struct identity id;

	(void)state;
	assert_int_equal(identity_find("root", &id), 0);
	assert_int_equal(id.uid, 0);
	assert_string_equal(id.name, "root");
	assert_true(id.ngroups >= 1);
	assert_int_equal(identity_find("0", &id), 0);
	assert_string_equal(id.name, "root");
	assert_int_equal(identity_find("4242424:17", &id), 0);
	assert_int_equal(id.uid, 4242424);
	assert_int_equal(id.gid, 17);
	assert_int_equal(id.ngroups, 1);
	assert_int_equal(id.groups[0], 17);
	assert_string_equal(id.name, "");
}

static void wrong_ones(void **state)
{
	struct identity id = { .uid = 77 };

	(void)state;
	assert_int_equal(identity_find("no-such-user", &id), -ENOENT);
	assert_int_equal(identity_find("", &id), -ENOENT);
	assert_int_equal(identity_find("4242424", &id), -ENOENT); /* whose groups would it have? */
	assert_int_equal(identity_find("1x", &id), -EINVAL);
	assert_int_equal(identity_find("1:", &id), -EINVAL);
	assert_int_equal(identity_find("1:2:3", &id), -EINVAL);
	assert_int_equal(identity_find("1:-2", &id), -EINVAL);
	assert_int_equal(identity_find("4294967295:1", &id), -EINVAL); /* -1: "leave as it is" */
	assert_int_equal(identity_find("1:4294967295", &id), -EINVAL);
	assert_int_equal(identity_find("99999999999999999999:1", &id), -EINVAL);
	assert_int_equal(id.uid, 77);
}

static void root_is_somebody_else_outside(void **state)
{
	struct identity id = { .uid = 7, .gid = 8, .ngroups = 2, .groups = { 8, 9 }, .root = 2100000000 };

	(void)state;
	assert_false(identity_has_root(&id));
	assert_int_equal(identity_outside(&id), 7);
	id.groups[1] = 0;
	assert_true(identity_has_root(&id));
	id = (struct identity){ .gid = 8, .ngroups = 1, .groups = { 8 }, .root = 2100000000 };
	assert_true(identity_has_root(&id));
	assert_int_equal(identity_outside(&id), 2100000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers),
		cmocka_unit_test(wrong_ones),
		cmocka_unit_test(root_is_somebody_else_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
