/* SPDX-License-Identifier: MIT */
/* How sandboxes are made, and what is looked at in them. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/sandboxes.c"

static void test_make(void **state)
{
	const struct sandbox_info *one, *two;

	(void)state;
	one = made("alice.x/demo");
	assert_log("commit\nevent session_created\nmake\ncommit\nraise 101 FULL 1\nevent "
		   "sandbox_made\n");
	assert_int_equal(strspn(one->id + strlen("alice.x.demo."), "0123456789abcdef"), 8);
	assert_memory_equal(one->id, "alice.x.demo.", strlen("alice.x.demo."));
	assert_int_equal(strlen(one->id), strlen("alice.x.demo.") + 8);
	assert_string_equal(one->session.text, "alice.x/demo");
	assert_string_equal(fake_by_id(101)->session, "alice.x/demo");
	assert_int_equal(one->rung.mode, NP_FULL);
	assert_int_equal(one->rung.generation, 1);
	assert_int_equal(one->created_us, fake.wall);
	assert_false(one->adopted);
	two = made("alice.x/demo");
	assert_string_not_equal(one->id, two->id);
	assert_ptr_equal(service_sandbox_by_id(fake.service, one->id), one);
	assert_ptr_equal(service_sandbox_by_cgroup(fake.service, 102), two);
	assert_null(service_sandbox_by_id(fake.service, "alice.x.demo"));
	assert_null(service_sandbox_by_cgroup(fake.service, 103));
	assert_int_equal(stored_sandboxes(), 2);
	assert_int_equal(service_sandboxes_count(fake.service), 2);
}

static void test_make_starts_where_its_session_stands(void **state)
{
	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(0);
	assert_int_equal(made("a/b")->rung.mode, NP_NONE);
	assert_log("make\ncommit\nraise 101 NONE 2\nevent sandbox_made\n");
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	assert_int_equal(made("a/b")->rung.mode, NP_NONE); /* revived */
	assert_false(stored("a/b").ended);
}

static void test_make_may_fail_at_any_step(void **state)
{
	const struct sandbox_info *sandbox = NULL;
	int n = 1;

	(void)state;
	for (;; n++) {
		int r;

		fake_again();
		fake_reset(n);
		r = service_sandbox_make(fake.service, "a/b", "test", &sandbox, &fake.failure);
		if (!fake.failed)
			break;
		assert_true(r < 0);
		assert_null(sandbox);
		assert_true(fake.failure.reason == NP_R_NOT_APPLIED || fake.failure.reason == NP_R_NOT_RECORDED);
		assert_null(strstr(fake.log, "event sandbox_"));
		service_sweep(fake.service);
		assert_nothing_left();
		for (size_t i = 0; i < fake.count; i++)
			assert_false(fake.cgroups[i].exists);
		made("a/b");
	}
	assert_int_equal(n, 5); /* session, cgroup, record, raise */
}

static void test_make_undone_later_when_it_cannot_be_now(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	made("a/b");
	try_remove(service_sandbox_by_cgroup(fake.service, 101));
	/* The commit fails, and so does the removal of the cgroup. */
	fake.disk_full = true;
	fake_reset(3);
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "test", &sandbox, &fake.failure), -EIO);
	assert_log("make\ncommit\nremove 102\n!");
	assert_true(fake_by_id(102)->exists);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	fake.disk_full = false;
	service_sweep(fake.service);
	assert_false(fake_by_id(102)->exists);
	assert_nothing_left();
}

static void test_bad_names_and_bounds(void **state)
{
	const struct sandbox_info *sandbox;
	struct session *session;

	(void)state;
	assert_int_equal(service_sandbox_make(fake.service, "nobody", "test", &sandbox, &fake.failure), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_log("");
	made("a/b");
	session = session_find(fake.service, "a/b");
	session->sandbox_count = NP_SANDBOXES_PER_SESSION;
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "test", &sandbox, &fake.failure), -E2BIG);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	session->sandbox_count = 1;
	fake.service->sandboxes_by_id.count += NP_SANDBOXES_MAX;
	assert_int_equal(service_sandbox_make(fake.service, "c/d", "test", &sandbox, &fake.failure), -E2BIG);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	fake.service->sandboxes_by_id.count -= NP_SANDBOXES_MAX;
	made("a/b");
}

