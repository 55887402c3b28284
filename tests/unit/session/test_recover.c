/* SPDX-License-Identifier: MIT */
/* A daemon starts and finds what its predecessor left, wherever that one stopped. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/recover.c"

static void restart(void)
{
	fake_stop();
	fake_start();
}

static void recover(void)
{
	int r = service_recover(fake.service, &fake.failure);

	if (r)
		fail_msg("recover: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
}

static void test_nothing_to_do(void **state)
{
	(void)state;
	recover();
	assert_log("");
}

static void test_known_sandboxes_come_back(void **state)
{
	const struct sandbox_info *sandbox;
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	strcpy(id, made("a/b")->id);
	fake_by_id(101)->populated = true;
	fake_add("/cg/agent");
	adopted("c/d", "/cg/agent");
	assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, NULL), 0);
	restart();
	recover();
	assert_non_null(strstr(fake.log, "raise 101 FULL 1\n"));
	assert_non_null(strstr(fake.log, "raise 102 NONE 2\n"));
	assert_non_null(strstr(fake.log, "attach 102\n"));
	assert_null(strstr(fake.log, "event"));
	assert_null(strstr(fake.log, "cut"));
	assert_null(strstr(fake.log, "commit"));
	sandbox = service_sandbox_by_id(fake.service, id);
	assert_non_null(sandbox);
	assert_int_equal(sandbox->rung.mode, NP_FULL);
	assert_int_equal(sandbox->cgroup.depth, 2);
	assert_true(sandbox->ever_populated);
	assert_int_equal(sandbox->created_us, fake.wall);
	sandbox = service_sandbox_by_cgroup(fake.service, 102);
	assert_true(sandbox->adopted);
	assert_int_equal(sandbox->rung.mode, NP_NONE);
	assert_int_equal(sandbox->rung.generation, 2);
	assert_int_equal(fake.service->care_count, 0);
	/* A second time changes nothing. */
	recover();
	assert_int_equal(service_sandboxes_count(fake.service), 2);
}

static void test_kernel_stricter_than_the_record(void **state)
{
	(void)state;
	made("a/b");
	fake.wall++; /* records come back in the order of their time */
	made("a/b");
	/* The raise reached one sandbox, then the daemon died. */
	fake_by_id(102)->rung.mode = NP_NONE;
	fake_by_id(102)->rung.generation = 2;
	restart();
	fake.cut = 1;
	recover();
	assert_log("commit\nevent reconciled\nraise 101 NONE 2\nraise 102 NONE 2\ncut 101 102\nevent "
		   "cut cut=1\n");
	assert_int_equal(stored("a/b").rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.generation, 2);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
}

static void test_crash_anywhere_in_an_escalation(void **state)
{
	int n;

	(void)state;
	/* What each crash leaves: nothing, one raise, both raises; never the record. */
	for (n = 1; n <= 3; n++) {
		fake_again();
		made("a/b");
		made("a/b");
		if (n >= 2)
			fake_by_id(101)->rung.mode = NP_NONE, fake_by_id(101)->rung.generation = 2;
		if (n >= 3)
			fake_by_id(102)->rung.mode = NP_NONE, fake_by_id(102)->rung.generation = 2;
		restart();
		recover();
		assert_int_equal(stored("a/b").rung.mode, n == 1 ? NP_FULL : NP_NONE);
		assert_int_equal(fake_by_id(101)->rung.mode, stored("a/b").rung.mode);
		assert_int_equal(fake_by_id(102)->rung.mode, stored("a/b").rung.mode);
	}
}

static void test_record_stricter_than_the_kernel(void **state)
{
	(void)state;
	made("a/b");
	fake_add("/cg/agent");
	adopted("c/d", "/cg/agent");
	fake_stop();
	/* The pins were removed: the kernel knows nothing. And once more it knows too little. */
	fake_by_id(101)->held = false;
	fake_by_id(102)->rung.mode = NP_FULL;
	fake_start();
	assert_int_equal(store_session_raise(fake.store, "c/d", RUNG(LEVEL_SECRET, NP_NONE, 5), NULL, NULL, NULL), 0);
	fake_reset(0);
	recover();
	assert_non_null(strstr(fake.log, "raise 101 FULL 1\ncut 101\n"));
	assert_non_null(strstr(fake.log, "raise 102 NONE 5\ncut 102\nattach 102\n"));
	assert_null(strstr(fake.log, "event"));
	assert_int_equal(fake_by_id(102)->rung.mode, NP_NONE);
}

