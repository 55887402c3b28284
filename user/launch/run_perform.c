/* SPDX-License-Identifier: MIT */
/* One run from its options to its end: what comes after what. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "api_client/message.h"
#include "launch/run.h"
#include "reason.h"
#include "vocab/limits.h"

/* Mounts of the host may come and go while a sandbox is made, and what was to be covered is gone: another look helps. */
#define MAKE_TRIES 5

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

static bool name_is_fit(const char *name)
{
	if (!name || !name_char(*name) || strchr("._-", *name) || strlen(name) > NP_NAME_MAX)
		return false;
	while (*name && name_char(*name))
		name++;
	return !*name;
}

/* $USER/temporary-PID-RANDOM: the pid is for people, the rest keeps it from meeting an older one. A caller that is
 * not root cannot have temporary sessions: $USER/run-PID-RANDOM. */
static void session_name_make(struct run *run)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *user = getenv("USER");
	uint64_t salt = 0;

	if (!name_is_fit(user))
		user = pw && name_is_fit(pw->pw_name) ? pw->pw_name : "root";
	if (getrandom(&salt, sizeof(salt), 0) < 0)
		salt = 0;
	snprintf(run->own_session, sizeof(run->own_session), "%s/%s%d-%016" PRIx64, user,
		 geteuid() ? "run-" : NP_TEMPORARY_NAME, getpid(), salt);
	run->session = run->own_session;
}

uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

struct launch_order run_order(struct run *run)
{
	return (struct launch_order){ .plan = &run->plan,
				      .cgroup = run->cgroup,
				      .netns = run->netns,
				      .netns_inode = run->netns_inode,
				      .keep_output = run->json,
				      .outlive_reader = run->launched,
				      .on_ended = run_on_ended,
				      .on_slow_reader = run_on_slow_reader,
				      .data = run };
}

/* Loud, for it is a sandbox in name only. */
static void isolation_warn(const struct run *run)
{
	if (!run->isolated)
		fputs("netpawl: run: --isolation none: only the network is confined. The command sees the host's "
		      "files,\n"
		      "processes and devices, keeps its user and its capabilities, and no system call is refused: as "
		      "root\n"
		      "it can leave its cgroup and so the gate. Isolate it yourself, or leave this option out.\n",
		      stderr);
}

/* Signals are held from here on: none of them may end us between making the sandbox and removing it. */
static int run_sandboxed(struct run *run)
{
	struct launch_result *result = &run->result;
	struct launch_order order;
	sigset_t mask;
	int code;

	launch_hold_signals(&mask);
	result->exit_code = LAUNCH_FAILED;
	code = session_make(run);
	if (code == CLI_OK)
		code = run_on_record(run);
	if (code == CLI_OK && run->options.keep) /* the record may say so, too */
		return run_kept(run, &mask);
	if (code == CLI_OK && sandbox_make(run) == CLI_OK && run_plan(run) == CLI_OK) {
		isolation_warn(run);
		order = run_order(run);
		order.mask = &mask;
		run->started_us = wall_us();
		launch_run(&order, result);
		for (unsigned i = 1; i < MAKE_TRIES && result->unmade && sandbox_renew(run); i++) {
			launch_result_free(result);
			order = run_order(run);
			order.mask = &mask;
			launch_run(&order, result);
		}
		run_ended(run);
	}
	if (run->id[0] && !run->sandbox && result->problem[0]) /* it has not started, and that is why */
		run_withdraw(run, result->problem);
	run_report(run);
	run_clean_up(run, result->started && run->isolated);
	return result->exit_code;
}

/* The plan as it would be: the user is chosen when the sandbox is made. */
static int run_dry(struct run *run)
{
	char path[FS_PATH_SIZE];

	if (run->session != run->own_session && run->isolated && run->data_dir &&
	    fs_path(path, "%s/%s", run->data_dir, run->session) == 0)
		run->workspace = strdup(path);
	run->has_identity = run->has_identity || run->isolated;
	run->identity.root = NP_UID_FIRST;
	if (!run->options.user)
		run->identity.uid = run->identity.gid = NP_UID_FIRST;
	if (run_plan(run) != CLI_OK)
		return LAUNCH_FAILED;
	return CLI_OK;
}

int run_perform(struct run *run)
{
	int code = run->launched ? run_record_read(run) : CLI_OK;

	if (code == CLI_OK) /* options that are wrong are reported before anybody is asked */
		code = run_read(run);
	if (code != CLI_OK)
		return code;
	run->session = run->options.session;
	if (!run->session && geteuid() != 0)
		session_name_make(run);
	if (geteuid() != 0)
		return run_remote(run);
	/* Else they come with the sandbox. But nobody should approve what cannot run here. */
	if ((run->options.dry_run || (run->options.class && !run->launched)) && run_facts_get(run) != CLI_OK)
		return LAUNCH_FAILED;
	if (!run->session)
		session_name_make(run);
	return run->options.dry_run ? run_dry(run) : run_sandboxed(run);
}
