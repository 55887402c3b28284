/* SPDX-License-Identifier: MIT */
/*
 * A kernel and a file system of cgroups for the session service, in memory. It records every call
 * in order, together with the store's commits and the events, so that a test can assert on the
 * order of all three. It can fail the n-th step, whichever that is. Like the real one it cannot
 * lower a mode, and it refuses to retire a cgroup that exists.
 */
#pragma once

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

#define FAKE_SLICE    "/cg/netpawl.slice"
#define RUNG(l, m, g) (&(struct np_rung){ .level = (l), .mode = (m), .generation = (g) })

struct fake_cgroup {
	uint64_t id;
	char path[256];
	bool exists, populated, attached, held;
	bool due;		       /* to be cut, says the kernel's note */
	bool orphans;		       /* until they are cut, or a test says so */
	bool let_in;		       /* who is in it came after its sandbox was removed */
	bool brings;		       /* its processes hold what the gate cannot govern */
	bool refuse_raise, busy, hide; /* busy: cgroup_remove() kills but says -EBUSY; hide:
					  cgroup_find() says -EIO */
	struct np_rung rung;
	char session[NP_LABEL_SIZE];
	/* the inspectors' */
	bool known; /* they were sent: */
	struct np_rung inspected;
	bool synced;	  /* and have carried out */
	bool ending;	  /* they were sent that it is killed */
	bool undelivered; /* its programs left something with them */
};

struct fake {
	struct fake_cgroup cgroups[256];
	size_t count;
	uint64_t next_id;
	unsigned cut;	  /* sockets that each cut finds */
	unsigned ended;	  /* requests that the inspectors end whenever they are synced, or forget a sandbox */
	unsigned reports; /* of theirs that are not handled yet */
	bool shows_inspectors;
	char log[16384];
	size_t log_len;
	char raised[256]; /* of the last event about a raise: who, and why */
	int steps;	  /* fallible steps since the last fake_reset() */
	int fail_at;	  /* the step that fails; 0: none */
	bool failed;	  /* it was reached */
	bool disk_full;	  /* every commit fails */
	bool notes_cuts;  /* so that the disk writes while it cuts */
	bool gone;	  /* programs of the gate are: for fake_stands() and fake_whole(), which a test puts there */
	bool stays_gone;  /* nor can they be put back */
	bool hold_retire; /* retire() refuses for existing cgroups */

	char dir[64], db[96], notices[96], kept[96]; /* notices, kept empty: no files */
	uint64_t idle_us;
	struct lifetime lifetime;
	const char *workspace; /* of the session that has one; never NULL */
	bool workspace_fails;  /* it cannot be moved away */
	struct store *store;
	struct service *service;
	struct level_modes modes;
	const struct policy *policy; /* NULL: nobody is ever asked */
	uint64_t wall, later_ns;
	uint64_t set_us; /* by which somebody has set the wall's clock, in wall */
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

static inline int fake_inspect(void *ctx, const char *path, pid_t starting, struct gate_cgroup *ret,
			       struct gate_problem *problem)
{
	struct fake_cgroup *cg = fake_by_path(path);

