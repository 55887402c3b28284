/* SPDX-License-Identifier: MIT */
#include "session/restarted.c"

#include "fake.h"

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PATH "/cg/system.slice/docker-" ID ".scope"

/* An engine stops it: its cgroup is removed. */
static void stop(const char *path)
{
	struct fake_cgroup *cg = fake_by_path(path);

	assert_non_null(cg);
	cg->exists = cg->populated = false;
	service_sweep(fake.service);
}

static struct fake_cgroup *start(const char *path)
{
	struct fake_cgroup *cg = fake_add(path);

	cg->populated = true;
	service_sweep(fake.service);
	return cg;
}

static void contained(const char *session, const char *path)
{
	fake_add(path)->populated = true;
	adopted(session, path);
}

static void test_it_is_a_sandbox_again(void **state)
{
	const struct sandbox_info *sandbox;
	struct fake_cgroup *cg;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	contained("a/b", PATH);
	stop(PATH);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	for (int i = 0; i < 3; i++)
		service_sweep(fake.service);
	fake_reset(0);
	cg = start(PATH);
	sandbox = service_sandbox_by_cgroup(fake.service, cg->id);
	assert_non_null(sandbox);
	assert_true(sandbox->adopted && cg->attached);
	assert_int_equal(cg->rung.mode, NP_NONE);
	assert_non_null(strstr(fake.log, "event container_restarted"));
	/* once, and not for ever */
	assert_true(TAILQ_EMPTY(&fake.service->awaited));
}

static void test_what_is_no_container_is_not_awaited(void **state)
{
	(void)state;
	contained("a/b", "/cg/agent");
	stop("/cg/agent");
	assert_null(service_sandbox_by_cgroup(fake.service, start("/cg/agent")->id));
}

static void test_the_next_daemon_awaits_it(void **state)
{
	struct fake_cgroup *cg;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	contained("a/b", PATH);
	stop(PATH);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(fake.service->awaited_count, 1);
	cg = start(PATH);
	assert_non_null(service_sandbox_by_cgroup(fake.service, cg->id));
	assert_int_equal(cg->rung.mode, NP_PROXIED);
	/* Both of it happened while there was no daemon. */
	fake_stop();
	cg->exists = cg->populated = false;
	cg = fake_add(PATH);
	cg->populated = true;
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	service_sweep(fake.service);
	assert_non_null(service_sandbox_by_cgroup(fake.service, cg->id));
}

static void test_it_is_confined_before_it_is_looked_at(void **state)
{
	struct fake_cgroup *cg;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	contained("a/b", PATH);
	stop(PATH);
	cg = fake_add(PATH);
	cg->populated = cg->brings = true;
	service_sweep(fake.service);
	assert_true(cg->attached && cg->rung.mode == NP_NONE);
	assert_int_equal(fake.service->awaited_count, 1);
	fake_reset(0);
	fake.later_ns += 2 * NP_NEWBORN_MS * 1000000ull;
	service_sweep(fake.service);
	assert_non_null(strstr(fake.log, "event container_outside"));
	fake_reset(0);
	fake.later_ns += NP_NEWBORN_MS * 1000000ull;
	service_sweep(fake.service);
	assert_null(strstr(fake.log, "event container_outside")); /* told once */
	cg->brings = false;
	fake.later_ns += 10 * NP_NEWBORN_MS * 1000000ull;
	service_sweep(fake.service);
	assert_true(TAILQ_EMPTY(&fake.service->awaited));
	assert_true(service_sandbox_by_cgroup(fake.service, cg->id)->adopted);
}

static void test_it_is_forgotten_with_its_session(void **state)
{

	(void)state;
	contained("a/b", PATH);
	stop(PATH);
	assert_int_equal(fake.service->awaited_count, 1);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(fake.service->awaited_count, 0);
	assert_null(service_sandbox_by_cgroup(fake.service, start(PATH)->id));
	assert_nothing_left();
}

static void test_it_keeps_no_session_from_ending(void **state)
{
	struct store_names names = { .max = STORE_BATCH };

	(void)state;
	contained("a/b", PATH);
	assert_int_equal(store_due(fake.store, DUE_IDLE, UINT64_MAX / 4, STORE_BATCH, &names), 0);
	assert_int_equal(names.count, 0);
	stop(PATH);
	assert_int_equal(store_due(fake.store, DUE_IDLE, UINT64_MAX / 4, STORE_BATCH, &names), 0);
	assert_int_equal(names.count, 1);
}

static void test_there_is_a_bound(void **state)
{
	struct session_name name;
	const char *problem;

	(void)state;
	assert_int_equal(session_name_parse("a/b", &name, &problem), 0);
	for (int i = 0; i < NP_AWAITED_MAX + 5; i++) {
		char id[32];

		snprintf(id, sizeof(id), "a.b.%08x", i);
		assert_int_equal(awaited_add(fake.service, id, &name, PATH), 0);
	}
	assert_int_equal(fake.service->awaited_count, NP_AWAITED_MAX);
	assert_false(restarted_is_awaited(fake.service, "a.b.00000004"));
	assert_true(restarted_is_awaited(fake.service, "a.b.00000005"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_it_is_a_sandbox_again),
		fake_test(test_what_is_no_container_is_not_awaited),
		fake_test(test_the_next_daemon_awaits_it),
		fake_test(test_it_is_confined_before_it_is_looked_at),
		fake_test(test_it_is_forgotten_with_its_session),
		fake_test(test_it_keeps_no_session_from_ending),
		fake_test(test_there_is_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
