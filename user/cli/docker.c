/* SPDX-License-Identifier: MIT */
/* netpawl docker, netpawl podman: the engine's own command line, with a container that is born in a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_client/api.h"
#include "cli/engine_args.h"
#include "cli/options.h"
#include "cli/output.h"
#include "launch/trust_files.h"
#include "reason.h"

#define ENGINE_HELP(engine, example)                                                                                   \
	"Usage: netpawl " engine " --session USER/SESSION [OPTIONS] [--] [ENGINE OPTIONS] run|create ...\n\n"          \
	"Runs " engine " with the same words, and adds to them what puts the container into a sandbox of the\n"        \
	"session from its birth: --cgroup-parent (see netpawl parent), mounts and variables for what it has\n"         \
	"to trust, a label, and --cap-drop NET_RAW. Options that would lead it out again are refused:\n"               \
	"--cgroup-parent, --cgroups, --pod, --privileged, and --cap-add of NET_ADMIN, NET_RAW, SYS_ADMIN,\n"           \
	"SYS_MODULE, BPF or ALL. As root, on the host where the engine runs.\n\n"                                      \
	"Options:\n"                                                                                                   \
	"  --session U/S    the session; it is made if there is none\n"                                                \
	"  --level LEVEL    raise the session to that level first\n"                                                   \
	"  --keep-bundles   do not mount over the image's own bundles of certificates: for a container in which\n"     \
	"                   ca-certificates is installed, which takes the session's CA up by itself\n" OPTIONS_NO_JSON \
	"\nExample:\n"                                                                                                 \
	"  netpawl " engine " --session alice/demo run --rm -it " example "\n\n"                                       \
	"Exit codes: those of " engine "; before it starts 1 refused or failed, 2 wrong usage, 3 no daemon.\n"

static const char docker_help[] = ENGINE_HELP("docker", "debian bash");
static const char podman_help[] = ENGINE_HELP("podman", "alpine sh");

static int level_raise(const struct cli *cli, const char *session, const char *level)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = api_session_path(session, "/datasets");

	return path ? api_call(cli->socket, session, "POST", path, json_pack("{s:s,s:b}", "level", level, "create", 1),
			       &answer)
		    : CLI_REFUSED;
}

/* Does the engine leave cgroups to systemd? It is asked with its own options, which say which engine it is. */
static int driver_ask(const char *engine, int argc, char *const *argv, bool *ret_systemd)
{
	const char *words[NP_ENGINE_OPTIONS + 5] = { engine };
	_close_ int from = -1, to = -1;
	_buf_ struct buf text = BUF_INIT(4096);
	int pipes[2], status = -1;
	pid_t pid;

	if (argc > NP_ENGINE_OPTIONS || pipe2(pipes, O_CLOEXEC) < 0)
		return -E2BIG;
	from = pipes[0];
	to = pipes[1];
	memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
	words[argc + 1] = "info";
	words[argc + 2] = "--format";
	words[argc + 3] = !strcmp(engine, "podman") ? "{{.Host.CgroupManager}}" : "{{.CgroupDriver}}";
	pid = fork();
	if (pid == 0) {
		dup2(to, STDOUT_FILENO);
		execvp(engine, (char *const *)words);
		_exit(127);
	}
	cleanup_close(&to);
	if (pid < 0 || fs_read_fd(from, &text) < 0 || waitpid(pid, &status, 0) != pid || status != 0 || !text.len)
		return -EIO;
	*ret_systemd = !strcmp(text.data, "systemd\n");
	return *ret_systemd || !strcmp(text.data, "cgroupfs\n") ? 0 : -EINVAL;
}

static int engine_exec(const char *engine, char **args)
{
	char detail[256];

	execvp(engine, args);
	snprintf(detail, sizeof(detail), "%s: %s", engine, strerror(errno));
	error_print(NULL, NP_R_FAILED, detail);
	return CLI_REFUSED;
}

static int engine_run(struct cli *cli, char **argv, int argc, int verb, struct engine_order order)
{
	const char *engine = argv[0];
	_api_answer_ struct api_answer answer = { 0 };
	cleanup(engine_args_free) char **args = NULL;
	char path[FS_PATH_SIZE];
	bool systemd = false, trusts;
	int code;

	if (driver_ask(engine, verb - 1, argv + 1, &systemd) < 0) {
		fprintf(stderr,
			"netpawl: %s info does not say who makes its cgroups: is %s installed, and does it run?\n",
			engine, engine);
		return CLI_REFUSED;
	}
	code = container_trust(cli->socket, order.session, systemd, &answer, path, &trusts);
	if (code != CLI_OK)
		return code;
	order.parent = member_text(answer.json, "cgroup_parent");
	if (systemd)
		order.parent = strrchr(order.parent, '/') + 1;
	order.trust = trusts ? path : NULL;
	args = engine_args(argc, argv, verb, &order);
	return args ? engine_exec(engine, args) : CLI_REFUSED;
}

static int command_engine(struct cli *cli, const char *help, int argc, char **argv)
{
	const char *session = NULL, *level = NULL, *out;
	bool keep = false;
	const struct option_spec specs[] = { { "session", .value = &session, .complete = COMPLETE_SESSION },
					     { "level", .value = &level, .complete = COMPLETE_LEVEL },
					     { "keep-bundles", .flag = &keep } };
	const struct options options = { argv[0],
					 help,
					 specs,
					 ARRAY_SIZE(specs),
					 .until_operand = true,
					 .no_json = "what the engine prints is its own" };
	char *engine = argv[0];
	int next, verb, code = options_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!session)
		return usage_error(engine, "it takes --session");
	code = session_check(engine, session);
	if (code == CLI_OK && level)
		code = level_check(engine, level);
	if (code != CLI_OK)
		return code;
	/* The word before is ours: it becomes the engine's name. */
	argv += next - 1;
	argc -= next - 1;
	argv[0] = engine;
	verb = engine_verb(argc, argv);
	if (verb < 1)
		return usage_error(engine, "it is for run and create: others need no sandbox");
	out = engine_leads_out(argc, argv, verb);
	if (out)
		return usage_error(engine, "%s would lead the container out of its sandbox", out);
	code = level ? level_raise(cli, session, level) : CLI_OK;
	if (code != CLI_OK)
		return code;
	return engine_run(
		cli, argv, argc, verb,
		(struct engine_order){ .podman = !strcmp(engine, "podman"), .session = session, .keep_bundles = keep });
}

int command_docker(struct cli *cli, int argc, char **argv)
{
	return command_engine(cli, docker_help, argc, argv);
}

int command_podman(struct cli *cli, int argc, char **argv)
{
	return command_engine(cli, podman_help, argc, argv);
}
