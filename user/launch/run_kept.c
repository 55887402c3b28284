/* SPDX-License-Identifier: MIT */
/*
 * netpawl run --keep: one call to the daemon, one connection to process 1 of the session's kept sandbox. A run that
 * finds the sandbox not made yet makes it, under the lock that all runs in it share; one that finds it dead has it
 * removed, and starts over.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "api_client/api.h"
#include "launch/kept_spec.h"
#include "reason.h"
#include "launch/kept.h"
#include "launch/run_group.h"
#include "vocab/limits.h"

#define LOCK_TRIES    15000 /* of 4 ms: a minute, for a sandbox that somebody else makes */
#define LOCK_WAIT_US  4000
#define ALONE_TRIES   500 /* two seconds, for others who found the same */
#define OWN_PROCESSES 1	  /* of a sandbox in which nothing runs: process 1 */

enum entered {
	ENTERED,
	LOST,	/* it is dead, or gone: another try */
	FAILED, /* as was told */
};

struct keep {
	struct run *run;
	const sigset_t *mask;
	int dir, file, connection;
	struct kept_spec spec;
	json_t *answer;
};

static void keep_close(struct keep *k)
{
	cleanup_close(&k->dir);
	cleanup_close(&k->file); /* and the lock with it */
	cleanup_close(&k->connection);
	k->dir = k->file = k->connection = -1;
	kept_spec_free(&k->spec);
	k->spec = (struct kept_spec){ 0 };
}

/* -- asking ------------------------------------------------------------------------------------- */

static int keep_request(struct keep *k, const char *id)
{
	_api_answer_ struct api_answer answer = { 0 };
	struct run *run = k->run;
	json_t *body;
	int code = api_body(
		run->session,
		json_pack("{s:s,s:b,s:b,s:s*}", "session", run->session, "keep", 1, "enters_network", 1, "run", id),
		&body);

	if (code == CLI_OK)
		code = api_call(run->socket, run->session, "POST", "/v1/sandboxes", body, &answer);
	if (code != CLI_OK) {
		run_refused_note(run, &answer);
		return code;
	}
	json_decref(k->answer);
	k->answer = json_incref(answer.json);
	return CLI_OK;
}

static int keep_take(struct keep *k)
{
	struct run *run = k->run;
	int code = run_facts_take(run, json_object_get(k->answer, "launch"));

	sandbox_forget(run);
	json_decref(run->before);
	run->before = json_incref(k->answer);
	if (code == CLI_OK)
		code = sandbox_take(run, k->answer);
	return code == CLI_OK ? run_policy(run) : code;
}

/* The run on record starts, in the sandbox that was just found alive. */
static bool record_start(struct keep *k)
{
	const char *sandbox;

	if (!k->run->id[0])
		return true;
	if (keep_request(k, k->run->id) != CLI_OK)
		return false;
	sandbox = member_text(k->answer, "sandbox");
	if (sandbox && !strcmp(sandbox, k->run->sandbox))
		return true;
	error_print(k->run->session, NP_R_FAILED, "its kept sandbox was removed in the middle of a start");
	return false;
}

/* -- the lock ------------------------------------------------------------------------------------- */

static enum entered keep_lock(const struct keep *k, int how)
{
	struct stat st;

	for (unsigned i = 0; flock(k->file, how | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES || run_interrupted()) {
			error_print(k->run->sandbox, NP_R_FAILED,
				    errno == EWOULDBLOCK ? "somebody else is making or removing it" : strerror(errno));
			return FAILED;
		}
		usleep(LOCK_WAIT_US);
	}
	return fstat(k->file, &st) < 0 || !st.st_nlink ? LOST : ENTERED;
}

/* -- making ----------------------------------------------------------------------------------------- */

static enum entered make_failed(struct keep *k)
{
	/* A mount of the host that vanished meanwhile: another look helps. */
	if (k->run->result.unmade)
		return LOST;
	output_clean_line(stderr, "netpawl: run: %s", k->run->result.problem);
	sandbox_remove(k->run);
	return FAILED;
}

/* With the lock, and nobody there. */
static enum entered keep_make(struct keep *k)
{
	struct run *run = k->run;
	struct launch_order order = { .plan = &run->plan,
				      .cgroup = run->cgroup,
				      .netns = run->netns,
				      .netns_inode = run->netns_inode,
				      .mask = k->mask };
	_close_ int listener = -1;
	struct groups groups = { 0 };
	int r;

