/* SPDX-License-Identifier: MIT */
/* What the subcommands of `netpawl policy` share. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"
#include "policy/policy.h"

cli_fn command_policy_check, command_policy_test, command_policy_explain, command_policy_suggest, command_policy_schema,
	command_policy_lists, command_policy_show, command_policy_reload, command_policy_save;

#define POLICY_HASH_SHOWN 12 /* digits of a hash that people get to see; --json has them all */

/* The policy that the daemon runs, and the rung of a session. CLI_OK; else the exit code, after a message. */
int policy_running(const struct cli *cli, const char *session, struct policy **ret, struct np_rung *ret_rung);

/* What a reload has done. */
void reload_print(const json_t *answer);

/* Anybody who has an account there can put things, and have them fetched from elsewhere. */
bool host_takes_uploads(const char *name);
/* netpawl policy suggest DIR */
int policy_suggest_dir(const struct cli *cli, const char *path);

/* On stderr, a line each, as compilers do. */
void problems_print(const struct problems *problems, bool warnings);
/* The errors, or the warnings, as an array. */
json_t *problems_json(const struct problems *problems, bool warnings);

/* For a command that cannot go on with such a policy: tells its errors, with --json as JSON too. CLI_REFUSED. */
int policy_broken(const struct cli *cli, const struct problems *problems);

/* A string of text that may hold anything: what is not UTF-8 becomes '?'. NULL gives null. */
json_t *text_json(const char *text);
/* {"file", "line", "text"}: a rule and where it stands. NULL gives null. */
json_t *rule_json(const struct policy *policy, const struct rule *rule);
