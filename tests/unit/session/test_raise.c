/* SPDX-License-Identifier: MIT */
/* The ratchet: its order, failures at every step, retries. */
#include "fake.h"
#include "vocab/limits.h"

static struct {
	unsigned count;
	int says;
	bool after_cut, before_event;
} disk_wait;

/* The wait for the disk, and what had happened by then. */
static int disk_waited(struct store *store)
{
	int r = store_raise_wait(store);

	disk_wait.count++;
	disk_wait.after_cut = strstr(fake.log, "cut 101");
	disk_wait.before_event = !strstr(fake.log, "event raised");
	return r ? r : disk_wait.says;
}
#define store_raise_wait disk_waited

#include "session/raise.c"
#include "session/raise_log.h"

static void test_order_is_kernel_cut_record_acknowledge(void **state)
{
	struct escalation done;

	(void)state;
	made("alice/demo");
	made("alice/demo");
	made("bob/other");
	fake_reset(0);
	fake.cut = 3;
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, "customers.csv", &done), 0);
	assert_log("raise 101 NONE 2\nraise 102 NONE 2\n"
		   "cut 101 102\n"
		   "commit\n"
		   "event raised cut=3 dataset=customers.csv\nevent cut cut=3\n");
	assert_string_equal(done.session.text, "alice/demo");
	assert_int_equal(done.rung.level, LEVEL_SECRET);
	assert_int_equal(done.rung.mode, NP_NONE);
	assert_int_equal(done.rung.generation, 2);
	assert_true(done.raised);
	assert_int_equal(done.cut, 3);
	assert_true(done.applied_us > 0);
	assert_int_equal(stored("alice/demo").rung.level, LEVEL_SECRET);
	assert_int_equal(stored("alice/demo").rung.mode, NP_NONE);
	assert_int_equal(stored("alice/demo").datasets, 1);
	assert_int_equal(fake_by_id(103)->rung.mode, NP_FULL); /* bob's */
}

/* Both enforcement points, with what arrives from the second one in the middle of the verb. */
static void test_order_is_kernel_inspectors_cut_record_reports(void **state)
{
	struct escalation done;

	(void)state;
	made("alice/demo");
	made("alice/demo");
	fake_reset(0);
	fake.shows_inspectors = true;
	fake.cut = 3;
	fake.ended = 2;
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, NULL, &done), 0);
	assert_log("raise 101 NONE 2\nraise 102 NONE 2\n"
		   "tighten 101 NONE 2\ntighten 102 NONE 2\n"
		   "sync begins\nsync\ncut 101 102\n"
		   "commit\n"
		   "event raised cut=5\nevent cut cut=5\n"
		   "report\nreport\n");
	assert_int_equal(done.cut, 5);
	/* Nothing is behind, so nobody is spoken to, and nothing was left over. */
	fake_reset(0);
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, NULL, &done), 0);
	assert_log("event stands\n");
	assert_int_equal(fake.reports, 0);
}

/* How many raises of this session the log in front of the store has. */
static int log_count(void *data, const struct raise_read *read)
{
	unsigned *count = data;

	if (read->entry.rung.level == LEVEL_SECRET || read->entry.rung.level == LEVEL_CONFIDENTIAL)
		++*count;
	return 0;
}

static unsigned logged(void)
{
	unsigned count = 0;

	assert_int_equal(raise_log_each(fake.store->raises, log_count, &count), 0);
	return count;
}

