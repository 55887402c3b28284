/* SPDX-License-Identifier: MIT */
/* The value of a credential was about to leave: whose session is raised, also when the sandbox is gone by then. */
#include "fake_with_policy.h"

#include "session/leak_raise.c"

#define POLICY                                                                      \
	"version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\ncredentials:\n"  \
	"  told: {source: {env: A}, for: a.example, on_leak: raise CONFIDENTIAL}\n" \
	"  kept: {source: {env: B}, for: a.example}\nrules:\n  - allow: a.example\n"

static int setup(void **state)
{
	return fake_policy_setup(state, POLICY);
}

static void test_its_session_is_raised(void **state)
{
	const struct sandbox_info *box = made("a/b");
	const uint64_t id = box->cgroup.id;

	(void)state;
	service_leak(fake.service, id, "a/b", "kept");
	service_leak(fake.service, id, "a/b", "nobody");
	assert_int_equal(stored("a/b").rung.level, LEVEL_PUBLIC);
	service_leak(fake.service, id, "", "told");
	assert_int_equal(stored("a/b").rung.level, LEVEL_CONFIDENTIAL);
}

static void test_also_when_the_sandbox_is_gone(void **state)
{
	const struct sandbox_info *box = made("a/b"), *other = made("c/d");
	const uint64_t id = box->cgroup.id;

	(void)state;
	assert_int_equal(try_remove(box), 0);
	service_leak(fake.service, id, "", "told"); /* nobody knows whose it was */
	service_leak(fake.service, id, "no/body", "told");
	service_leak(fake.service, id, "a/b", "kept");
	assert_int_equal(stored("a/b").rung.level, LEVEL_PUBLIC);
	service_leak(fake.service, id, "a/b", "told");
	assert_int_equal(stored("a/b").rung.level, LEVEL_CONFIDENTIAL);
	assert_int_equal(stored("c/d").rung.level, LEVEL_PUBLIC);
	service_leak(fake.service, other->cgroup.id, "", "told"); /* the sandbox says it */
	assert_int_equal(stored("c/d").rung.level, LEVEL_CONFIDENTIAL);
}

/* It was the first session's when the inspector told of it: the second, which has the cgroup now, did nothing. */
static void test_not_the_one_that_has_the_cgroup_now(void **state)
{
	const struct sandbox_info *box = made("c/d");

	(void)state;
	made("a/b");
	service_leak(fake.service, box->cgroup.id, "a/b", "told");
	assert_int_equal(stored("a/b").rung.level, LEVEL_CONFIDENTIAL);
	assert_int_equal(stored("c/d").rung.level, LEVEL_PUBLIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_its_session_is_raised, setup, fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_also_when_the_sandbox_is_gone, setup, fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_not_the_one_that_has_the_cgroup_now, setup,
						fake_policy_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
