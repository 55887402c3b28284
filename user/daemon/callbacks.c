/* SPDX-License-Identifier: MIT */
/* The callbacks that wire the parts to each other while the daemon runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/orphans.h"
#include "vocab/limits.h"

/* --verbose: what changed, as its event has it. */
static void change_log(const struct event *event)
{
	_buf_ struct buf line = BUF_INIT(NP_EVENT_LINE_MAX);

	if (!log_is_verbose() || strcmp(event_kind(event->reason), "change") != 0)
		return;
	event_to_json(event, &line);
	if (!buf_error(&line))
		log_debug("%.*s", (int)line.len - 1, line.data);
}

static int sandbox_stale(void *data, const struct sandbox_info *sandbox)
{
	server_refused(data, sandbox->session.text);
	return 0;
}

/* What is waited for may be another: d->server is there. */
static void servers_changed(struct daemon *d)
{
	server_changed(d->server);
	if (d->approvals)
		server_changed(d->approvals);
}

void event_emit(void *data, struct event *event)
{
	struct daemon *d = data;

	if (!event->wall_us)
		event->wall_us = loop_wall_us();
	change_log(event);
	event_log_put(d->events, event);
	tally_note(&d->tally, event);
	if (d->server && event->session && !NP_REASON_ALLOWS(event->reason))
		server_refused(d->server, event->session);
	if (d->server && (event->question || event->run) && NP_REASON_CHANGES(event->reason))
		servers_changed(d);
	if (d->notifier && d->service)
		question_notify(d, event);
	if (d->server && event->reason == NP_R_POLICY_LOADED) /* what they may reach is another */
		service_sandboxes_each(d->service, NULL, sandbox_stale, d->server);
}

void on_cgroup(void *data, uint64_t cgroup_id)
{
	struct daemon *d = data;

	if (!d->service)
		return;
	service_sandbox_changed(d->service, cgroup_id);
	newborns_look(d);
}

void on_retired(void *data, uint64_t cgroup_id)
{
	struct daemon *d = data;

	d->retired = true;
	workspaces_leave(d->workspaces, cgroup_id);
}

int on_recovered(void *data, const struct sandbox_info *sandbox)
{
	struct daemon *d = data;

	return workspaces_recover(d->workspaces, sandbox->cgroup.id, sandbox->cgroup.path);
}

/* The launcher of a sandbox removes the cgroups of its limits, unless it was killed: then this does. */
static void orphans_sweep(struct daemon *d)
{
	const uint64_t now = loop_now_ns();

	if (!d->retired || now < d->orphans_ns)
		return;
	orphans_groups(d->slice);
	d->retired = false;
	d->orphans_ns = now + NP_ORPHANS_S * 1000000000ull;
}

void on_workspace_ended(void *data, const char *session, bool failed, const char *text)
{
	char words[FS_PATH_SIZE + 64];

	snprintf(words, sizeof(words), "the workspace of %s: %s", session, text);
	if (failed)
		log_error("%s", words);
	event_emit(data, &(struct event){ .reason = failed ? NP_R_FAILED : NP_R_WORKSPACE_ENDED,
					  .session = session,
					  .who = "daemon",
					  .text = failed ? words : text });
}

int workspace_end(void *data, const char *session, enum workspace_fate fate)
{
	struct daemon *d = data;
	struct session_name name;
	const char *problem;

	return session_name_parse(session, &name, &problem) ? -EINVAL : workspaces_end(d->workspaces, &name, fate);
}

bool workspace_is(void *data, const char *session)
{
	return workspace_end(data, session, WORKSPACE_KEEP) != -ENOENT;
}

void on_second(void *data)
{
	struct daemon *d = data;

	parts_check(d);
	vault_tick(d->vault);
	service_sweep(d->service);
	newborns_look(d);
	workspaces_sweep(d->workspaces, d->policy.policy->lifetime.archive_max);
	orphans_sweep(d);
	records_second(d);
	event_log_flush(d->events, loop_wall_us(), loop_boot_us());
}

size_t credentials_count(void *data)
{
	return vault_count(((struct daemon *)data)->vault);
}

void credentials_describe(void *data, size_t i, struct credential_state *ret)
{
	vault_describe(((struct daemon *)data)->vault, i, ret);
}

int credentials_refresh(void *data, const char *name)
{
	return vault_refresh(((struct daemon *)data)->vault, name);
}

size_t credentials_placeholder(void *data, const char *session, const struct credential *credential,
			       char ret[static NP_PLACEHOLDER_MAX + 1])
{
	const struct daemon *d = data;

	return placeholder_make(vault_placeholder_key(d->vault), session, credential->name, credential->like, ret);
}

