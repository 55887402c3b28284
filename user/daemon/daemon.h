/* SPDX-License-Identifier: MIT */
/* The parts of the running daemon, and what happens to it. Files: main.c (tasks, the end), daemon_start.c, daemon_processes.c (the start),
 * daemon_describe.c, daemon_metrics.c (what it says of itself), callbacks.c (what the parts call each other for), reports.c (what sandboxes
 * did), parts.c (what must be there), policy_reload.c (the policy in force). */
#pragma once

#include "control/server.h"
#include "daemon/launches.h"
#include "daemon/settings.h"
#include "daemon/policy_reload.h"
#include "supervisor/deciders.h"
#include "supervisor/exporters.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "vault/vault.h"
#include "events/flood.h"
#include "events/event_log.h"
#include "events/tally.h"
#include "kernel/kernel.h"
#include "session/service.h"
#include "session/workspaces.h"

/* What is gone of what everything stands on, in words; looked at once a second. */
#define PARTS_MAX 12
struct parts {
	char missing[PARTS_MAX][512];
	unsigned n;
};

struct daemon {
	struct options options;
	struct loaded_policy policy;
	struct loop *loop;
	struct store *store;
	struct loop_task store_due; /* for store_tend() */
	struct kernel *kernel;
	struct supervisor *supervisor;
	struct vault *vault;
	struct deciders *deciders;
	struct notifier *notifier;
	struct exporters *exporters;
	struct service *service;
	struct workspaces *workspaces;
	char data_dir[FS_PATH_SIZE];
	struct event_log *events;
	uint64_t events_before; /* seq of the last event before this start */
	struct flood *flood;
	struct launches *launches;
	struct server *server;
	struct server *approvals; /* approve.sock */
	char notices_dir[FS_PATH_SIZE], kept_dir[FS_PATH_SIZE], containers_dir[FS_PATH_SIZE];
	char slice[FS_PATH_SIZE];
	int newborns_fd;     /* a timer */
	bool retired;	     /* a sandbox is gone since orphans were looked for, ... */
	uint64_t orphans_ns; /* ... and when they are again, at the earliest */
	uint32_t
		start_cut; /* connections that were cut at the start: the policy, or this version, does not carry them on */
	struct parts parts;
	struct tally tally; /* of the events of this start */
	bool stopping;
	bool fresh; /* nothing of a gate was there before this start: if that fails, nothing stays */
	int run_lock, state_lock;
};

void event_emit(void *data, struct event *event);
void question_notify(struct daemon *d, const struct event *event); /* notifications.c */
void questions_notify(struct daemon *d);			   /* of all that wait, at the start */

/* daemon_start.c */
int daemon_start(struct daemon *d);

/* daemon_processes.c: each logs what went wrong; 0 or -errno. */
int daemon_vault_open(struct daemon *d);
int daemon_supervisor_open(struct daemon *d);
int daemon_deciders_open(struct daemon *d);
int daemon_exporters_open(struct daemon *d);

/* daemon_describe.c */
void daemon_facts_read(void *data, struct daemon_facts *ret);
void daemon_describe(void *data, struct buf *out);
bool daemon_is_degraded(void *data);

/* node_describe.c */
void node_describe(void *data, struct buf *out);

/* daemon_metrics.c */
void daemon_metrics(void *data, struct buf *out);

/* callbacks.c */
void on_cgroup(void *data, uint64_t cgroup_id);
int on_recovered(void *data, const struct sandbox_info *sandbox);
void on_retired(void *data, uint64_t cgroup_id);
void on_second(void *data);
void on_workspace_ended(void *data, const char *session, bool failed, const char *text);
int workspace_end(void *data, const char *session, enum workspace_fate fate);
bool workspace_is(void *data, const char *session);
void policy_send(struct daemon *d, const char *who, unsigned cut);
int policy_reload_by(void *data, const char *who, struct policy_reloaded *ret, struct failure *ret_failure);
void policy_loaded(void *data, struct policy_loaded *ret);
void policy_warn(const struct daemon *d);
void on_signal(void *data, int signo);
void on_finished(void *data);
void on_debug(void *data);
void notice_words(void *data, const struct notice_facts *facts, struct buf *out);
void counts_settle(void *data);
void on_run_output(void *data);
void on_run_end(void *data, uint64_t id);
const struct policy *policy_in_force(void *data);
int session_ca(void *data, const char *session, struct buf *out);

size_t credentials_count(void *data);
void credentials_describe(void *data, size_t i, struct credential_state *ret);
int credentials_refresh(void *data, const char *name);
size_t credentials_placeholder(void *data, const char *session, const struct credential *credential,
			       char ret[static NP_PLACEHOLDER_MAX + 1]);
void on_secret(void *data, const char *policy, const char *name);

/* policy_files.c */
int policy_save_by(void *data, const struct policy_save *save, const char *who, struct policy_saved *ret,
		   struct failure *ret_failure);
/* The directory of the policy's first file; -errno. */
int policy_dir_open(const char *file);
/* A regular file, by no link: -ELOOP when it is one. 0 or -errno. */
int policy_file_get(int dir, const char *name, struct buf *out);
/* Puts text in the place of the file at once, with its owner and its mode, but that only the owner may write, and on the disk. Nothing: the
 * file goes. A link stays: -ELOOP. 0 or -errno. */
int policy_file_put(int dir, const char *name, const struct buf *text);
const char *policy_file_strerror(int r); /* of these two */

/* save_note.c: what is being saved, for the case of a crash. */
int save_note_put(const struct daemon *d, const struct policy_save *save, const char *who, const char *hash);
void save_note_drop(const struct daemon *d);
void save_note_recover(struct daemon *d); /* at a start, when the policy is live */
void saved_send(struct daemon *d, const char *file, const char *old, const char *new, const char *who);

/* newborns.c */
int newborns_start(struct daemon *d);
void newborns_look(struct daemon *d);

/* parts.c */
void parts_check(struct daemon *d);
void parts_describe(const struct parts *parts, struct buf *out);

/* reports.c */
void on_kernel_event(void *data, const struct np_event *raw);
int flood_start(void *data, const struct gate_sandbox *sandbox);
void before_retire(void *data, uint64_t cgroup_id);
void before_handover(void *data, uint64_t cgroup_id);
bool on_report(void *data, const struct ledger_entry *of, const struct link_request *report,
	       const char *const tails[LINK_TAILS]);
/* grants.c: adds the grant of an answer "always" to its file, or takes it out, and reloads the policy. */
int grant_change(void *data, const struct question_row *row, bool add, const char *who, struct failure *ret_failure);
void on_ask(void *data, const struct question_waiter *from, const struct link_ask *message);
void on_decision(void *data, const struct decision *decision);
void on_leak(void *data, uint64_t cgroup_id, const char *session, const char *credential);
void on_asks_lost(void *data, unsigned inspector);
void on_lost(void *data, const struct ledger_entry *of, uint64_t count);
void on_suppressed(void *data, const struct ledger_entry *of, uint64_t count);
uint64_t last_seq(void *data);
void sandbox_counts_read(void *data, uint64_t cgroup_id, struct sandbox_counts *ret);
void records_second(struct daemon *d);
