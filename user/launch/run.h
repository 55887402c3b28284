/* SPDX-License-Identifier: MIT */
/* One run, of `netpawl run` or of the API. run_perform.c: what comes after what; run_sandbox.c: what is asked of the daemon
 * around a sandbox; run_kept.c: the same with --keep, kept_spec.c: what a kept sandbox was made with; run_record.c: the run
 * on record; run_plan.c: the plan; run_binds.c: what --bind names; run_env.c: the environment; run_result.c: the plan and the result as JSON. */
#pragma once

#include <jansson.h>

#include "api_client/api.h"
#include "base/fs.h"
#include "vocab/limits.h"
#include "launch/launch.h"
#include "launch/plan.h"

struct run {
	const char *socket; /* the daemon's */
	struct run_options options;
	char **command;
	bool launched;	   /* by netpawld: it was on record before, and has its options and its command there */
	char **recorded;   /* that command; owned */
	size_t n_env_file; /* of env, the first so many are of a file */
	char *env[NP_RUN_TEXTS + 1]; /* NAME=VALUE of --env and --env-file, ends with NULL; owned */
	json_t *record;		     /* its words point into this */
	char id[24];		     /* of the run on record; empty: it is on none */
	const char *session;
	char own_session[NP_SESSION_MAX + 64]; /* when none was named */
	bool session_ours;		       /* made by us and so for us to end */
	bool isolated;
	bool inspected;			    /* inspectors are ready */
	char *sandbox, *cgroup, *workspace; /* NULL: there is none */
	char *notices;			    /* directory of the session's notices; likewise */
	char *ca;			    /* the session's, as PEM; likewise */
	char *netns;			    /* a file that leads to its own network namespace; likewise */
	uint64_t netns_inode;
	bool way_out;	 /* it leads to beyond the host */
	char *hidden[5]; /* the daemon's directories, ends with NULL; owned */
	char *data_dir;	 /* one of them */

	/* What the plan is made of. */
	struct identity identity;
	struct host host;
	struct trust trust;
	struct placeholders placeholders;
	struct bind binds[NP_BINDS_MAX];
	struct permit permits[NP_BINDS_MAX];
	json_t *facts; /* what the daemon said of itself; permits point into it */
	struct limits limits;
	char cwd[FS_PATH_SIZE];
	struct plan plan;

	/* What is asked of the daemon when the command has ended; of a kept sandbox, and before it started, too. */
	json_t *counts, *before;
	uint64_t started_us, completed_us;
	struct launch_result result;

	bool json;	/* its output is for the result */
	bool has_ended; /* the result is one */
	bool reported;	/* and on record, or the daemon does not take it */
	bool has_identity, has_trust;
};

/* The whole of it, from what options say on: its exit code. With dry_run no more than the plan is made. Then run_free(). */
int run_perform(struct run *run);

/* All of these report what is wrong and return CLI_OK or an exit code. */

/* What options say, before anything is made. */
int run_read(struct run *run);
/* What --env and --env-file name. */
int run_env_read(struct run *run);
/* What the daemon said of itself: netpawl has to live where it does. */
int run_facts_take(struct run *run, json_t *facts);
int run_facts_get(struct run *run);
/* The limits, within those of the policy. */
int run_policy(struct run *run);
/* What the policy permits to bind: how many, in run->permits. */
size_t run_permits(struct run *run);
/* Where the binds' links lead. What is not permitted is refused, before it is said whether it is there. */
int run_binds(struct run *run);
/* Says why it does not run, here and in the record. LAUNCH_FAILED. */
__attribute__((format(printf, 2, 3))) int run_refuse(struct run *run, const char *fmt, ...);
/* The request that a plan is made of, but for host and trust. */
struct plan_request run_request(struct run *run);
/* The whole plan, for a sandbox that is there, or (dry run) as if it were. */
int run_plan(struct run *run);
/* What its session has in the place of credentials, for the request. 0; LAUNCH_FAILED after a message. */
int run_placeholders(struct run *run, struct plan_request *request);
/* Another one, for the host as it is now. */
int run_plan_again(struct run *run);
void run_free(struct run *run);

/* A sandbox makes its session by itself; a run on record and a level need one before. */
int session_make(struct run *run);
/* A call about its session. The body (NULL: it is not UTF-8) is taken over; answer is to be freed in any case. */
int run_post(struct run *run, const char *path, json_t *body, struct api_answer *ret);
int sandbox_make(struct run *run);
/* Notes which sandbox the daemon's answer is about, and forgets it again. */
int sandbox_take(struct run *run, const json_t *answer);
void sandbox_forget(struct run *run);
void sandbox_remove(struct run *run);
/* For another try: an emptied sandbox is swept, so there is none to try in. False: one on record starts once. */
bool sandbox_renew(struct run *run);
/* emptied: the daemon sweeps it by itself. */
void run_clean_up(struct run *run, bool emptied);
/* Asks the daemon what the sandbox did, when somebody wants to know: at the end of the command, while the sandbox is there. */
void run_on_ended(void *data);
/* It has ended, and its output takes time: the record is told at once. */
void run_on_slow_reader(void *data);
/* The same where nobody saw that end: the sandbox was ended by somebody else. */
void run_ended(struct run *run);
/* Still without its cgroup and the signal mask. */
struct launch_order run_order(struct run *run);
uint64_t wall_us(void);

/* The run with --keep, once it may start; its exit code. */
int run_kept(struct run *run, const sigset_t *mask);

/* launched: takes the session, the command and the options from the record, so that what runs, and how, is what was approved. */
int run_record_read(struct run *run);
/* With --class: puts the run on record and waits until it may start. */
int run_on_record(struct run *run);
/* As they are on record; NULL, or not 0: out of memory, or not UTF-8. */
json_t *run_command_json(char *const *words);
int run_option_json(json_t *object, const struct run_option *option, struct run_options *o);
/* That it waits for somebody's approval. */
void run_waits_print(const struct run *run);
/* It is not to be started, for that reason, which is told to whoever asked for it. */
void run_withdraw(const struct run *run, const char *reason);
/* The daemon has refused what it needs: that is why it does not run. */
void run_refused_note(struct run *run, const struct api_answer *answer);
/* Why it does not run. */
void run_rejected_print(const struct run *run, const json_t *answer, const char *text);
/* The whole run, by the daemon's launcher, for who is not root; its exit code. */
int run_remote(struct run *run);
/* True when a signal came that would have ended us, were it not held. */
bool run_interrupted(void);
/* Reports to the record how it ended, once. */
void run_report(struct run *run);

json_t *run_plan_json(const struct run *run);
json_t *run_result_json(const struct run *run);
/* On stderr, what is worth a message; once it has ended. */
void run_result_print(const struct run *run);

/* The session's CA certificate and the system's roots. 1: there is one; 0: no inspector has made one; < 0: told. patient: wait
 * a while for the inspectors to make it. */
int session_trust(const char *socket, const char *session, const struct host *host, bool patient, struct trust *ret);
