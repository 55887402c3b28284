/* SPDX-License-Identifier: MIT */
/* netpawl show USER/SESSION */
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"

static void show_help(FILE *to)
{
	fputs("Usage: netpawl show USER/SESSION [OPTIONS]\n\n"
	      "Shows a session: its level and mode, the data that raised it, its sandboxes with what they did, its "
	      "forwards.\n\n"
	      "Options:\n" OPTIONS_COMMON "\nExample:\n"
	      "  netpawl show alice/demo\n\n"
	      "Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon.\n",
	      to);
}

static void facts_print(const json_t *answer)
{
	static const char *const names[] = { "session", "level", "mode", "generation", "created", "ended" };
	_table_ struct table table = { .columns = 2 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const json_t *value = json_object_get(answer, names[i]);
		_free_ char *text = value && !json_is_null(value) ? scalar_text(value) : NULL;

		if (text)
			table_add(&table, names[i], text);
	}
	table_print(&table, stdout);
}

static void datasets_print(const json_t *datasets)
{
	_table_ struct table table = { .columns = 4, .heading = true };
	const json_t *dataset;
	size_t i;

	if (!json_array_size(datasets))
		return;
	table_add(&table, "DATASET", "LEVEL", "ADDED", "REASON");
	json_array_foreach(datasets, i, dataset)
	{
		table_add(&table, member_text(dataset, "name"), member_text(dataset, "level"),
			  member_text(dataset, "added"), member_text(dataset, "reason"));
	}
	fputc('\n', stdout);
	table_print(&table, stdout);
}

static char *member_scalar(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return value ? scalar_text(value) : NULL;
}

static void sandboxes_print(const json_t *sandboxes)
{
	_table_ struct table table = { .columns = 10, .heading = true };
	const json_t *sandbox;
	size_t i;

	if (!json_array_size(sandboxes))
		return;
	table_add(&table, "SANDBOX", "MODE", "KIND", "REQUESTS", "DENIED", "BYTES OUT", "BYTES IN", "CREATED",
		  "LAST ACTIVE", "CGROUP");
	json_array_foreach(sandboxes, i, sandbox)
	{
		_free_ char *requests = member_scalar(sandbox, "requests");
		_free_ char *denied = member_scalar(sandbox, "denied");
		_free_ char *out = member_scalar(sandbox, "bytes_out"), *in = member_scalar(sandbox, "bytes_in");

		table_add(&table, member_text(sandbox, "sandbox"), member_text(sandbox, "mode"),
			  json_is_true(json_object_get(sandbox, "adopted")) ? "adopted"
			  : json_is_true(json_object_get(sandbox, "kept"))  ? "kept"
									    : "made",
			  requests, denied, out, in, member_text(sandbox, "created"), member_text(sandbox, "active"),
			  member_text(sandbox, "cgroup"));
	}
	fputc('\n', stdout);
	table_print(&table, stdout);
}

static void forwards_print(const json_t *forwards)
{
	_table_ struct table table = { .columns = 3, .heading = true };
	const json_t *forward;
	size_t i;

	if (!json_array_size(forwards))
		return;
	table_add(&table, "FORWARD TO", "SANDBOX", "BY");
	json_array_foreach(forwards, i, forward)
	{
		_free_ char *port = scalar_text(json_object_get(forward, "port"));

		table_add(&table, port, member_text(forward, "sandbox"), member_text(forward, "who"));
	}
	fputc('\n', stdout);
	table_print(&table, stdout);
}

static void show_print(const json_t *answer)
{
	facts_print(answer);
	datasets_print(json_object_get(answer, "datasets"));
	sandboxes_print(json_object_get(answer, "sandboxes"));
	forwards_print(json_object_get(answer, "forwards"));
}

int command_show(struct cli *cli, int argc, char **argv)
{
	return session_command(cli, argc, argv, show_help, "GET", show_print);
}
