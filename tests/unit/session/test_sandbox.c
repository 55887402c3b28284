/* SPDX-License-Identifier: MIT */
/* How sandboxes end: removed, emptied, gone. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/sandbox.c"

static unsigned finds;

static int find_counting(void *ctx, const char *path, struct gate_cgroup *ret)
{
	finds++;
	return fake_find(ctx, path, ret);
}

static void test_remove_made(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	fake_by_id(101)->populated = true;
	fake_reset(0);
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\ncommit\n");
	assert_nothing_left();
	assert_int_equal(service_sandbox_remove(fake.service, "a.b.00000000", "test", &fake.failure), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_SANDBOX);
}

static void test_remove_of_a_busy_one_goes_on_in_the_sweep(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	strcpy(id, sandbox->id);
	fake_by_id(101)->busy = true;
	assert_int_equal(try_remove(sandbox), 0);
	assert_null(service_sandbox_by_id(fake.service, id)); /* gone for the API */
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	assert_non_null(service_sandbox_by_cgroup(fake.service, 101)); /* but events are still his */
	assert_int_equal(service_sandbox_remove(fake.service, id, "test", &fake.failure), -ENOENT);
	/* Until it is gone it is tightened with the others. */
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("remove 101\n");
	assert_int_equal(stored_sandboxes(), 1);
	fake_by_id(101)->busy = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\ncommit\n");
	assert_nothing_left();
}

static void test_remove_may_fail_at_any_step(void **state)
{
	int n = 1;

	(void)state;
	for (;; n++) {
		const struct sandbox_info *sandbox;
		int r;

		fake_again();
		sandbox = made("a/b");
		fake_reset(n);
		r = try_remove(sandbox);
		if (!fake.failed)
			break;
		if (r) {
			assert_int_equal(fake.failure.reason, NP_R_FAILED);
			fake_reset(0);
			assert_int_equal(try_remove(sandbox), 0);
		}
		fake_reset(0);
		service_sweep(fake.service);
		assert_nothing_left();
	}
	assert_int_equal(n, 5); /* cgroup, orphans, kernel, record */
}

/* The kernel forgets before the inspectors do, and their last reports come when the removal is over. */
static void test_end_with_the_inspectors(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	fake_reset(0);
	fake.shows_inspectors = true;
	fake.ended = 1;
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\nforget 101\ncommit\nreport\n");
	assert_int_equal(fake.reports, 0);
	assert_nothing_left();
}

/* The inspectors know before the processes are killed, once; and that they are not, when it did not work. */
static void test_inspectors_know_before_the_kill(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	sandbox = made("a/b");
	fake_by_id(101)->populated = fake_by_id(101)->busy = true;
	fake.shows_inspectors = true;
	fake_reset(1);
	assert_int_equal(try_remove(sandbox), -EIO);
	assert_log("ending 101\nremove 101\n!not ending 101\n");
	fake_reset(0);
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("ending 101\nremove 101\n");
	fake_by_id(101)->busy = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\nforget 101\ncommit\n");
	assert_nothing_left();
}

/* What its programs handed to an inspector may arrive, as what they handed to the kernel. */
static void test_what_inspectors_have_not_delivered_is_waited_for(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	fake_by_id(101)->undelivered = true;
	fake_reset(0);
	fake.shows_inspectors = true;
	assert_int_equal(try_remove(sandbox), 0);
	service_sweep(fake.service);
	assert_log("remove 101\nevent sandbox_removed\n");
	fake_by_id(101)->undelivered = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("retire 101\nforget 101\ncommit\n");
	assert_nothing_left();
}

