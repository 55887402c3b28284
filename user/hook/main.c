/* SPDX-License-Identifier: MIT */
/*
 * netpawl-oci-hook [SOCKET]: an OCI hook for the stage createRuntime. The container's cgroup and namespaces are there, and its first
 * process waits for us before it becomes the command. Whoever has the annotation netpawl.dev/session is made a sandbox of that
 * session; if the gate cannot be put up, the hook fails, and with it the start of the container. It keeps no state and decides
 * nothing but that: the daemon does.
 *
 * With --config it is one for Podman's stage precreate, before there is a container: its configuration passes through, and gets the
 * mounts and variables that have its programs trust the session's CA.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api_client/api.h"
#include "api_client/container.h"
#include "base/fs.h"
#include "containers/container_find.h"
#include "hook/config.h"
#include "hook/state.h"
#include "launch/trust_files.h"
#include "reason.h"

#define USAGE                                                                                           \
	"Usage: netpawl-oci-hook [--config] [SOCKET]\n\n"                                               \
	"An OCI hook (stage createRuntime) for Podman, CRI-O and other engines: reads the state of a\n" \
	"container from standard input, and makes a sandbox of it, in the session that its "            \
	"annotation\n" ANNOTATION_SESSION " names, at least at the level of " ANNOTATION_LEVEL ".\n"    \
	"The policy's containers: unknown: says what becomes of one that names none. SOCKET is the\n"   \
	"daemon's (else " CLI_SOCKET ").\n\n"                                                           \
	"With --config it is for Podman's stage precreate: reads a container's configuration, and\n"    \
	"prints it with mounts and variables that have its programs trust the session's CA.\n\n"        \
	"Exit codes: 0 confined, or to be left alone; else the container must not start.\n"

static int sandbox_ask(const char *socket, const struct oci_state *state)
{
	_api_answer_ struct api_answer answer = { 0 };
	char cgroup[FS_PATH_SIZE];
	int r = container_of_process(state->pid, cgroup);

	if (r < 0) {
		error_print(state->id, NP_R_BAD_CGROUP, strerror(-r));
		return CLI_REFUSED;
	}
	return api_call(socket, state->id, "POST", "/v1/sandboxes",
			json_pack("{s:s,s:s,s:i}", "session", state->wish.session.text, "cgroup", cgroup, "starting",
				  (int)state->pid),
			&answer);
}

static int container_confine(const char *socket, const struct buf *text)
{
	const char *problem;
	struct oci_state state;
	bool go_on = true;
	int code = CLI_OK;

	if (oci_state_read(text->data, text->len, &state, &problem) < 0) {
		error_print("the state of a container", NP_R_BAD_FIELD, problem);
		return CLI_REFUSED;
	}
	if (!state.wish.session.text[0])
		code = container_unknown(socket, state.id, &state.wish.session, &go_on);
	if (code == CLI_OK && go_on && state.wish.has_level)
		code = container_raise(socket, state.id, state.wish.session.text, state.wish.level);
	return code == CLI_OK && go_on ? sandbox_ask(socket, &state) : code;
}

/* -- the stage precreate ---------------------------------------------------------------------------------- */

static json_t *mount_json(const char *dir, const char *file, const char *destination)
{
	return json_pack("{s:s,s:s,s:o,s:[s,s,s]}", "destination", destination, "type", "bind", "source",
			 json_sprintf("%s%s%s", dir, *file ? "/" : "", file), "options", "rbind", "ro", "rprivate");
}

static int variable_add(void *data, const char *name, const char *value)
{
	return json_array_append_new(data, json_sprintf("%s=%s", name, value)) < 0 ? -ENOMEM : 0;
}

static int config_add(const struct buf *text, const char *dir, struct buf *out, const char **ret_problem)
{
	_json_ json_t *mounts = json_array(), *variables = json_array();
	int r = json_array_append_new(mounts, mount_json(dir, "", TRUST_DIR));

	for (size_t i = 0; r == 0 && i < trust_places_n; i++)
		r = json_array_append_new(mounts, mount_json(dir, trust_places[i].file, trust_places[i].path));
	if (r < 0 || trust_variables_each(TRUST_DIR, variable_add, variables) < 0)
		return -ENOMEM;
	return oci_config_add(text->data, text->len, mounts, variables, out, ret_problem);
}

static int config_print(const struct buf *text)
{
	return fs_write_all(STDOUT_FILENO, text->data, text->len) < 0 ? CLI_REFUSED : CLI_OK;
}

static int config_pass(const char *socket, const struct buf *text)
{
	static const char subject[] = "the configuration of a container";
	_api_answer_ struct api_answer parent = { 0 };
	_buf_ struct buf out = BUF_INIT(2 * NP_OCI_STATE_MAX);
	const char *problem = "there is not enough memory";
	struct annotations wish;
	char dir[FS_PATH_SIZE];
	bool go_on = true, has = false;
	int code = CLI_OK;

	if (oci_config_read(text->data, text->len, &wish, &problem) < 0) {
		error_print(subject, NP_R_BAD_FIELD, problem);
		return CLI_REFUSED;
	}
	if (!wish.session.text[0])
		code = container_unknown(socket, subject, &wish.session, &go_on);
	if (code == CLI_OK && go_on)
		code = container_trust(socket, wish.session.text, false, &parent, dir, &has);
	if (code != CLI_OK || !has)
		return code == CLI_OK ? config_print(text) : code;
	if (config_add(text, dir, &out, &problem) < 0) {
		error_print(subject, NP_R_FAILED, problem);
		return CLI_REFUSED;
	}
	return config_print(&out);
}

int main(int argc, char **argv)
{
	_buf_ struct buf text = BUF_INIT(NP_OCI_STATE_MAX);
	bool config = argc > 1 && !strcmp(argv[1], "--config");
	const char *socket = argc == 2 + config ? argv[1 + config] : CLI_SOCKET;

	if (argc > 2 + config || (argc == 2 + config && socket[0] == '-')) {
		fputs(USAGE, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
		return argc == 2 && !strcmp(argv[1], "--help") ? CLI_OK : CLI_USAGE;
	}
	if (fs_read_fd(STDIN_FILENO, &text) < 0 || !text.data) {
		error_print("standard input", NP_R_BAD_FIELD, "it cannot be read");
		return CLI_REFUSED;
	}
	return config ? config_pass(socket, &text) : container_confine(socket, &text);
}
