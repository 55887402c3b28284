/* SPDX-License-Identifier: MIT */
/* netpawl credentials [refresh|test NAME] */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "vocab/words.h"

#define FETCH_MS 15000 /* a command has 10 s */
#define LOOK_MS	 50

static const char credentials_help[] =
	"Usage: netpawl credentials [OPTIONS]\n"
	"       netpawl credentials refresh [NAME] [OPTIONS]\n"
	"       netpawl credentials test NAME [OPTIONS]\n\n"
	"Lists the credentials of the live policy: whom they are for, whether their source has given a value, how\n"
	"old that is, when it was used last, and how many tokens were captured for it. Values are never shown.\n\n"
	"refresh asks the source of one, or of all, for a new value. test does so for one, and says what came of "
	"it.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl credentials test github\n\n"
	"Exit codes: 0 done, and every one that was asked for has a value; 1 refused, failed, or a source gave none;\n"
	"2 wrong usage; 3 no daemon.\n";

static const char *const columns[] = {
	"NAME", "STATE", "SOURCE", "FOR", "AGE", "LAST USED", "USES", "TOKENS", "PROBLEM"
};

static int list_get(const struct cli *cli, struct api_answer *ret)
{
	return api_call(cli->socket, NULL, "GET", "/v1/credentials", NULL, ret);
}

/* Names and what is unusual of their ports: 443 goes without saying, and so does TCP. */
static void hosts_put(struct buf *out, const json_t *hosts)
{
	const json_t *host;
	size_t i;

	json_array_foreach(hosts, i, host)
	{
		const char *text = json_string_value(host) ?: "", *usual = strstr(text, ":443/tcp"),
			   *tcp = strstr(text, "/tcp");

		buf_puts(out, i ? ", " : "");
		buf_append(out, text, usual ? (size_t)(usual - text) : tcp ? (size_t)(tcp - text) : strlen(text));
	}
	if (!json_array_size(hosts))
		buf_puts(out, "rules that name it");
}

/* How long ago, in the largest unit that fits; never: there is no such time. */
static void ago_put(struct buf *out, const char *text, uint64_t now_us, const char *never, const char *behind)
{
	static const struct {
		uint64_t seconds;
		char name;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	uint64_t us, seconds;
	size_t i = 0;

	if (!text || !time_parse(text, &us)) {
		buf_puts(out, never);
		return;
	}
	seconds = now_us > us ? (now_us - us) / 1000000 : 0;
	while (i < ARRAY_SIZE(units) - 1 && seconds < units[i].seconds)
		i++;
	buf_printf(out, "%llu%c%s", (unsigned long long)(seconds / units[i].seconds), units[i].name, behind);
}

static void row_add(struct table *table, const json_t *one, uint64_t now_us)
{
	_buf_ struct buf hosts = BUF_INIT(1u << 20), age = BUF_INIT(64), used = BUF_INIT(64);
	_free_ char *uses = scalar_text(json_object_get(one, "uses"));
	_free_ char *tokens = json_is_true(json_object_get(one, "captures"))
				      ? scalar_text(json_object_get(one, "tokens"))
				      : strdup("-");

	hosts_put(&hosts, json_object_get(one, "for"));
	ago_put(&age, member_text(one, "fetched"), now_us, "-", "");
	ago_put(&used, member_text(one, "used"), now_us, "never", " ago");
	if (buf_error(&hosts) || buf_error(&age) || buf_error(&used))
		return;
	table_add(table, member_text(one, "name"), member_text(one, "state"), member_text(one, "source"), hosts.data,
		  age.data, used.data, uses, tokens, member_text(one, "problem"));
}

static void list_print(const json_t *list, const char *only)
{
	_table_ struct table table = { .columns = ARRAY_SIZE(columns), .heading = true };
	struct timespec now;
	const json_t *one;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	table_row(&table, columns);
	json_array_foreach(list, i, one)
	{
		if (!only || !strcmp(member_text(one, "name") ?: "", only))
			row_add(&table, one, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	}
	table_print(&table, stdout);
}

/* Of one, or (NULL) of all. JSON is the daemon's answer, as it came. */
static int list_show(const struct cli *cli, const char *only)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = list_get(cli, &answer);
	const json_t *list = json_object_get(answer.json, "credentials");

	if (code != CLI_OK)
		return code;
	if (cli->json)
		json_text_print(answer.text);
	else if (!json_array_size(list))
		puts("the policy has no credentials");
	else
		list_print(list, only);
	return CLI_OK;
}

static int refresh_ask(const struct cli *cli, const char *name)
{
	_api_answer_ struct api_answer answer = { 0 };
	_buf_ struct buf path = BUF_INIT(1024);

	buf_puts(&path, "/v1/credentials/");
	api_escape(&path, name);
	buf_puts(&path, "/refresh");
	return buf_error(&path) ? CLI_REFUSED : api_call(cli->socket, name, "POST", path.data, NULL, &answer);
}

/* Is a command still running, of this one or (NULL) of any? ret_missing: one has no value. */
static int list_look(const struct cli *cli, const char *name, bool *ret_busy, bool *ret_missing)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = list_get(cli, &answer);
	const json_t *one;
	size_t i;

	*ret_busy = *ret_missing = false;
	json_array_foreach(json_object_get(answer.json, "credentials"), i, one)
	{
		if (name && strcmp(member_text(one, "name") ?: "", name) != 0)
			continue;
		*ret_busy |= json_is_true(json_object_get(one, "fetching"));
		*ret_missing |= strcmp(member_text(one, "state") ?: "", "ready") != 0 ||
				json_is_string(json_object_get(one, "problem"));
	}
	return code;
}

static int all_refresh(const struct cli *cli)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = list_get(cli, &answer);
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer.json, "credentials"), i, one)
	{
		if (code == CLI_OK)
			code = refresh_ask(cli, member_text(one, "name") ?: "");
	}
	return code;
}

static int values_refresh(const struct cli *cli, const char *name)
{
	bool busy = true, missing = true;
	int code = name ? refresh_ask(cli, name) : all_refresh(cli);

	for (unsigned ms = 0; code == CLI_OK && busy && ms < FETCH_MS; ms += LOOK_MS) {
		if (ms)
			usleep(LOOK_MS * 1000);
		code = list_look(cli, name, &busy, &missing);
	}
	if (code == CLI_OK)
		code = list_show(cli, name);
	return code == CLI_OK && missing ? CLI_REFUSED : code;
}

int command_credentials(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = argv[0],
					 .help = credentials_help,
					 .operands = { 0, 2, "refresh or test, and a name", false } };
	int next, n, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	n = argc - next;
	if (n == 0)
		return list_show(cli, NULL);
	if (!strcmp(argv[next], "refresh"))
		return values_refresh(cli, n > 1 ? argv[next + 1] : NULL);
	if (!strcmp(argv[next], "test") && n == 2)
		return values_refresh(cli, argv[next + 1]);
	return usage_error(argv[0], "it takes nothing, \"refresh\" with or without a name, or \"test\" with one");
}
