/* SPDX-License-Identifier: MIT */
/* The value of a credential was about to leave: whose session is raised, also when the sandbox is gone by then. */
#include "fake.h"
#include "policy/policy.h"

#include "session/leak_raise.c"

#define POLICY                                                                      \
	"version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\ncredentials:\n"  \
	"  told: {source: {env: A}, for: a.example, on_leak: raise CONFIDENTIAL}\n" \
	"  kept: {source: {env: B}, for: a.example}\nrules:\n  - allow: a.example\n"

static struct policy *loaded;

static int setup(void **state)
{
	_problems_ struct problems problems = { 0 };

	if (fake_setup(state) || policy_load_text("p.yaml", POLICY, strlen(POLICY), &loaded, &problems))
		return -1;
	fake.policy = loaded;
	fake.modes = loaded->modes;
	fake_stop();
	fake_start();
	return 0;
}

static int teardown(void **state)
{
	policy_free(loaded);
	loaded = NULL;
	return fake_teardown(state);
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
	service_leak(fake.service, other->cgroup.id, "a/b", "told"); /* the sandbox says it better */
	assert_int_equal(stored("c/d").rung.level, LEVEL_CONFIDENTIAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_its_session_is_raised, setup, teardown),
		cmocka_unit_test_setup_teardown(test_also_when_the_sandbox_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
