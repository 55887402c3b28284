/* SPDX-License-Identifier: MIT */
/* netpawl show USER/SESSION */
#include <string.h>

#include "cli/engine.h"
#include "cli/features.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"

static const char show_help[] =
	"Usage: netpawl show USER/SESSION [OPTIONS]\n\n"
	"Shows a session: its level and mode, the data that raised it, its sandboxes with what they did, its "
	"forwards.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl show alice/demo\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon.\n";

static void facts_print(const json_t *answer)
{
	static const char *const names[] = { "session", "level", "mode", "generation", "created", "ended" };
	_table_ struct table table = { .columns = 2 };

	table_members(&table, answer, names, ARRAY_SIZE(names));
	table_print(&table, stdout);
}

static void part_print(const json_t *list, const char *const (*columns)[2], size_t n)
{
	if (!json_array_size(list))
		return;
	fputc('\n', stdout);
	rows_print(list, columns, n, true);
}

/* What it uses now, in words: 1.5s, 64M. */
static void usage_add(json_t *sandbox)
{
	const json_t *usage = json_object_get(sandbox, "usage");
	char text[32];

	if (!usage)
		return;
	snprintf(text, sizeof(text), "%.1fs", (double)member_number(usage, "cpu_us") / 1e6);
	json_object_set_new(sandbox, "cpu", json_string(text));
	snprintf(text, sizeof(text), "%lldM", (long long)member_number(usage, "memory") >> 20);
	json_object_set_new(sandbox, "memory", json_string(text));
}

/* Its name and its image, where its engine can be asked. */
static void container_add(json_t *containers, const json_t *sandbox)
{
	json_t *row = json_copy(json_object_get(sandbox, "container"));
	const char *engine = member_text(row, "engine"), *id = member_text(row, "id");
	const char *cgroup = member_text(sandbox, "cgroup");
	struct engine_container known;
	char risks[160] = "";

	if (!row)
		return;
	if (cgroup)
		container_risks(cgroup, risks, sizeof(risks));
	if (risks[0])
		json_object_set_new(row, "risks", json_string(risks));
	json_object_set(row, "sandbox", json_object_get(sandbox, "sandbox"));
	if (engine && id && (!strcmp(engine, "docker") || !strcmp(engine, "podman")) &&
	    engine_inspect(engine, id, &known) == 0) {
		json_object_set_new(row, "name", json_string(known.name));
		json_object_set_new(row, "image", json_string(known.image));
	}
	json_array_append_new(containers, row);
}

static void show_print(const json_t *answer)
{
	static const char *const of_dataset[][2] = {
		{ "DATASET", "name" }, { "LEVEL", "level" }, { "ADDED", "added" }, { "REASON", "reason" }
	};
	static const char *const of_sandbox[][2] = {
		{ "SANDBOX", "sandbox" }, { "MODE", "mode" },	       { "KIND", "kind" },
		{ "CPU", "cpu" },	  { "MEMORY", "memory" },      { "REQUESTS", "requests" },
		{ "REFUSED", "refused" }, { "SENT", "sent" },	       { "RECEIVED", "received" },
		{ "CREATED", "created" }, { "LAST ACTIVE", "active" }, { "CGROUP", "cgroup" },
	};
	static const char *const of_container[][2] = { { "CONTAINER", "id" },
						       { "ENGINE", "engine" },
						       { "NAME", "name" },
						       { "IMAGE", "image" },
						       { "MAY GO PAST THE GATE", "risks" },
						       { "SANDBOX", "sandbox" } };
	_json_ json_t *containers = json_array();
	static const char *const of_forward[][2] = { { "FORWARD TO", "port" },
						     { "SANDBOX", "sandbox" },
						     { "BY", "who" } };
	const json_t *sandboxes = json_object_get(answer, "sandboxes");
	json_t *sandbox;
	size_t i;

	facts_print(answer);
	part_print(json_object_get(answer, "datasets"), of_dataset, ARRAY_SIZE(of_dataset));
	json_array_foreach(sandboxes, i, sandbox)
	{
		static const char *const kinds[] = { "adopted", "kept", "parent", "born" };
		const char *kind = "made";

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			if (json_is_true(json_object_get(sandbox, kinds[k])))
				kind = kinds[k];
		json_object_set_new(sandbox, "kind", json_string(kind));
		usage_add(sandbox);
		container_add(containers, sandbox);
	}
	part_print(sandboxes, of_sandbox, ARRAY_SIZE(of_sandbox));
	part_print(containers, of_container, ARRAY_SIZE(of_container));
	part_print(json_object_get(answer, "forwards"), of_forward, ARRAY_SIZE(of_forward));
}

int command_show(struct cli *cli, int argc, char **argv)
{
	return session_command(cli, argc, argv, show_help, "GET", show_print);
}
