/* SPDX-License-Identifier: MIT */
/*
 * A kernel and a file system of cgroups for the session service, in memory. It records every call in order,
 * together with the store's commits and the events, so that a test can assert on the order of all three. It
 * can fail the n-th step, whichever that is. Like the real one it cannot lower a mode, and it refuses to
 * retire a cgroup that exists.
 */
#ifndef NP_TEST_SESSION_FAKE_H
#define NP_TEST_SESSION_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/service_internal.h"
#include "session/store_internal.h"

#define FAKE_SLICE "/cg/netpawl.slice"

struct fake_cgroup {
	uint64_t id;
	char path[256];
	bool exists, populated, attached, held;
	bool refuse_raise, busy, hide; /* busy: cgroup_remove() kills but says -EBUSY; hide: cgroup_find() says -EIO */
	enum np_mode mode;
	uint32_t generation;
	char session[NP_LABEL_SIZE];
};

struct fake {
	struct fake_cgroup cgroups[256];
	size_t count;
	uint64_t next_id;
	unsigned cut; /* sockets that each cut finds */
	char log[16384];
	size_t log_len;
	int steps;   /* fallible steps since the last fake_reset() */
	int fail_at; /* the step that fails; 0: none */
	bool failed; /* it was reached */
	bool disk_full; /* every commit fails */
	bool hold_retire; /* retire() refuses for existing cgroups */

	char dir[64], db[96];
	struct store *store;
	struct service *service;
	struct level_modes modes;
	uint64_t wall;
	struct failure failure;
};

static struct fake fake;

__attribute__((format(printf, 1, 2))) static inline void fake_log(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(fake.log + fake.log_len, sizeof(fake.log) - fake.log_len, fmt, ap);
	va_end(ap);
	assert_true((size_t)n < sizeof(fake.log) - fake.log_len);
	fake.log_len += (size_t)n;
}

/* Forgets the log and plans a failure. */
static inline void fake_reset(int fail_at)
{
	fake.log_len = 0;
	fake.log[0] = '\0';
	fake.steps = 0;
	fake.fail_at = fail_at;
	fake.failed = false;
}

static inline bool fake_fails(void)
{
	if (++fake.steps != fake.fail_at)
		return false;
	fake.failed = true;
	fake_log("!");
	return true;
}

static inline struct fake_cgroup *fake_by_id(uint64_t id)
{
	for (size_t i = 0; i < fake.count; i++)
		if (fake.cgroups[i].id == id)
			return &fake.cgroups[i];
	return NULL;
}

static inline struct fake_cgroup *fake_by_path(const char *path)
{
	for (size_t i = 0; i < fake.count; i++)
		if (fake.cgroups[i].exists && !strcmp(fake.cgroups[i].path, path))
			return &fake.cgroups[i];
	return NULL;
}

static inline struct fake_cgroup *fake_add(const char *path)
{
	struct fake_cgroup *cg = &fake.cgroups[fake.count++];

	assert_true(fake.count <= 256);
	*cg = (struct fake_cgroup){ .id = fake.next_id++, .exists = true };
	snprintf(cg->path, sizeof(cg->path), "%s", path);
	return cg;
}

static inline void fake_fill(const struct fake_cgroup *cg, struct gate_cgroup *ret)
{
	*ret = (struct gate_cgroup){ .id = cg->id, .depth = 2 };
	strcpy(ret->path, cg->path);
}

static inline int fake_make(void *ctx, const char *id, struct gate_cgroup *ret)
{
	char path[256];

	(void)ctx;
	fake_log("make\n");
	if (fake_fails())
		return -EPERM;
	snprintf(path, sizeof(path), FAKE_SLICE "/%s", id);
	fake_fill(fake_add(path), ret);
	return 0;
}

static inline int fake_inspect(void *ctx, const char *path, struct gate_cgroup *ret, struct gate_problem *problem)
{
	struct fake_cgroup *cg = fake_by_path(path);

	(void)ctx;
	fake_log("inspect\n");
	if (!cg || fake_fails()) {
		problem->reason = NP_R_HELD_SOCKETS;
		strcpy(problem->text, "pid 1 holds fd 3");
		return -EINVAL;
	}
	fake_fill(cg, ret);
	return 0;
}

static inline int fake_find(void *ctx, const char *path, struct gate_cgroup *ret)
{
	struct fake_cgroup *cg = fake_by_path(path);

	(void)ctx;
	if (!cg)
		return -ENOENT;
	if (cg->hide)
		return -EIO;
	fake_fill(cg, ret);
	return 0;
}

static inline int fake_raise(void *ctx, const struct gate_cgroup *g, enum np_mode mode, uint32_t generation,
			     const char *session, enum np_mode *ret_mode, uint32_t *ret_generation)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	fake_log("raise %d %s %u\n", (int)g->id, mode_name(mode), generation);
	if (fake_fails() || !cg || cg->refuse_raise)
		return -ENOMEM;
	assert_true(g->depth > 0);
	assert_true(mode >= NP_FULL && mode <= NP_NONE);
	if (!cg->held)
		snprintf(cg->session, sizeof(cg->session), "%s", session);
	if (!cg->held || mode > cg->mode)
		cg->mode = mode;
	if (!cg->held || generation > cg->generation)
		cg->generation = generation;
	cg->held = true;
	*ret_mode = cg->mode;
	*ret_generation = cg->generation;
	return 0;
}

