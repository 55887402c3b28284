/* SPDX-License-Identifier: MIT */
/* netpawl cp FROM TO */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vocab/words.h"
#include "api_client/api.h"
#include "cli/copy.h"
#include "cli/options.h"
#include "vocab/limits.h"
#include "reason.h"
#include "launch/plan.h"

static const char cp_help[] =
	"Usage: netpawl cp PATH USER/SESSION:PATH [OPTIONS]\n"
	"       netpawl cp USER/SESSION:PATH PATH [OPTIONS]\n\n"
	"Copies a file or a directory into a session's workspace, or out of it. PATH of a session is as its\n"
	"sandboxes see it (/workspace/x), or relative to /workspace. In the workspace it acts as the session's\n"
	"user, so a program there finds its own files, and no link that a running sandbox puts in the way leads\n"
	"out. Links, sockets, devices and the like are not copied. A file that is replaced on the host keeps its\n"
	"owner and mode, and a link to it stays one; a FIFO or a character device is written to. A host path of -\n"
	"is standard input or output; one that looks like a session's is written ./PATH. Needs root.\n\n"
	"Options:\n"
	"  --max-bytes N    out of a workspace: at most so much in all, holes of sparse files counted (1GiB)\n"
	"  --max-files N    likewise files and directories (100000)\n" OPTIONS_COMMON "\nExamples:\n"
	"  netpawl cp agent.py alice/demo:\n"
	"  netpawl cp alice/demo:/workspace/report.csv .\n\n"
	"Exit codes: 0 done; 1 refused or failed, or something was left out; 2 wrong usage; 3 no daemon.\n";

/* USER/SESSION:PATH. Cuts it in two and returns the path; NULL when it is a path of the host. */
static char *session_path(char *word)
{
	char *colon = strchr(word, ':'), *slash = strchr(word, '/');

	if (!colon || !slash || slash > colon || *word == '/' || *word == '.' ||
	    memchr(slash + 1, '/', (size_t)(colon - slash - 1)))
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* Below the workspace, or NULL. What leads out by dots or links is found where the path is opened. */
static const char *path_inside(const char *path)
{
	if (*path != '/')
		return path;
	if (!path_below(path, PLAN_WORKSPACE))
		return NULL;
	path += strlen(PLAN_WORKSPACE);
	return path + strspn(path, "/");
}

/* What went wrong, as people say it. */
static const char *error_words(int error)
{
	switch (error) {
	case -EINVAL:
	case -EOPNOTSUPP:
		return "neither a file nor a directory";
	case -EISDIR:
		return "the copy needs a name: say which file or directory it becomes";
	case -ELOOP:
		return "directories lie too deep within each other";
	case -EFBIG:
		return "with it there are more bytes than --max-bytes lets out of a workspace";
	case -E2BIG:
		return "with it there are more files and directories than --max-files lets out of a workspace";
	default:
		return strerror(-error);
	}
}

/* The place: a path of the host, USER/SESSION:PATH, or a name below one of the two. */
static int copy_fail(const struct copy *copy, const char *session, const char *path, int error)
{
	const char *failed = copy->failed && *copy->failed ? copy->failed : NULL;

	if (error == -EXDEV || (error == -ELOOP && copy->failed != copy->name))
		error_print(path, NP_R_OUTSIDE_WORKSPACE, NULL);
	else if (failed && failed != copy->inside)
		output_clean_line(stderr, "netpawl: cp: %s: %s", failed, error_words(error));
	else
		output_clean_line(stderr, "netpawl: cp: %s:%s: %s", session, path, error_words(error));
	return CLI_REFUSED;
}

struct bounds {
	uint64_t bytes, files;
};

static int copy_report(const struct cli *cli, const struct copy *copy)
{
	if (cli->json) {
		_json_ json_t *json = json_pack("{s:I,s:I,s:I}", "files", (json_int_t)copy->files, "bytes",
						(json_int_t)copy->bytes, "left_out", (json_int_t)copy->skipped);

		if (json)
			json_dumpf(json, stdout, JSON_COMPACT);
		fputc('\n', stdout);
	}
	return output_finish(copy->skipped ? CLI_REFUSED : CLI_OK);
}

static int workspace_copy(const struct cli *cli, const struct bounds *bounds, const char *session, const char *path,
			  const char *host, bool in)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *call = api_session_path(session, "");
	const char *inside = path_inside(path), *workspace;
	struct copy copy = { .workspace = -1 };
	int code = call ? api_call(cli->socket, session, "GET", call, NULL, &answer) : CLI_REFUSED, r;

	if (code != CLI_OK)
		return code;
	workspace = member_text(answer.json, "workspace");
	if (!workspace || !inside) {
		error_print(inside ? session : path, NP_R_OUTSIDE_WORKSPACE,
			    inside ? "it has no workspace yet: netpawl run makes one" : NULL);
		return CLI_REFUSED;
	}
	r = copy_open(&copy, workspace);
	copy.max_bytes = bounds->bytes;
	copy.max_files = bounds->files;
	copy.inside = inside;
	if (r == 0)
		r = in ? copy_in(&copy, host, inside) : copy_out(&copy, inside, host);
	code = r < 0 ? copy_fail(&copy, session, path, r) : copy_report(cli, &copy);
	copy_close(&copy);
	return code;
}

int command_cp(struct cli *cli, int argc, char **argv)
{
	const char *max_bytes = NULL, *max_files = NULL;
	const struct option_spec specs[] = { { "max-bytes", .value = &max_bytes },
					     { "max-files", .value = &max_files } };
	const struct options options = { argv[0], cp_help, specs, ARRAY_SIZE(specs),
					 .operands = { 2, 2, "two paths", false } };
	struct bounds bounds = { NP_COPY_BYTES, NP_COPY_FILES };
	char *from, *to;
	const char *host;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (max_bytes && (!size_parse(max_bytes, &bounds.bytes) || !bounds.bytes))
		return usage_error(argv[0], "--max-bytes takes a size like 10MiB, and got '%s'", max_bytes);
	if (max_files && !count_parse(max_files, INT64_MAX, &bounds.files))
		return usage_error(argv[0], "--max-files takes a number, and got '%s'", max_files);
	from = session_path(argv[next]);
	to = session_path(argv[next + 1]);
	if (!from == !to)
		return usage_error(argv[0], "just one of the two is USER/SESSION:PATH, the other is on this host");
	host = argv[to ? next : next + 1];
	if (!*host)
		return usage_error(argv[0], "the path on this host is empty");
	if (cli->json && !to && !strcmp(host, COPY_STREAM))
		return usage_error(argv[0], "--json and the file would both go to standard output");
	if (geteuid() != 0) {
		error_print(argv[0], NP_R_NOT_PERMITTED, NULL);
		return CLI_REFUSED;
	}
	return workspace_copy(cli, &bounds, argv[to ? next + 1 : next], to ? to : from, host, to);
}