/* The disk writes while it cuts, where the kernel has noted what is to be cut; the acknowledgement waits for both, whichever fails. */
static void test_the_disk_writes_while_it_cuts(void **state)
{
	struct escalation done;
	struct session_row row;

	(void)state;
	made("alice/demo");
	made("alice/demo");
	store_tend(fake.store);
	fake_reset(0);
	fake.notes_cuts = true;
	fake.cut = 3;
	assert_int_equal(escalate("alice/demo", LEVEL_CONFIDENTIAL, "c.csv", &done), 0);
	assert_log("raise 101 PROXIED 2\nraise 102 PROXIED 2\n"
		   "due 101\ndue 102\n"
		   "cut 101 102\n"
		   "event raised cut=3 dataset=c.csv\nevent cut cut=3\n");
	assert_int_equal(done.cut, 3);
	assert_int_equal(logged(), 1);
	assert_int_equal(stored("alice/demo").rung.level, LEVEL_CONFIDENTIAL);
	assert_non_null(strstr(fake.log, "cut cut=3\ncommit\n")); /* the database follows */
	assert_false(fake_by_id(101)->due);
	/* Tightened and on record, but not cut: no acknowledgement. */
	fake_reset(3); /* two raises, then the cut */
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, NULL, NULL), -EIO);
	assert_true(fake.failed);
	assert_int_equal(stored("alice/demo").rung.level, LEVEL_SECRET);
	assert_int_equal(logged(), 2);
	fake_reset(0);
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, NULL, NULL), 0);
	assert_non_null(strstr(fake.log, "cut 101 102\n"));
	assert_int_equal(logged(), 2); /* there is nothing to record any more */
	/* The database cannot follow: nobody gets to see what was before, and nobody starts from there. */
	made("bob/other");
	fake_reset(0);
	fake.disk_full = true;
	assert_int_equal(escalate("bob/other", LEVEL_SECRET, NULL, NULL), 0);
	assert_false(fake_by_id(103)->due);
	assert_int_not_equal(store_session_get(fake.store, "bob/other", &row), 0);
	assert_int_not_equal(escalate("alice/new", LEVEL_SECRET, NULL, NULL), 0);
	fake.disk_full = false;
	assert_int_equal(stored("bob/other").rung.level, LEVEL_SECRET);
}

/* Nobody is answered, and nothing is said, before the disk has said that the raise is there. What the log's disk refuses the database has to have on
 * its own. */
static void test_an_acknowledgement_waits_for_the_disk(void **state)
{
	(void)state;
	made("a/b");
	store_tend(fake.store);
	fake_reset(0);
	fake.notes_cuts = true;
	memset(&disk_wait, 0, sizeof(disk_wait));
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, "c.csv", NULL), 0);
	assert_int_equal(disk_wait.count, 1);
	assert_true(disk_wait.after_cut && disk_wait.before_event);
	assert_false(strstr(fake.log, "commit"));
	store_tend(fake.store);
	fake_reset(0);
	disk_wait.says = -EIO;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s.csv", NULL), 0);
	assert_int_equal(disk_wait.count, 2);
	assert_non_null(strstr(fake.log, "commit\nevent raised"));
	fake_again();
	made("a/b");
	store_tend(fake.store);
	fake_reset(0);
	fake.notes_cuts = true;
	fake.disk_full = true; /* nor can the database */
	assert_int_not_equal(escalate("a/b", LEVEL_SECRET, "s.csv", NULL), 0);
	assert_int_equal(disk_wait.count, 3);
	disk_wait.says = 0;
}

/* Without the kernel's note a crash between the record and the cut would leave connections open: then it cuts first, and the disk
 * is not asked before. */
static void test_what_is_not_noted_is_cut_first(void **state)
{
	(void)state;
	made("alice/demo");
	store_tend(fake.store);
	fake_reset(1 + 1); /* a raise, then the cut */
	assert_int_equal(escalate("alice/demo", LEVEL_SECRET, NULL, NULL), -EIO);
	assert_int_equal(logged(), 0);
	/* Nothing to cut: the log, whatever the kernel can note. */
	assert_int_equal(escalate("bob/none", LEVEL_PUBLIC, NULL, NULL), 0);
	assert_int_equal(logged(), 0);
	assert_int_equal(escalate("bob/none", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(logged(), 1);
}

/* The log's file is gone, or full of what the database may not have on the disk: the database alone does it. */
static void test_without_the_log(void **state)
{
	char file[128];

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	store_tend(fake.store);
	snprintf(file, sizeof(file), "%s-raises", fake.db);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s.csv", NULL), 0);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(logged(), 0);
}

/* Programs that are gone are put back before anything is cut, so that what was opened meanwhile goes, too. */
static void test_programs_that_are_gone(void **state)
{
	struct escalation done;

	(void)state;
	for (int noted = 0; noted < 2; noted++) {
		fake_again();
		fake.service->config.gate.stands = fake_stands;
		fake.service->config.gate.whole = fake_whole;
		made("a/b");
		store_tend(fake.store);
		fake_reset(0);
		fake.notes_cuts = noted;
		fake.gone = true;
		fake.cut = 2;
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, &done), 0);
		assert_log(noted ? "raise 101 NONE 2\ndue 101\nwhole\ncut 101\nevent raised cut=2\nevent cut cut=2\n"
				 : "raise 101 NONE 2\nwhole\ncut 101\ncommit\nevent raised cut=2\nevent cut cut=2\n");
		/* And if they cannot be put back, nothing is acknowledged. */
		made("c/d");
		fake.gone = fake.stays_gone = true;
		assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, NULL), -ENOENT);
		assert_int_equal(fake.failure.reason, NP_R_NOT_WHOLE);
	}
}