static void test_remove_adopted(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");
	const struct sandbox_info *sandbox;

	(void)state;
	cg->populated = true;
	sandbox = adopted("a/b", "/cg/agent");
	fake_reset(0);
	assert_int_equal(try_remove(sandbox), -EBUSY);
	assert_int_equal(fake.failure.reason, NP_R_SANDBOX_BUSY);
	assert_log("");
	assert_ptr_equal(service_sandbox_by_id(fake.service, sandbox->id), sandbox);
	cg->populated = false;
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("event sandbox_removed\ndetach 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* The kernel keeps the entry of a cgroup that lives: it must not come back at a lower mode. */
static void test_removed_adopted_keeps_its_mode(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	fake.hold_retire = true;
	fake_add("/cg/agent");
	sandbox = adopted("a/b", "/cg/agent");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(try_remove(sandbox), 0);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	assert_true(fake_by_id(101)->held);
	/* Another session may have it: as strict as it was. */
	assert_int_equal(adopted("c/d", "/cg/agent")->rung.mode, NP_NONE);
	assert_int_equal(stored("c/d").rung.mode, NP_NONE);
	assert_int_equal(stored_sandboxes(), 1);
	assert_int_equal(try_remove(service_sandbox_by_cgroup(fake.service, 101)), 0);
	fake_by_id(101)->exists = false;
	service_sweep(fake.service);
	assert_nothing_left();
}

/* Its cgroup lives on, so the kernel keeps its entry. No raise reaches it any more: the inspectors end what they have of it then, once. */
static void test_removed_adopted_has_nothing_at_the_inspectors(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");
	const struct sandbox_info *sandbox = adopted("a/b", "/cg/agent");

	(void)state;
	fake.hold_retire = true;
	cg->undelivered = true;
	fake_reset(0);
	fake.shows_inspectors = true;
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("event sandbox_removed\n");
	assert_true(cg->known);
	cg->populated = cg->let_in = true;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("bury 101\ndetach 101\nretire 101\nleave 101\n");
	assert_false(cg->known);
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("retire 101\n");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_null(strstr(fake.log, "raise 101"));
	cg->exists = cg->populated = fake.shows_inspectors = false;
	service_sweep(fake.service);
	assert_nothing_left();
}

/* What its programs left unsent may arrive, in the gate's hands. */
static void test_orphans_may_finish(void **state)
{
	struct sandbox_info kept;
	unsigned events;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fake_cgroup *cg = i ? fake_add("/cg/agent") : NULL;
		const struct sandbox_info *sandbox = i ? adopted("a/b", "/cg/agent") : made("a/b");

		kept = *sandbox;
		cg = fake_by_id(kept.cgroup.id);
		cg->orphans = true;
		fake_reset(0);
		assert_int_equal(try_remove(sandbox), 0);
		assert_null(service_sandbox_by_id(fake.service, kept.id)); /* gone for the API */
		events = strstr(fake.log, "event sandbox_removed") != NULL;
		assert_int_equal(events, 1);
		fake_reset(0);
		service_sweep(fake.service);
		assert_log("");
		assert_true(cg->held && cg->attached == (i == 1));
		assert_int_equal(stored_sandboxes(), 1);
		cg->orphans = false;
		service_sweep(fake.service);
		assert_null(strstr(fake.log, "bury"));
		assert_nothing_left();
		cg->exists = false;
	}
}

static void test_orphans_have_a_bound(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	fake_by_id(101)->orphans = true;
	assert_int_equal(try_remove(sandbox), 0);
	fake.later_ns = (NP_LINGER_MS - 1000) * 1000000ull;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("");
	fake.later_ns = NP_LINGER_MS * 1000000ull;
	service_sweep(fake.service);
	assert_log("bury 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* A session that is raised while one of its sandboxes is over: what that left is raised and cut with the rest. */
static void test_orphans_are_raised(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");
	const struct sandbox_info *sandbox = adopted("a/b", "/cg/agent");

	(void)state;
	cg->orphans = true;
	assert_int_equal(try_remove(sandbox), 0);
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_non_null(strstr(fake.log, "raise 101 NONE"));
	assert_non_null(strstr(fake.log, "\ncut 101\ncommit"));
	assert_true(cg->attached);
	fake_reset(0);
	service_sweep(fake.service); /* whatever is left of them then */
	assert_log("bury 101\ndetach 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

static void test_orphans_that_cannot_be_cut_are_not_let_go(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");
	const struct sandbox_info *sandbox = adopted("a/b", "/cg/agent");

	(void)state;
	cg->orphans = true;
	assert_int_equal(try_remove(sandbox), 0);
	fake.later_ns = NP_LINGER_MS * 1000000ull;
	fake_reset(2); /* the cut fails */
	service_sweep(fake.service);
	assert_log("bury 101\n!");
	assert_true(cg->attached && cg->held);
	fake_reset(1); /* nobody can say whether there are any */
	service_sweep(fake.service);
	assert_log("!bury 101\ndetach 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* Who is let into the cgroup of an adopted one that was removed does not wait for what was left there. */
static void test_orphans_give_way(void **state)
{
	struct fake_cgroup *cg = fake_add("/cg/agent");
	const struct sandbox_info *sandbox = adopted("a/b", "/cg/agent");

	(void)state;
	cg->orphans = true;
	assert_int_equal(try_remove(sandbox), 0);
	cg->populated = cg->let_in = true;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("bury 101\ndetach 101\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* One look for all that linger. */
static void test_orphans_of_many(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct sandbox_info *sandbox = made("a/b");

		fake_by_id(sandbox->cgroup.id)->orphans = true;
		assert_int_equal(try_remove(sandbox), 0);
	}
	fake_by_id(102)->orphans = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("retire 102\ncommit\n");
	assert_int_equal(fake.steps, 3); /* the look, the kernel, the record */
	fake_by_id(101)->orphans = fake_by_id(103)->orphans = false;
	service_sweep(fake.service);
	assert_nothing_left();
}

static void test_remove_of_a_cgroup_that_is_gone(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	fake_add("/cg/agent");
	sandbox = adopted("a/b", "/cg/agent");
	fake_by_id(101)->exists = false;
	fake_reset(0);
	assert_int_equal(try_remove(sandbox), 0);
	assert_log("event sandbox_removed\nretire 101\ndetach 101\ncommit\n");
	assert_nothing_left();
}

static void test_made_sandbox_goes_when_it_empties(void **state)
{
	(void)state;
	made("a/b");
	fake_reset(0);
	service_sweep(fake.service);
	assert_log(""); /* nobody has entered it yet */
	fake_by_id(101)->populated = true;
	service_sandbox_changed(fake.service, 101);
	assert_log("");
	fake_by_id(101)->populated = false;
	service_sandbox_changed(fake.service, 999); /* unknown: fine */
	service_sandbox_changed(fake.service, 101);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* Two changes of its cgroup.events that come as one. */
static void test_made_sandbox_was_used_before_anybody_looked(void **state)
{
	(void)state;
	made("a/b");
	fake_reset(0);
	service_sandbox_changed(fake.service, 101);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\ncommit\n");
	assert_nothing_left();
}

/* A clock that is set makes nothing old: whoever asked for it still comes. */
static void test_made_sandbox_while_the_clock_is_set(void **state)
{
	static const int64_t by[] = { -2000000, 86400000000 };
	const struct sandbox_info *sandbox;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		fake_again();
		fake.wall += 1000000000;
		assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, true, "test",
							&(struct session_row){ 0 }, NULL),
				 0);
		sandbox = made("a/temporary-1");
		fake.wall += (uint64_t)by[i];
		fake.set_us += (uint64_t)by[i];
		service_sweep(fake.service);
		assert_int_equal(service_sandboxes_count(fake.service), 1);
		fake.wall += NP_RUN_START_S * 1000000ull + 1; /* the control: nobody came */
		service_sweep(fake.service);
		assert_int_equal(service_sandboxes_count(fake.service), 0);
		/* Over a restart, one that was made in what is the future now begins again. */
		sandbox = made("a/b");
		fake_stop();
		fake.wall -= 1000000;
		fake.set_us -= 1000000;
		fake_start();
		assert_int_equal(service_recover(fake.service, &fake.failure), 0);
		service_sweep(fake.service);
		assert_int_equal(service_sandboxes_count(fake.service), 1);
		fake.wall += 5000001;
		service_sweep(fake.service);
		assert_int_equal(service_sandboxes_count(fake.service), 0);
	}
	(void)sandbox;
}

static void test_sweep_sees_it_too(void **state)
{
	(void)state;
	made("a/b");
	fake_by_id(101)->populated = true;
	service_sweep(fake.service);
	fake_by_id(101)->populated = false;
	service_sweep(fake.service);
	assert_nothing_left();
}

static void test_adopted_stays_until_its_cgroup_is_gone(void **state)
{
	(void)state;
	fake_add("/cg/agent");
	adopted("a/b", "/cg/agent");
	fake_reset(0);
	service_sweep(fake.service);
	service_sandbox_changed(fake.service, 101);
	assert_log("");
	fake_by_id(101)->exists = false;
	fake_add("/cg/agent"); /* the same path, another cgroup: not ours */
	service_sandbox_changed(fake.service, 101);
	assert_log("event sandbox_removed\nretire 101\ndetach 101\ncommit\n");
	assert_nothing_left();
}

static void test_errors_prove_nothing(void **state)
{
	(void)state;
	fake_add("/cg/agent");
	adopted("a/b", "/cg/agent");
	fake_by_id(101)->hide = true;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("");
	assert_int_equal(service_sandboxes_count(fake.service), 1);
}

static void test_sweep_is_bounded_and_reaches_all(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		made("a/b");
	fake.service->config.gate.cgroup_find = find_counting;
	for (size_t i = 0; i < fake.count; i++)
		fake.cgroups[i].populated = true;
	for (int i = 0; i < 4; i++) {
		finds = 0;
		service_sweep(fake.service);
		assert_true(finds <= SWEEP_BATCH);
	}
	for (size_t i = 0; i < fake.count; i++)
		fake.cgroups[i].populated = false;
	for (int i = 0; i < 4; i++) {
		fake.log_len = 0;
		service_sweep(fake.service);
	}
	assert_nothing_left();
}

/* The sweep remembers where it stopped; what it remembers may go before it comes back. */
static void test_sweep_goes_on_when_its_place_is_gone(void **state)
{
	(void)state;
	for (int i = 0; i < SWEEP_BATCH + 2; i++)
		made("a/b");
	service_sweep(fake.service);
	assert_non_null(fake.service->cursor);
	assert_int_equal(fake.service->cursor->pub.cgroup.id, 101 + SWEEP_BATCH);
	assert_int_equal(try_remove(&fake.service->cursor->pub), 0);
	assert_int_equal(fake.service->cursor->pub.cgroup.id, 101 + SWEEP_BATCH + 1);
	assert_int_equal(try_remove(&fake.service->cursor->pub), 0);
	assert_null(fake.service->cursor);
	service_sweep(fake.service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_remove_made),
		fake_test(test_remove_of_a_busy_one_goes_on_in_the_sweep),
		fake_test(test_remove_may_fail_at_any_step),
		fake_test(test_end_with_the_inspectors),
		fake_test(test_inspectors_know_before_the_kill),
		fake_test(test_what_inspectors_have_not_delivered_is_waited_for),
		fake_test(test_remove_adopted),
		fake_test(test_removed_adopted_keeps_its_mode),
		fake_test(test_removed_adopted_has_nothing_at_the_inspectors),
		fake_test(test_orphans_may_finish),
		fake_test(test_orphans_have_a_bound),
		fake_test(test_orphans_are_raised),
		fake_test(test_orphans_that_cannot_be_cut_are_not_let_go),
		fake_test(test_orphans_give_way),
		fake_test(test_orphans_of_many),
		fake_test(test_remove_of_a_cgroup_that_is_gone),
		fake_test(test_made_sandbox_goes_when_it_empties),
		fake_test(test_made_sandbox_was_used_before_anybody_looked),
		fake_test(test_made_sandbox_while_the_clock_is_set),
		fake_test(test_sweep_sees_it_too),
		fake_test(test_adopted_stays_until_its_cgroup_is_gone),
		fake_test(test_errors_prove_nothing),
		fake_test(test_sweep_is_bounded_and_reaches_all),
		fake_test(test_sweep_goes_on_when_its_place_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