void on_secret(void *data, const char *policy, const char *name)
{
	struct daemon *d = data;

	if (d->supervisor)
		supervisor_secret(d->supervisor, policy, name);
}

/* -- the policy ---------------------------------------------------------------- */

void policy_send(struct daemon *d, const char *who, unsigned cut)
{
	char text[256];
	struct event event = {
		.reason = NP_R_POLICY_LOADED,
		.who = who,
		.policy = d->policy.policy->hash,
		.text = text,
		.cut = cut,
		.has_cut = 1,
	};

	snprintf(text, sizeof(text), "%.200s, %zu rules", d->policy.file ? d->policy.file : "no file",
		 d->policy.policy->n_rules);
	event_emit(d, &event);
}

int policy_reload_by(void *data, const char *who, struct policy_reloaded *ret, struct failure *ret_failure)
{
	struct daemon *d = data;
	const struct policy *before = d->policy.policy;
	const uint64_t from_ns = loop_now_ns(), after = event_log_last_seq(d->events);
	int r = loaded_policy_reload(&d->policy, d->kernel, d->supervisor, d->service, who, ret, ret_failure);

	log_debug("the reload by %s took %llu us", who, (unsigned long long)((loop_now_ns() - from_ns) / 1000));
	if (d->policy.policy != before) {
		policy_send(d, who, ret->cut);
		server_policy(d->server);
		server_policy(d->approvals);
		deciders_policy(d->deciders, d->policy.policy);
		notifier_policy(d->notifier, d->policy.policy);
		exporters_policy(d->exporters, d->policy.policy, after);
	}
	if (r < 0)
		event_emit(d, &(struct event){ .reason = d->policy.policy != before ? ret_failure->reason
										    : NP_R_POLICY_REFUSED,
					       .who = who,
					       .text = ret_failure->text });
	return r;
}

void policy_loaded(void *data, struct policy_loaded *ret)
{
	struct daemon *d = data;

	*ret = (struct policy_loaded){
		.file = d->policy.file,
		.policy = d->policy.policy,
		.record = &d->policy.record,
		.problems = &d->policy.problems,
		.loaded_us = d->policy.loaded_us,
		.epoch = d->policy.epoch,
		.who = d->policy.who,
	};
}

const struct policy *policy_in_force(void *data)
{
	const struct daemon *d = data;

	return d->policy.policy;
}

void policy_warn(const struct daemon *d)
{
	for (size_t i = 0; i < d->policy.problems.count; i++) {
		char line[PROBLEM_LINE_SIZE];

		problem_format(&d->policy.problems.items[i], line);
		log_warning("%s", line);
	}
}

static void on_hangup(struct daemon *d)
{
	struct policy_reloaded done = { 0 };
	struct failure failure = { 0 };
	int r = policy_reload_by(d, "SIGHUP", &done, &failure);

	if (r < 0) {
		log_error("%s", failure.text);
		return;
	}
	policy_warn(d);
	log_info("policy %.12s is live: %zu rules, %u connections cut, %u sessions raised", d->policy.policy->hash,
		 d->policy.policy->n_rules, done.cut, done.raised);
}

void on_signal(void *data, int signo)
{
	struct daemon *d = data;

	if (signo == SIGHUP) {
		on_hangup(d);
		return;
	}
	if (d->stopping) { /* a second signal is from somebody in a hurry */
		loop_stop(d->loop);
		return;
	}
	d->stopping = true;
	log_info("stopping; the gate stays in the kernel");
	supervisor_finish(d->supervisor);
}

void on_finished(void *data)
{
	struct daemon *d = data;

	loop_stop(d->loop);
}

void notice_words(void *data, const struct notice_facts *facts, struct buf *out)
{
	struct daemon *d = data;

	notice_write(d->policy.policy, facts, out);
}

void counts_settle(void *data)
{
	struct daemon *d = data;

	supervisor_settle(d->supervisor);
	kernel_drain(d->kernel);
}

int session_ca(void *data, const char *session, struct buf *out)
{
	struct daemon *d = data;

	return supervisor_ca(d->supervisor, session, out);
}

void on_debug(void *data)
{
	struct daemon *d = data;

	if (d->server)
		servers_changed(d);
}

void on_run_output(void *data)
{
	struct daemon *d = data;

	server_output(d->server);
}

/* One that did not start by now never will: refused unless it is still pending. */
void on_run_end(void *data, uint64_t id)
{
	struct daemon *d = data;
	struct failure ignored;
	struct run_row run;

	service_run_withdraw(d->service, id, "it could not be started", "daemon", &run, &ignored);
}
