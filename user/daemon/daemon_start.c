/* SPDX-License-Identifier: MIT */
/* Wiring: which part is given to which, and in which order they start; daemon_processes.c has those that are processes of their own. A decision found here is in the wrong place. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/sql.h"
#include "daemon/orphans.h"
#include "daemon/daemon.h"
#include "daemon/run_directory.h"
#include "kernel/cgroup.h"
#include "policy/pem.h"
#include "vocab/limits.h"

static int policy_open(struct daemon *d)
{
	struct failure failure = { 0 };
	int r = loaded_policy_open(&d->policy, d->options.policy, &failure);

	if (r < 0)
		log_error("%s", failure.text);
	else
		policy_warn(d);
	return r;
}

/* What is wrong with the certificates would end each inspector, and they would not say of which file it was. One that cannot be read, or is
 * empty, has none: that is warned of when they are told. */
static int roots_look(const struct daemon *d)
{
	_free_ char *pem = NULL;
	const char *problem = NULL;

	if (fs_read_at(AT_FDCWD, d->options.roots, NP_BUNDLE_BYTES, &pem) == 0 && *pem)
		problem = pem_problem(pem, strlen(pem));
	if (problem)
		log_error("--roots %s: %s", d->options.roots, problem);
	return problem ? -EINVAL : 0;
}

/* For the gate of a predecessor: what it let pass and this policy does not is cut. */
static int policy_start(struct daemon *d)
{
	struct failure failure = { 0 };
	struct policy_effect effect = { 0 };
	int r = loaded_policy_turn(&d->policy, d->kernel, NULL, d->service, "daemon", &effect, &failure);

	if (r < 0)
		log_error("%s", failure.text);
	supervisor_way_out(d->supervisor, loaded_policy_own_networks(&d->policy).way_out);
	policy_send(d, "daemon", effect.cut);
	save_note_recover(d);
	d->start_cut = effect.cut;
	return r;
}

/* Neither a slice nor pins. */
static bool gate_is_absent(const struct daemon *d)
{
	char mount[4096], path[FS_PATH_SIZE];
	_closedir_ DIR *pins = opendir(d->options.pin_dir);
	const struct dirent *entry;

	while (pins && (entry = readdir(pins)))
		if (entry->d_name[0] != '.')
			return false;
	return cgroup_mount_find(mount) == 0 && fs_path(path, "%s/%s", mount, d->options.cgroup) == 0 &&
	       access(path, F_OK) < 0 && errno == ENOENT;
}

static int kernel_start(struct daemon *d)
{
	struct kernel_config config = {
		.pin_dir = d->options.pin_dir,
		.slice = d->options.cgroup,
		.loop = d->loop,
		.on_event = on_kernel_event,
		.on_cgroup = on_cgroup,
		.data = d,
	};
	struct failure failure = { 0 };
	char problem[512];
	int r;

	d->fresh = gate_is_absent(d);
	r = kernel_open(&config, &d->kernel, problem);

	if (r < 0) {
		log_error("%s", problem);
		return r;
	}
	r = loaded_policy_prepare(&d->policy, d->kernel, &failure);
	if (r < 0)
		log_error("the policy: %s", failure.text);
	return r;
}

/* An older version's gate goes last of all: until here both were asked. */
static int upgrade_finish(struct daemon *d)
{
	struct event event = { .reason = NP_R_UPGRADED, .who = "daemon", .cut = d->start_cut, .has_cut = true };
	unsigned from, sandboxes;
	char text[256];
	int r = kernel_upgrade_finish(d->kernel, &from, &sandboxes);

	if (r < 0)
		log_error("%s: the gate of ABI version %u cannot be removed: %s. Both gates enforce; start again",
			  d->options.pin_dir, from, strerror(-r));
	if (r < 0 || !from)
		return r;
	snprintf(text, sizeof(text),
		 "from ABI version %u, %u sandboxes; not carried over: steered connections and DNS sockets (cut), CAs "
		 "that it did not keep, counts of sandboxes, ports of open listeners, forwards",
		 from, sandboxes);
	event.text = text;
	event_emit(d, &event);
	log_info("upgraded %s; %u connections were cut", text, d->start_cut);
	return 0;
}