	(void)ctx;
	(void)starting;
	fake_log("inspect\n");
	if (!cg || cg->brings || fake_fails()) {
		problem->reason = NP_R_HELD_SOCKETS;
		strcpy(problem->text, "pid 1 holds fd 3");
		return -EINVAL;
	}
	fake_fill(cg, ret);
	return 0;
}

static inline int fake_look(void *ctx, const struct gate_cgroup *g, struct gate_problem *problem)
{
	struct fake_cgroup *cg = fake_by_path(g->path);

	(void)ctx;
	fake_log("look\n");
	if (cg && !cg->brings)
		return 0;
	problem->reason = NP_R_HELD_SOCKETS;
	strcpy(problem->text, "pid 2 holds fd 4");
	return -EINVAL;
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

static inline int fake_raise(void *ctx, const struct gate_cgroup *g, const struct np_rung *rung, const char *session,
			     struct np_rung *ret)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	fake_log("raise %d %s %u\n", (int)g->id, mode_name(rung->mode), rung->generation);
	if (fake_fails() || !cg || cg->refuse_raise)
		return -ENOMEM;
	assert_true(g->depth > 0);
	assert_true(np_rung_is_valid(rung));
	snprintf(cg->session, sizeof(cg->session), "%s", session);
	cg->rung = cg->held ? np_rung_join(cg->rung, *rung) : *rung;
	cg->held = true;
	*ret = cg->rung;
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

static inline int fake_cut_due(void *ctx, uint64_t cgroup_id)
{
	(void)ctx;
	if (!fake.notes_cuts)
		return -EOPNOTSUPP;
	fake_log("due %d\n", (int)cgroup_id);
	fake_by_id(cgroup_id)->due = true;
	return 0;
}

static inline bool fake_stands(void *ctx)
{
	(void)ctx;
	return !fake.gone;
}

static inline int fake_whole(void *ctx, char problem[static 512])
{
	(void)ctx;
	fake_log("whole\n");
	fake.gone = fake.stays_gone;
	snprintf(problem, 512, "the gate: it is gone");
	return fake.gone ? -ENOENT : 0;
}

static inline int fake_cut(void *ctx, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut)
{
	(void)ctx;
	fake_log(why == GATE_CUT_RELOADED ? "recut"
		 : why == GATE_CUT_ENDED  ? "bury"
		 : why == GATE_CUT_HANDED ? "hand"
					  : "cut");
	for (size_t i = 0; i < n; i++)
		fake_log(" %d", (int)ids[i]);
	fake_log("\n");
	for (size_t i = 0; why != GATE_CUT_ENDED && i < n; i++) { /* the inspectors come first */
		const struct fake_cgroup *cg = fake_by_id(ids[i]);

		/* What they do not know they refuse. */
		assert_true(!cg->known || (cg->synced && np_rung_equal(&cg->inspected, &cg->rung)));
	}
	for (size_t i = 0; i < n; i++)
		fake_by_id(ids[i])->due = false;
	if (fake_fails())
		return -EIO;
	for (size_t i = 0; (why == GATE_CUT_ENDED || why == GATE_CUT_HANDED) && i < n; i++)
		fake_by_id(ids[i])->orphans = false;
	*ret_cut = fake.cut;
	return 0;
}

static inline int fake_orphans(void *ctx, const uint64_t *ids, size_t n, bool *ret_has)
{
	(void)ctx;
	if (fake_fails())
		return -EIO;
	for (size_t i = 0; i < n; i++) {
		const struct fake_cgroup *cg = fake_by_id(ids[i]);

		ret_has[i] = cg && cg->orphans;
	}
	return 0;
}

static inline int fake_remove(void *ctx, const struct gate_cgroup *g)
{
	struct fake_cgroup *cg = fake_by_id(g->id);

	(void)ctx;
	fake_log("remove %d\n", (int)g->id);
	/* Whose connections the inspectors have: they know first. What is looser than it may be is not kept waiting. */
	if (cg && cg->populated && cg->known && cg->inspected.mode == NP_PROXIED && !cg->refuse_raise)
		assert_true(cg->ending);
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
	assert_false(cg->populated && !cg->let_in); /* that would free somebody */
	assert_false(cg->orphans);		    /* likewise */
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
	assert_false(cg->populated && !cg->let_in);
	if (cg->exists && fake.hold_retire)
		return -EBUSY;
	cg->held = false;
	return 0;
}

static inline int fake_each(void *ctx, int (*fn)(void *data, const struct gate_sandbox *sandbox), void *data)
{
	(void)ctx;
	if (fake_fails())
		return -EIO;
	for (size_t i = fake.count; i-- > 0;) { /* unsorted, as a hash map is */
		struct fake_cgroup *cg = &fake.cgroups[i];
		struct gate_sandbox sandbox = { .cgroup_id = cg->id, .rung = cg->rung, .uncut = cg->due };
		int r;

		if (!cg->held)
			continue;
		strcpy(sandbox.session, cg->session);
		r = fn(data, &sandbox);
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