/* A new sandbox is known to the inspectors before anybody can use it, and nobody waits for them: nothing was open. */
static void test_new_sandbox_is_sent_and_not_waited_for(void **state)
{
	(void)state;
	fake.shows_inspectors = true;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	fake_reset(0);
	made("a/b");
	assert_log("make\ncommit\nraise 101 PROXIED 2\ntighten 101 PROXIED 2\nevent sandbox_made\n");
}

/* The inspectors are sent what the kernel holds, which may be more than was asked: once, when all rounds are over. */
static void test_inspectors_are_sent_what_the_kernel_says(void **state)
{
	(void)state;
	made("a/b");
	made("a/b");
	fake_by_id(102)->rung.mode = NP_NONE;
	fake_by_id(102)->rung.generation = 7;
	fake_reset(0);
	fake.shows_inspectors = true;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	assert_non_null(strstr(fake.log, "tighten 101 NONE 7\ntighten 102 NONE 7\nsync begins\nsync\ncut 101 102\n"));
	assert_null(strstr(fake.log, "tighten 101 PROXIED"));
}

/* What the kernel refused is not sent: the inspectors are never looser or tighter than the gate says. The others are. */
static void test_refused_raise_and_the_inspectors(void **state)
{
	(void)state;
	fake_add("/cg/agent")->populated = true;
	adopted("a/b", "/cg/agent");
	made("a/b");
	fake_by_id(101)->refuse_raise = true;
	fake_reset(0);
	fake.shows_inspectors = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
	assert_log("raise 101 NONE 2\nraise 102 NONE 2\ntighten 102 NONE 2\nsync begins\nsync\ncut 102\ncommit\n"
		   "event raised cut=0\nevent not_applied\n");
	fake_by_id(101)->refuse_raise = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("raise 101 NONE 2\ntighten 101 NONE 2\nsync\ncut 101\n");
}

static void test_no_connections_no_cut_event(void **state)
{
	(void)state;
	made("a/b");
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	assert_log("raise 101 PROXIED 2\ncut 101\ncommit\nevent raised cut=0\n");
	assert_int_equal(stored("a/b").datasets, 0);
}

static void test_lower_level_stands(void **state)
{
	struct escalation done;

	(void)state;
	made("a/b");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_PUBLIC, NULL, &done), 0);
	assert_log("event stands\n");
	assert_false(done.raised);
	assert_int_equal(done.rung.level, LEVEL_SECRET);
	assert_int_equal(done.rung.mode, NP_NONE);
	assert_int_equal(done.rung.generation, 2);
	/* A dataset is recorded, but it is no raise and no new generation. */
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, "d", &done), 0);
	assert_log("commit\nevent stands dataset=d\n");
	assert_int_equal(done.rung.generation, 2);
	assert_int_equal(stored("a/b").rung.generation, 2);
	assert_int_equal(stored("a/b").datasets, 1);
}

static void test_level_without_a_new_mode(void **state)
{
	struct escalation done;

	(void)state;
	made("a/b");
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, &done), 0);
	assert_log("raise 101 FULL 2\ncommit\nevent raised cut=0\n"); /* nothing to cut */
	assert_true(done.raised);
	assert_int_equal(done.rung.generation, 2);
}