/* What others put into a made sandbox is looked at when it is tightened; nobody looks at what `netpawl run` starts. */
static void test_placed_processes_are_looked_at(void **state)
{
	struct fake_cgroup *cg;
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	for (int i = 0; i < 4; i++) {
		const bool placed = i & 1, brings = i & 2;
		const struct sandbox_info *sandbox;

		fake_again();
		sandbox = made("a/b");
		memcpy(id, sandbox->id, sizeof(id));
		cg = fake_by_id(sandbox->cgroup.id);
		cg->populated = true;
		cg->brings = brings;
		if (placed)
			service_sandbox_place(fake.service, sandbox);
		fake_reset(0);
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
		assert_int_equal(strstr(fake.log, "look\n") != NULL, placed);
		assert_int_equal(strstr(fake.log, "event placed_sockets") != NULL, placed && brings);
		assert_int_equal(service_sandbox_by_id(fake.service, id) == NULL, placed && brings);
		assert_int_equal(cg->rung.mode, NP_NONE); /* tightened before the look */
	}
}

static void test_placed_processes_have_time_to_close(void **state)
{
	(void)state;
	for (int secret = 0; secret < 2; secret++) {
		struct fake_cgroup *cg;
		struct sandbox *sandbox;
		char id[NP_SANDBOX_ID_MAX + 1];

		fake_again();
		if (secret)
			assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
		sandbox = (struct sandbox *)made("a/b");
		memcpy(id, sandbox->pub.id, sizeof(id));
		cg = fake_by_id(sandbox->pub.cgroup.id);
		cg->populated = cg->brings = true;
		service_sandbox_place(fake.service, &sandbox->pub);
		fake_reset(0);
		service_sandbox_changed(fake.service, cg->id);
		service_sweep(fake.service);
		assert_null(strstr(fake.log, "look"));
		sandbox->entered_ns -= NP_PLACED_MS * 1000000ull;
		service_sweep(fake.service);
		assert_non_null(strstr(fake.log, "look\nevent placed_sockets\n"));
		assert_int_equal(service_sandbox_by_id(fake.service, id) == NULL, secret);
		fake_reset(0);
		service_sweep(fake.service);
		assert_null(strstr(fake.log, "look")); /* once */
	}
}

/* What its runtime holds while it starts another process there goes by itself. */
static void test_a_born_one_is_looked_at_again(void **state)
{
	(void)state;
	for (int stays = 0; stays < 2; stays++) {
		struct fake_cgroup *cg;
		struct sandbox *sandbox;
		char id[NP_SANDBOX_ID_MAX + 1];

		fake_again();
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
		sandbox = (struct sandbox *)made("a/b");
		memcpy(id, sandbox->pub.id, sizeof(id));
		sandbox->pub.born = true;
		cg = fake_by_id(sandbox->pub.cgroup.id);
		cg->populated = cg->brings = true;
		service_sandbox_place(fake.service, &sandbox->pub);
		service_sandbox_changed(fake.service, cg->id);
		service_sweep(fake.service);
		sandbox->entered_ns -= NP_PLACED_MS * 1000000ull;
		fake_reset(0);
		service_sweep(fake.service);
		assert_non_null(strstr(fake.log, "look\n"));
		assert_null(strstr(fake.log, "placed_sockets"));
		cg->brings = stays;
		sandbox->entered_ns -= NP_PLACED_BORN_MS * 1000000ull;
		fake_reset(0);
		service_sweep(fake.service);
		assert_non_null(strstr(fake.log, "look\n"));
		assert_int_equal(strstr(fake.log, "event placed_sockets\n") != NULL, stays);
		assert_int_equal(service_sandbox_by_id(fake.service, id) == NULL, stays);
	}
}

static int collect(void *data, const struct sandbox_info *sandbox)
{
	uint64_t *ids = data;

	while (*ids)
		ids++;
	*ids = sandbox->cgroup.id;
	return sandbox->cgroup.id == 104 ? -ECANCELED : 0;
}

static void test_lists(void **state)
{
	uint64_t all[8] = { 0 }, own[8] = { 0 }, none[8] = { 0 };

	(void)state;
	made("a/b");
	made("c/d");
	made("a/b");
	made("c/d");
	made("c/d");
	fake_by_id(102)->busy = true;
	assert_int_equal(try_remove(service_sandbox_by_cgroup(fake.service, 102)), 0);
	assert_int_equal(service_sandboxes_each(fake.service, NULL, collect, all), -ECANCELED);
	assert_memory_equal(all, ((uint64_t[]){ 101, 103, 104, 0 }), 32);
	assert_int_equal(service_sandboxes_each(fake.service, "a/b", collect, own), 0);
	assert_memory_equal(own, ((uint64_t[]){ 101, 103, 0 }), 24);
	assert_int_equal(service_sandboxes_each(fake.service, "no/one", collect, none), 0);
	assert_int_equal(none[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_make),
		fake_test(test_make_starts_where_its_session_stands),
		fake_test(test_make_may_fail_at_any_step),
		fake_test(test_make_undone_later_when_it_cannot_be_now),
		fake_test(test_bad_names_and_bounds),
		fake_test(test_placed_processes_are_looked_at),
		fake_test(test_placed_processes_have_time_to_close),
		fake_test(test_a_born_one_is_looked_at_again),
		fake_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
