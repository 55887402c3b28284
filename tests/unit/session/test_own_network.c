/* SPDX-License-Identifier: MIT */
/* Who gets a network namespace of its own. */
#include "fake.h"

#include "session/own_network.c"

static struct {
	uint64_t of; /* cgroup that has one */
	bool steered, way_out;
	int error;
	const char *path;
} own;

static int on_make(void *ctx, uint64_t cgroup_id, bool steered, bool way_out)
{
	(void)ctx;
	own.of = own.error ? 0 : cgroup_id;
	own.steered = steered;
	own.way_out = way_out;
	return own.error;
}

static int on_find(void *ctx, uint64_t cgroup_id, struct sandbox_netns *ret)
{
	(void)ctx;
	strcpy(ret->path, "/proc/1/fd/9");
	ret->wired = own.way_out;
	return cgroup_id == own.of ? 0 : -ENOENT;
}

static const struct sandbox_info *sandbox_at(enum level level)
{
	const struct sandbox_info *sandbox = NULL;
	struct session_row row;

	memset(&own, 0, sizeof(own));
	fake.service->config.inspectors.netns_make = on_make;
	fake.service->config.inspectors.netns_find = on_find;
	assert_int_equal(service_session_create(fake.service, "alice/demo", level, false, "test", &row, &fake.failure),
			 0);
	assert_int_equal(service_sandbox_make(fake.service, "alice/demo", "test", &sandbox, &fake.failure), 0);
	return sandbox;
}

static void networks_set(unsigned modes, unsigned way_out)
{
	service_own_network_set(fake.service, &(struct own_networks){ modes, way_out });
}

static int ask(const struct sandbox_info *sandbox, bool fresh)
{
	struct sandbox_netns netns = { 0 };

	return service_sandbox_netns(fake.service, sandbox, fresh, &netns, &fake.failure);
}

static void test_modes_that_have_one(void **state)
{
	static const enum level levels[] = { LEVEL_PUBLIC, LEVEL_CONFIDENTIAL, LEVEL_SECRET };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		const struct sandbox_info *sandbox = sandbox_at(levels[i]);
		enum np_mode mode = sandbox->rung.mode;

		networks_set(0, 0);
		assert_int_equal(ask(sandbox, true), 0);
		assert_false(sandbox->own_network);
		networks_set(1u << NP_PROXIED | 1u << NP_NONE, 0);
		assert_int_equal(ask(sandbox, false), 0); /* somebody is in there already */
		assert_false(sandbox->own_network);
		assert_int_equal(ask(sandbox, true), 0);
		assert_int_equal(sandbox->own_network, mode != NP_FULL);
		assert_int_equal(own.steered, mode == NP_PROXIED);
		own.error = -EIO; /* it has one, and keeps it */
		assert_int_equal(ask(sandbox, true), 0);
	}
}

static void test_a_way_out(void **state)
{
	const struct sandbox_info *sandbox = sandbox_at(LEVEL_PUBLIC);

	(void)state;
	networks_set(1u << NP_FULL | 1u << NP_NONE, 1u << NP_FULL);
	own.error = -ENONET;
	assert_int_equal(ask(sandbox, true), -ENONET);
	assert_non_null(strstr(fake.failure.text, "net.ipv4.ip_forward"));
	own.error = 0;
	assert_int_equal(ask(sandbox, true), 0);
	assert_true(own.way_out && sandbox->own_network && sandbox->way_out);
	sandbox = sandbox_at(LEVEL_SECRET);
	assert_int_equal(ask(sandbox, true), 0);
	assert_true(sandbox->own_network && !own.way_out && !sandbox->way_out);
}

static void test_where_none_can_be_made(void **state)
{
	const struct sandbox_info *sandbox = sandbox_at(LEVEL_SECRET);

	(void)state;
	networks_set(1u << NP_NONE, 0);
	own.error = -ENOSPC;
	assert_int_equal(ask(sandbox, true), -ENOSPC);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	own.error = -EPERM;
	assert_int_equal(ask(sandbox, true), -EPERM);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_false(sandbox->own_network);
}

