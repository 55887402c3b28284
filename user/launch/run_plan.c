/* SPDX-License-Identifier: MIT */
/* From options, the policy's sandbox: section and the host to a plan. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "api_client/api.h"
#include "launch/device_kinds.h"
#include "launch/run.h"
#include "reason.h"
#include "vocab/limits.h"

extern char **environ;

/* A second for a CA that is being made; most are there after a few milliseconds. */
#define CA_TRIES    40
#define CA_LEAST_US 300
#define CA_MOST_US  50000

/* -- options --------------------------------------------------------------------------- */

static int option_bad(const char *option, const char *text, const char *want)
{
	return usage_error("run", "--%s %s: %s", option, text, want);
}

static int limits_read(struct run *run)
{
	for (const struct run_option *l = run_limits; l < run_limits + RUN_N_LIMITS; l++) {
		const char *text = *run_option_word(l, &run->options);
		const char *wrong = text ? limit_parse(l->name, text, run_limit_of(l, &run->limits)) : NULL;
		char name[RUN_DASHED_SIZE];

		if (wrong)
			return option_bad(run_option_dashed(l, name), text, wrong);
	}
	run->limits.best_effort = run->options.best_effort;
	return CLI_OK;
}

/* SRC:DST[:ro]. */
static int bind_read(const char *text, struct bind *bind)
{
	char *copy = strdup(text), *dest = copy ? strchr(copy, ':') : NULL, *mode = dest ? strchr(dest + 1, ':') : NULL;
	int code = CLI_OK;

	if (dest)
		*dest++ = '\0';
	if (mode)
		*mode++ = '\0';
	if (!copy)
		return CLI_REFUSED;
	if (!dest || *copy != '/' || *dest != '/' || (mode && strcmp(mode, "ro") != 0)) {
		code = option_bad("bind", text, "it is written SOURCE:DESTINATION or SOURCE:DESTINATION:ro");
		free(copy);
		return code;
	}
	*bind = (struct bind){ .source = copy, .dest = strdup(dest), .readonly = mode };
	return bind->dest ? CLI_OK : CLI_REFUSED;
}

static int identity_read(struct run *run)
{
	const char *user = run->options.user;
	int err = user ? identity_find(user, &run->identity) : 0;

	run->has_identity = user && err == 0;
	if (err == 0)
		return CLI_OK;
	if (err == -ENOENT && isdigit((unsigned char)*user)) {
		output_clean_line(stderr,
				  "netpawl: run: --user %s: no user of this host has that number, so its group is not "
				  "known; name the group, too: --user %s:%s (bad_field)",
				  user, user, user);
		return LAUNCH_FAILED;
	}
	if (err == -EINVAL)
		return option_bad("user", user, "it is a user's name, a user's UID, or UID:GID");
	complain_text(user, err == -ENOENT ? "there is no such user" : "the user is in too many groups",
		      reason_token(NP_R_BAD_FIELD), NULL);
	return LAUNCH_FAILED;
}

static int words_read(const struct run_options *o)
{
	int code = o->session ? session_check("run", o->session) : CLI_OK;

	if (code == CLI_OK && o->level)
		code = level_check("run", o->level);
	if (code == CLI_OK && o->class && strcmp(o->class, "none") != 0 && strcmp(o->class, "read_only") != 0 &&
	    strcmp(o->class, "write") != 0)
		code = option_bad("class", o->class, "there are none, read_only and write");
	return code;
}

int run_read(struct run *run)
{
	const char *isolation = run->options.isolation;
	int code = words_read(&run->options);

	if (code == CLI_OK)
		code = limits_read(run);

	run->isolated = !isolation || !strcmp(isolation, "full");
	if (code == CLI_OK && !run->isolated && strcmp(isolation, "none") != 0)
		code = option_bad("isolation", isolation, "there are full and none");
	if (code == CLI_OK)
		code = run_env_read(run);
	if (run->options.bind.n > ARRAY_SIZE(run->binds))
		return usage_error("run", "more than %zu times --bind", ARRAY_SIZE(run->binds));
	for (size_t i = 0; i < run->options.bind.n && code == CLI_OK; i++)
		code = bind_read(run->options.bind.items[i], &run->binds[i]);
	return code == CLI_OK ? identity_read(run) : code;
}

/* -- the policy ---------------------------------------------------------------------------- */

/* The stricter of the two. False: the daemon does not say what the policy bounds, or in words that are not known here. */
static bool limit_take(const json_t *policy, const struct run_option *option, uint64_t *limit)
{
	const json_t *value = json_object_get(policy, option->name);
	const char *text = json_string_value(value);
	uint64_t bound;

	if (json_is_null(value))
		return true;
	if (!text || limit_parse(option->name, text, &bound))
		return false;
	if (!*limit || bound < *limit)
		*limit = bound;
	return true;
}

