/* SPDX-License-Identifier: MIT */
/* The plan, or what became of it: as JSON, and in messages. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "api_client/message.h"
#include "vocab/words.h"
#include "launch/run.h"
#include "vocab/limits.h"

/* What a command writes need not be text. */
static json_t *text_json(const char *data, size_t len)
{
	_buf_ struct buf out = BUF_INIT(3 * (size_t)NP_OUTPUT_MAX);
	uint32_t c;

	for (size_t i = 0; i < len;) {
		unsigned n = char_decode(data + i, len - i, &c);

		if (n)
			buf_append(&out, data + i, n);
		else
			buf_puts(&out, "\xef\xbf\xbd"); /* U+FFFD */
		i += n ? n : 1;
	}
	return buf_error(&out) ? NULL : json_stringn(out.data ? out.data : "", out.len);
}

/* -- the plan ------------------------------------------------------------------------------ */

static json_t *step_json(const struct step *step)
{
	char mode[16];

	snprintf(mode, sizeof(mode), "%04o", step->mode);
	return json_pack("{s:s,s:s*,s:s,s:s*,s:o*,s:o*}", "step", step_name(step->kind), "source", step->source,
			 "destination", step->dest, "mode",
			 step->kind == STEP_TMPFS || step->kind == STEP_DIR ? mode : NULL, "size",
			 step->size ? json_integer((json_int_t)step->size) : NULL, "bytes",
			 step->file ? json_integer((json_int_t)step->file->len) : NULL);
}

static json_t *words_json(char *const *words)
{
	json_t *array = json_array();

	for (; array && *words; words++)
		json_array_append_new(array, text_json(*words, strlen(*words)));
	return array;
}

static json_t *environment_json(char *const *environ)
{
	json_t *object = json_object();

	for (; object && *environ; environ++) {
		const char *value = strchr(*environ, '=');
		char name[256];

		if (!value || (size_t)(value - *environ) >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(value - *environ), *environ);
		json_object_set_new(object, name, text_json(value + 1, strlen(value + 1)));
	}
	return object;
}

static json_t *limits_json(struct limits limits)
{
	json_t *object = json_object();
	char text[LIMIT_TEXT_SIZE];

	for (const struct run_option *l = run_limits; l < run_limits + RUN_N_LIMITS; l++) {
		uint64_t limit = *run_limit_of(l, &limits);

		json_object_set_new(object, l->name, limit ? json_string(limit_format(l, limit, text)) : json_null());
	}
	json_object_set_new(object, "best_effort", json_boolean(limits.best_effort));
	return object;
}

json_t *run_plan_json(const struct run *run)
{
	const struct plan *plan = &run->plan;
	bool own = plan->isolation == ISOLATION_FULL;
	json_t *steps = json_array();

	for (size_t i = 0; steps && i < plan->n_steps; i++)
		json_array_append_new(steps, step_json(&plan->steps[i]));
	return json_pack(
		"{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "session", run->session, "isolation",
		own ? "full" : "none", "namespaces",
		own ? json_pack("[s,s,s,s,s,s]", "user", "mount", "pid", "ipc", "uts", "cgroup") : json_array(),
		"seccomp", json_boolean(own), "capabilities", own ? json_array() : json_null(), "uid",
		run->options.user ? json_integer(run->identity.uid) : json_null(), "steps", steps, "directory",
		plan->directory ? text_json(plan->directory, strlen(plan->directory)) : json_null(), "environment",
		environment_json(plan->environ), "limits", limits_json(plan->limits), "argv", words_json(plan->argv));
}

/* -- the result ------------------------------------------------------------------------------ */

static bool memory_killed(const struct launch_result *result)
{
	return result->signal == SIGKILL && result->usage.memory_kills;
}

static json_t *killed_by(const struct launch_result *result)
{
	char name[32];

	if (result->timed_out)
		return json_string("timeout");
	if (!result->signal)
		return json_null();
	if (memory_killed(result))
		return json_string("memory");
	snprintf(name, sizeof(name), "SIG%s", sigabbrev_np(result->signal) ? sigabbrev_np(result->signal) : "?");
	return json_string(name);
}

static json_t *count_json(const struct run *run, const char *name)
{
	json_t *value = json_object_get(run->counts, name);

	/* A kept sandbox did things before. */
	if (json_is_integer(value) && run->before)
		return json_integer(json_integer_value(value) - json_integer_value(json_object_get(run->before, name)));
	return value ? json_incref(value) : json_null();
}

static json_t *time_json(uint64_t us)
{
	char text[TIME_TEXT_SIZE];

	if (!us)
		return json_null();
	time_format(us, text);
	return json_string(text);
}

json_t *run_result_json(const struct run *run)
{
	const struct launch_result *r = &run->result;
	json_t *object = json_pack("{s:i,s:b,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:I,s:I}", "exit_code", r->exit_code,
				   "timed_out", (int)r->timed_out, "killed_by", killed_by(r), "stdout",
				   text_json(r->output[1].data, r->output[1].len), "stderr",
				   text_json(r->output[2].data, r->output[2].len), "stdout_truncated",
				   (int)r->truncated[1], "stderr_truncated", (int)r->truncated[2], "started_at",
				   time_json(run->started_us), "completed_at", time_json(run->completed_us), "cpu_us",
				   (json_int_t)r->usage.cpu_us, "memory_peak", (json_int_t)r->usage.memory_peak);
	static const char *const counts[] = { "sent", "received", "requests", "queries", "refused" };

	for (size_t i = 0; object && i < ARRAY_SIZE(counts); i++)
		json_object_set_new(object, counts[i], count_json(run, counts[i]));
	if (json_is_true(json_object_get(run->counts, "counts_partial")))
		json_object_set_new(object, "counts_partial", json_true());
	json_object_set_new(object, "session", json_string(run->session));
	json_object_set_new(object, "sandbox", run->sandbox ? json_string(run->sandbox) : json_null());
	if (run->id[0])
		json_object_set_new(object, "run", json_integer(strtoll(run->id, NULL, 10)));
	if (r->problem[0])
		json_object_set_new(object, "problem", text_json(r->problem, strlen(r->problem)));
	return object;
}

void run_result_print(const struct run *run)
{
	const struct launch_result *result = &run->result;

	if (result->missing[0])
		output_clean_line(stderr, "netpawl: run: not set, for this host cannot: %s", result->missing);
	if (result->timed_out && !run->json)
		output_clean_line(stderr, "netpawl: run: the time was over; %s was killed",
				  run->options.keep ? "what the run had started" : "the sandbox");
	else if (memory_killed(result) && !run->json)
		output_clean_line(stderr, "netpawl: run: it was killed: the limit of its memory was reached");
	else if (!result->started && result->problem[0])
		output_clean_line(stderr, "netpawl: run: %s", result->problem);
	for (int fd = 1; !run->json && fd < 3; fd++)
		if (result->truncated[fd])
			output_clean_line(stderr, "netpawl: run: standard %s was cut at --output-limit",
					  fd == 1 ? "output" : "error");
}
