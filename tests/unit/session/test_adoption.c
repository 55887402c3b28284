/* SPDX-License-Identifier: MIT */
/* Cgroups of others become sandboxes. */
#include "fake.h"

#include "session/adoption.c"

static int try_adopt(const char *session, const char *path)
{
	const struct sandbox_info *sandbox;

	fake.failure = (struct failure){ 0 };
	return service_sandbox_adopt(fake.service, session, &(struct adoption){ .cgroup = path }, "test", &sandbox,
				     NULL, &fake.failure);
}

static void test_adopt(void **state)
{
	const struct sandbox_info *sandbox;
	unsigned cut = 99;

	(void)state;
	fake_add("/cg/agent")->populated = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(0);
	fake.cut = 4;
	assert_int_equal(service_sandbox_adopt(fake.service, "a/b", &(struct adoption){ .cgroup = "/cg/agent" }, "test",
					       &sandbox, &cut, NULL),
			 0);
	assert_log("inspect\nraise 101 NONE 2\nattach 101\ninspect\ncommit\ncut 101\nevent sandbox_adopted "
		   "cut=4\n");
	assert_int_equal(cut, 4);
	assert_true(sandbox->adopted);
	assert_int_equal(sandbox->rung.mode, NP_NONE);
	assert_string_equal(sandbox->cgroup.path, "/cg/agent");
	assert_int_equal(stored_sandboxes(), 1);
}

static void test_adopt_again(void **state)
{
	const struct sandbox_info *sandbox, *again = NULL;
	const struct adoption adoption = { .cgroup = "/cg/agent" };
	unsigned cut = 99;

	(void)state;
	fake_add("/cg/agent");
	sandbox = adopted("a/b", "/cg/agent");
	fake_reset(0);
	assert_int_equal(service_sandbox_adopt(fake.service, "a/b", &adoption, "test", &again, &cut, NULL), 0);
	assert_ptr_equal(again, sandbox);
	assert_int_equal(cut, 0);
	assert_log("");
}