int run_policy(struct run *run)
{
	const json_t *policy = json_object_get(run->facts, "sandbox");

	for (const struct run_option *l = run_limits; l < run_limits + RUN_N_LIMITS; l++)
		if (!limit_take(policy, l, run_limit_of(l, &run->limits))) {
			complain_text("run", "the daemon does not say what its policy bounds", l->name,
				      "netpawl and netpawld are of different versions: restart the daemon");
			return CLI_REFUSED;
		}
	return CLI_OK;
}

/* -- trust ------------------------------------------------------------------------------------- */

static int roots_read(const struct host *host, struct buf *out)
{
	for (size_t i = 0; i < host->n_bundles; i++) {
		_close_ int fd = open(host->bundles[i].path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fs_read_fd(fd, out);
	}
	buf_puts(out, ""); /* a host without any has clients that bring their own */
	return buf_error(out);
}

/* 503: no inspector is ready, or none has made it yet. */
static int ca_get(const char *socket, const char *path, bool patient, struct client_answer *ret)
{
	int err = client_call(socket, "GET", path, NULL, ret);
	useconds_t wait = CA_LEAST_US;

	for (unsigned i = 0; patient && err == 0 && ret->status == 503 && i < CA_TRIES; i++) {
		usleep(wait);
		wait = wait * 5 / 4 < CA_MOST_US ? wait * 5 / 4 : CA_MOST_US;
		client_answer_free(ret);
		*ret = (struct client_answer){ 0 };
		err = client_call(socket, "GET", path, NULL, ret);
	}
	return err;
}

static int trust_put(const char *session, const struct host *host, const char *pem, size_t len, struct trust *ret)
{
	_buf_ struct buf roots = BUF_INIT(NP_BUNDLE_BYTES);
	int err = roots_read(host, &roots);

	if (err == 0)
		err = trust_make(roots.data, roots.len, pem, len, ret);
	if (err == 0)
		return 1;
	error_print(session, NP_R_FAILED, "the certificates to trust could not be put together");
	trust_free(ret);
	return -1;
}

int session_trust(const char *socket, const char *session, const struct host *host, bool patient, struct trust *ret)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_free_ char *path = api_session_path(session, "/ca");
	int err;

	if (!path)
		return -1;
	err = ca_get(socket, path, patient, &answer);
	if (err < 0) {
		api_unreachable(socket, session, err);
		return -1;
	}
	/* No inspector, or none yet: then nothing is steered to one, and nobody meets its certificates. */
	return answer.status == 200 ? trust_put(session, host, answer.body.data, answer.body.len, ret) : 0;
}

static int run_trust(struct run *run)
{
	if (run->ca)
		return trust_put(run->session, &run->host, run->ca, strlen(run->ca), &run->trust);
	return run->inspected ? session_trust(run->socket, run->session, &run->host, true, &run->trust) : 0;
}

/* -- the plan ------------------------------------------------------------------------------------ */

/* A link, or a file, is no place for a directory of ours; a mount would fail there, or be elsewhere. */
static bool nssdb_is_own(const char *workspace)
{
	char path[FS_PATH_SIZE];
	struct stat st;

	if (fs_path(path, "%s/.pki", workspace) < 0 || (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode)))
		return true;
	return fs_path(path, "%s/.pki/nssdb", workspace) < 0 || lstat(path, &st) == 0;
}

static int workspace_look(struct run *run, struct plan_request *request)
{
	struct stat st;

	if (!run->workspace || run->options.dry_run)
		return CLI_OK;
	if (lstat(run->workspace, &st) < 0 || !S_ISDIR(st.st_mode))
		return run_refuse(run, "the workspace is gone: %s", run->workspace);
	request->own_nssdb = nssdb_is_own(run->workspace);
	request->workspace_device = st.st_dev;
	request->workspace_inode = st.st_ino;
	return CLI_OK;
}

static void notices_look(struct plan_request *request)
{
	struct stat st;

	if (!request->notices)
		return;
	if (lstat(request->notices, &st) < 0 || !S_ISDIR(st.st_mode)) {
		request->notices = NULL;
		return;
	}
	request->notices_device = st.st_dev;
	request->notices_inode = st.st_ino;
}

