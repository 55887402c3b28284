/* SPDX-License-Identifier: MIT */
#include "daemon/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/workers.h"
#include "loop/loop.h"
#include "policy/tables.h"

#define RECORD_MAX (NP_POLICY_BYTES + (1u << 20)) /* the files and their names */

static int fail(struct failure *ret, int error, unsigned reason, const char *text)
{
	ret->reason = reason;
	snprintf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1, text);
	return error;
}

static int policy_read(const char *file, struct policy **ret, struct buf *record, struct problems *problems,
		       struct failure *ret_failure)
{
	char line[PROBLEM_LINE_SIZE];
	int r = file ? policy_record_file(file, record, ret, problems) : policy_record_default(record, ret);

	if (r == 0 && buf_error(record)) {
		policy_free(*ret);
		*ret = NULL;
		r = buf_error(record);
	}
	if (r == 0)
		return 0;
	problems_first(problems, line);
	return fail(ret_failure, r, NP_R_BAD_POLICY, line[0] ? line : strerror(-r));
}

static int policy_prepare(const struct policy *policy, struct kernel *kernel, uint32_t *ret_epoch,
			  struct failure *ret_failure)
{
	struct gate_tables tables;
	int r = gate_tables_make(policy, &tables);

	if (r == -E2BIG)
		return fail(ret_failure, r, NP_R_BAD_POLICY,
			    "its address rules make more entries than the gate's tables hold");
	if (r < 0)
		return fail(ret_failure, r, NP_R_FAILED, strerror(-r));
	r = kernel_policy_prepare(kernel, &tables, ret_epoch);
	gate_tables_free(&tables);
	return r < 0 ? fail(ret_failure, r, NP_R_NOT_APPLIED, strerror(-r)) : 0;
}

int live_policy_open(struct live_policy *live, const char *file, struct failure *ret_failure)
{
	int r;

	live->record = BUF_INIT(RECORD_MAX);
	r = policy_read(file, &live->policy, &live->record, &live->problems, ret_failure);
	if (r < 0)
		return r;
	live->file = file;
	live->loaded_us = loop_wall_us();
	snprintf(live->who, sizeof(live->who), "daemon");
	return 0;
}

void live_policy_close(struct live_policy *live)
{
	policy_free(live->policy);
	policy_free(live->before);
	problems_clear(&live->problems);
	buf_free(&live->record);
	*live = (struct live_policy){ 0 };
}

int live_policy_prepare(struct live_policy *live, struct kernel *kernel, struct failure *ret_failure)
{
	return policy_prepare(live->policy, kernel, &live->epoch, ret_failure);
}

/* From here on the new one is the live one: nothing below can fail. */
static void live_policy_replace(struct live_policy *live, struct policy *policy, struct buf *record,
				struct problems *problems, uint32_t epoch, const char *who)
{
	buf_free(&live->record);
	live->record = *record;
	policy_free(live->before);
	live->before = live->policy;
	live->epoch_before = live->epoch;
	live->policy = policy;
	live->epoch = epoch;
	problems_clear(&live->problems);
	live->problems = *problems;
	live->loaded_us = loop_wall_us();
	snprintf(live->who, sizeof(live->who), "%s", who);
}

int live_policy_turn(struct live_policy *live, struct kernel *kernel, struct workers *workers, struct service *service,
		     const char *who, struct policy_effect *ret, struct failure *ret_failure)
{
	struct failure of_cut = { 0 };
	int r, cut;

	*ret = (struct policy_effect){ 0 };
	r = service_policy_raise(service, &live->policy->modes, who, ret, ret_failure);
	service_idle_set(service, live->policy->sandbox.idle_ms * 1000);
	kernel_policy_commit(kernel);
	if (workers && workers_policy(workers, &live->record) < 0)
		workers_stop(workers); /* better none than one with the old policy */
	cut = service_policy_cut(service, ret, &of_cut);
	if (!r && cut)
		*ret_failure = of_cut;
	return r ? r : cut;
}

int live_policy_reload(struct live_policy *live, struct kernel *kernel, struct workers *workers,
		       struct service *service, const char *who, struct policy_reloaded *ret,
		       struct failure *ret_failure)
{
	struct problems problems = { 0 };
	struct buf record = BUF_INIT(RECORD_MAX);
	struct policy *policy = NULL;
	struct policy_effect effect;
	uint32_t epoch = 0;
	int r;

	if (!live->file)
		return fail(ret_failure, -ENOENT, NP_R_BAD_POLICY, "netpawld was started without --policy FILE");
	r = policy_read(live->file, &policy, &record, &problems, ret_failure);
	if (r == 0)
		r = policy_prepare(policy, kernel, &epoch, ret_failure);
	if (r < 0) {
		policy_free(policy);
		problems_clear(&problems);
		buf_free(&record);
		return r;
	}
	live_policy_replace(live, policy, &record, &problems, epoch, who);
	r = live_policy_turn(live, kernel, workers, service, who, &effect, ret_failure);
	memcpy(ret->previous, live->before->hash, sizeof(ret->previous));
	ret->raised = effect.raised;
	ret->cut = effect.cut;
	return r;
}

bool live_policy_place(const struct live_policy *live, const struct np_event *event, char text[static PLACE_TEXT_SIZE])
{
	const struct policy *policy = event->epoch == live->epoch	   ? live->policy
				      : event->epoch == live->epoch_before ? live->before
									   : NULL;
	const struct rule *rule = policy && event->epoch ? gate_rule_find(policy, event->rule) : NULL;

	if (rule)
		place_format(policy, &rule->at, text);
	return rule;
}
