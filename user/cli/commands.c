/* SPDX-License-Identifier: MIT */
/* Every command of netpawl, in one table. */
#include "base/cleanup.h"
#include "cli/cli.h"

const struct command commands[] = {
	{ "run", command_run, "run a command in a sandbox", COMPLETE_COMMAND },
	{ "escalate", command_escalate, "raise a session's level; its network tightens at once",
	  COMPLETE_SESSION | COMPLETE_LEVEL },
	{ "sessions", command_sessions, "list sessions", COMPLETE_NOTHING },
	{ "show", command_show, "show a session, its datasets and sandboxes", COMPLETE_SESSION },
	{ "attach", command_attach, "make a sandbox of a container that runs, or of a cgroup", COMPLETE_SESSION },
	{ "parent", command_parent, "a cgroup for containers to be born in", COMPLETE_SESSION },
	{ "docker", command_docker, "docker run, with the container in a sandbox", COMPLETE_NOTHING },
	{ "podman", command_podman, "podman run, with the container in a sandbox", COMPLETE_NOTHING },
	{ "remove", command_remove, "remove a sandbox, with all that runs in it", COMPLETE_NOTHING },
	{ "end", command_end, "end a session; its level is kept", COMPLETE_SESSION },
	{ "forget", command_forget, "forget a session that has ended, with its workspace", COMPLETE_SESSION },
	{ "forward", command_forward, "reach a listener of a sandbox from this host", COMPLETE_SESSION },
	{ "runs", command_runs, "list runs on record, and what waits for approval", COMPLETE_NOTHING },
	{ "approve", command_approve, "let a run that waits go on", COMPLETE_NOTHING },
	{ "reject", command_reject, "end a run that waits", COMPLETE_NOTHING },
	{ "cancel", command_cancel, "end a run that waits or goes on", COMPLETE_NOTHING },
	{ "questions", command_questions, "list requests that wait for a person", COMPLETE_NOTHING },
	{ "answer", command_answer, "answer a question: deny, once, host, domain or always", COMPLETE_ANSWER },
	{ "credentials", command_credentials,
	  "list the policy's credentials, never their values; refresh and test them", COMPLETE_NOTHING },
	{ "cp", command_cp, "copy files into a session's workspace, or out of it", 0 },
	{ "path", command_path, "translate a path of a workspace", COMPLETE_SESSION },
	{ "env", command_env, "what programs in an adopted cgroup have to trust", COMPLETE_SESSION },
	{ "events", command_events, "what was refused and what was changed", COMPLETE_NOTHING },
	{ "har", command_har, "requests as an HTTP archive, for developer tools", COMPLETE_NOTHING },
	{ "why", command_why, "what was refused of a session, and what it may do instead", COMPLETE_SESSION },
	{ "notices", command_notices, "what a session's agent is told when its network tightens", COMPLETE_SESSION },
	{ "console", command_console, "sessions, live traffic and questions in a browser", COMPLETE_NOTHING },
	{ "status", command_status, "the daemon in one page", COMPLETE_NOTHING },
	{ "debug", command_debug, "what the daemon and the inspectors hold, for whoever looks for a fault",
	  COMPLETE_SESSION },
	{ "policy", command_policy, "check, test, explain and suggest policies; show and reload the live one",
	  COMPLETE_NOTHING },
	{ "doctor", command_doctor, "what this kernel can promise", COMPLETE_NOTHING },
	{ "completion", command_completion, "completion for bash, zsh or fish", COMPLETE_SHELL },
};
const size_t n_commands = ARRAY_SIZE(commands);