/* The crash came when the disk had it, and the cut was still to be done: only the kernel's note tells. */
static void test_recorded_and_not_cut(void **state)
{
	(void)state;
	made("a/b");
	made("a/b");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_by_id(102)->due = true;
	restart();
	recover();
	assert_non_null(strstr(fake.log, "cut 102\n"));
	assert_false(fake_by_id(102)->due);
}

static void test_gone_cgroups_are_forgotten(void **state)
{
	(void)state;
	made("a/b");
	fake_add("/cg/agent");
	adopted("c/d", "/cg/agent");
	fake_by_id(101)->exists = fake_by_id(102)->exists = false;
	restart();
	recover();
	assert_non_null(strstr(fake.log, "event sandbox_removed\nretire 101\n"));
	assert_non_null(strstr(fake.log, "event sandbox_removed\nretire 102\n"));
	assert_null(strstr(fake.log, "raise"));
	assert_int_equal(stored_sandboxes(), 0);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	assert_false(fake_by_id(101)->held);
	assert_false(fake_by_id(102)->held);
	assert_int_equal(fake.service->sessions.count, 0);
}

static void test_another_cgroup_has_the_path(void **state)
{
	char path[256];

	(void)state;
	made("a/b");
	fake_add("/cg/agent");
	adopted("c/d", "/cg/agent");
	fake_by_id(101)->exists = fake_by_id(102)->exists = false;
	strcpy(path, fake_by_id(101)->path);
	fake_add(path)->populated = true;
	fake_add("/cg/agent")->populated = true;
	restart();
	recover();
	assert_false(fake_by_id(103)->exists); /* below the slice: removed */
	assert_true(fake_by_id(104)->exists);  /* somebody's */
	assert_false(fake_by_id(104)->held);
	assert_int_equal(stored_sandboxes(), 0);
}

/* After a reboot ids come again: a record of a cgroup that is gone has the id of one that lives. */
static void test_a_living_entry_is_not_retired_for_a_dead_one(void **state)
{
	struct sandbox_row row = { .id = "a.b.00000000", .cgroup_id = 101, .path = FAKE_SLICE "/a.b.00000000" };

	(void)state;
	made("a/b");
	row.session = session_find(fake.service, "a/b")->name;
	assert_int_equal(store_sandbox_put(fake.store, &row), 0); /* the older one: it comes first */
	restart();
	recover();
	assert_null(strstr(fake.log, "retire"));
	assert_true(fake_by_id(101)->held);
	assert_int_equal(service_sandboxes_count(fake.service), 1);
	assert_int_equal(stored_sandboxes(), 1);
}

static void test_unknown_to_the_record(void **state)
{
	struct fake_cgroup *sessions = fake_add("/cg/lives"), *gone = fake_add("/cg/gone");

	(void)state;
	sessions->held = gone->held = true;
	sessions->rung.mode = gone->rung.mode = NP_FULL;
	sessions->rung.generation = 3;
	sessions->populated = true;
	strcpy(sessions->session, "lost/one");
	gone->exists = false;
	recover();
	assert_int_equal(sessions->rung.mode, NP_NONE);
	assert_int_equal(sessions->rung.generation, 3);
	assert_true(sessions->held);
	assert_false(gone->held);
	/* Once, of the one that lives. */
	assert_non_null(strstr(fake.log, "event reconciled"));
	assert_null(strstr(strstr(fake.log, "event reconciled") + 1, "event reconciled"));
	/* A gate that cannot look ids up closes both and keeps them. */
	gone->held = true;
	sessions->rung.mode = NP_PROXIED;
	fake.service->config.gate.cgroup_by_id = NULL;
	fake.service->config.gate.slice_each = NULL;
	recover();
	assert_int_equal(sessions->rung.mode, NP_NONE);
	assert_true(gone->held);
	assert_int_equal(gone->rung.mode, NP_NONE);
}

static void test_unknown_that_cannot_be_closed(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/lives");

	(void)state;
	cg->held = cg->refuse_raise = true;
	cg->rung.mode = NP_FULL;
	assert_int_equal(service_recover(fake.service, &fake.failure), -ENOMEM);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
}

static void test_strays_of_the_slice(void **state)
{
	struct fake_cgroup *empty = fake_add(FAKE_SLICE "/a.b.1"), *busy = fake_add(FAKE_SLICE "/a.b.2");

	(void)state;
	busy->populated = true;
	made("a/b");
	restart();
	recover();
	assert_false(empty->exists); /* a make that was cut short */
	assert_true(busy->exists);   /* NONE, as it is not registered; not ours to judge */
	assert_true(fake_by_id(103)->exists);
}