static void test_refused_raise_kills_made_and_names_it(void **state)
{
	(void)state;
	made("a/b");
	made("a/b");
	made("a/b");
	fake_by_id(102)->refuse_raise = true;
	fake_by_id(102)->populated = true;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_non_null(strstr(fake.failure.text, "sandbox a.b."));
	assert_log("raise 101 NONE 2\nraise 102 NONE 2\nraise 103 NONE 2\n"
		   "remove 102\nevent sandbox_removed\nretire 102\ncommit\n"
		   "cut 101 103\ncommit\nevent raised cut=0\nevent not_applied\n");
	assert_false(fake_by_id(102)->populated);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
	assert_int_equal(fake_by_id(103)->rung.mode, NP_NONE);
	assert_int_equal(service_sandboxes_count(fake.service), 2);
	/* Nothing is left to do. */
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
}

static void test_refused_raise_of_adopted_is_tried_again(void **state)
{
	(void)state;
	fake_add("/cg/agent")->populated = true;
	adopted("a/b", "/cg/agent");
	fake_by_id(101)->refuse_raise = true;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_log("raise 101 NONE 2\ncommit\nevent raised cut=0\nevent not_applied\n"); /* not killed
										       */
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("raise 101 NONE 2\n");
	fake_by_id(101)->refuse_raise = false;
	fake.cut = 2;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_log("raise 101 NONE 2\ncut 101\nevent cut cut=2\nevent stands\n");
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("");
}

static void test_sweep_tightens_what_was_left_behind(void **state)
{
	(void)state;
	fake_add("/cg/agent")->populated = true;
	adopted("a/b", "/cg/agent");
	fake_by_id(101)->refuse_raise = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
	fake_by_id(101)->refuse_raise = false;
	fake.cut = 1;
	fake_reset(0);
	service_sweep(fake.service);
	assert_log("raise 101 NONE 2\ncut 101\nevent cut cut=1\n");
}

static void test_unrecorded_raise_holds_and_a_retry_records_it(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct session_row row;
	struct escalation done;

	(void)state;
	fake.disk_full = true;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", NULL), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_NOT_RECORDED);
	assert_log("raise 101 NONE 2\ncut 101\ncommit\nevent not_recorded dataset=d\n");
	assert_int_equal(sandbox->rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.level, LEVEL_PUBLIC);
	assert_int_equal(service_session_show(fake.service, "a/b", &row, NULL), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET); /* what holds */
	/* Again, and it is still not acknowledged, and not another generation. */
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", NULL), -EIO);
	fake.disk_full = false;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", &done), 0);
	assert_log("commit\nevent raised cut=0 dataset=d\n");
	assert_true(done.raised);
	assert_int_equal(done.rung.generation, 2);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(stored("a/b").datasets, 1);
}

static void test_unrecorded_raise_is_a_floor_without_sandboxes(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	fake.disk_full = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -EIO);
	/* A session that does not exist yet, too, when it was to start above the bottom. */
	assert_int_equal(service_session_create(fake.service, "c/d", LEVEL_SECRET, false, "test", &row, NULL), -EIO);
	assert_int_equal(service_session_create(fake.service, "e/f", LEVEL_PUBLIC, false, "test", &row, NULL), -EIO);
	assert_int_equal(fake.service->sessions.count, 2); /* e/f is nothing to remember */
	fake.disk_full = false;
	assert_int_equal(made("a/b")->rung.mode, NP_NONE);
	assert_int_equal(made("c/d")->rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.mode, NP_NONE);
	assert_int_equal(stored("c/d").rung.level, LEVEL_SECRET);
}

/* Whatever records it in the end, an event tells of it then, and says since when it has been in force: the sweep, who makes a sandbox and
 * has raised nothing, the end of the session. */
