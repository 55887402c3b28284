/* SPDX-License-Identifier: MIT */
/* netpawl policy show, netpawl policy reload: the policy that the daemon enforces */
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"

static const char show_help[] =
	"Usage: netpawl policy show [OPTIONS]\n\n"
	"Shows the policy that the daemon enforces: where it came from, what levels mean, its rules with their\n"
	"conditions.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy show\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static const char reload_help[] =
	"Usage: netpawl policy reload [OPTIONS]\n\n"
	"Has the daemon read its policy again. It takes effect whole or not at all; connections that it\n"
	"forbids are cut, and sessions whose level now means a stricter mode are raised. With errors the\n"
	"policy before stays live.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy check /etc/netpawl/policy.yaml && netpawl policy reload\n\n"
	"Exit codes: 0 it is live; 1 refused (the policy has errors) or failed; 2 wrong usage; 3 no daemon.\n";

/* "[80, 443]" as "80, 443". */
static void ports_add(struct table *table, const json_t *answer, const char *name)
{
	_buf_ struct buf text = BUF_INIT(OUTPUT_TEXT_MAX);
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(answer, name), i, value)
	{
		_free_ char *port = scalar_text(value);

		buf_printf(&text, "%s%s", i ? ", " : "", port ? port : "?");
	}
	table_add(table, name, text.len ? text.data : "none");
}

/* "http://proxy.corp.example:3128 for .corp.example but a.corp.example, with credentials" */
static void proxies_add(struct table *table, const json_t *answer)
{
	static const char *const names[][2] = { { "hosts", " for " }, { "except", " but not for " } };
	const json_t *proxy, *host;
	size_t i, k;

	json_array_foreach(json_object_get(answer, "upstream_proxies"), i, proxy)
	{
		_buf_ struct buf text = BUF_INIT(OUTPUT_TEXT_MAX);

		buf_puts(&text, member_text(proxy, "url") ?: "?");
		for (size_t n = 0; n < ARRAY_SIZE(names); n++)
			json_array_foreach(json_object_get(proxy, names[n][0]), k, host)
				buf_printf(&text, "%s%s", k ? ", " : names[n][1], json_string_value(host) ?: "?");
		if (json_is_true(json_object_get(proxy, "credentials")))
			buf_puts(&text, ", with credentials");
		table_add(table, "upstream_proxy", text.data ? text.data : "?");
	}
}

static void facts_print(const json_t *answer)
{
	static const char *const names[] = { "file", "hash", "loaded", "who", "rules", "default" };
	_table_ struct table table = { .columns = 2 };
	const char *level;
	json_t *mode;

	table_members(&table, answer, names, ARRAY_SIZE(names));
	json_object_foreach(json_object_get(answer, "levels"), level, mode)
	{
		const char *action = member_text(json_object_get(answer, "defaults"), level);
		_buf_ struct buf text = BUF_INIT(OUTPUT_TEXT_MAX);
		_free_ char *name = scalar_text(mode);

		buf_printf(&text, "%s", name ? name : "?");
		if (action && name && !strcmp(name, mode_name(NP_PROXIED)))
			buf_printf(&text, ", default: %s", action);
		table_add(&table, level, text.data ? text.data : "?");
	}
	ports_add(&table, answer, "inspect_ports");
	ports_add(&table, answer, "host_loopback");
	ports_add(&table, answer, "inbound");
	proxies_add(&table, answer);
	table_print(&table, stdout);
}

static void warnings_print(const json_t *answer, FILE *to)
{
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(answer, "warnings"), i, warning)
	{
		const char *text = json_string_value(warning);

		output_clean_line(to, "%s", text ? text : "?");
	}
}

static void listing_print(const json_t *answer, const char *name, const char *heading)
{
	const char *const columns[][2] = { { "WHERE", "rule" }, { heading, "text" }, { "CONDITIONS", "conditions" } };
	const json_t *listing = json_object_get(answer, name);

	if (!json_array_size(listing))
		return;
	putchar('\n');
	rows_print(listing, columns, ARRAY_SIZE(columns), true);
}

static void show_print(const json_t *answer)
{
	facts_print(answer);
	if (json_array_size(json_object_get(answer, "warnings")))
		putchar('\n');
	warnings_print(answer, stdout);
	listing_print(answer, "listing", "RULE");
	listing_print(answer, "full", "RULE IN FULL");
	listing_print(answer, "read_only", "FOR RUNS THAT MAY ONLY READ");
	if (json_is_true(json_object_get(answer, "listing_cut_short")) ||
	    json_is_true(json_object_get(answer, "truncated")))
		puts("\nThere are more rules than are listed.");
}

static const char *plural_of(long long n)
{
	return n == 1 ? "" : "s";
}

void reload_print(const json_t *answer)
{
	long long rules = member_number(answer, "rules"), cut = member_number(answer, "cut");
	long long raised = member_number(answer, "raised");
	const char *hash = member_text(answer, "hash") ?: "?";

	warnings_print(answer, stderr);
	output_clean_line(stdout, "policy %.*s%s is live%s: %lld rule%s, %lld connection%s cut, %lld session%s raised",
			  POLICY_HASH_SHOWN, hash, strlen(hash) > POLICY_HASH_SHOWN ? "…" : "",
			  json_is_false(json_object_get(answer, "changed")) ? ", as before" : "", rules,
			  plural_of(rules), cut, plural_of(cut), raised, plural_of(raised));
}

static int daemon_command(struct cli *cli, int argc, char **argv, const struct options *options, const char *method,
			  const char *path, void (*print)(const json_t *answer))
{
	int next, code = command_parse(options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	return api_show(cli, NULL, method, path, strcmp(method, "GET") ? json_object() : NULL, print);
}

int command_policy_show(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = "policy show", .help = show_help };

	return daemon_command(cli, argc, argv, &options, "GET", "/v1/policy", show_print);
}

int command_policy_reload(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = "policy reload", .help = reload_help };

	return daemon_command(cli, argc, argv, &options, "POST", "/v1/policy/reload", reload_print);
}