static inline int fake_attach(void *ctx, const struct gate_cgroup *g)
{
	(void)ctx;
	fake_log("attach %d\n", (int)g->id);
	if (fake_fails())
		return -ENOSPC;
	assert_true(fake_by_id(g->id)->held); /* raise() comes first */
	fake_by_id(g->id)->attached = true;
	return 0;
}

static inline int fake_cut(void *ctx, const uint64_t *ids, size_t n, unsigned *ret_cut)
{
	(void)ctx;
	fake_log("cut");
	for (size_t i = 0; i < n; i++)
		fake_log(" %d", (int)ids[i]);
	fake_log("\n");
	if (fake_fails())
		return -EIO;
	*ret_cut = fake.cut;
	return 0;
}

static inline int fake_remove(void *ctx, const struct gate_cgroup *g)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	fake_log("remove %d\n", (int)g->id);
	assert_false(cg && cg->attached); /* an adopted one is not ours to kill */
	if (fake_fails())
		return -EIO;
	if (cg && cg->busy)
		return -EBUSY;
	if (cg)
		cg->exists = cg->populated = false;
	return 0;
}

static inline bool fake_populated(void *ctx, const struct gate_cgroup *g)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	return cg && cg->populated;
}

static inline int fake_detach(void *ctx, const struct gate_cgroup *g)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	fake_log("detach %d\n", (int)g->id);
	if (fake_fails())
		return -EIO;
	if (!cg)
		return -ENOENT;
	assert_false(cg->populated); /* that would free somebody */
	cg->attached = false;
	return 0;
}

static inline int fake_retire(void *ctx, uint64_t id)
{
	struct fake_cgroup *cg = fake_by_id(id);

	(void)ctx;
	fake_log("retire %d\n", (int)id);
	if (fake_fails())
		return -EIO;
	if (!cg || !cg->held)
		return -ENOENT;
	assert_false(cg->populated);
	if (cg->exists && fake.hold_retire)
		return -EBUSY;
	cg->held = false;
	return 0;
}

static inline int fake_each(void *ctx, int (*fn)(void *data, const struct gate_box *box), void *data)
{
	(void)ctx;
	if (fake_fails())
		return -EIO;
	for (size_t i = fake.count; i-- > 0;) { /* unsorted, as a hash map is */
		struct fake_cgroup *cg = &fake.cgroups[i];
		struct gate_box box = { .cgroup_id = cg->id, .mode = cg->mode, .generation = cg->generation };
		int r;

		if (!cg->held)
			continue;
		strcpy(box.session, cg->session);
		r = fn(data, &box);
		if (r < 0)
			return r;
	}
	return 0;
}

static inline int fake_find_id(void *ctx, uint64_t id, struct gate_cgroup *ret)
{
	struct fake_cgroup *cg = fake_by_id(id);

	(void)ctx;
	if (!cg || !cg->exists)
		return -ENOENT;
	fake_fill(cg, ret);
	return 0;
}

static inline int fake_slice(void *ctx, int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	(void)ctx;
	for (size_t i = 0; i < fake.count; i++) {
		struct gate_cgroup g;
		int r;

		if (!fake.cgroups[i].exists || strncmp(fake.cgroups[i].path, FAKE_SLICE "/", sizeof(FAKE_SLICE)))
			continue;
		fake_fill(&fake.cgroups[i], &g);
		r = fn(data, &g);
		if (r < 0)
			return r;
	}
	return 0;
}

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
}

static inline uint64_t fake_wall(void)
{
	return fake.wall;
}

static inline uint64_t fake_now(void)
{
	static uint64_t now;

	return now += 1000; /* one microsecond a look */
}

/* A daemon starts: the kernel and the disk are as they were left. */
static inline void fake_start(void)
{
	struct service_config config = {
		.gate = {
			.cgroup_make = fake_make,
			.cgroup_inspect = fake_inspect,
			.cgroup_find = fake_find,
			.raise = fake_raise,
			.attach = fake_attach,
			.cut = fake_cut,
			.cgroup_remove = fake_remove,
			.cgroup_populated = fake_populated,
			.detach = fake_detach,
			.retire = fake_retire,
			.each = fake_each,
			.cgroup_by_id = fake_find_id,
			.slice_each = fake_slice,
		},
		.modes = fake.modes,
		.wall_us = fake_wall,
		.now_ns = fake_now,
		.emit = fake_emit,
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
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char path[128];

	(void)state;
	if (fake.service)
		fake_stop();
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", fake.db, suffixes[i]);
		unlink(path);
	}
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

static inline const struct sandbox *made(const char *session)
{
	const struct sandbox *sandbox = NULL;
	int r = service_sandbox_make(fake.service, session, "test", &sandbox, &fake.failure);

	if (r)
		fail_msg("make: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
	return sandbox;
}

static inline const struct sandbox *adopted(const char *session, const char *path)
{
	const struct sandbox *sandbox = NULL;
	int r = service_sandbox_adopt(fake.service, session, path, "test", &sandbox, NULL, &fake.failure);

	if (r)
		fail_msg("adopt: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
	return sandbox;
}

static inline int escalate(const char *session, enum level level, const char *dataset, struct escalation *ret)
{
	struct escalation ignored;

	fake.failure = (struct failure){ 0 };
	return service_escalate(fake.service, session, level, dataset, "because", "test", ret ? ret : &ignored,
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

#endif