static void test_what_is_recorded_later_is_told_then(void **state)
{
	static const char since[] = "daemon: in force since 1970-01-01T00:00:01";

	(void)state;
	for (int by = 0; by < 3; by++) {
		fake_again();
		fake_add("/cg/agent");
		adopted("a/b", "/cg/agent");
		fake_by_id(101)->refuse_raise = true; /* so that the sweep has it to care for */
		fake.disk_full = true;
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
		assert_null(strstr(fake.log, "event raised"));
		fake.wall += 5000000;
		fake_by_id(101)->refuse_raise = false;
		service_sweep(fake.service); /* in force everywhere by now, and still not on record */
		assert_null(strstr(fake.log, "event raised"));
		assert_int_equal(stored("a/b").rung.level, LEVEL_PUBLIC);
		fake.disk_full = false;
		fake_reset(0);
		if (by == 0) {
			sandbox_by_cgroup(fake.service, 101)->uncut = true;
			sandbox_care(fake.service, sandbox_by_cgroup(fake.service, 101));
			service_sweep(fake.service);
		} else if (by == 1) {
			made("a/b");
		} else {
			assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
		}
		assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
		assert_non_null(strstr(fake.log, "event raised"));
		assert_int_equal(strncmp(fake.raised, since, strlen(since)), 0);
	}
}

/* What could not be recorded was not what stands now: nothing of it, or a lower level. The event says no time at which this was not in force. */
static void test_since_is_of_what_stands(void **state)
{
	struct escalation done;

	(void)state;
	for (int level = LEVEL_PUBLIC; level <= LEVEL_INTERNAL; level++) {
		fake_again();
		made("a/b");
		fake.disk_full = true;
		assert_int_equal(escalate("a/b", (enum level)level, "d", NULL), -EIO);
		fake.disk_full = false;
		fake.wall += 5000000;
		assert_int_equal(service_escalate(fake.service, "a/b", LEVEL_SECRET, "e", NULL, false, "test", &done,
						  &fake.failure),
				 0);
		assert_string_equal(fake.raised, "test: ");
	}
}

/* The mode of its level by a policy that is stricter than the one before: nobody who uses the session has raised it. */
static void test_what_the_policy_raises_is_told_as_such(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	fake.modes.of[LEVEL_PUBLIC] = NP_PROXIED;
	fake_stop();
	fake_start();
	assert_int_equal(made("a/b")->rung.mode, NP_PROXIED);
	assert_string_equal(fake.raised, "daemon: by the policy its level means a stricter mode than it did");
}

static void test_failed_raise_and_failed_record(void **state)
{
	(void)state;
	fake_add("/cg/agent");
	adopted("a/b", "/cg/agent");
	fake_by_id(101)->refuse_raise = true;
	fake.disk_full = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -ENOMEM);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_non_null(strstr(fake.failure.text, "not recorded either"));
	fake_by_id(101)->refuse_raise = false;
	fake.disk_full = false;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
}

/* Whatever fails, wherever: what is acknowledged holds in the kernel and on disk, and a retry gets
 * there. */
static void test_any_step_may_fail(void **state)
{
	struct escalation done;
	int n = 1;

	(void)state;
	for (;; n++) {
		int r;

		fake_again();
		fake.cut = 1;
		fake_add("/cg/agent")->populated = true;
		adopted("a/b", "/cg/agent");
		made("a/b");
		made("a/b");
		fake_by_id(102)->populated = fake_by_id(103)->populated = true;
		fake_reset(n);
		r = escalate("a/b", LEVEL_SECRET, "d", &done);
		if (!fake.failed)
			break;
		assert_true(r < 0);
		assert_true(fake.failure.reason == NP_R_NOT_APPLIED || fake.failure.reason == NP_R_NOT_RECORDED);
		/* Those that were not the one refused are tight already, or dead. */
		for (size_t i = 0; i < fake.count; i++)
			assert_true(fake.cgroups[i].rung.mode == NP_NONE || !fake.cgroups[i].exists ||
				    fake.cgroups[i].attached);
		fake_reset(0);
		assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", &done), 0);
		assert_int_equal(done.rung.mode, NP_NONE);
		assert_int_equal(done.rung.generation, 2);
		assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
		assert_int_equal(stored("a/b").datasets, 1);
		for (size_t i = 0; i < fake.count; i++)
			assert_true(fake.cgroups[i].rung.mode == NP_NONE || !fake.cgroups[i].exists);
		fake_reset(0);
		service_sweep(fake.service);
		assert_null(strstr(fake.log, "raise")); /* nobody is behind */
		assert_null(strstr(fake.log, "cut"));
	}
	assert_true(n > 5); /* three raises, a cut, a commit */
}

