/* SPDX-License-Identifier: MIT */
/*
 * netpawl run of somebody who is not root: the daemon's launcher runs the command, and we carry its bytes. Our output is a
 * stream of the API's; our input, and the signals that come to us, go there from a second process, so that neither waits for
 * the other. When we are gone the daemon ends the run: it is attached to us.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "api_client/api.h"
#include "base/cleanup.h"
#include "launch/run.h"
#include "reason.h"
#include "vocab/words.h"

#define INPUT_BYTES 16384 /* of one request */
#define FULL_US	    50000 /* until the command may have read some */

extern char **environ;

struct remote {
	struct run *run;
	bool terminal;
	bool spoken; /* something was written to our stderr */
	bool cut;    /* the daemon had no room for all of the output */
	struct termios before;
	struct buf kept[3]; /* with --json */
};

/* -- asking ------------------------------------------------------------------------------- */

static int options_check(const struct run *run)
{
	const struct run_options *o = &run->options;
	const char *wrong = o->user	     ? "--user"
			    : o->isolation   ? "--isolation"
			    : o->dry_run     ? "--dry-run"
			    : o->env_all     ? "--env-all"
			    : o->best_effort ? "--best-effort"
					     : NULL;

	if (!wrong)
		return CLI_OK;
	complain_text("run", "that option needs root", reason_token(NP_R_NOT_PERMITTED), wrong);
	return LAUNCH_FAILED;
}

/* What the caller's terminal and language are; the rest of a plain environment is the launcher's. */
static int env_set(json_t *launch, const struct run *run)
{
	static const char *const plain[] = { "TERM", "LANG", "TZ" };
	json_t *array = json_array();
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (getenv(plain[i]))
			r |= json_array_append_new(array, json_sprintf("%s=%s", plain[i], getenv(plain[i])));
	for (char *const *e = run->env; *e; e++)
		r |= json_array_append_new(array, json_string(*e));
	return r | json_object_set_new(launch, "env", array);
}

static json_t *launch_json(const struct remote *remote)
{
	struct run *run = remote->run;
	json_t *launch = json_object();
	struct winsize size;
	int r = 0;

	for (size_t i = 0; i < RUN_N_OPTIONS; i++)
		if ((run_options[i].places & RUN_LAUNCH) && strcmp(run_options[i].name, "env") != 0)
			r |= run_option_json(launch, &run_options[i], &run->options);
	r |= env_set(launch, run) | json_object_set_new(launch, "attach", json_true());
	if (remote->terminal) {
		if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
			size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
		r |= json_object_set_new(launch, "terminal", json_sprintf("%ux%u", size.ws_col, size.ws_row));
	}
	if (r == 0)
		return launch;
	json_decref(launch);
	return NULL; /* not UTF-8 */
}

static int remote_ask(struct remote *remote)
{
	_api_answer_ struct api_answer answer = { 0 };
	struct run *run = remote->run;
	int code = run_post(run, "/v1/runs",
			    json_pack("{s:s,s:s*,s:o,s:o}", "session", run->session, "class", run->options.class,
				      "command", run_command_json(run->command), "launch", launch_json(remote)),
			    &answer);

	if (code != CLI_OK)
		return code;
	snprintf(run->id, sizeof(run->id), "%lld", member_number(answer.json, "run"));
	if (run->options.class && !strcmp(run->options.class, "write"))
		run_waits_print(run);
	return CLI_OK;
}

/* -- the second process: input and signals -------------------------------------------------- */

/* False when nobody takes it any more. */
static bool input_post(const struct run *run, json_t *owned)
{
	_json_ json_t *body = owned;
	_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char path[64];
	int status = 429;

	snprintf(path, sizeof(path), "/v1/runs/%s/input", run->id);
	while (text && status == 429) {
		cleanup(client_answer_free) struct client_answer answer = { 0 };

		if (client_call(run->socket, "POST", path, text, &answer) < 0)
			return false;
		status = answer.status;
		if (status == 429)
			usleep(FULL_US);
	}
	return status == 200;
}

static bool input_carry(const struct run *run)
{
	char bytes[INPUT_BYTES], text[BASE64_ENCODE_RAW_LENGTH(INPUT_BYTES) + 1];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0) {
		input_post(run, json_pack("{s:b}", "end", 1));
		return false;
	}
	base64_encode_raw(text, (size_t)n, (const uint8_t *)bytes);
	text[BASE64_ENCODE_RAW_LENGTH((size_t)n)] = '\0';
	return input_post(run, json_pack("{s:s}", "base64", text));
}

static void signal_carry(const struct run *run, int signals)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	struct signalfd_siginfo info;
	struct winsize size;
	char path[64];

	if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
			input_post(run, json_pack("{s:i,s:i}", "columns", size.ws_col, "rows", size.ws_row));
		return;
	}
	snprintf(path, sizeof(path), "/v1/runs/%s/cancel", run->id);
	client_call(run->socket, "POST", path, "{}", &answer);
}

static void signals_set(sigset_t *set)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(set, numbers[i]);
	sigprocmask(SIG_BLOCK, set, NULL);
}

static _Noreturn void second_main(const struct run *run, const sigset_t *set, pid_t first)
{
	struct pollfd fds[] = { { .fd = signalfd(-1, set, SFD_CLOEXEC), .events = POLLIN },
				{ .fd = STDIN_FILENO, .events = POLLIN } };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != first)
		_exit(0);
	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[0].revents)
			signal_carry(run, fds[0].fd);
		if (fds[1].revents && !input_carry(run))
			fds[1].fd = -1; /* signals still come */
	}
}

