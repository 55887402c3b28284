/* SPDX-License-Identifier: MIT */
/* netpawl status */
#include <string.h>

#include "base/chars.h"
#include "cli/features.h"
#include "cli/options.h"
#include "cli/output.h"

#define STATUS_DEPTH 4 /* members of members of ... that are shown */

static const char status_help[] = "Usage: netpawl status [OPTIONS]\n\n"
				  "Shows the daemon, what it holds and what it counted.\n\n"
				  "Options:\n" OPTIONS_COMMON "\nExample:\n"
				  "  netpawl status\n\n"
				  "Exit codes: 0 it runs; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

/* Every scalar below an object under its dotted name, whatever the daemon chooses to tell. */
static void members_add(struct table *table, const json_t *object, const char *prefix, unsigned depth)
{
	static const char *const shown[] = { "status", "version", "pid", "features" };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		_free_ char *text = scalar_text(value);
		char full[256];

		if (!*prefix && WORD_IS_ONE_OF(name, shown))
			continue;
		snprintf(full, sizeof(full), "%s%s%s", prefix, *prefix ? "." : "", name);
		if (text)
			table_add(table, full, text);
		else if (json_is_object(value) && depth < STATUS_DEPTH)
			members_add(table, value, full, depth + 1);
	}
}

static void missing_add(struct table *table, const json_t *answer)
{
	struct feature feature;

	for (size_t i = 0; feature_get(answer, i, &feature); i++) {
		char text[1024];

		if (feature.present)
			continue;
		snprintf(text, sizeof(text), "%s: %s", feature.name, feature.means);
		table_add(table, "missing", text);
	}
}

static void degraded_add(struct table *table, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "degraded");

	for (size_t i = 0; i < json_array_size(list); i++)
		table_add(table, "degraded", json_string_value(json_array_get(list, i)) ?: "?");
}

static long long count_of(const json_t *one, const char *name)
{
	return json_integer_value(json_object_get(one, name));
}

static void deciders_add(struct table *table, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "deciders");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		const char *name = member_text(d, "decider");
		char key[128], text[256];

		snprintf(key, sizeof(key), "decider.%.100s", name ? name : "?");
		snprintf(text, sizeof(text),
			 "%s: %lld allowed, %lld denied, %lld asked, %lld raised, %lld without an answer; mean %lld us",
			 json_is_true(json_object_get(d, "paused"))  ? "left alone for a moment"
			 : json_is_true(json_object_get(d, "ready")) ? "ready"
								     : "not there",
			 count_of(d, "allowed"), count_of(d, "denied"), count_of(d, "asked"), count_of(d, "raised"),
			 count_of(d, "late") + count_of(d, "lost") + count_of(d, "turned_away"),
			 count_of(d, "mean_us"));
		table_add(table, key, text);
	}
}

static void exports_add(struct table *table, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "exports");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);
		char key[64], counts[256] = "", text[1024];

		snprintf(key, sizeof(key), "export.%.50s", member_text(e, "export") ?: "?");
		if (json_object_get(e, "sent"))
			snprintf(counts, sizeof(counts),
				 ": %lld events taken, %lld attempts failed, %lld not wanted, %lld missed",
				 count_of(e, "sent"), count_of(e, "failures"), count_of(e, "rejected"),
				 count_of(e, "gaps"));
		snprintf(text, sizeof(text), "%s, %.600s%s",
			 json_is_true(json_object_get(e, "ready")) ? "ready" : "not there", member_text(e, "to") ?: "?",
			 counts);
		table_add(table, key, text);
	}
}

static void status_print(const json_t *answer)
{
	_table_ struct table table = { .columns = 2 };
	char daemon[256];

	snprintf(daemon, sizeof(daemon), "%s, version %s, pid %lld", member_text(answer, "status") ?: "?",
		 member_text(answer, "version") ?: "?", member_number(answer, "pid"));
	table_add(&table, "daemon", daemon);
	degraded_add(&table, answer);
	members_add(&table, answer, "", 0);
	deciders_add(&table, answer);
	exports_add(&table, answer);
	missing_add(&table, answer);
	table_print(&table, stdout);
}

int command_status(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = argv[0], .help = status_help };
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	return api_show(cli, NULL, "GET", "/v1/health", NULL, status_print);
}
