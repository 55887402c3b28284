/* SPDX-License-Identifier: MIT */
/*
 * netpawl-oci-hook [SOCKET]: an OCI hook for the stage createRuntime. The container's cgroup and namespaces are there, and its first
 * process waits for us before it becomes the command. Whoever has the annotation netpawl.dev/session is made a sandbox of that
 * session; if the gate cannot be put up, the hook fails, and with it the start of the container. It keeps no state and decides
 * nothing but that: the daemon does.
 */
#include <string.h>
#include <unistd.h>

#include "api_client/api.h"
#include "api_client/container.h"
#include "base/fs.h"
#include "containers/container_find.h"
#include "hook/state.h"
#include "reason.h"

#define USAGE                                                                                           \
	"Usage: netpawl-oci-hook [SOCKET]\n\n"                                                          \
	"An OCI hook (stage createRuntime) for Podman, CRI-O and other engines: reads the state of a\n" \
	"container from standard input, and makes a sandbox of it, in the session that its "            \
	"annotation\n" ANNOTATION_SESSION " names, at least at the level of " ANNOTATION_LEVEL ".\n"    \
	"The policy's containers: unknown: says what becomes of one that names none. SOCKET is the\n"   \
	"daemon's (else " CLI_SOCKET ").\n\n"                                                           \
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

int main(int argc, char **argv)
{
	_buf_ struct buf text = BUF_INIT(NP_OCI_STATE_MAX);
	const char *socket = argc == 2 ? argv[1] : CLI_SOCKET, *problem = "it cannot be read";
	struct oci_state state;
	bool go_on = true;
	int code = CLI_OK;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fputs(USAGE, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
		return argc == 2 && !strcmp(argv[1], "--help") ? CLI_OK : CLI_USAGE;
	}
	if (fs_read_fd(STDIN_FILENO, &text) < 0 || oci_state_read(text.data, text.len, &state, &problem) < 0) {
		error_print("the state of a container", NP_R_BAD_FIELD, problem);
		return CLI_REFUSED;
	}
	if (!state.wish.session.text[0])
		code = container_unknown(socket, state.id, &state.wish.session, &go_on);
	if (code == CLI_OK && go_on && state.wish.has_level)
		code = container_raise(socket, state.id, state.wish.session.text, state.wish.level);
	return code == CLI_OK && go_on ? sandbox_ask(socket, &state) : code;
}
