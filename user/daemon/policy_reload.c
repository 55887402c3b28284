/* SPDX-License-Identifier: MIT */
#include "daemon/policy_reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/proxy_logins.h"
#include "supervisor/supervisor.h"
#include "loop/loop.h"
#include "policy/accounts.h"
#include "policy/tables.h"
#include "vault/vault.h"
#include "vocab/limits.h"

#define RECORD_MAX (NP_POLICY_BYTES + (1u << 20)) /* the files and their names */

static int policy_fail(struct failure *ret, int error, unsigned reason, const char *text)
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
	if (r == 0) {
		policy_accounts_check(*ret, file ? file : "the default policy", problems);
		return 0;
	}
	problems_first(problems, line);
	return policy_fail(ret_failure, r, NP_R_BAD_POLICY, line[0] ? line : strerror(-r));
}

static int policy_prepare(const struct policy *policy, struct kernel *kernel, uint32_t *ret_epoch, bool *ret_direct,
			  struct failure *ret_failure)
{
	struct gate_tables tables;
	int r = gate_tables_make(policy, &tables);

	if (r == -E2BIG)
		return policy_fail(ret_failure, r, NP_R_BAD_POLICY,
				   "its address rules make more entries than the gate's tables hold");
	if (r < 0)
		return policy_fail(ret_failure, r, NP_R_FAILED, strerror(-r));
	*ret_direct = tables.direct;
	r = kernel_policy_prepare(kernel, &tables, ret_epoch);
	gate_tables_free(&tables);
	return r < 0 ? policy_fail(ret_failure, r, NP_R_NOT_APPLIED, strerror(-r)) : 0;
}

int loaded_policy_open(struct loaded_policy *loaded, const char *file, struct failure *ret_failure)
{
	int r;

	loaded->record = BUF_INIT(RECORD_MAX);
	r = policy_read(file, &loaded->policy, &loaded->record, &loaded->problems, ret_failure);
	if (r == 0)
		r = proxy_logins_load(loaded->policy, &loaded->proxy_logins, ret_failure);
	if (r < 0)
		return r;
	loaded->file = file;
	loaded->loaded_us = loop_wall_us();
	snprintf(loaded->who, sizeof(loaded->who), "daemon");
	return 0;
}

void loaded_policy_close(struct loaded_policy *loaded)
{
	policy_free(loaded->policy);
	policy_free(loaded->before);
	problems_clear(&loaded->problems);
	buf_free(&loaded->record);
	explicit_bzero(loaded, sizeof(*loaded));
}

int loaded_policy_prepare(struct loaded_policy *loaded, struct kernel *kernel, struct failure *ret_failure)
{
	return policy_prepare(loaded->policy, kernel, &loaded->epoch, &loaded->direct, ret_failure);
}

struct own_networks loaded_policy_own_networks(const struct loaded_policy *loaded)
{
	const struct policy *policy = loaded->policy;
	struct own_networks networks = { 0 };

	if (policy->sandbox.network == NETWORK_SHARED)
		return networks;
	networks.modes = 1u << NP_NONE | (loaded->direct ? 0 : 1u << NP_PROXIED);
	if (policy->sandbox.network == NETWORK_NAT && !policy->n_host_loopback) {
		networks.modes = 1u << NP_FULL | 1u << NP_PROXIED | 1u << NP_NONE;
		networks.way_out = 1u << NP_FULL | (loaded->direct ? 1u << NP_PROXIED : 0);
	}
	return networks;
}

/* From here on the new one is the live one: nothing below can fail. */
static void loaded_policy_replace(struct loaded_policy *loaded, struct policy *policy, struct buf *record,
				  const struct link_proxy_logins *logins, struct problems *problems, uint32_t epoch,
				  const char *who)
{
	buf_free(&loaded->record);
	loaded->record = *record;
	loaded->proxy_logins = *logins;
	policy_free(loaded->before);
	loaded->before = loaded->policy;
	loaded->epoch_before = loaded->epoch;
	loaded->policy = policy;
	loaded->epoch = epoch;
	problems_clear(&loaded->problems);
	loaded->problems = *problems;
	loaded->loaded_us = loop_wall_us();
	snprintf(loaded->who, sizeof(loaded->who), "%s", who);
}

int loaded_policy_turn(struct loaded_policy *loaded, struct kernel *kernel, struct supervisor *supervisor,
		       struct service *service, const char *who, struct policy_effect *ret, struct failure *ret_failure)
{
	struct failure of_cut = { 0 };
	struct own_networks networks;
	int r, cut;

	*ret = (struct policy_effect){ 0 };
	r = service_policy_raise(service, &loaded->policy->modes, who, ret, ret_failure);
	service_idle_set(service, loaded->policy->sandbox.idle_ms * 1000);
	service_lifetime_set(service, &loaded->policy->lifetime);
	networks = loaded_policy_own_networks(loaded);
	service_own_network_set(service, &networks);
	if (supervisor)
		supervisor_way_out(supervisor, networks.way_out);
	kernel_policy_commit(kernel);
	if (loaded->vault)
		vault_policy(loaded->vault, loaded->policy);
	if (supervisor && supervisor_policy(supervisor, &loaded->record, &loaded->proxy_logins) < 0)
		supervisor_stop(supervisor); /* better none than one with the old policy */
	if (loaded->vault)
		vault_settle(loaded->vault);
	cut = service_policy_cut(service, ret, &of_cut);
	if (!r && cut)
		*ret_failure = of_cut;
	return r ? r : cut;
}

int loaded_policy_reload(struct loaded_policy *loaded, struct kernel *kernel, struct supervisor *supervisor,
			 struct service *service, const char *who, struct policy_reloaded *ret,
			 struct failure *ret_failure)
{
	cleanup(proxy_logins_wipe) struct link_proxy_logins logins = { 0 };
	struct problems problems = { 0 };
	struct buf record = BUF_INIT(RECORD_MAX);
	struct policy *policy = NULL;
	struct policy_effect effect;
	uint32_t epoch = 0;
	bool direct = false;
	int r;

	if (!loaded->file)
		return policy_fail(ret_failure, -ENOENT, NP_R_BAD_POLICY, "netpawld was started without --policy FILE");
	r = policy_read(loaded->file, &policy, &record, &problems, ret_failure);
	if (r == 0)
		r = proxy_logins_load(policy, &logins, ret_failure);
	if (r == 0)
		r = policy_prepare(policy, kernel, &epoch, &direct, ret_failure);
	if (r < 0) {
		policy_free(policy);
		problems_clear(&problems);
		buf_free(&record);
		return r;
	}
	loaded_policy_replace(loaded, policy, &record, &logins, &problems, epoch, who);
	loaded->direct = direct;
	r = loaded_policy_turn(loaded, kernel, supervisor, service, who, &effect, ret_failure);
	memcpy(ret->previous, loaded->before->hash, sizeof(ret->previous));
	ret->raised = effect.raised;
	ret->cut = effect.cut;
	return r;
}

const struct rule *loaded_policy_rule(const struct loaded_policy *loaded, const struct np_event *event,
				      const struct policy **ret_policy)
{
	const struct policy *policy = event->epoch == loaded->epoch	     ? loaded->policy
				      : event->epoch == loaded->epoch_before ? loaded->before
									     : NULL;

	*ret_policy = policy;
	return policy && event->epoch ? gate_rule_find(policy, event->rule) : NULL;
}