static int sandbox_found(void *data, const struct sandbox_info *sandbox)
{
	(void)data;
	(void)sandbox;
	return -EEXIST;
}

static bool session_is_used(void *data, const char *session)
{
	return service_sandboxes_each(data, session, sandbox_found, NULL) < 0;
}

static bool sandbox_is_there(void *data, uint64_t cgroup_id)
{
	return service_sandbox_by_cgroup(data, cgroup_id);
}

/* What a crash has left and nobody finds in the record. */
static int orphans_remove(struct daemon *d)
{
	char mount[4096];
	int r = cgroup_mount_find(mount);

	supervisor_recovered(d->supervisor, session_is_used, sandbox_is_there, d->service);
	if (r == 0)
		r = fs_path(d->slice, "%s/%s", mount, d->options.cgroup);
	if (r == 0)
		orphans_groups(d->slice);
	d->retired = false;
	return r;
}

static int service_start(struct daemon *d)
{
	struct service_config config = {
		.store = d->store,
		.gate = kernel_gate(d->kernel),
		.inspectors = supervisor_inspectors(d->supervisor),
		.wall_us = loop_wall_us,
		.now_ns = loop_now_ns,
		.boot_us = loop_boot_us,
		.emit = event_emit,
		.emit_data = d,
		.notice_write = notice_words,
		.notice_data = d,
		.notices_dir = d->notices_dir,
		.kept_dir = d->kept_dir,
		.containers_dir = d->containers_dir,
		.policy = policy_in_force,
		.policy_data = d,
		.deciders = deciders_calls(d->deciders),
		.idle_us = d->policy.policy->sandbox.idle_ms * 1000,
		.lifetime = d->policy.policy->lifetime,
		.workspace_end = workspace_end,
		.workspace_is = workspace_is,
		.workspace_data = d,
		.count = sandbox_counts_read,
		.count_data = d,
		.before_retire = before_retire,
		.on_retired = on_retired,
		.before_handover = before_handover,
		.retire_data = d,
	};
	struct failure failure = { 0 };
	int r = fs_path(d->notices_dir, "%s/notices", d->options.run_dir);

	config.modes = d->policy.policy->modes;
	if (r == 0)
		r = fs_path(d->kept_dir, "%s/kept", d->options.run_dir);
	if (r == 0)
		r = fs_path(d->containers_dir, "%s/" NP_CONTAINERS_DIR, d->options.run_dir);
	if (r == 0)
		r = service_new(&config, &d->service);
	if (r == 0)
		r = service_recover(d->service, &failure);
	if (r == 0)
		service_runs_recover(d->service);
	if (r == 0)
		r = service_questions_recover(d->service, &failure);
	if (r == 0)
		r = service_sandboxes_each(d->service, NULL, on_recovered, d);
	if (r < 0)
		log_error("cannot join the record with the kernel: %s", failure.text[0] ? failure.text : strerror(-r));
	if (r == 0)
		r = config.gate.each(config.gate.ctx, flood_start, d);
	if (r == 0)
		r = orphans_remove(d);
	return r;
}

static int workspaces_start(struct daemon *d)
{
	struct workspaces_config config = {
		.wall_us = loop_wall_us, .now_ns = loop_now_ns, .report = on_workspace_ended, .data = d
	};
	int r = d->options.data_dir ? fs_path(d->data_dir, "%s", d->options.data_dir)
				    : fs_path(d->data_dir, "%s/data", d->options.state_dir);

	config.data_dir = d->data_dir;
	if (r == 0)
		r = workspaces_open(&config, &d->workspaces);
	if (r < 0)
		log_error("%s: %s", d->data_dir, strerror(-r));
	return r;
}

static void store_tend_now(void *data)
{
	struct daemon *d = data;

	store_tend(d->store);
}

/* In a commit, which an answer waits for: later. */
static void on_store_due(void *data)
{
	struct daemon *d = data;

	loop_later(d->loop, &d->store_due);
}