static void test_kernel_is_believed(void **state)
{
	struct escalation done;

	(void)state;
	made("a/b");
	made("a/b");
	made("a/b");
	/* Somebody's raise that this daemon never heard of, on the one that is asked second. */
	fake_by_id(102)->rung.mode = NP_NONE;
	fake_by_id(102)->rung.generation = 7;
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, &done), 0);
	assert_int_equal(done.rung.mode, NP_NONE);
	assert_int_equal(done.rung.generation, 7);
	for (uint64_t id = 101; id <= 103; id++) {
		assert_int_equal(fake_by_id(id)->rung.mode, NP_NONE);
		assert_int_equal(fake_by_id(id)->rung.generation, 7);
		assert_int_equal(service_sandbox_by_cgroup(fake.service, id)->rung.mode, NP_NONE);
	}
	assert_int_equal(stored("a/b").rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.generation, 7);
	assert_int_equal(stored("a/b").rung.level, LEVEL_CONFIDENTIAL);
}

static void test_full_dataset_list_does_not_stop_a_raise(void **state)
{
	struct escalation done;

	(void)state;
	made("a/b");
	assert_int_equal(sqlite3_exec(fake.store->db,
				      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
				      "i < 1024)"
				      " INSERT INTO datasets SELECT 'a/b', 'd' || i, 0, '', i FROM n",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "one more", &done), 0);
	assert_true(done.raised);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(stored("a/b").datasets, NP_DATASETS_MAX);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "one more", &done), -E2BIG);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d5", &done), 0); /* it is there already */
}

static void test_generation_does_not_wrap(void **state)
{
	struct escalation done;

	(void)state;
	made("a/b");
	fake_by_id(101)->rung.generation = UINT32_MAX;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, &done), 0);
	assert_true(done.rung.generation == UINT32_MAX);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, &done), 0);
	assert_true(done.rung.generation == UINT32_MAX);
	assert_int_equal(done.rung.mode, NP_NONE);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
}

/* A kernel that says yes and does less. */
static int raise_less(void *ctx, const struct gate_cgroup *g, const struct np_rung *rung, const char *session,
		      struct np_rung *ret)
{
	(void)ctx, (void)g, (void)session;
	fake_log("raise less\n");
	*ret = *rung;
	ret->mode--;
	return 0;
}

static void test_kernel_that_does_less_is_a_failure(void **state)
{
	(void)state;
	made("a/b");
	fake_reset(0);
	fake.service->config.gate.raise = raise_less;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_non_null(strstr(fake.log, "remove 101\n")); /* made: killed rather than left open */
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_order_is_kernel_cut_record_acknowledge),
		fake_test(test_order_is_kernel_inspectors_cut_record_reports),
		fake_test(test_the_disk_writes_while_it_cuts),
		fake_test(test_an_acknowledgement_waits_for_the_disk),
		fake_test(test_what_is_not_noted_is_cut_first),
		fake_test(test_without_the_log),
		fake_test(test_programs_that_are_gone),
		fake_test(test_new_sandbox_is_sent_and_not_waited_for),
		fake_test(test_inspectors_are_sent_what_the_kernel_says),
		fake_test(test_refused_raise_and_the_inspectors),
		fake_test(test_no_connections_no_cut_event),
		fake_test(test_lower_level_stands),
		fake_test(test_level_without_a_new_mode),
		fake_test(test_refused_raise_kills_made_and_names_it),
		fake_test(test_refused_raise_of_adopted_is_tried_again),
		fake_test(test_sweep_tightens_what_was_left_behind),
		fake_test(test_unrecorded_raise_holds_and_a_retry_records_it),
		fake_test(test_unrecorded_raise_is_a_floor_without_sandboxes),
		fake_test(test_failed_raise_and_failed_record),
		fake_test(test_what_is_recorded_later_is_told_then),
		fake_test(test_since_is_of_what_stands),
		fake_test(test_what_the_policy_raises_is_told_as_such),
		fake_test(test_any_step_may_fail),
		fake_test(test_kernel_is_believed),
		fake_test(test_kernel_that_does_less_is_a_failure),
		fake_test(test_full_dataset_list_does_not_stop_a_raise),
		fake_test(test_generation_does_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
