/* SPDX-License-Identifier: MIT */
/* netpawl run --class: the run on record, from asking for it to its end. */
#include <errno.h>
#include <stddef.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "api_client/api.h"
#include "launch/run.h"
#include "reason.h"

#define POLL_EVERY_US 250000
#define PATIENT_US    2000000
#define REPORT_TRIES  (24 * 1800) /* a day: longer than any daemon is away */
#define ABSENT_MAX    40 /* times that the daemon does not answer, as while it is restarted, before we give up */

json_t *run_command_json(char *const *words)
{
	json_t *array = json_array();

	for (; array && *words; words++)
		if (json_array_append_new(array, json_string(*words)) < 0) {
			json_decref(array);
			return NULL; /* not UTF-8: nobody could read what he approves */
		}
	return array;
}

/* -- options: as they are on record -------------------------------------------------------- */

static int texts_set(json_t *object, const char *name, const struct run_texts *texts)
{
	json_t *array = json_array();
	int r = 0;

	for (size_t i = 0; i < texts->n; i++)
		r |= json_array_append_new(array, json_string(texts->items[i]));
	r |= texts->n ? json_object_set(object, name, array) : 0;
	json_decref(array);
	return r;
}

int run_option_json(json_t *object, const struct run_option *option, struct run_options *o)
{
	if (option->kind == RUN_FLAG)
		return *run_option_flag(option, o) ? json_object_set_new(object, option->name, json_true()) : 0;
	if (option->kind == RUN_TEXTS)
		return texts_set(object, option->name, run_option_texts(option, o));
	if (!*run_option_word(option, o))
		return 0;
	return json_object_set_new(object, option->name, json_string(*run_option_word(option, o)));
}

/* A file's variables, by their names: values that are in a file are not for everybody who reads the record. */
static int env_file_set(json_t *object, const struct run *run)
{
	json_t *array = json_object_get(object, "env") ?: json_array();
	int r = 0;

	for (size_t i = 0; i < run->n_env_file; i++)
		r |= json_array_append_new(array, json_stringn(run->env[i], strcspn(run->env[i], "=")));
	return run->n_env_file && !json_object_get(object, "env") ? r | json_object_set_new(object, "env", array) : r;
}

/* Whoever approves the run sees them. */
static json_t *options_json(struct run *run)
{
	struct run_options *o = &run->options;
	json_t *object = json_object();
	char cwd[FS_PATH_SIZE];
	int r = 0;

	if (!o->chdir && getcwd(cwd, sizeof(cwd))) /* it starts here, when the sandbox sees it */
		o->cwd = cwd;
	for (size_t i = 0; i < RUN_N_OPTIONS; i++)
		if (run_options[i].places & RUN_RECORD)
			r |= run_option_json(object, &run_options[i], o);
	o->cwd = NULL;
	r |= env_file_set(object, run);
	if (r < 0) {
		json_decref(object);
		return NULL; /* not UTF-8: nobody could read what he approves */
	}
	return object;
}

static int option_take(const json_t *value, const struct run_option *option, struct run_options *o)
{
	struct run_texts *texts = run_option_texts(option, o);
	const json_t *text;
	size_t i;

	if (option->kind == RUN_FLAG)
		*run_option_flag(option, o) = json_is_true(value);
	else if (option->kind != RUN_TEXTS)
		*run_option_word(option, o) = json_string_value(value);
	else if (json_array_size(value) > ARRAY_SIZE(texts->items))
		return usage_error("run", "the record has more than %zu words of \"%s\"", ARRAY_SIZE(texts->items),
				   option->name);
	else
		json_array_foreach(value, i, text)
		{
			texts->items[texts->n++] = json_string_value(text);
		}
	return CLI_OK;
}

/* Those of a run that was on record before. The texts stay the record's. */
static int options_take(struct run *run)
{
	const json_t *options = json_object_get(run->record, "options");
	struct run_options *o = &run->options;
	int code = CLI_OK;

	for (size_t i = 0; i < RUN_N_OPTIONS && code == CLI_OK; i++)
		if (run_options[i].places & RUN_RECORD)
			code = option_take(json_object_get(options, run_options[i].name), &run_options[i], o);
	o->session = member_text(run->record, "session");
	o->level = NULL; /* whoever asked for the run has raised the session */
	return code;
}

