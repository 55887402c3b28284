/* SPDX-License-Identifier: MIT */
/*
 * netpawl completion bash|zsh|fish: scripts that are written from the tables of commands and of options, which hand
 * themselves over when cli->describe is set. No list of words is kept by hand but those of values.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/output.h"

#define OPTIONS_MAX 32
#define LEVELS	    "PUBLIC INTERNAL CONFIDENTIAL SECRET"
#define CLASSES	    "none read_only write"
#define STATES	    "pending running completed failed rejected"
#define SHELLS	    "bash zsh fish"
#define QUESTIONS   "pending allowed denied expired void all"
#define ANSWERS	    "deny once host"

static const char completion_help[] =
	"Usage: netpawl completion bash|zsh|fish [OPTIONS]\n\n"
	"Prints a script with which that shell completes commands, options, levels and names of sessions.\n\n"
	"Options:\n" OPTIONS_NO_JSON "\nExamples:\n"
	"  . <(netpawl completion bash)\n"
	"  netpawl completion zsh > /usr/local/share/zsh/site-functions/_netpawl\n"
	"  netpawl completion fish > ~/.config/fish/completions/netpawl.fish\n\n"
	"Exit codes: 0 done; 2 wrong usage.\n";

/* A command as its tables describe it. Names live as long as the program. */
struct described {
	const struct command *command;
	bool of_policy;
	size_t n_options;
	struct {
		const char *name;
		bool takes_value;
		unsigned complete;
	} options[OPTIONS_MAX];
};

static void options_take(void *data, const struct options *options)
{
	struct described *d = data;

	for (size_t i = 0; i < options->count && d->n_options < OPTIONS_MAX; i++) {
		const struct option_spec *spec = &options->specs[i];

		d->options[d->n_options].name = spec->name;
		d->options[d->n_options].takes_value = !spec->flag;
		d->options[d->n_options++].complete = spec->complete;
	}
}

static void command_describe(const struct command *command, bool of_policy, struct described *ret)
{
	char *argv[] = { (char *)command->name, NULL };
	struct cli cli = { .describe = options_take, .data = ret };

	*ret = (struct described){ .command = command, .of_policy = of_policy };
	command->run(&cli, 1, argv);
}

typedef void described_fn(const struct described *d);

static void completion_each(described_fn *fn)
{
	struct described d;

	for (size_t i = 0; i < n_commands; i++) {
		command_describe(&commands[i], false, &d);
		fn(&d);
	}
	for (size_t i = 0; i < n_policy_commands; i++) {
		command_describe(&policy_commands[i], true, &d);
		fn(&d);
	}
}

static const char *completion_prefix(const struct described *d)
{
	return d->of_policy ? "policy " : "";
}

/* The words that stand for these kinds of values. */
static void words_print(unsigned complete)
{
	static const struct {
		unsigned bit;
		const char *words;
	} kinds[] = {
		{ COMPLETE_LEVEL, LEVELS }, { COMPLETE_CLASS, CLASSES },      { COMPLETE_STATE, STATES },
		{ COMPLETE_SHELL, SHELLS }, { COMPLETE_QUESTION, QUESTIONS }, { COMPLETE_ANSWER, ANSWERS },
	};
	bool first = true;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (complete & kinds[i].bit) {
			printf("%s%s", first ? "" : " ", kinds[i].words);
			first = false;
		}
}

static void names_print(const struct command *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%s%s", i ? " " : "", table[i].name);
}

/* -- bash ------------------------------------------------------------------------ */

static void bash_value(const char *pattern, unsigned complete)
{
	printf("	%s) words=\"", pattern);
	words_print(complete);
	printf("\"%s%s ;;\n", complete ? "" : " files=1",
	       complete & COMPLETE_SESSION ? "; words+=\" $(_netpawl_sessions)\"" : "");
}

static void bash_values(const struct described *d)
{
	for (size_t i = 0; i < d->n_options; i++) {
		char pattern[96];

		if (!d->options[i].takes_value)
			continue;
		snprintf(pattern, sizeof(pattern), "\"%s%s --%s\"", completion_prefix(d), d->command->name,
			 d->options[i].name);
		bash_value(pattern, d->options[i].complete);
	}
}