static void test_adopt_passes_the_gates_reason_on(void **state)
{
	(void)state;
	assert_int_equal(try_adopt("nobody", "/cg/x"), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_log("");
	assert_int_equal(try_adopt("a/b", "/cg/none"), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_HELD_SOCKETS);
	assert_string_equal(fake.failure.text, "pid 1 holds fd 3");
	assert_log("inspect\n"); /* and no session was made for it */
}

static void test_adopt_refuses_overlaps(void **state)
{
	(void)state;
	fake_add("/cg/agents/one");
	fake_add("/cg/agents/one/inner");
	fake_add("/cg/agents");
	fake_add("/cg/agents/one-more");
	adopted("a/b", "/cg/agents/one");
	assert_int_equal(try_adopt("c/d", "/cg/agents/one"), -EEXIST);
	assert_int_equal(fake.failure.reason, NP_R_BAD_CGROUP);
	assert_non_null(strstr(fake.failure.text, "already a sandbox of a/b"));
	assert_int_equal(try_adopt("c/d", "/cg/agents/one/inner"), -EEXIST);
	assert_int_equal(fake.failure.reason, NP_R_BAD_CGROUP);
	assert_non_null(strstr(fake.failure.text, "is below"));
	assert_int_equal(try_adopt("c/d", "/cg/agents"), -EEXIST);
	assert_non_null(strstr(fake.failure.text, "contains"));
	adopted("c/d", "/cg/agents/one-more"); /* the same first letters, and no part of it */
	assert_int_equal(fake_by_id(102)->held, false);
	assert_int_equal(fake_by_id(103)->held, false);
}

/* With processes inside: whatever was confined stays confined, and the same call finishes it. */
static void test_adopt_may_fail_at_any_step(void **state)
{
	int n = 1;

	(void)state;
	for (;; n++) {
		struct fake_cgroup *cg;
		int r;

		fake_again();
		cg = fake_add("/cg/agent");
		cg->populated = true;
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
		fake_reset(n);
		r = try_adopt("a/b", "/cg/agent");
		if (!fake.failed)
			break;
		assert_true(r < 0);
		assert_null(strstr(fake.log, "retire"));
		assert_null(strstr(fake.log, "detach"));
		if (cg->held)
			assert_int_equal(cg->rung.mode, NP_NONE);
		/* Not for somebody else meanwhile. */
		if (cg->held)
			assert_int_equal(try_adopt("c/d", "/cg/agent"), -EEXIST);
		fake_reset(0);
		assert_int_equal(try_adopt("a/b", "/cg/agent"), 0);
		assert_non_null(strstr(fake.log, "event sandbox_adopted"));
		assert_non_null(strstr(fake.log, "cut 101"));
		assert_true(cg->attached);
		assert_int_equal(stored_sandboxes(), 1);
		assert_int_equal(service_sandboxes_count(fake.service), 1);
	}
	assert_int_equal(n, 7); /* inspect, raise, attach, inspect, record, cut */
}

/* What turned up between the first look and the gate: refused, and the gate stays on. */
static void test_adopt_looks_again_behind_the_gate(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");

	(void)state;
	cg->populated = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(4);
	assert_int_equal(try_adopt("a/b", "/cg/agent"), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_HELD_SOCKETS);
	assert_non_null(strstr(fake.failure.text, "pid 1 holds fd 3; the cgroup stays confined"));
	assert_log("inspect\nraise 101 NONE 2\nattach 101\ninspect\n!");
	assert_true(cg->attached && cg->rung.mode == NP_NONE);
	assert_int_equal(stored_sandboxes(), 0);
}

static void test_adopt_of_an_empty_cgroup_is_undone(void **state)
{
	(void)state;
	fake_add("/cg/agent");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(3); /* attach */
	assert_int_equal(try_adopt("a/b", "/cg/agent"), -ENOSPC);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_log("inspect\nraise 101 NONE 2\nattach 101\n!detach 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

static void test_adopt_of_what_the_kernel_knows_as_stricter(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");

	(void)state;
	cg->held = true;
	cg->rung.mode = NP_NONE;
	cg->rung.generation = 9;
	made("a/b");
	fake_reset(0);
	assert_int_equal(adopted("a/b", "/cg/agent")->rung.mode, NP_NONE);
	/* On record like any other raise, and with what is true of it. */
	assert_non_null(strstr(fake.log, "event raised\n"));
	assert_string_equal(fake.raised, "test: the kernel held a cgroup of it tighter than its record");
	assert_int_equal(stored("a/b").rung.mode, NP_NONE); /* its session has one mode: the stricter */
	assert_int_equal(fake_by_id(102)->rung.mode, NP_NONE);
	assert_int_equal(fake_by_id(102)->rung.generation, 9);
}

static void test_a_raise_by_adoption_that_cannot_be_recorded(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");

	(void)state;
	cg->populated = cg->held = true;
	cg->rung = (struct np_rung){ .level = LEVEL_SECRET, .mode = NP_NONE, .generation = 9 };
	made("a/b");
	fake.disk_full = true;
	fake_reset(0);
	assert_true(try_adopt("a/b", "/cg/agent") < 0);
	assert_non_null(strstr(fake.log, "event not_recorded"));
	assert_null(strstr(fake.log, "event raised"));
	fake.disk_full = false;
	fake.wall += 5000000;
	fake_reset(0);
	assert_int_equal(try_adopt("a/b", "/cg/agent"), 0);
	assert_non_null(strstr(fake.log, "event raised"));
	assert_non_null(strstr(fake.raised, "daemon: in force since 1970-01-01T00:00:01"));
}

static char handed_to[NP_SANDBOX_ID_MAX + 1];

static void note_handover(void *data, uint64_t cgroup_id)
{
	const struct sandbox_info *sandbox = service_sandbox_by_cgroup(fake.service, cgroup_id);

	(void)data;
	snprintf(handed_to, sizeof(handed_to), "%s", sandbox ? sandbox->id : "");
}

/* Removed, with something left, and populated again: what it left ends before its cgroup is another sandbox, whether it lingers or is
 * released. */
static void test_adopt_of_what_was_anothers(void **state)
{
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	for (int i = 0; i < 4; i++) {
		const bool released = i & 1, same = i & 2;
		const char *expected = released ? same ? "inspect\nbury 101\ncommit\nraise 101 FULL 1\n"
						       : "inspect\nhand 101\ncommit\nraise 101 FULL 1\n"
				       : same	? "inspect\nleave 101\nbury 101\ncommit\nraise 101 FULL 1\n"
						: "inspect\nleave 101\nhand 101\ncommit\nraise 101 FULL 1\n";
		const struct sandbox_info *sandbox;
		struct fake_cgroup *cg;

		fake_again();
		cg = fake_add("/cg/agent");
		assert_int_equal(escalate("a/b", LEVEL_PUBLIC, NULL, NULL), 0);
		assert_int_equal(escalate("c/d", LEVEL_PUBLIC, NULL, NULL), 0);
		fake.hold_retire = true;
		sandbox = adopted("a/b", "/cg/agent");
		strcpy(id, sandbox->id);
		cg->orphans = true;
		assert_int_equal(try_remove(sandbox), 0);
		cg->populated = cg->let_in = true;
		if (released)
			service_sweep(fake.service);
		fake.service->config.before_handover = note_handover;
		fake.shows_inspectors = true;
		fake_reset(0);
		assert_int_equal(try_adopt(same ? "a/b" : "c/d", "/cg/agent"), 0);
		fake.log[strlen(expected)] = '\0';
		assert_log(expected);
		assert_string_equal(handed_to, id); /* who it was is still known then */
		assert_false(cg->orphans);
		assert_int_equal(service_sandboxes_count(fake.service), 1);
		fake.shows_inspectors = false;
	}
}

/* It may still be a raise's to cut: then its cgroup is nobody else's. */
static void test_adopt_of_what_cannot_be_cut_is_refused(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");

	(void)state;
	assert_int_equal(escalate("c/d", LEVEL_PUBLIC, NULL, NULL), 0);
	cg->orphans = true;
	assert_int_equal(try_remove(adopted("a/b", "/cg/agent")), 0);
	cg->populated = cg->let_in = true;
	fake_reset(2); /* inspect, hand */
	assert_int_equal(try_adopt("c/d", "/cg/agent"), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_log("inspect\nhand 101\n!");
	assert_true(cg->orphans && cg->attached);
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_non_null(strstr(fake.log, "raise 101 NONE"));
	assert_non_null(strstr(fake.log, "cut 101"));
	assert_int_equal(adopted("c/d", "/cg/agent")->rung.mode, NP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_adopt),
		fake_test(test_adopt_again),
		fake_test(test_adopt_passes_the_gates_reason_on),
		fake_test(test_adopt_refuses_overlaps),
		fake_test(test_adopt_may_fail_at_any_step),
		fake_test(test_adopt_looks_again_behind_the_gate),
		fake_test(test_adopt_of_an_empty_cgroup_is_undone),
		fake_test(test_adopt_of_what_the_kernel_knows_as_stricter),
		fake_test(test_a_raise_by_adoption_that_cannot_be_recorded),
		fake_test(test_adopt_of_what_was_anothers),
		fake_test(test_adopt_of_what_cannot_be_cut_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
