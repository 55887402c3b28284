/* SPDX-License-Identifier: MIT */
/* netpawl doctor */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "api_client/api.h"
#include "base/fs.h"
#include "cli/features.h"
#include "cli/options.h"
#include "cli/output.h"
#include "vocab/limits.h"
#include "reason.h"

static const char doctor_help[] =
	"Usage: netpawl doctor [OPTIONS]\n\n"
	"Tells what this kernel has of what netpawl uses, and what it means for the promise when something\n"
	"is missing. Asks the daemon; when none runs, tries the kernel with `netpawld --probe`. Of containers\n"
	"that run here it says what they have that would get around the gate once they are adopted.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl doctor\n\n"
	"Exit codes: 0 nothing is missing; 1 refused or failed; 2 wrong usage; 3 neither a daemon nor\n"
	"netpawld; 4 something is missing.\n";

/* The netpawld that was installed with us, else whichever PATH finds. */
static _Noreturn void probe_exec(void)
{
	char path[FS_PATH_SIZE];

	if (fs_beside(path, "netpawld") == 0)
		execl(path, "netpawld", "--probe", (char *)NULL);
	execlp("netpawld", "netpawld", "--probe", (char *)NULL);
	_exit(127);
}

/* 0 and its standard output; -ENOENT when there is no netpawld, -EIO when it failed. */
static int probe_run(struct buf *out)
{
	int ends[2], status, err;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(126);
		probe_exec();
	}
	close(ends[1]);
	err = pid < 0 ? -errno : fs_read_fd(ends[0], out);
	close(ends[0]);
	if (pid < 0)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (err < 0)
		return err;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* Of a daemon that runs: by which ways its inspectors reach hosts. */
static void proxies_print(const json_t *health)
{
	const json_t *urls = json_object_get(health, "upstream_proxies"), *url;
	size_t i;

	json_array_foreach(urls, i, url)
		output_clean_line(stdout, "%supstream proxy: %s", i ? "" : "\n", json_string_value(url) ?: "?");
}

static int features_show(const struct cli *cli, const char *text)
{
	_json_ json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	_table_ struct table table = { .columns = 3, .heading = true };
	struct feature feature;
	size_t missing = features_missing(object);

	if (!json_is_array(json_object_get(object, "features"))) {
		error_print(NULL, NP_R_FAILED, "the answer has no list of features");
		return CLI_REFUSED;
	}
	if (cli->json) {
		puts(text);
		return missing ? CLI_MISSING : CLI_OK;
	}
	table_add(&table, "FEATURE", "HERE", "WHAT IT MEANS");
	for (size_t i = 0; feature_get(object, i, &feature); i++)
		table_add(&table, feature.name, feature.present ? "yes" : "no", feature.means);
	table_print(&table, stdout);
	proxies_print(object);
	if (missing)
		printf("\n%zu missing.\n", missing);
	doctor_containers();
	return missing ? CLI_MISSING : CLI_OK;
}

static int doctor_without_daemon(const struct cli *cli, int error)
{
	cleanup(buf_free) struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	int err = probe_run(&out);

	if (err == -ENOENT) {
		api_unreachable(cli->socket, NULL, error);
		fputs("netpawl: and there is no netpawld to try the kernel with\n", stderr);
		return CLI_NO_DAEMON;
	}
	if (err < 0) {
		error_print(NULL, NP_R_FAILED, "netpawld --probe failed");
		return CLI_REFUSED;
	}
	if (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	return features_show(cli, out.data ? out.data : "");
}

int command_doctor(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = argv[0], .help = doctor_help };
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int next, err, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	err = client_call(cli->socket, "GET", "/v1/health", NULL, &answer);
	if (err < 0)
		return doctor_without_daemon(cli, err);
	if (answer.status != 200)
		return api_refused(NULL, answer.status, answer.body.data);
	return features_show(cli, answer.body.data);
}
