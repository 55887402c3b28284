/* SPDX-License-Identifier: MIT */
/* netpawl debug [USER/SESSION] */

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"
#include "vocab/words.h"

static const char debug_help[] =
	"Usage: netpawl debug [USER/SESSION] [OPTIONS]\n\n"
	"Shows what the daemon and its inspectors hold, of one session or of all: sandboxes with the mode, level and\n"
	"generation that the session service, the kernel and each inspector take them to have (a disagreement is\n"
	"marked); connections with their states, requests, connections to origins, DNS queries that wait; memory,\n"
	"forwards, open runs, questions that wait and answers that hold. It shows no path, no header, no body and\n"
	"no key. An inspector that does not answer within a second is shown as such, and shows one page of entries.\n\n"
	"Options:\n"
	"  --after N        leave out the first N entries of each inspector: the next page\n" OPTIONS_COMMON
	"\nExample:\n"
	"  netpawl debug alice/demo\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon.\n";

/* "PROXIED/CONFIDENTIAL/4" */
static const char *rung_text(const json_t *rung, char text[static 64])
{
	if (!json_is_object(rung))
		return "-";
	snprintf(text, 64, "%s/%s/%lld%s", member_text(rung, "mode"), member_text(rung, "level"),
		 member_number(rung, "generation"), json_is_true(json_object_get(rung, "read_only")) ? "/ro" : "");
	return text;
}

static void session_print(const json_t *session)
{
	_table_ struct table table = { .columns = 2 };
	char text[64];

	if (!json_is_object(session))
		return;
	table_add(&table, "session", member_text(session, "session"));
	table_add(&table, "rung", rung_text(json_object_get(session, "rung"), text));
	table_add(&table, "CA (SHA-256)", member_text(session, "ca_sha256"));
	snprintf(text, sizeof(text), "%lld of %lld", member_number(session, "names"),
		 member_number(session, "names_max"));
	table_add(&table, "names", text);
	table_print(&table, stdout);
	fputc('\n', stdout);
}

static void sandboxes_print(const json_t *answer)
{
	_table_ struct table table = { .columns = 6, .heading = true };
	const json_t *sandbox;
	size_t i;

	table_add(&table, "SANDBOX", "SESSION", "SERVICE", "KERNEL", "SUPERVISOR", "INSPECTORS");
	json_array_foreach(json_object_get(answer, "sandboxes"), i, sandbox)
	{
		const json_t *inspectors = json_object_get(sandbox, "inspectors");
		bool agree = json_is_true(json_object_get(sandbox, "agree"));
		char service[64], kernel[64], supervisor[64], first[64], last[128];

		snprintf(last, sizeof(last), "%s%s",
			 rung_text(json_object_get(json_array_get(inspectors, 0), "rung"), first),
			 agree ? "" : "  DISAGREE: see --json");
		table_add(&table, member_text(sandbox, "sandbox"), member_text(sandbox, "session"),
			  rung_text(json_object_get(sandbox, "service"), service),
			  rung_text(json_object_get(sandbox, "kernel"), kernel),
			  rung_text(json_object_get(sandbox, "supervisor"), supervisor), last);
	}
	if (i)
		table_print(&table, stdout);
	if (member_number(answer, "sandboxes_left_out"))
		printf("%lld more sandboxes are not shown; name a session\n",
		       member_number(answer, "sandboxes_left_out"));
}

static void entries_add(struct table *table, const json_t *inspector, const char *kind, const char *word)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(inspector, kind), i, entry)
	{
		const char *name = member_text(entry, "name");
		char where[320], held[32], more[64];

		if (name)
			snprintf(where, sizeof(where), "%s", name);
		else
			snprintf(where, sizeof(where), "%s:%lld", member_text(entry, "host") ?: "?",
				 member_number(entry, "port"));
		snprintf(held, sizeof(held), "%lld", member_number(entry, "held"));
		snprintf(more, sizeof(more), json_object_get(entry, "idle_ms") ? "%s, %lld ms" : "%s",
			 member_text(entry, "state") ?: "-", member_number(entry, "idle_ms"));
		table_add(table, word, member_text(entry, "session"), where, held, more);
	}
}

static void inspector_print(const json_t *inspector)
{
	_table_ struct table table = { .columns = 5, .heading = true };
	const json_t *counts = json_object_get(inspector, "counts"), *memory = json_object_get(inspector, "memory");

	printf("\ninspector %lld: ", member_number(inspector, "pid"));
	if (!json_is_true(json_object_get(inspector, "answered"))) {
		puts(json_is_true(json_object_get(inspector, "ready")) ? "did not answer" : "is not ready");
		return;
	}
	printf("%lld connections, %lld requests, %lld connections to origins, %lld queries wait; %lld of %lld bytes "
	       "held\n",
	       member_number(counts, "connections"), member_number(counts, "exchanges"),
	       member_number(counts, "origins"), member_number(counts, "queries"), member_number(memory, "held"),
	       member_number(memory, "held_max"));
	table_add(&table, "KIND", "SESSION", "WHERE", "HELD", "STATE");
	entries_add(&table, inspector, "connections", "connection");
	entries_add(&table, inspector, "exchanges", "request");
	entries_add(&table, inspector, "origins", "origin");
	entries_add(&table, inspector, "queries", "query");
	if (table.used > table.columns)
		table_print(&table, stdout);
	if (member_number(inspector, "left_out"))
		printf("%lld more entries: --after %lld\n", member_number(inspector, "left_out"),
		       member_number(inspector, "after") + member_number(inspector, "shown"));
}

static void debug_print(const json_t *answer)
{
	const json_t *policy = json_object_get(answer, "policy"), *inspector;
	size_t i;

	printf("policy %.16s, epoch %lld; %zu forwards, %zu open runs, %zu questions and answers\n\n",
	       member_text(policy, "hash") ?: "-", member_number(policy, "epoch"),
	       json_array_size(json_object_get(answer, "forwards")), json_array_size(json_object_get(answer, "runs")),
	       json_array_size(json_object_get(answer, "questions")));
	session_print(json_object_get(answer, "session"));
	sandboxes_print(answer);
	json_array_foreach(json_object_get(answer, "inspectors"), i, inspector)
	{
		inspector_print(inspector);
	}
}

int command_debug(struct cli *cli, int argc, char **argv)
{
	const char *after = NULL;
	const struct option_spec specs[] = { { "after", .value = &after } };
	const struct options options = { argv[0], debug_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "at most one session", true } };
	cleanup(buf_free) struct buf path = BUF_INIT(1024);
	const char *session;
	uint64_t ignored;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (after && !count_parse(after, UINT32_MAX, &ignored))
		return usage_error(argv[0], "--after takes a number of entries, and got '%s'", after);
	session = next < argc ? argv[next] : NULL;
	buf_puts(&path, "/v1/debug");
	api_query(&path, "session", session);
	api_query(&path, "after", after);
	return session_show(cli, session, "GET", path.data, NULL, debug_print);
}