/* -- output ---------------------------------------------------------------------------------- */

/* At the place where it is missing. Which of the streams it was of, nobody knows. */
static void cut_report(struct remote *remote)
{
	remote->cut = true;
	remote->spoken = true;
	output_clean_line(stderr, "netpawl: run: netpawld had no room for more output: the rest of it is lost");
}

static int line_take(void *data, char *line)
{
	struct remote *remote = data;
	_json_ json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	const char *text = member_text(json, "base64"), *stream = member_text(json, "stream");
	int fd = stream && !strcmp(stream, "stderr") ? STDERR_FILENO : STDOUT_FILENO;
	size_t n = text ? BASE64_DECODE_LENGTH(strlen(text)) : 0;
	_free_ uint8_t *bytes = malloc(n + 1);
	struct base64_decode_ctx ctx;

	if (json_is_true(json_object_get(json, "truncated")))
		cut_report(remote);
	base64_decode_init(&ctx);
	if (!text || !bytes || !base64_decode_update(&ctx, &n, bytes, strlen(text), text))
		return 0;
	if (remote->run->json)
		buf_append(&remote->kept[fd], bytes, n);
	else if (fs_write_all(fd, bytes, n) < 0)
		return -EPIPE; /* nobody reads it: the daemon ends the run when we go */
	else if (fd == STDERR_FILENO)
		remote->spoken = true;
	return 0;
}

/* -- the end --------------------------------------------------------------------------------- */

static void kept_set(json_t *result, const char *name, const struct buf *kept)
{
	json_t *text = json_stringn(kept->len ? kept->data : "", kept->len);

	json_object_set_new(result, name, text ? text : json_null());
}

/* The launcher has passed on all that it got. */
static void cut_set(json_t *result, const struct remote *remote)
{
	if (remote->cut || buf_error(&remote->kept[STDOUT_FILENO]))
		json_object_set_new(result, "stdout_truncated", json_true());
	if (remote->cut || buf_error(&remote->kept[STDERR_FILENO]))
		json_object_set_new(result, "stderr_truncated", json_true());
}

static int remote_result(struct remote *remote)
{
	struct run *run = remote->run;
	_api_answer_ struct api_answer answer = { 0 };
	const char *state, *problem;
	json_t *result;
	char path[64];
	int code;

	snprintf(path, sizeof(path), "/v1/runs/%s?wait=1", run->id);
	do {
		api_answer_free(&answer);
		answer = (struct api_answer){ 0 };
		code = api_call(run->socket, run->session, "GET", path, NULL, &answer);
		state = code == CLI_OK ? member_text(answer.json, "state") : NULL;
	} while (state && (!strcmp(state, "running") || !strcmp(state, "pending")));
	if (!state)
		return LAUNCH_FAILED;
	if (!strcmp(state, "rejected")) {
		if (!remote->spoken) /* else the launcher has: the command never ran */
			run_rejected_print(run, answer.json, answer.text);
		return LAUNCH_FAILED;
	}
	result = json_object_get(answer.json, "result");
	problem = member_text(result, "problem");
	if (run->json) {
		kept_set(result, "stdout", &remote->kept[STDOUT_FILENO]);
		kept_set(result, "stderr", &remote->kept[STDERR_FILENO]);
		cut_set(result, remote);
		json_dumpf(result, stdout, JSON_COMPACT);
		fputc('\n', stdout);
	}
	/* The result is not the launcher's own, which has more members: nobody has said that it was cancelled, or lost. */
	if (!json_object_get(result, "timed_out"))
		output_clean_line(stderr, "netpawl: run: %s", problem ?: "it failed");
	return json_is_integer(json_object_get(result, "exit_code"))
		       ? (int)json_integer_value(json_object_get(result, "exit_code"))
		       : LAUNCH_FAILED;
}

int run_remote(struct run *run)
{
	cleanup(client_answer_free) struct client_answer refused = { 0 };
	struct remote remote = { .run = run,
				 .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !run->json,
				 .kept = { BUF_INIT(0), BUF_INIT(NP_OUTPUT_MAX), BUF_INIT(NP_OUTPUT_MAX) } };
	struct termios raw;
	sigset_t set;
	char path[64];
	pid_t first = getpid(), second;
	int err, code = options_check(run);

	if (code == CLI_OK)
		code = session_make(run);
	if (code == CLI_OK)
		code = remote_ask(&remote);
	if (code != CLI_OK)
		return LAUNCH_FAILED;
	signals_set(&set);
	remote.terminal = remote.terminal && tcgetattr(STDIN_FILENO, &remote.before) == 0;
	raw = remote.before;
	if (remote.terminal) {
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	second = fork();
	if (second == 0)
		second_main(run, &set, first);
	snprintf(path, sizeof(path), "/v1/runs/%s/output?follow=1", run->id);
	err = client_stream(run->socket, path, line_take, &remote, &refused);
	if (second > 0) {
		kill(second, SIGKILL);
		waitpid(second, NULL, 0);
	}
	if (remote.terminal)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &remote.before);
	if (err < 0 && err != -EPIPE)
		api_unreachable(run->socket, "run", err);
	code = err < 0 ? LAUNCH_FAILED : remote_result(&remote);
	for (size_t i = 0; i < ARRAY_SIZE(remote.kept); i++)
		buf_free(&remote.kept[i]);
	run_clean_up(run, true);
	return code;
}