struct plan_request run_request(struct run *run)
{
	if (!getcwd(run->cwd, sizeof(run->cwd)) || run->cwd[0] != '/')
		strcpy(run->cwd, "(gone)"); /* no path that a sandbox sees */
	return (struct plan_request){
		.isolation = run->isolated ? ISOLATION_FULL : ISOLATION_NONE,
		.session = run->session,
		.argv = run->command,
		.environ = environ,
		.env_all = run->options.env_all,
		.env = run->env,
		.cwd = run->cwd,
		.directory = run->options.chdir,
		.workspace = run->workspace,
		.notices = run->notices,
		.identity = run->has_identity ? &run->identity : NULL,
		.binds = run->binds,
		.n_binds = run->options.bind.n,
		.permits = run->permits,
		.n_permits = run_permits(run),
		.way_out = run->way_out,
		.limits = run->limits,
	};
}

static int devices_take(struct run *run)
{
	char problem[DEVICES_PROBLEM_SIZE];
	const json_t *pattern;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(json_object_get(run->facts, "sandbox"), "devices"), i, pattern)
	{
		if (r == 0 && json_is_string(pattern))
			r = devices_look(json_string_value(pattern), &run->host, problem);
	}
	if (r == 0)
		r = devices_groups(&run->host, &run->identity);
	if (r == -EACCES)
		return run_refuse(run, "%s", problem);
	return r < 0 ? run_refuse(run, "sandbox: devices: %s", strerror(-r)) : CLI_OK;
}

/* A kept sandbox is made without a command: they come later, with their environment. */
static void request_keep(struct plan_request *request)
{
	static char *none[] = { NULL };

	request->kept = true;
	request->argv = request->environ = request->env = none;
	request->directory = "/";
}

int run_refuse(struct run *run, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(run->result.problem, sizeof(run->result.problem), fmt, ap);
	va_end(ap);
	output_clean_line(stderr, "netpawl: run: %s", run->result.problem);
	return LAUNCH_FAILED;
}

int run_placeholders(struct run *run, struct plan_request *request)
{
	placeholders_free(&run->placeholders);
	if (!json_integer_value(json_object_get(run->facts, "credentials")))
		return CLI_OK;
	if (placeholders_fetch(run->socket, run->session, run->isolated, &run->placeholders) < 0)
		return LAUNCH_FAILED;
	request->placeholders = &run->placeholders;
	return CLI_OK;
}

int run_plan(struct run *run)
{
	char problem[PLAN_PROBLEM_SIZE];
	struct plan_request request;
	int code = run_binds(run), err;

	if (code == CLI_OK)
		code = run_policy(run);
	request = run_request(run);
	if (run->options.keep && !run->options.dry_run)
		request_keep(&request);
	if (code == CLI_OK)
		code = workspace_look(run, &request);
	notices_look(&request);
	if (code != CLI_OK)
		return LAUNCH_FAILED;
	err = host_look((const char *const *)run->hidden, &run->host);
	if (err < 0)
		return run_refuse(run, "the host's file systems cannot be looked at: %s", strerror(-err));
	if (run->isolated && devices_take(run) != CLI_OK)
		return LAUNCH_FAILED;
	err = run_trust(run);
	if (err < 0)
		return LAUNCH_FAILED;
	run->has_trust = err > 0;
	if (!err && run->inspected && !run->options.dry_run)
		output_clean_line(stderr,
				  "netpawl: run: the inspectors are not ready: programs in this sandbox will not "
				  "trust them");
	request.trust = run->has_trust ? &run->trust : NULL;
	if (!run->options.dry_run && run_placeholders(run, &request) != CLI_OK)
		return LAUNCH_FAILED;
	return plan_make(&request, &run->host, &run->plan, problem) < 0 ? run_refuse(run, "%s", problem) : CLI_OK;
}

int run_plan_again(struct run *run)
{
	plan_free(&run->plan);
	host_free(&run->host);
	trust_free(&run->trust);
	return run_plan(run);
}

void run_free(struct run *run)
{
	placeholders_free(&run->placeholders);
	plan_free(&run->plan);
	host_free(&run->host);
	trust_free(&run->trust);
	for (size_t i = 0; i < ARRAY_SIZE(run->binds); i++) {
		free((char *)run->binds[i].source);
		free((char *)run->binds[i].dest);
	}
	for (size_t i = 0; i < ARRAY_SIZE(run->hidden); i++)
		free(run->hidden[i]);
	for (char **e = run->env; *e; e++)
		free(*e);
	free(run->recorded);
	json_decref(run->record);
	json_decref(run->facts);
	json_decref(run->counts);
	json_decref(run->before);
	launch_result_free(&run->result);
	sandbox_forget(run);
}
