/* SPDX-License-Identifier: MIT */
/* What every subcommand shares: its settings, its exit codes, its place in the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api_client/message.h"

struct options;

struct cli {
	const char *socket;
	bool json;
	/* Set: a command hands its options over as soon as it knows them, and does nothing else. For completion. */
	void (*describe)(void *data, const struct options *options);
	void *data;
};

/* argv[0] is the subcommand's name. Each returns an exit code. */
typedef int cli_fn(struct cli *cli, int argc, char **argv);

/* What a shell offers for an operand or the value of an option; bits. 0: files. */
enum complete {
	COMPLETE_SESSION = 1,
	COMPLETE_LEVEL = 2,
	COMPLETE_CLASS = 4,
	COMPLETE_STATE = 8,
	COMPLETE_SHELL = 16,
	COMPLETE_COMMAND = 32, /* behind "--": a command line */
	COMPLETE_NOTHING = 64,
	COMPLETE_QUESTION = 128, /* the state of one */
	COMPLETE_ANSWER = 256,
};

struct command {
	const char *name;
	cli_fn *run;
	const char *about;
	unsigned operands; /* enum complete */
};

/* The tables, each with its length: netpawl COMMAND, and netpawl policy COMMAND. */
extern const struct command commands[], policy_commands[];
extern const size_t n_commands, n_policy_commands;

cli_fn command_run, command_escalate, command_sessions, command_show, command_attach, command_end, command_events,
	command_why, command_notices, command_status, command_policy, command_doctor, command_path, command_env,
	command_approve, command_reject, command_cancel, command_runs, command_remove, command_cp, command_credentials,
	command_forward, command_completion, command_debug, command_forget, command_questions, command_answer,
	command_parent, command_docker, command_podman, command_har, command_console, command_top, command_ask;
