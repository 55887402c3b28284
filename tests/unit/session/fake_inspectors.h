/* SPDX-License-Identifier: MIT */
/*
 * The second enforcement point for the session service, in memory. Every test checks its order by what is asserted here and
 * in fake_cut(): the kernel is tightened first, nothing is cut before the inspectors have ended what the rung forbids, and a
 * report is never handled inside a verb. With fake.shows_inspectors its calls are in the log, among those of the kernel.
 */
#pragma once

#include "fake_kernel.h"

#define fake_show(...)                         \
	do {                                   \
		if (fake.shows_inspectors)     \
			fake_log(__VA_ARGS__); \
	} while (0)

static inline void fake_tighten(void *ctx, uint64_t id, const char *sandbox, const char *session,
				const struct np_rung *rung)
{
	struct fake_cgroup *cg = fake_by_id(id);
	const struct sandbox_info *info = service_sandbox_by_cgroup(fake.service, id);

	(void)ctx;
	fake_show("tighten %d %s %u\n", (int)id, mode_name(rung->mode), rung->generation);
	assert_true(fake.service->verbs > 0);
	assert_true(cg && cg->held && np_rung_equal(&cg->rung, rung)); /* the kernel comes first */
	assert_string_equal(sandbox, info ? info->id : "");
	assert_string_equal(session, info ? info->session.text : cg->session);
	cg->known = true;
	cg->inspected = *rung;
	cg->synced = false;
}

static inline void fake_sync_begin(void *ctx)
{
	(void)ctx;
	fake_show("sync begins\n");
	assert_true(fake.service->verbs > 0);
}

static inline unsigned fake_sync(void *ctx)
{
	(void)ctx;
	fake_show("sync\n");
	assert_true(fake.service->verbs > 0);
	for (size_t i = 0; i < fake.count; i++)
		fake.cgroups[i].synced = true;
	fake.reports += fake.ended; /* each request that ends is reported */
	return fake.ended;
}

static inline void fake_ending(void *ctx, uint64_t id, bool is)
{
	(void)ctx;
	fake_show(is ? "ending %d\n" : "not ending %d\n", (int)id);
	fake_by_id(id)->ending = is;
}

static inline void fake_left(void *ctx, const uint64_t *ids, size_t n, bool *has)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		has[i] = has[i] || (fake_by_id(ids[i]) && fake_by_id(ids[i])->undelivered);
}

static inline void fake_forget(void *ctx, uint64_t id)
{
	(void)ctx;
	fake_show("forget %d\n", (int)id);
	assert_false(fake_by_id(id)->held); /* it would steer to inspectors that do not know it */
	fake_by_id(id)->known = false;
	fake.reports += fake.ended;
}

static inline void fake_leave(void *ctx, uint64_t id)
{
	struct fake_cgroup *cg = fake_by_id(id);

	(void)ctx;
	fake_show("leave %d\n", (int)id);
	cg->known = cg->undelivered = false;
	fake.reports += fake.ended;
}

/* The replies to whoever asked, one line each. */
static char fake_replies[4096];

static inline void fake_reply(void *ctx, const struct question_waiter *to, const struct question_news *news)
{
	static const char *const names[] = { "pending", "allowed", "denied", "again", "refused", "over", "body" };
	size_t len = strlen(fake_replies);

	(void)ctx;
	snprintf(fake_replies + len, sizeof(fake_replies) - len, "%d %s %d\n", to ? (int)to->number : 0,
		 names[news->reply], (int)news->question);
}

/* What deciders were asked, one line each; they are never there by themselves. */
static char fake_asked[4096];
static bool fake_deaf;

static inline int fake_decider_ask(void *ctx, const char *decider, uint64_t id, const char *line, size_t len,
				   const char **ret_why)
{
	size_t used = strlen(fake_asked);

	(void)ctx;
	assert_int_equal(strlen(line), len);
	*ret_why = "deaf";
	if (fake_deaf)
		return -EAGAIN;
	snprintf(fake_asked + used, sizeof(fake_asked) - used, "%s %d\n", decider, (int)id);
	return 0;
}

static inline int fake_decider_show(void *ctx, uint64_t id, const char *line, size_t len)
{
	size_t used = strlen(fake_asked);

	(void)ctx;
	(void)id; /* it is in the line */
	if (fake_deaf)
		return -EAGAIN;
	snprintf(fake_asked + used, sizeof(fake_asked) - used, "%.*s\n", (int)len, line);
	return 0;
}

static inline void fake_decider_withdraw(void *ctx, uint64_t id)
{
	size_t used = strlen(fake_asked);

	(void)ctx;
	snprintf(fake_asked + used, sizeof(fake_asked) - used, "withdraw %d\n", (int)id);
}

static inline void fake_receive(void *ctx)
{
	(void)ctx;
	assert_int_equal(fake.service->verbs, 0);
	for (; fake.reports; fake.reports--) {
		fake_show("report\n");
		for (size_t i = 0; i < fake.count; i++)
			service_sandbox_active(fake.service, fake.cgroups[i].id);
	}
}

/* A daemon starts: its inspectors know nothing. */
static inline struct inspectors fake_inspectors(void)
{
	for (size_t i = 0; i < fake.count; i++)
		fake.cgroups[i].known = false;
	return (struct inspectors){
		.tighten = fake_tighten,
		.sync_begin = fake_sync_begin,
		.sync = fake_sync,
		.ending = fake_ending,
		.left = fake_left,
		.forget = fake_forget,
		.leave = fake_leave,
		.reply = fake_reply,
		.receive = fake_receive,
	};
}
