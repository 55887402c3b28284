/* SPDX-License-Identifier: MIT */
/* netpawl policy test [FILE] CASES... */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/progress.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "policy/case.h"
#include "policy/outcome.h"
#include "vocab/limits.h"

/* One run over all files. */
struct run {
	const struct cli *cli;
	const struct policy *policy; /* FILE, for every case file; NULL: each names its own */
	bool verbose;
	json_t *files; /* with --json */
	size_t cases, failed, broken;
	struct progress progress;
};

static const char policy_test_help[] =
	"Usage: netpawl policy test [FILE] CASES... [OPTIONS]\n\n"
	"Compares what a policy says with what .case files expect of it. Without FILE, which may not end in\n"
	".case, each case file names its own policy. Needs no daemon.\n\n"
	"Options:\n"
	"  --verbose        print the cases that hold too\n" OPTIONS_COMMON "\nExamples:\n"
	"  netpawl policy test coding-agent.case\n"
	"  netpawl policy test my-policy.yaml must-hold.case\n\n"
	"Exit codes: 0 all cases hold; 1 one does not, or a file has errors; 2 wrong usage.\n";

static int cases_load(const char *path, struct case_file **ret, struct problems *problems)
{
	_buf_ struct buf text = BUF_INIT(NP_CASE_BYTES);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int e = fd < 0 ? -errno
		       : fs_read_fd(fd, &text); /* with its length: cases behind a NUL must not be passed over */

	if (e == 0)
		return case_file_parse(path, text.data ? text.data : "", text.len, ret, problems);
	problem_add(problems, false, path, 0, 0, "%s", e == -E2BIG ? "the file is too large" : strerror(-e));
	return e;
}

/* The policy that the case file itself names. */
static int policy_of(const char *path, const struct case_file *cases, struct policy **ret, struct problems *problems)
{
	const char *slash = strrchr(path, '/');
	char full[FS_PATH_SIZE];
	int e;

	if (cases->text)
		return policy_load_text(path, cases->text, cases->len, ret, problems);
	if (!cases->path) {
		problem_add(problems, false, path, 1, 1, "it names no policy: begin with \"policy: FILE\"");
		return -EINVAL;
	}
	e = fs_path(full, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, cases->path);
	if (e == 0)
		return policy_load_file(full, ret, problems);
	problem_add(problems, false, path, 1, 1, "the policy's path is too long");
	return e;
}

static json_t *outcome_json(const struct case_item *item, bool holds, const char *expected, const char *actual,
			    const char *message)
{
	return json_pack("{s:i,s:o,s:o,s:b,s:o,s:o,s:o}", "line", (int)item->line, "case", text_json(item->text),
			 "level", text_json(level_name(item->facts.rung.level)), "holds", holds, "expected",
			 text_json(expected), "actual", text_json(actual), "message", text_json(message));
}

static void item_run(struct run *run, const char *path, const struct policy *policy, const struct case_item *item,
		     json_t *results)
{
	struct case_outcome outcome = case_run(policy, item);
	char expected[CASE_TEXT_SIZE], actual[CASE_TEXT_SIZE], message[VERDICT_TEXT_SIZE];

	run->cases++;
	run->failed += !outcome.holds;
	if (outcome.holds && !run->verbose)
		return;
	case_expected_format(item, expected);
	case_actual_format(policy, &outcome, actual);
	verdict_text(policy, &outcome.facts, &outcome.verdict, message);
	if (results) {
		json_array_append_new(results, outcome_json(item, outcome.holds, expected, actual, message));
		return;
	}
	progress_clear(&run->progress);
	output_clean_line(stdout, "%s:%u: %s: %s (at %s)", path, item->line, outcome.holds ? "holds" : "FAILS",
			  item->text, level_name(item->facts.rung.level));
	if (outcome.holds)
		return;
	output_clean_line(stdout, "    expected  %s", expected);
	output_clean_line(stdout, "    actual    %s", actual);
	output_clean_line(stdout, "              %s", message);
}

static void file_run(struct run *run, const char *path)
{
	_problems_ struct problems problems = { 0 };
	_case_file_ struct case_file *cases = NULL;
	_policy_ struct policy *own = NULL;
	json_t *results = run->cli->json ? json_array() : NULL;
	size_t before = run->cases, failed = run->failed;
	const struct policy *policy = run->policy;
	int e = cases_load(path, &cases, &problems);

	if (e == 0 && !policy) {
		e = policy_of(path, cases, &own, &problems);
		policy = own;
	}
	if (e < 0)
		run->broken++;
	run->progress.total += e == 0 ? cases->n_items : 0; /* of files that are yet to come nobody knows */
	for (size_t i = 0; e == 0 && i < cases->n_items; i++) {
		item_run(run, path, policy, &cases->items[i], results);
		progress_step(&run->progress, 1);
	}
	if (!run->cli->json) {
		progress_clear(&run->progress);
		problems_print(&problems, false);
		return;
	}
	json_array_append_new(run->files, json_pack("{s:o,s:b,s:o,s:o,s:i,s:i,s:o,s:o}", "file", text_json(path), "ok",
						    e == 0 && run->failed == failed, "policy",
						    text_json(e == 0 ? policy->files[0] : NULL), "hash",
						    text_json(e == 0 ? policy->hash : NULL), "cases",
						    (int)(run->cases - before), "failed", (int)(run->failed - failed),
						    "results", results, "errors", problems_json(&problems, false)));
}

static int summary_print(const struct run *run)
{
	int code = run->failed || run->broken ? CLI_REFUSED : CLI_OK;

	if (run->cli->json)
		return json_print(json_pack("{s:b,s:i,s:i,s:i,s:o}", "ok", code == CLI_OK, "cases", (int)run->cases,
					    "failed", (int)run->failed, "broken", (int)run->broken, "files",
					    run->files),
				  code);
	printf("%zu case%s, %zu failed", run->cases, run->cases == 1 ? "" : "s", run->failed);
	if (run->broken)
		printf(", %zu file%s with errors", run->broken, run->broken == 1 ? "" : "s");
	putchar('\n');
	return code;
}

static bool is_case_file(const char *path)
{
	size_t len = strlen(path);

	return len >= 5 && !strcmp(path + len - 5, ".case");
}

int command_policy_test(struct cli *cli, int argc, char **argv)
{
	struct run run = { .cli = cli };
	const struct option_spec specs[] = { { "verbose", .flag = &run.verbose } };
	const struct options options = {
		.command = "policy test", .help = policy_test_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	int next, code = options_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (next == argc || (next + 1 == argc && !is_case_file(argv[next])))
		return usage_error(options.command, "it takes a policy and case files, or case files");
	if (!is_case_file(argv[next])) {
		if (policy_load_file(argv[next++], &policy, &problems) < 0)
			return policy_broken(cli, &problems);
		run.policy = policy;
	}
	run.files = cli->json ? json_array() : NULL;
	progress_start(&run.progress, "cases", 0);
	for (; next < argc; next++)
		file_run(&run, argv[next]);
	progress_clear(&run.progress);
	return summary_print(&run);
}