static void test_ended_session(void **state)
{
	(void)state;
	made("a/b");
	fake_by_id(101)->busy = true;
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	restart(); /* before the sweep could finish it */
	recover();
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	fake_by_id(101)->busy = false;
	service_sweep(fake.service);
	assert_false(fake_by_id(101)->exists);
	assert_int_equal(stored_sandboxes(), 0);
	assert_true(stored("a/b").ended); /* and not revived by all this */
}

static void test_empty_made_sandboxes(void **state)
{
	(void)state;
	made("a/b");
	fake.wall += 60 * 1000000ULL;
	made("a/b");
	restart();
	recover();
	service_sweep(fake.service);
	assert_false(fake_by_id(101)->exists); /* it emptied while nobody looked */
	assert_true(fake_by_id(102)->exists);  /* whoever asked for it may be about to enter */
}

static void test_stricter_policy(void **state)
{
	(void)state;
	made("a/b");
	fake_stop();
	fake.modes.of[LEVEL_PUBLIC] = NP_PROXIED;
	fake_start();
	recover();
	assert_log("raise 101 PROXIED 2\ncut 101\ncommit\nevent raised cut=0\n");
	assert_int_equal(stored("a/b").rung.mode, NP_PROXIED);
	assert_int_equal(stored("a/b").rung.generation, 2);
}

static void test_unreadable_cgroup_is_taken_to_be_there(void **state)
{
	(void)state;
	made("a/b");
	fake_by_id(101)->populated = true;
	fake_by_id(101)->hide = true;
	restart();
	assert_int_equal(store_session_raise(fake.store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 5), NULL, NULL, NULL), 0);
	assert_int_equal(service_recover(fake.service, &fake.failure), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_true(fake_by_id(101)->exists);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
	assert_int_equal(service_sandboxes_count(fake.service), 1);
}

static void scene(void)
{
	fake_again();
	made("a/b"); /* 101: behind its session */
	made("a/b"); /* 102: as strict as it gets */
	fake_add("/cg/agent")->populated = true;
	adopted("c/d", "/cg/agent"); /* 103 */
	assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, NULL), 0);
	made("e/f"); /* 104: gone */
	fake_by_id(101)->populated = fake_by_id(102)->populated = true;
	fake_by_id(102)->rung.mode = NP_NONE;
	fake_by_id(102)->rung.generation = 2;
	fake_by_id(104)->exists = false;
	fake_add("/cg/lost")->held = true; /* 105: nobody's */
	fake_by_id(105)->rung.mode = NP_FULL;
	restart();
}

/* Whatever fails: nothing is looser than before, the service works, and a second start gets it
 * right. */
static void test_any_step_may_fail(void **state)
{
	int n;

	(void)state;
	for (n = 1;; n++) {
		scene();
		fake_reset(n);
		if (!service_recover(fake.service, &fake.failure) && !fake.failed)
			break;
		assert_true(fake_by_id(102)->rung.mode == NP_NONE);
		assert_true(fake_by_id(103)->rung.mode == NP_NONE && fake_by_id(103)->held &&
			    fake_by_id(103)->attached);
		fake_reset(0);
		made("g/h");
		restart();
		recover();
		assert_int_equal(fake_by_id(103)->rung.mode, NP_NONE);
		assert_int_equal(fake_by_id(105)->rung.mode, NP_NONE);
		assert_false(fake_by_id(104)->held);
		assert_true(fake_by_id(101)->rung.mode == NP_NONE || !fake_by_id(101)->exists);
		assert_int_equal(stored("a/b").rung.mode, NP_NONE);
		assert_int_equal(stored("c/d").rung.level, LEVEL_SECRET);
	}
	assert_true(n > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_nothing_to_do),
		fake_test(test_known_sandboxes_come_back),
		fake_test(test_kernel_stricter_than_the_record),
		fake_test(test_crash_anywhere_in_an_escalation),
		fake_test(test_record_stricter_than_the_kernel),
		fake_test(test_recorded_and_not_cut),
		fake_test(test_gone_cgroups_are_forgotten),
		fake_test(test_another_cgroup_has_the_path),
		fake_test(test_a_living_entry_is_not_retired_for_a_dead_one),
		fake_test(test_unknown_to_the_record),
		fake_test(test_unknown_that_cannot_be_closed),
		fake_test(test_strays_of_the_slice),
		fake_test(test_ended_session),
		fake_test(test_empty_made_sandboxes),
		fake_test(test_stricter_policy),
		fake_test(test_unreadable_cgroup_is_taken_to_be_there),
		fake_test(test_any_step_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
