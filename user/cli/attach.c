/* SPDX-License-Identifier: MIT */
/* netpawl attach USER/SESSION --container ID | --pid N | --cgroup PATH */
#include <errno.h>
#include <string.h>

#include "api_client/api.h"
#include "cli/engine.h"
#include "cli/features.h"
#include "cli/options.h"
#include "cli/output.h"
#include "containers/container_find.h"
#include "vocab/words.h"
#include "reason.h"

static const char attach_help[] =
	"Usage: netpawl attach USER/SESSION --container ID | --pid N | --cgroup PATH [OPTIONS]\n\n"
	"Makes a sandbox of a container, or of any cgroup v2 directory that exists, with all that runs in it and\n"
	"below. What its processes hold open counts: connections that the session's mode forbids are cut, and\n"
	"sockets that cannot be governed are a reason to refuse. A container keeps the network that it has, and\n"
	"needs nothing for it. What `netpawl run` shuts beyond that stays open here; `netpawl doctor` tells what\n"
	"it means.\n\n"
	"Options:\n"
	"  --container ID   a running container, by its id or the beginning of it; of Docker and Podman by its\n"
	"                   name, too\n"
	"  --pid N          the container that this process is in, or its cgroup where it is in none\n"
	"  --cgroup PATH    the cgroup's directory\n" OPTIONS_COMMON "\nExamples:\n"
	"  netpawl attach alice/demo --container 4f1c6a2b9d0e\n"
	"  netpawl attach alice/demo --cgroup /sys/fs/cgroup/machine.slice/agent-7\n\n"
	"Exit codes: 0 adopted; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void attach_print(const json_t *answer)
{
	output_clean_line(stdout, "%s: adopted %s as %s, mode %s, %lld connections cut",
			  member_text(answer, "session") ?: "?", member_text(answer, "cgroup") ?: "?",
			  member_text(answer, "sandbox") ?: "?", member_text(answer, "mode") ?: "?",
			  (long long)json_integer_value(json_object_get(answer, "cut")));
}

/* By its id; else the engines are asked whose name it is. */
static int container_look(const char *name, char path[static FS_PATH_SIZE])
{
	static const char *const engines[] = { "docker", "podman" };
	struct engine_container found;
	int r = container_find(name, path);

	for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(engines); i++)
		if (engine_inspect(engines[i], name, &found) == 0)
			return container_find(found.id, path);
	return r;
}

static const char *look_error(int r)
{
	switch (r) {
	case -ENOENT:
		return "no running container has that id or name, or its cgroup is not below the cgroup v2 mount";
	case -ENOTUNIQ:
		return "several containers have an id that begins so";
	case -ESRCH:
		return "there is no such process";
	default:
		return strerror(-r);
	}
}

static int cgroup_choose(const char *container, uint64_t pid, const char *cgroup, char path[static FS_PATH_SIZE])
{
	if (container)
		return container_look(container, path);
	if (pid)
		return container_of_process((pid_t)pid, path);
	return realpath(cgroup, path) ? 0 : -errno; /* the daemon does not know our working directory */
}

int command_attach(struct cli *cli, int argc, char **argv)
{
	const char *container = NULL, *pid = NULL, *cgroup = NULL;
	const struct option_spec specs[] = { { "container", .value = &container, .complete = COMPLETE_NOTHING },
					     { "pid", .value = &pid, .complete = COMPLETE_NOTHING },
					     { "cgroup", .value = &cgroup } };
	const struct options options = { argv[0], attach_help, specs, ARRAY_SIZE(specs),
					 .operands = { 1, 1, "one session", true } };
	char path[FS_PATH_SIZE], detail[512];
	uint64_t process = 0;
	json_t *body;
	int next, r, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!!container + !!pid + !!cgroup != 1)
		return usage_error(argv[0], "it takes one of --container, --pid and --cgroup");
	if (pid && !count_parse(pid, INT32_MAX, &process))
		return usage_error(argv[0], "--pid %s: not a process number", pid);
	r = cgroup_choose(container, process, cgroup, path);
	if (r < 0) {
		snprintf(detail, sizeof(detail), "%s: %s",
			 container ? container
			 : pid	   ? pid
				   : cgroup,
			 cgroup ? strerror(-r) : look_error(r));
		error_print(argv[next], NP_R_BAD_CGROUP, detail);
		return CLI_REFUSED;
	}
	code = api_body(argv[next], json_pack("{s:s,s:s}", "session", argv[next], "cgroup", path), &body);
	if (code != CLI_OK)
		return code;
	code = api_show(cli, argv[next], "POST", "/v1/sandboxes", body, attach_print);
	if (code == CLI_OK)
		container_warn(path);
	return code;
}