static void bash_options(const struct described *d)
{
	printf("	\"%s%s\") words=\"", completion_prefix(d), d->command->name);
	for (size_t i = 0; i < d->n_options; i++)
		printf("%s--%s", i ? " " : "", d->options[i].name);
	printf("\" ;;\n");
}

static void bash_operands(const struct described *d)
{
	char pattern[64];

	snprintf(pattern, sizeof(pattern), "\"%s%s\"", completion_prefix(d), d->command->name);
	bash_value(pattern, d->command->operands);
}

static void bash_print(void)
{
	printf("# bash completion of netpawl: . <(netpawl completion bash)\n"
	       "_netpawl_sessions() { netpawl sessions 2>/dev/null | awk 'NR > 1 { print $1 }'; }\n"
	       "_netpawl() {\n"
	       "	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= files= i\n"
	       "	COMPREPLY=()\n"
	       "	for ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "		case ${COMP_WORDS[i]} in\n"
	       "		--) # a command line of its own\n"
	       "			if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$cur\")); else "
	       "COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
	       "			return ;;\n"
	       "		--socket) ((i++)) ;;\n"
	       "		-*) ;;\n"
	       "		*) if [[ -z $command ]]; then command=${COMP_WORDS[i]}; elif [[ $command = policy ]]; "
	       "then command+=\" ${COMP_WORDS[i]}\"; fi ;;\n"
	       "		esac\n"
	       "	done\n"
	       "	case \"$command $prev\" in\n"
	       "	*\" --socket\") files=1 ;;\n");
	completion_each(bash_values);
	printf("	*) case \"$cur/$command\" in\n"
	       "	-*/) words=\"--socket --json --help --version\" ;;\n"
	       "	*/) words=\"");
	names_print(commands, n_commands);
	printf("\" ;;\n"
	       "	[!-]*/policy | /policy) words=\"");
	names_print(policy_commands, n_policy_commands);
	printf("\" ;;\n"
	       "	-*) case $command in\n");
	completion_each(bash_options);
	printf("	esac ;;\n"
	       "	*) case $command in\n");
	completion_each(bash_operands);
	printf("	esac ;;\n"
	       "	esac ;;\n"
	       "	esac\n"
	       "	COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	       "	[[ -z $files ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
	       "}\n"
	       "complete -o filenames -F _netpawl netpawl\n");
}

/* -- zsh ------------------------------------------------------------------------- */

static void zsh_value(unsigned complete)
{
	if (!complete) {
		printf("_files");
	} else if (complete & COMPLETE_SESSION) {
		printf(" _netpawl_sessions "); /* the blank keeps zsh from adding words of its own */
		words_print(complete);
	} else if (complete & COMPLETE_COMMAND) {
		printf("_command_names -e");
	} else {
		printf("(");
		words_print(complete);
		printf(")");
	}
}

static void zsh_arguments(const struct described *d)
{
	printf("	%s) ", d->command->name);
	if (d->command->run == command_policy) {
		printf("_netpawl_policy ;;\n");
		return;
	}
	printf("_arguments");
	for (size_t i = 0; i < d->n_options; i++) {
		printf(" '--%s%s", d->options[i].name, d->options[i].takes_value ? ":value:" : "");
		if (d->options[i].takes_value)
			zsh_value(d->options[i].complete);
		printf("'");
	}
	if (!(d->command->operands & COMPLETE_NOTHING)) {
		printf(" '*:operand:");
		zsh_value(d->command->operands);
		printf("'");
	}
	printf(" ;;\n");
}

static void zsh_command(const struct described *d)
{
	if (!d->of_policy)
		zsh_arguments(d);
}

static void zsh_policy(const struct described *d)
{
	if (d->of_policy)
		zsh_arguments(d);
}

static void zsh_table(const char *name, const struct command *table, size_t n)
{
	printf("	local -a %s=(", name);
	for (size_t i = 0; i < n; i++)
		printf("%s\"%s:%s\"", i ? " " : "", table[i].name, table[i].about);
	printf(")\n");
}

static void zsh_print(void)
{
	printf("#compdef netpawl\n"
	       "_netpawl_sessions() { local -a names=(${(f)\"$(netpawl sessions 2>/dev/null | awk 'NR > 1 { print $1 "
	       "}')\"}); compadd -a names; compadd -- \"$@\"; }\n"
	       "_netpawl_policy() {\n"
	       "	local line state\n");
	zsh_table("subcommands", policy_commands, n_policy_commands);
	printf("	_arguments -C '1:command:->command' '*::argument:->argument'\n"
	       "	if [[ $state = command ]]; then _describe command subcommands; return; fi\n"
	       "	case $line[1] in\n");
	completion_each(zsh_policy);
	printf("	esac\n"
	       "}\n"
	       "_netpawl() {\n"
	       "	local line state\n");
	zsh_table("subcommands", commands, n_commands);
	printf("	_arguments -C '--socket:path:_files' '--json' '--help' '--version' '1:command:->command' "
	       "'*::argument:->argument'\n"
	       "	if [[ $state = command ]]; then _describe command subcommands; return; fi\n"
	       "	case $line[1] in\n");
	completion_each(zsh_command);
	printf("	esac\n"
	       "}\n"
	       "compdef _netpawl netpawl\n");
}

/* -- fish ------------------------------------------------------------------------ */

static void fish_value(unsigned complete)
{
	if (!complete)
		return;
	printf(" -x -a \"");
	if (complete & COMPLETE_SESSION)
		printf("(__netpawl_sessions)%s", complete & ~(unsigned)COMPLETE_SESSION ? " " : "");
	words_print(complete);
	printf("\"");
}

static void fish_command(const struct described *d)
{
	const struct command *command = d->command;
	char when[192];

	if (d->of_policy) {
		printf("complete -c netpawl -n '__fish_seen_subcommand_from policy; and not "
		       "__fish_seen_subcommand_from ");
		names_print(policy_commands, n_policy_commands);
		printf("' -f -a %s -d \"%s\"\n", command->name, command->about);
		snprintf(when, sizeof(when), "__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from %s",
			 command->name);
	} else {
		printf("complete -c netpawl -n __fish_use_subcommand -f -a %s -d \"%s\"\n", command->name,
		       command->about);
		snprintf(when, sizeof(when),
			 "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from policy", command->name);
	}
	for (size_t i = 0; i < d->n_options; i++) {
		printf("complete -c netpawl -n '%s' -l %s%s", when, d->options[i].name,
		       d->options[i].takes_value ? " -r" : "");
		if (d->options[i].takes_value)
			fish_value(d->options[i].complete);
		printf("\n");
	}
	if (command->operands & ~(unsigned)(COMPLETE_NOTHING | COMPLETE_COMMAND)) {
		printf("complete -c netpawl -n '%s'", when);
		fish_value(command->operands);
		printf("\n");
	} else if (command->operands & COMPLETE_NOTHING) {
		printf("complete -c netpawl -n '%s' -f\n", when);
	}
}

static void fish_print(void)
{
	printf("# fish completion of netpawl\n"
	       "function __netpawl_sessions; netpawl sessions 2>/dev/null | awk 'NR > 1 { print $1 }'; end\n"
	       "complete -c netpawl -n __fish_use_subcommand -l socket -r\n"
	       "complete -c netpawl -n __fish_use_subcommand -l json\n"
	       "complete -c netpawl -n __fish_use_subcommand -l help\n"
	       "complete -c netpawl -n __fish_use_subcommand -l version\n");
	completion_each(fish_command);
}

int command_completion(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = { { "bash", bash_print }, { "zsh", zsh_print }, { "fish", fish_print } };
	const struct options options = { argv[0],
					 completion_help,
					 NULL,
					 0,
					 .operands = { 1, 1, "one of bash, zsh and fish", false },
					 .no_json = "a shell reads what it prints" };
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(argv[next], shells[i].name)) {
			shells[i].print();
			return CLI_OK;
		}
	return usage_error(argv[0], "it takes one of bash, zsh and fish");
}
