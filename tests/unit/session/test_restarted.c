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

static int join_error;

static int on_join(void *ctx, const struct gate_cgroup *cgroup, const char *path)
{
	(void)ctx, (void)cgroup, (void)path;
	return join_error;
}

/* Its processes can bring that about: they take all ports of their namespace, or as many namespaces as there may be. */
static void test_it_is_confined_whatever_becomes_of_its_network(void **state)
{
	struct fake_cgroup *cg;

	(void)state;
	join_error = 0;
	fake.service->config.inspectors.netns_join = on_join;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	contained("a/b", PATH);
	stop(PATH);
	join_error = -EADDRINUSE;
	cg = start(PATH);
	assert_true(cg->attached && cg->rung.mode == NP_NONE);
	assert_int_equal(fake.service->awaited_count, 1); /* it is not whole */
	assert_null(strstr(fake.log, "event container_restarted"));
	fake_reset(0);
	fake.later_ns += 2 * NP_NEWBORN_MS * 1000000ull;
	service_sweep(fake.service);
	assert_non_null(strstr(fake.log, "event container_outside"));
	assert_true(cg->attached);
	join_error = 0;
	fake.later_ns += 10 * NP_NEWBORN_MS * 1000000ull;
	service_sweep(fake.service);
	assert_true(TAILQ_EMPTY(&fake.service->awaited));
	assert_non_null(strstr(fake.log, "event container_restarted"));
}

static unsigned watched;
static bool placeless;

static bool on_way_watch(void *ctx, const char *path)
{
	(void)ctx;
	assert_string_equal(path, PATH);
	watched++;
	return placeless;
}

/* After a reboot the slice or directory of its engine comes later than the daemon: each step towards it is watched in its turn. */
static void test_it_is_told_of_where_there_is_no_place_yet(void **state)
{
	struct fake_cgroup *cg;

	(void)state;
	contained("a/b", PATH);
	stop(PATH);
	fake_stop();
	fake_start();
	fake.service->config.gate.way_watch = on_way_watch;
	watched = 0;
	placeless = true;
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(watched, 1);
	service_sandbox_changed(fake.service, 1); /* one on the way */
	assert_int_equal(watched, 2);
	placeless = false; /* the last of them */
	service_sandbox_changed(fake.service, 1);
	assert_int_equal(watched, 3);
	service_sandbox_changed(fake.service, 1); /* something else is made there */
	assert_int_equal(watched, 3);
	service_sweep(fake.service); /* unless that has gone meanwhile */
	assert_int_equal(watched, 4);
	cg = fake_add(PATH);
	cg->populated = true;
	service_sandbox_changed(fake.service, 1);
	assert_non_null(service_sandbox_by_cgroup(fake.service, cg->id));
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

static void await_many(const char *session, const char *id_start, int n)
{
	struct session_name name;
	const char *problem;

	assert_int_equal(session_name_parse(session, &name, &problem), 0);
	for (int i = 0; i < n; i++) {
		char id[48];

		snprintf(id, sizeof(id), "%s.%08x", id_start, i);
		assert_int_equal(awaited_add(fake.service, id, &name, PATH), 0);
	}
}

static void test_there_is_a_bound(void **state)
{
	(void)state;
	await_many("a/b", "a.b", NP_AWAITED_MAX + 5);
	assert_int_equal(fake.service->awaited_count, NP_AWAITED_MAX);
	assert_false(restarted_is_awaited(fake.service, "a.b.00000004"));
	assert_true(restarted_is_awaited(fake.service, "a.b.00000005"));
}

/* Else a container of another's, which was stopped for longer, would start outside. */
static void test_who_has_many_forgets_his_own(void **state)
{
	(void)state;
	await_many("other/one", "other.one", 2);
	await_many("a/quiet", "a.quiet", 3);
	await_many("a/b", "a.b", NP_AWAITED_MAX);
	assert_int_equal(fake.service->awaited_count, NP_AWAITED_MAX);
	assert_true(restarted_is_awaited(fake.service, "other.one.00000000"));
	assert_true(restarted_is_awaited(fake.service, "a.quiet.00000000"));
	assert_false(restarted_is_awaited(fake.service, "a.b.00000004"));
	assert_true(restarted_is_awaited(fake.service, "a.b.00000005"));
	/* By many sessions neither. */
	for (int i = 0; i < NP_AWAITED_MAX; i++) {
		char session[32], id[32];

		snprintf(session, sizeof(session), "a/s%d", i);
		snprintf(id, sizeof(id), "a.s%d", i);
		await_many(session, id, 1);
	}
	assert_int_equal(fake.service->awaited_count, NP_AWAITED_MAX);
	assert_true(restarted_is_awaited(fake.service, "other.one.00000000"));
	assert_true(restarted_is_awaited(fake.service, "other.one.00000001"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_it_is_a_sandbox_again),
		fake_test(test_what_is_no_container_is_not_awaited),
		fake_test(test_the_next_daemon_awaits_it),
		fake_test(test_it_is_confined_before_it_is_looked_at),
		fake_test(test_it_is_confined_whatever_becomes_of_its_network),
		fake_test(test_it_is_told_of_where_there_is_no_place_yet),
		fake_test(test_it_is_forgotten_with_its_session),
		fake_test(test_it_keeps_no_session_from_ending),
		fake_test(test_there_is_a_bound),
		fake_test(test_who_has_many_forgets_his_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