static int on_join(void *ctx, const struct gate_cgroup *cgroup, const char *path)
{
	(void)ctx;
	own.path = path;
	own.of = own.error ? 0 : cgroup->id;
	return own.error;
}

static const struct sandbox_info *adopt(const char *session, int error)
{
	const struct sandbox_info *sandbox = NULL;
	unsigned cut;

	memset(&own, 0, sizeof(own));
	own.error = error;
	fake.service->config.inspectors.netns_join = on_join;
	fake.service->config.inspectors.netns_find = on_find;
	if (!fake_by_path("/cg/agent"))
		fake_add("/cg/agent");
	return service_sandbox_adopt(fake.service, session, &(struct adoption){ .cgroup = "/cg/agent" }, "test",
				     &sandbox, &cut, &fake.failure)
		       ? NULL
		       : sandbox;
}

static void test_a_container_has_its_own(void **state)
{
	(void)state;
	assert_null(adopt("alice/demo", -EIO));
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_null(sandbox_by_cgroup(fake.service, fake_by_path("/cg/agent")->id)); /* nothing happened */
	assert_false(fake_by_path("/cg/agent")->held);
	assert_true(adopt("alice/demo", 0)->own_network);
	assert_int_equal(fake.service->own_networks, 1);
}

/* Nobody is in it yet: its network is told. */
static void test_a_pod_is_told_its_own(void **state)
{
	const struct adoption adoption = { .cgroup = "/cg/agent", .netns = "/run/netns/pod" };
	const struct sandbox_info *sandbox;

	(void)state;
	assert_null(adopt("alice/demo", -EXDEV));
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_int_equal(
		service_sandbox_adopt(fake.service, "alice/demo", &adoption, "test", &sandbox, NULL, &fake.failure),
		-EXDEV);
	assert_int_equal(fake.failure.reason, NP_R_FOREIGN_NETNS);
	assert_string_equal(own.path, "/run/netns/pod");
	own.error = 0;
	assert_int_equal(
		service_sandbox_adopt(fake.service, "alice/demo", &adoption, "test", &sandbox, NULL, &fake.failure), 0);
	assert_true(sandbox->own_network);
}

static void test_a_user_has_a_share(void **state)
{
	const struct sandbox_info *sandbox = sandbox_at(LEVEL_SECRET);

	(void)state;
	networks_set(1u << NP_NONE, 0);
	assert_int_equal(ask(sandbox, true), 0);
	fake.service->own_networks = NP_NAMESPACES_PER_USER; /* of all users: this one has one of them */
	assert_non_null(adopt("alice/other", 0));
	assert_int_equal(share_check(fake.service, &sandbox->session, NP_NAMESPACES_PER_USER - 2, &fake.failure), 0);
	assert_int_equal(share_check(fake.service, &sandbox->session, NP_NAMESPACES_PER_USER - 1, &fake.failure),
			 -ENOSPC);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
}

/* Whoever made it was killed before a process was there: its network and the descriptors are not kept for ever. A shared one
 * holds nothing, and stays for whoever places processes in it. */
static void test_one_that_nobody_enters(void **state)
{
	(void)state;
	for (int has = 0; has < 2; has++) {
		const struct sandbox_info *sandbox = sandbox_at(LEVEL_SECRET);
		char id[sizeof(sandbox->id)];

		memcpy(id, sandbox->id, sizeof(id));
		networks_set(has ? 1u << NP_NONE : 0, 0);
		assert_int_equal(ask(sandbox, true), 0);
		fake.wall += NP_RUN_START_S * 1000000ull;
		service_sweep(fake.service);
		assert_non_null(sandbox_by_id(fake.service, id));
		fake.wall += 1;
		service_sweep(fake.service);
		assert_int_equal(!sandbox_by_id(fake.service, id), has);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes_that_have_one, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_a_way_out, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_where_none_can_be_made, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_a_container_has_its_own, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_a_pod_is_told_its_own, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_a_user_has_a_share, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_one_that_nobody_enters, fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