	if (run_plan_again(run) != CLI_OK) {
		sandbox_remove(run);
		return FAILED;
	}
	r = kept_spec_write(k->file, run, NULL, NULL);
	if (r == 0) {
		listener = kept_listen(k->dir);
		r = listener < 0 ? listener : 0;
	}
	if (r < 0) {
		error_print(run->sandbox, NP_R_FAILED, strerror(-r));
		sandbox_remove(run);
		return FAILED;
	}
	if (!launch_keep(&order, listener, &groups, &k->run->result))
		return make_failed(k);
	r = kept_spec_write(k->file, run, &groups, k->run->result.missing);
	if (r < 0) {
		error_print(run->sandbox, NP_R_FAILED, strerror(-r));
		sandbox_remove(run);
		return FAILED;
	}
	return keep_lock(k, LOCK_SH);
}

/* -- entering --------------------------------------------------------------------------------------- */

static enum entered keep_connect(struct keep *k)
{
	k->connection = kept_connect(k->dir);
	if (k->connection >= 0)
		return ENTERED;
	if (k->connection == -ENOENT || k->connection == -ECONNREFUSED)
		return LOST;
	error_print(k->run->sandbox, NP_R_FAILED,
		    k->connection == -EAGAIN ? "more commands wait for the kept sandbox than may"
					     : strerror(-k->connection));
	return FAILED;
}

/* With the lock for ourselves: makes it, unless somebody else has done so before. */
static enum entered keep_first(struct keep *k)
{
	enum entered e = keep_lock(k, LOCK_EX); /* we have it; but there may be nothing behind it any more */

	if (e == ENTERED)
		e = keep_connect(k);
	if (e == LOST && k->connection == -ENOENT) {
		e = keep_make(k);
		return e == ENTERED ? keep_connect(k) : e;
	}
	return e == ENTERED ? keep_lock(k, LOCK_SH) : e;
}

/*
 * Runs that find the sandbox not made yet all hold the shared lock, and all want to make it. Asking for the exclusive
 * lock gives up the shared one, so that one of them gets it. The others do not wait for that lock but look again: once
 * the sandbox is made there are runs in it, and the exclusive lock is not free before they end.
 */
static enum entered keep_enter(struct keep *k)
{
	for (unsigned i = 0; i < LOCK_TRIES && !run_interrupted(); i++) {
		enum entered e = keep_lock(k, LOCK_SH);

		k->connection = -1;
		if (e == ENTERED)
			e = keep_connect(k);
		if (e != LOST || k->connection != -ENOENT)
			return e;
		if (flock(k->file, LOCK_EX | LOCK_NB) == 0)
			return keep_first(k);
		usleep(LOCK_WAIT_US);
	}
	error_print(k->run->sandbox, NP_R_FAILED, "others want to make it, too, and nobody does");
	return FAILED;
}

static enum entered keep_find(struct keep *k)
{
	const char *directory = member_text(k->answer, "directory");

	k->dir = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	k->file = k->dir < 0 ? -1 : openat(k->dir, NP_KEPT_MADE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (k->file < 0 && directory && errno == ENOENT)
		return LOST;
	if (k->file < 0) {
		error_print(k->run->session, NP_R_FAILED,
			    directory ? strerror(errno) : "the daemon knows of no kept sandboxes");
		return FAILED;
	}
	return keep_enter(k);
}

static bool is_empty(const struct run *run)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;
	unsigned n = 0;

	if (fs_path(path, "%s/cgroup.procs", run->cgroup) < 0 || fs_read_at(AT_FDCWD, path, 1u << 20, &text) < 0)
		return false;
	for (const char *c = text; *c; c++)
		n += *c == '\n';
	return n <= OWN_PROCESSES && !run_groups_sweep(run->cgroup);
}

/* A daemon that starts anew has new CAs where it kept none: its run directory was lost, or is on a disk. */
static enum entered trust_check(struct keep *k)
{
	const char *ca = k->run->ca;
	char mark[24];

	if (ca)
		snprintf(mark, sizeof(mark), "%016" PRIx64, hash_mark(ca, strlen(ca)));
	if (!ca || (k->spec.trust && !strcmp(mark, k->spec.trust)))
		return ENTERED;
	if (is_empty(k->run) && flock(k->file, LOCK_EX | LOCK_NB) == 0)
		return LOST;
	output_clean_line(stderr,
			  "netpawl: run: programs in the kept sandbox do not trust the inspectors, whose CA is a "
			  "new one; end what runs there, or: netpawl remove %s",
			  k->run->sandbox);
	return keep_lock(k, LOCK_SH); /* it was lost in the attempt */
}