/* -- waiting ------------------------------------------------------------------------------- */

/* Signals are held (launch_hold_signals), so one that came is found here. */
bool run_interrupted(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigismember(&pending, signals[i]) == 1)
			return true;
	return false;
}

static void path_of(const struct run *run, const char *verb, char path[static 64])
{
	snprintf(path, 64, "/v1/runs/%s%s", run->id, verb);
}

void run_withdraw(const struct run *run, const char *reason)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	json_t *text =
		json_sprintf("%.*s", NP_REASON_TEXT_MAX, reason); /* NULL: it names something that is not UTF-8 */
	_json_ json_t *body = json_pack("{s:o}", "reason", text ? text : json_string("it was refused"));
	_free_ char *words = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char path[64];
	int err;

	path_of(run, "/reject", path);
	err = words ? client_call(run->socket, "POST", path, words, &answer) : -ENOMEM;
	if (err < 0)
		api_unreachable(run->socket, "run", err);
	else if (answer.status / 100 != 2 && answer.status != 409) /* it is over by now, as it was to be */
		api_refused("run", answer.status, answer.body.data);
}

void run_refused_note(struct run *run, const struct api_answer *answer)
{
	_json_ json_t *json = answer->text ? json_loads(answer->text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (member_text(json, "message"))
		refusal_text(json, "", run->result.problem, sizeof(run->result.problem));
}

/* Why it does not run. */
void run_rejected_print(const struct run *run, const json_t *answer, const char *text)
{
	if (run->json)
		puts(text);
	/* What whoever approved it said is not why it did not start. */
	if (json_is_true(json_object_get(answer, "approved"))) {
		output_clean_line(stderr, "netpawl: run: run %s was approved, and given up before it started (%s)",
				  run->id, "run_rejected");
		return;
	}
	output_clean_line(stderr, "netpawl: run: run %s was not started; %s says: %s (%s)", run->id,
			  member_text(answer, "decided_by") ?: "?",
			  member_text(answer, "reason") ?: "no reason was given", "run_rejected");
}

/* 1: it may start; 0: it waits; -1: it may not, as was told. */
static int run_look(struct run *run, unsigned *absent)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_json_ json_t *json = NULL;
	const char *state, *class;
	char path[64];
	int err;

	path_of(run, "", path);
	err = client_call(run->socket, "GET", path, NULL, &answer);
	if (err < 0) {
		if (++*absent < ABSENT_MAX)
			return 0;
		api_unreachable(run->socket, "run", err);
		return -1;
	}
	*absent = 0;
	if (answer.status != 200) {
		api_refused("run", answer.status, answer.body.data);
		return -1;
	}
	json = json_loads(answer.body.data, JSON_REJECT_DUPLICATES, NULL);
	state = member_text(json, "state");
	class = member_text(json, "class");
	if (!run->record) /* what was asked for does not change, and words of ours point into it */
		run->record = json_incref(json);
	if (state && !strcmp(state, "pending"))
		return json_is_true(json_object_get(json, "approved")) || !class || strcmp(class, "write") != 0;
	run_rejected_print(run, json, answer.body.data);
	return -1;
}

void run_waits_print(const struct run *run)
{
	output_clean_line(stderr, "netpawl: run: run %s waits for approval: netpawl approve %s", run->id, run->id);
}

static int run_await(struct run *run)
{
	unsigned absent = 0;
	int r;

	if (!run->launched)
		run_waits_print(run);
	while ((r = run_look(run, &absent)) == 0) {
		if (run_interrupted()) {
			run_withdraw(run, "whoever asked for it went away");
			return LAUNCH_FAILED;
		}
		usleep(POLL_EVERY_US);
	}
	return r > 0 ? CLI_OK : LAUNCH_FAILED;
}

static int command_take(struct run *run)
{
	const json_t *words = json_object_get(run->record, "command"), *word;
	size_t i;

	run->recorded = calloc(json_array_size(words) + 1, sizeof(*run->recorded));
	if (!run->recorded || !json_array_size(words)) {
		error_print("run", NP_R_FAILED, "the record has no command");
		return CLI_REFUSED;
	}
	json_array_foreach(words, i, word)
	{
		run->recorded[i] = (char *)json_string_value(word);
	}
	run->command = run->recorded;
	return CLI_OK;
}

