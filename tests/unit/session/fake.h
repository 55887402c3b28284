/* SPDX-License-Identifier: MIT */
/* A session service on a fake kernel and a real store, and shorthands for its tests. */
#pragma once

#include "fake_inspectors.h"
#include "store_files.h"
#include "vocab/limits.h"

/* SQLite asks before each commit; not 0 turns it into a rollback and an error. */
static inline int fake_commit(void *data)
{
	(void)data;
	fake_log("commit\n");
	return fake_fails() || fake.disk_full;
}

static inline void fake_emit(void *data, struct event *event)
{
	(void)data;
	assert_int_equal(event->wall_us, fake.wall);
	assert_non_null(event->who);
	fake_log("event %s", reason_token(event->reason));
	if (event->has_cut)
		fake_log(" cut=%u", event->cut);
	if (event->dataset)
		fake_log(" dataset=%s", event->dataset);
	fake_log("\n");
	if (event->reason == NP_R_RAISED)
		snprintf(fake.raised, sizeof(fake.raised), "%s: %s", event->who, event->text ? event->text : "");
}

static inline void fake_notice(void *data, const struct notice_facts *facts, struct buf *out)
{
	(void)data;
	buf_printf(out, "%s %s %s %s %s%s", facts->session, level_name(facts->rung.level), mode_name(facts->rung.mode),
		   facts->dataset ? facts->dataset : "-", facts->reason ? facts->reason : "-",
		   facts->raised ? " raised" : "");
}

static inline uint64_t fake_wall(void)
{
	return fake.wall;
}

/* The wall's clock may be set, this one goes on. */
static inline uint64_t fake_boot(void)
{
	return fake.wall - fake.set_us;
}

static inline uint64_t fake_now(void)
{
	static uint64_t now;

	return (now += 1000) + fake.later_ns; /* one microsecond a look */
}

static inline int fake_workspace_end(void *data, const char *session, enum workspace_fate fate)
{
	static const char *const fates[] = { "keep", "archive", "remove" };

	(void)data;
	fake_log("workspace of %s: %s\n", session, fates[fate]);
	return fake_fails() || fake.workspace_fails ? -EIO : 0;
}

static inline bool fake_workspace_is(void *data, const char *session)
{
	(void)data;
	return !strcmp(session, fake.workspace);
}

static inline const struct policy *fake_policy(void *data)
{
	(void)data;
	return fake.policy;
}

/* A daemon starts: the kernel and the disk are as they were left. */
static inline void fake_start(void)
{
	struct service_config config = {
		.gate = {
			.cgroup_make = fake_make,
			.cgroup_inspect = fake_inspect,
			.cgroup_look = fake_look,
			.cgroup_find = fake_find,
			.raise = fake_raise,
			.attach = fake_attach,
			.cut_due = fake_cut_due,
		.cut = fake_cut,
			.orphans = fake_orphans,
			.cgroup_remove = fake_remove,
			.cgroup_populated = fake_populated,
			.detach = fake_detach,
			.retire = fake_retire,
			.each = fake_each,
			.cgroup_by_id = fake_find_id,
			.slice_each = fake_slice,
		},
		.inspectors = fake_inspectors(),
		.deciders = { .ask = fake_decider_ask, .show = fake_decider_show, .withdraw = fake_decider_withdraw },
		.modes = fake.modes,
		.wall_us = fake_wall,
		.now_ns = fake_now,
		.boot_us = fake_boot,
		.emit = fake_emit,
		.notice_write = fake_notice,
		.notices_dir = fake.notices[0] ? fake.notices : NULL,
		.kept_dir = fake.kept[0] ? fake.kept : NULL,
		.idle_us = fake.idle_us,
		.lifetime = fake.lifetime,
		.workspace_end = fake_workspace_end,
		.workspace_is = fake_workspace_is,
		.policy = fake.policy ? fake_policy : NULL,
	};

	assert_int_equal(store_open(fake.db, &fake.store), 0);
	sqlite3_commit_hook(fake.store->db, fake_commit, NULL);
	config.store = fake.store;
	assert_int_equal(service_new(&config, &fake.service), 0);
	fake_reset(0);
}

static inline void fake_stop(void)
{
	service_free(fake.service);
	store_close(fake.store);
	fake.service = NULL;
	fake.store = NULL;
}

static inline int fake_setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.next_id = 101;
	fake.wall = 1000000;
	fake.workspace = "";
	fake.modes = level_modes_default;
	strcpy(fake.dir, "/tmp/netpawl-test-XXXXXX");
	if (!mkdtemp(fake.dir))
		return -1;
	snprintf(fake.db, sizeof(fake.db), "%s/sessions.db", fake.dir);
	fake_start();
	return 0;
}

static inline int fake_teardown(void **state)
{
	(void)state;
	if (fake.service)
		fake_stop();
	store_files_remove(fake.db);
	return rmdir(fake.dir);
}

#define fake_test(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)

/* A new setting for the next round of a loop inside one test. */
static inline void fake_again(void)
{
	assert_int_equal(fake_teardown(NULL), 0);
	assert_int_equal(fake_setup(NULL), 0);
}

/* -- shorthands that must succeed ------------------------------------------ */

static inline const struct sandbox_info *made(const char *session)
{
	const struct sandbox_info *sandbox = NULL;
	int r = service_sandbox_make(fake.service, session, "test", &sandbox, &fake.failure);

	if (r)
		fail_msg("make: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
	return sandbox;
}

static inline const struct sandbox_info *adopted(const char *session, const char *path)
{
	const struct sandbox_info *sandbox = NULL;
	int r = service_sandbox_adopt(fake.service, session, &(struct adoption){ .cgroup = path }, "test", &sandbox,
				      NULL, &fake.failure);

	if (r)
		fail_msg("adopt: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
	return sandbox;
}

static inline int escalate(const char *session, enum level level, const char *dataset, struct escalation *ret)
{
	struct escalation ignored;

	fake.failure = (struct failure){ 0 };
	return service_escalate(fake.service, session, level, dataset, "because", false, "test", ret ? ret : &ignored,
				&fake.failure);
}

static inline struct session_row stored(const char *session)
{
	struct session_row row;

	assert_int_equal(store_session_get(fake.store, session, &row), 0);
	return row;
}

static inline int count_row(void *data, const struct sandbox_row *row)
{
	(void)row;
	++*(unsigned *)data;
	return 0;
}

static inline unsigned stored_sandboxes(void)
{
	unsigned n = 0;

	assert_int_equal(store_sandboxes_each(fake.store, count_row, &n), 0);
	return n;
}

static inline void assert_log(const char *want)
{
	assert_string_equal(fake.log, want);
}

static inline int try_remove(const struct sandbox_info *sandbox)
{
	char id[NP_SANDBOX_ID_MAX + 1];

	strcpy(id, sandbox->id);
	return service_sandbox_remove(fake.service, id, "test", &fake.failure);
}

/* Nothing is left of any sandbox, anywhere. */
static inline void assert_nothing_left(void)
{
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	assert_int_equal(stored_sandboxes(), 0);
	assert_int_equal(fake.service->sandboxes_by_cgroup.count, 0);
	assert_int_equal(fake.service->care_count, 0);
	assert_int_equal(fake.service->hidden, 0);
	assert_int_equal(fake.service->sessions.count, 0);
	for (size_t i = 0; i < fake.count; i++)
		assert_false(fake.cgroups[i].held);
}