static int state_start(struct daemon *d)
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s/sessions.db", d->options.state_dir);

	if (r == 0)
		r = store_open(path, &d->store);
	if (r < 0) {
		log_error("%s/sessions.db: %s", d->options.state_dir,
			  r == -EPROTO ? "made by a version that this one does not know" : sql_strerror(r));
		return r;
	}
	d->store_due.fn = store_tend_now;
	d->store_due.data = d;
	store_on_due(d->store, on_store_due, d);
	r = fs_path(path, "%s/events", d->options.state_dir);
	if (r == 0)
		r = fs_mkdir_all(path, 0750);
	if (r == 0)
		r = event_log_open(path, &d->options.events, &d->events);
	if (r == 0)
		d->events_before = event_log_last_seq(d->events);
	if (r == 0)
		r = flood_new(&d->flood);
	if (r < 0)
		log_error("%s/events: %s", d->options.state_dir, strerror(-r));
	return r;
}

static bool peer_is_sandboxed(void *data, pid_t pid)
{
	struct daemon *d = data;

	return kernel_is_sandboxed(d->kernel, pid);
}

static int server_start(struct daemon *d)
{
	char path[FS_PATH_SIZE], outputs[FS_PATH_SIZE];
	struct server_config config = {
		.loop = d->loop,
		.service = d->service,
		.workspaces = d->workspaces,
		.events = d->events,
		.socket_path = path,
		.peer_is_sandboxed = peer_is_sandboxed,
		.health = daemon_describe,
		.node = node_describe,
		.is_degraded = daemon_is_degraded,
		.metrics = daemon_metrics,
		.facts = daemon_facts_read,
		.debug = supervisor_debug(d->supervisor),
		.policy_loaded = policy_loaded,
		.policy_reload = policy_reload_by,
		.policy_save = policy_save_by,
		.grant_change = grant_change,
		.session_ca = session_ca,
		.credentials = { credentials_count, credentials_describe, credentials_refresh,
				 credentials_placeholder },
		.settle = counts_settle,
		.data = d,
	};
	struct launches_config launches = { .loop = d->loop,
					    .socket_path = path,
					    .dir = outputs,
					    .on_output = on_run_output,
					    .on_end = on_run_end,
					    .data = d };
	int r = fs_path(path, "%s/control.sock", d->options.run_dir);

	if (r == 0)
		r = fs_path(outputs, "%s/launches", d->options.run_dir);
	if (r == 0)
		r = launches_new(&launches, &d->launches);
	config.launcher = launches_launcher(d->launches);
	if (r == 0)
		r = server_new(&config, &d->server);
	if (r == 0)
		r = fs_path(path, "%s/approve.sock", d->options.run_dir);
	config.approvals = true;
	if (r == 0)
		r = server_new(&config, &d->approvals);
	if (r < 0)
		log_error("%s: %s", path, strerror(-r));
	return r;
}

int daemon_start(struct daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, 0 };
	static int (*const steps[])(struct daemon *
				    d) = { state_start,	      workspaces_start,	      kernel_start,
					   daemon_vault_open, daemon_supervisor_open, daemon_deciders_open,
					   service_start,     policy_start,	      upgrade_finish };
	int r = policy_open(d);

	if (r == 0)
		r = roots_look(d);
	if (r == 0)
		r = lock_take(d->options.run_dir, RUN_DIRECTORY_MODE, &d->run_lock);
	if (r == 0)
		r = lock_take(d->options.state_dir, 0750, &d->state_lock);
	if (r == 0)
		r = loop_new(&d->loop);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(steps); i++)
		r = steps[i](d);
	if (r == 0)
		r = loop_signals(d->loop, signals, on_signal, d);
	if (r == 0)
		r = newborns_start(d);
	if (r == 0)
		r = loop_every(d->loop, 1000, on_second, d);
	if (r == 0)
		r = server_start(d);
	if (r == 0)
		r = daemon_exporters_open(d);
	if (r == 0) {
		deciders_policy(d->deciders, d->policy.policy);
		notifier_policy(d->notifier, d->policy.policy);
		exporters_policy(d->exporters, d->policy.policy, d->events_before);
		questions_notify(d);
	}
	return r;
}