int run_record_read(struct run *run)
{
	unsigned absent = ABSENT_MAX;
	int code;

	if (run_look(run, &absent) < 0)
		return LAUNCH_FAILED;
	code = options_take(run);
	return code == CLI_OK ? command_take(run) : code;
}

int run_on_record(struct run *run)
{
	_api_answer_ struct api_answer answer = { 0 };
	const json_t *id;
	json_t *body;
	int code;

	if (run->launched)
		return run_await(run);
	if (!run->options.class)
		return CLI_OK;
	code = api_body("run",
			json_pack("{s:s,s:s,s:o,s:o}", "session", run->session, "class", run->options.class, "command",
				  run_command_json(run->command), "options", options_json(run)),
			&body);
	if (code == CLI_OK)
		code = api_call(run->socket, "run", "POST", "/v1/runs", body, &answer);
	if (code != CLI_OK)
		return code;
	id = json_object_get(answer.json, "run");
	if (!json_is_integer(id)) {
		error_print("run", NP_R_FAILED, "the daemon's answer names no run");
		return CLI_REFUSED;
	}
	snprintf(run->id, sizeof(run->id), "%lld", (long long)json_integer_value(id));
	return strcmp(run->options.class, "write") == 0 ? run_await(run) : CLI_OK;
}

/* The daemon does not take its end: somebody has cancelled it. Then what is on record holds. */
static void end_refused(struct run *run, const struct client_answer *refusal)
{
	_api_answer_ struct api_answer answer = { 0 };
	const json_t *result = NULL;
	const char *problem;
	char path[64];

	path_of(run, "", path);
	if (refusal->status == 409 && api_call(run->socket, "run", "GET", path, NULL, &answer) == CLI_OK)
		result = json_object_get(answer.json, "result");
	problem = member_text(result, "problem");
	if (json_is_integer(json_object_get(result, "exit_code")))
		run->result.exit_code = (int)json_integer_value(json_object_get(result, "exit_code"));
	if (problem)
		output_clean_line(stderr, "netpawl: run: %s", problem);
	else
		api_refused("run", refusal->status, refusal->body.data);
}

/* The daemon may be on its way down or up: what it is not told it takes for a run that failed. Whoever waits at a terminal
 * does not wait for long. A launcher that nobody waits for has time, unless the daemon's directory was removed: one that
 * starts again finds it there, so nobody will. */
static unsigned report_tries(const struct run *run)
{
	const char *name = strrchr(run->socket, '/');
	char directory[FS_PATH_SIZE];

	if (!run->launched || (name && fs_path(directory, "%.*s", (int)(name - run->socket), run->socket) == 0 &&
			       access(directory, F_OK) < 0 && errno == ENOENT))
		return ABSENT_MAX;
	return REPORT_TRIES;
}

static void end_report(struct run *run, const char *path, const char *body)
{
	int err = 0;

	for (unsigned i = 0; i < report_tries(run); i++) {
		cleanup(client_answer_free) struct client_answer answer = { 0 };

		err = client_call(run->socket, "POST", path, body, &answer);
		if (err == 0 && answer.status / 100 != 5) {
			if (answer.status / 100 != 2)
				end_refused(run, &answer);
			return;
		}
		if (run_interrupted() && !run->launched)
			break;
		usleep(i < ABSENT_MAX ? POLL_EVERY_US : PATIENT_US);
	}
	if (err < 0)
		api_unreachable(run->socket, "run", err);
}

void run_report(struct run *run)
{
	_json_ json_t *body = NULL;
	_free_ char *text = NULL;
	json_t *object;
	char path[64];

	if (!run->id[0] || !run->sandbox || run->reported) /* without a sandbox it was never started */
		return;
	run->reported = true;
	if (!run->result.started && !run->result.timed_out && !run->result.problem[0])
		snprintf(run->result.problem, sizeof(run->result.problem),
			 "it could not be prepared; its output says why");
	object = run_result_json(run);
	json_object_del(object, "stdout");
	json_object_del(object, "stderr");
	path_of(run, "/end", path);
	body = json_pack("{s:s,s:o}", "state", run->result.started ? "completed" : "failed", "result", object);
	text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	if (text)
		end_report(run, path, text);
	else
		error_print("run", NP_R_FAILED, strerror(ENOMEM));
}