static enum entered keep_fits(struct keep *k)
{
	_buf_ struct buf why = BUF_INIT(NP_KEPT_NOTE);
	struct run *run = k->run;
	int r = run_binds(run) == CLI_OK ? kept_spec_read(k->file, run->cgroup, &k->spec) : -ENOENT;

	if (r == -ENOENT)
		return FAILED;
	if (!k->spec.whole) /* the launcher that made it died in the middle, or it would hold the lock: nothing runs there */
		return LOST;
	if (r < 0) {
		error_print(run->sandbox, NP_R_FAILED, "what it was made with cannot be read");
		return FAILED;
	}
	if (kept_spec_fits(&k->spec, run, &why))
		return trust_check(k);
	output_clean_line(stderr,
			  "netpawl: run: the kept sandbox was made with other options: %s; give the same ones, or end "
			  "it: netpawl remove %s",
			  why.data ? why.data : "?", run->sandbox);
	return FAILED;
}

static int command_plan(struct keep *k)
{
	static const struct trust trusted; /* that there is one is all that matters */
	struct run *run = k->run;
	struct plan_request request = run_request(run);
	struct host host = { .system = k->spec.seen, .n_system = k->spec.n_seen };
	char problem[PLAN_PROBLEM_SIZE];

	request.trust = k->spec.trust ? &trusted : NULL;
	request.notices = k->spec.notices ? "" : NULL;
	plan_free(&run->plan);
	if (run_placeholders(run, &request) != CLI_OK)
		return LAUNCH_FAILED;
	return plan_make_command(&request, &host, &run->plan, problem) < 0 ? run_refuse(run, "%s", problem) : CLI_OK;
}

/* -- running -------------------------------------------------------------------------------------------- */

/* It would be removed with all that runs in it: only when nobody else waits for any of that. Others who got no answer either
 * give their lock up, as we do. */
static enum entered silence_judge(const struct keep *k)
{
	for (unsigned i = 0; i < ALONE_TRIES; i++) {
		if (flock(k->file, LOCK_EX | LOCK_NB) == 0)
			return LOST;
		usleep(LOCK_WAIT_US);
	}
	error_print(k->run->sandbox, NP_R_FAILED,
		    "it does not answer, and others run something there; netpawl remove ends it");
	return FAILED;
}

static enum entered keep_run(struct keep *k)
{
	struct run *run = k->run;
	struct launch_order order = run_order(run);
	enum entered e = keep_find(k);

	if (e == ENTERED)
		e = keep_fits(k);
	if (e != ENTERED)
		return e;
	if (command_plan(k) != CLI_OK || !record_start(k))
		return FAILED;
	order.mask = k->mask;
	order.lasting = true;
	order.run = run->id;
	order.apart = k->spec.apart;
	run->started_us = wall_us();
	launch_within(&order, &k->spec.groups, take_fd(k->connection), &k->run->result);
	if (k->run->result.lost && !run->id[0]) /* one on record starts once */
		return k->run->result.silent ? silence_judge(k) : LOST;
	if (k->spec.missing)
		snprintf(k->run->result.missing, sizeof(k->run->result.missing), "%s", k->spec.missing);
	run_ended(run);
	return ENTERED;
}

int run_kept(struct run *run, const sigset_t *mask)
{
	struct keep k = { .run = run, .mask = mask, .dir = -1, .file = -1, .connection = -1 };
	enum entered e = LOST;
	int code = CLI_OK;

	for (unsigned i = 0; code == CLI_OK && e == LOST && i < NP_KEPT_TRIES; i++) {
		if (i) {
			sandbox_remove(run); /* with the lock, where we have it: nobody enters it meanwhile */
			launch_result_free(&run->result);
			run->result = (struct launch_result){ .exit_code = LAUNCH_FAILED };
		}
		keep_close(&k);
		code = keep_request(&k, NULL);
		if (code == CLI_OK)
			code = keep_take(&k);
		if (code == CLI_OK)
			e = keep_run(&k);
	}
	if (code == CLI_OK && e == LOST)
		error_print(run->session, NP_R_FAILED, "each kept sandbox that was made for it died at once");
	if (e == ENTERED)
		run_report(run);
	else if (run->id[0] &&
		 run->result.problem[0]) /* it has not started: that comes after all that may be refused */
		run_withdraw(run, run->result.problem);
	keep_close(&k);
	json_decref(k.answer);
	return run->result.exit_code;
}
