/* SPDX-License-Identifier: MIT */
/* netpawl path USER/SESSION PATH */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "vocab/words.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "reason.h"
#include "launch/plan.h"

static const char path_help[] =
	"Usage: netpawl path USER/SESSION PATH [OPTIONS]\n\n"
	"Translates a path of a session's workspace: /workspace/x, as a sandbox sees it, to where it is on the\n"
	"host, and back. What lies outside of the workspace is refused, also when a link leads there; the last\n"
	"part of PATH need not exist yet. A sandbox that runs can change what a path leads to at any time.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl path alice/demo /workspace/report.csv\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static int open_beneath(int dir, const char *path)
{
	return fs_open_beneath(dir, *path ? path : ".", O_PATH);
}

/* The real path of rest below the workspace. The last part may be missing: its directory may not. */
static int path_resolve(const char *workspace, const char *rest, char path[static FS_PATH_SIZE])
{
	_close_ int dir = open(workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	char above[FS_PATH_SIZE], found[FS_PATH_SIZE];
	const char *slash = strrchr(rest, '/'), *last = slash ? slash + 1 : rest;
	int r;

	if (dir < 0)
		return -errno;
	fd = open_beneath(dir, rest);
	if (fd >= 0)
		return fs_path_of(fd, path);
	if (fd != -ENOENT || !*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return fd;
	/* A link that leads nowhere is there, and could lead anywhere. */
	r = fs_path(above, "%.*s", (int)(last - rest), rest);
	fd = r < 0 ? r : open_beneath(dir, above);
	if (fd < 0)
		return fd;
	if (faccessat(fd, last, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EXDEV;
	r = fs_path_of(fd, found);
	return r < 0 ? r : fs_path(path, "%s/%s", found, last);
}

/* What follows dir in path; NULL when path is not below it. */
static const char *rest_of(const char *path, const char *dir)
{
	if (!path_below(path, dir))
		return NULL;
	path += strlen(dir);
	return path + strspn(path, "/");
}

static int path_translate(const char *workspace, const char *path, char result[static FS_PATH_SIZE])
{
	const char *inside = rest_of(path, PLAN_WORKSPACE), *outside = rest_of(path, workspace);
	char real[FS_PATH_SIZE], root[FS_PATH_SIZE];
	int r;

	if (!inside && !outside)
		return -EXDEV;
	r = path_resolve(workspace, inside ? inside : outside, real);
	if (r < 0 || inside)
		return r < 0 ? r : fs_path(result, "%s", real);
	r = path_resolve(workspace, "", root);
	return r < 0 ? r : fs_path(result, "%s%s", PLAN_WORKSPACE, real + strlen(root));
}

int command_path(struct cli *cli, int argc, char **argv)
{
	const struct options options = { argv[0], path_help, NULL, 0,
					 .operands = { 2, 2, "a session and a path", true } };
	_api_answer_ struct api_answer answer = { 0 };
	char result[FS_PATH_SIZE];
	const char *workspace;
	_free_ char *call = NULL;
	int next, r, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (argv[next + 1][0] != '/')
		return usage_error(argv[0], "%s is no absolute path", argv[next + 1]);
	call = api_session_path(argv[next], "");
	code = call ? api_call(cli->socket, argv[next], "GET", call, NULL, &answer) : CLI_REFUSED;
	if (code != CLI_OK)
		return code;
	workspace = member_text(answer.json, "workspace");
	r = workspace ? path_translate(workspace, argv[next + 1], result) : -ENOENT;
	if (!workspace)
		error_print(argv[next], NP_R_OUTSIDE_WORKSPACE, "it has no workspace yet: netpawl run makes one");
	else if (r == -EXDEV || r == -ELOOP)
		error_print(argv[next + 1], NP_R_OUTSIDE_WORKSPACE, NULL);
	else if (r < 0)
		complain_text(argv[next + 1], "it cannot be looked up", reason_token(NP_R_FAILED), strerror(-r));
	if (r < 0)
		return CLI_REFUSED;
	if (cli->json)
		return json_print(json_pack("{s:s}", "path", result), CLI_OK);
	puts(result); /* for a program, so as it is */
	return CLI_OK;
}
