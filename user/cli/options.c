/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/long_option.h"
#include "api_client/api.h"
#include "cli/output.h"
#include "policy/suggest.h"

#define OPTIONS_MAX 32 /* options of one subcommand, the common ones included */

static void help_print(const struct options *options, FILE *to)
{
	fputs(options->help, to);
	if (options->help_more)
		options->help_more(to);
}

void commands_print(const struct command *table, size_t n, FILE *to)
{
	for (size_t i = 0; i < n; i++)
		fprintf(to, "  %-11s %s\n", table[i].name, table[i].about);
}

int command_dispatch(const struct options *options, const struct command *table, size_t n, struct cli *cli, int argc,
		     char **argv)
{
	struct suggestion near = { .text = argc ? argv[0] : "" };

	if (!argc) {
		help_print(options, stderr);
		return CLI_USAGE;
	}
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(argv[0], table[i].name))
			return table[i].run(cli, argc, argv);
		suggestion_offer(&near, table[i].name);
	}
	return usage_error(options->command, "there is no command '%s'%s%s%s", argv[0],
			   near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static int option_refuse(const char *command, const char *word, const char *meant)
{
	return usage_error(command, "unknown option '%s'%s%s%s", word, meant ? "; did you mean --" : "",
			   meant ? meant : "", meant ? "?" : "");
}

static int option_unknown(const char *command, const char *word, const struct option_spec *specs, size_t n)
{
	_free_ char *name = strndup(word + 2, strcspn(word + 2, "="));
	struct suggestion near = { .text = name ? name : "" };

	for (size_t i = 0; i < n; i++)
		suggestion_offer(&near, specs[i].name);
	return option_refuse(command, word, near.best);
}

/* getopt_long() has left the loop's trace in optind and optopt. */
static int option_wrong(const struct options *options, const struct option_spec *specs, size_t n, char **argv,
			bool missing)
{
	const char *word = argv[optind - 1];

	if (missing)
		return usage_error(options->command, "option '%s' needs a value", word);
	if (optopt && strncmp(word, "--", 2) != 0)
		return usage_error(options->command, "unknown option '-%c'", optopt);
	if (strncmp(word, "--", 2) == 0 && strchr(word, '=') && optopt)
		return usage_error(options->command, "option '%s' takes no value", word);
	return option_unknown(options->command, word, specs, n);
}

static bool option_apply(const struct option_spec *spec, const char *value)
{
	if (spec->flag)
		*spec->flag = true;
	else if (spec->value)
		*spec->value = value;
	else if (spec->list && spec->list->n < ARRAY_SIZE(spec->list->items))
		spec->list->items[spec->list->n++] = value;
	else
		return false;
	return true;
}

int options_parse(const struct options *options, struct cli *cli, int argc, char **argv, int *ret_next)
{
	bool help = false;
	struct option_spec specs[OPTIONS_MAX] = {
		{ "help", .flag = &help },
		{ "json", .flag = &cli->json },
		{ "socket", .value = &cli->socket },
	};
	struct option table[OPTIONS_MAX + 1] = { 0 };
	size_t n = 3;
	int c, index = 0;

	for (size_t i = 0; i < options->count && n < OPTIONS_MAX; i++)
		specs[n++] = options->specs[i];
	if (cli->describe) {
		if (options->no_json)
			memmove(specs + 1, specs + 2, (--n - 1) * sizeof(*specs));
		cli->describe(cli->data, &(struct options){ .command = options->command, .specs = specs, .count = n });
		return CLI_OK;
	}
	for (size_t i = 0; i < n; i++)
		table[i] = (struct option){ specs[i].name, specs[i].flag ? no_argument : required_argument, NULL, 1 };
	optind = 0; /* GNU: forget the scan before, which was of netpawl's own options */
	opterr = 0;
	while ((c = getopt_long(argc, argv, options->until_operand ? "+:h" : ":h", table, &index)) != -1) {
		if (c == 'h')
			help = true;
		else if (c == 1 && !long_option_is_whole(argv, specs[index].name, optarg))
			return option_refuse(options->command, long_option_word(argv, optarg), specs[index].name);
		else if (c == 1 && option_apply(&specs[index], optarg))
			continue;
		else if (c == 1)
			return usage_error(options->command, "option '--%s' comes too often", specs[index].name);
		else
			return option_wrong(options, specs, n, argv, c == ':');
	}
	if (help) {
		help_print(options, stdout);
		return output_finish(CLI_OK);
	}
	if (options->no_json && cli->json)
		return usage_error(options->command, "it has no --json: %s", options->no_json);
	if (cli->socket && !*cli->socket)
		return usage_error(options->command, "option '--socket' takes a path, and got none");
	/* No command has a use for an empty word, and complaints about one would begin with nothing. */
	for (int i = optind; i < argc && !options->until_operand; i++)
		if (!*argv[i])
			return usage_error(options->command, "an operand is empty");
	*ret_next = optind;
	return OPTIONS_GO_ON;
}

int command_parse(const struct options *options, struct cli *cli, int argc, char **argv, int *ret_next)
{
	const struct operands *operands = &options->operands;
	int code = options_parse(options, cli, argc, argv, ret_next), n;

	if (code != OPTIONS_GO_ON)
		return code;
	n = argc - *ret_next;
	if (!operands->what && n)
		return usage_error(options->command, "it takes no operand, and got '%s'", argv[*ret_next]);
	if (n < operands->least || n > operands->most)
		return usage_error(options->command, "it takes %s", operands->what);
	code = operands->session && n ? session_check(options->command, argv[*ret_next]) : CLI_OK;
	return code == CLI_OK ? OPTIONS_GO_ON : code;
}
