/* SPDX-License-Identifier: MIT */
#include "cli/options.c"

#include <setjmp.h>
#include <cmocka.h>

#include "../api_client/capture.h"

static const char help[] = "help text\n";

struct seen {
	struct cli cli;
	const char *name;
	bool flag;
	int code, next, argc;
	char *argv[12];
	char errors[1024];
};

static void parse(struct seen *seen, bool until_operand, const char *const *words)
{
	const struct option_spec specs[] = { { "name", .value = &seen->name }, { "flag", .flag = &seen->flag } };
	const struct options options = { "cmd", help, specs, ARRAY_SIZE(specs), .until_operand = until_operand };
	struct capture capture;

	*seen = (struct seen){ .cli.socket = "default", .next = -1 };
	seen->argv[seen->argc++] = (char *)"cmd";
	while (*words)
		seen->argv[seen->argc++] = (char *)*words++;
	capture_begin(&capture, stderr);
	seen->code = options_parse(&options, &seen->cli, seen->argc, seen->argv, &seen->next);
	strcpy(seen->errors, capture_end(&capture));
}
#define PARSE(seen, until, ...) parse(seen, until, (const char *const[]){ __VA_ARGS__, NULL })

static void options_anywhere(void **state)
{
	struct seen seen;

	(void)state;
	PARSE(&seen, false, "op1", "--name", "x", "op2", "--json", "--socket=/s", "--flag");
	assert_int_equal(seen.code, OPTIONS_GO_ON);
	assert_string_equal(seen.name, "x");
	assert_string_equal(seen.cli.socket, "/s");
	assert_true(seen.flag && seen.cli.json);
	assert_int_equal(seen.argc - seen.next, 2);
	assert_string_equal(seen.argv[seen.next], "op1");
	assert_string_equal(seen.argv[seen.next + 1], "op2");
}

static void a_command_line_is_left_alone(void **state)
{
	struct seen seen;

	(void)state;
	PARSE(&seen, true, "--name", "x", "--", "ls", "--flag", "--json");
	assert_int_equal(seen.code, OPTIONS_GO_ON);
	assert_string_equal(seen.argv[seen.next], "ls");
	assert_false(seen.flag || seen.cli.json);
	PARSE(&seen, true, "ls", "--flag", "--unknown");
	assert_int_equal(seen.code, OPTIONS_GO_ON);
	assert_string_equal(seen.argv[seen.next], "ls");
	assert_false(seen.flag);
}

static void wrong_options_name_themselves(void **state)
{
	struct seen seen;

	(void)state;
	PARSE(&seen, false, "--bogus");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_string_equal(seen.errors, "netpawl: cmd: unknown option '--bogus'; see netpawl cmd --help\n");
	PARSE(&seen, false, "--nmae=x");
	assert_string_equal(seen.errors,
			    "netpawl: cmd: unknown option '--nmae=x'; did you mean --name?; see netpawl cmd --help\n");
	PARSE(&seen, false, "--name");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_non_null(strstr(seen.errors, "option '--name' needs a value"));
	PARSE(&seen, false, "-x");
	assert_non_null(strstr(seen.errors, "unknown option '-x'"));
	PARSE(&seen, false, "--flag=1");
	assert_non_null(strstr(seen.errors, "option '--flag=1' takes no value"));
	PARSE(&seen, false, "--bo\x1bgus");
	assert_non_null(strstr(seen.errors, "'--bo?gus'"));
}

static void options_are_written_out(void **state)
{
	struct seen seen;

	(void)state;
	PARSE(&seen, false, "--nam", "x");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_string_equal(seen.errors,
			    "netpawl: cmd: unknown option '--nam'; did you mean --name?; see netpawl cmd --help\n");
	PARSE(&seen, false, "--na=x");
	assert_non_null(strstr(seen.errors, "unknown option '--na=x'; did you mean --name?"));
	PARSE(&seen, false, "--fl", "op");
	assert_non_null(strstr(seen.errors, "unknown option '--fl'; did you mean --flag?"));
	PARSE(&seen, false, "op", "--name", "--flag", "--socket=--name");
	assert_int_equal(seen.code, OPTIONS_GO_ON);
	assert_string_equal(seen.name, "--flag");
	assert_string_equal(seen.cli.socket, "--name");
}

static void empty_words_are_wrong(void **state)
{
	struct seen seen;

	(void)state;
	PARSE(&seen, false, "--socket", "");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_non_null(strstr(seen.errors, "option '--socket' takes a path"));
	PARSE(&seen, false, "op", "");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_non_null(strstr(seen.errors, "an operand is empty"));
	PARSE(&seen, true, "ls", ""); /* it is the command's */
	assert_int_equal(seen.code, OPTIONS_GO_ON);
	PARSE(&seen, false, "--name", "", "op");
	assert_int_equal(seen.code, OPTIONS_GO_ON);
}

static void help_is_an_answer(void **state)
{
	struct seen seen;
	struct capture capture;

	(void)state;
	capture_begin(&capture, stdout);
	PARSE(&seen, true, "--help");
	assert_string_equal(capture_end(&capture), "help text\n");
	assert_int_equal(seen.code, CLI_OK);
	capture_begin(&capture, stdout);
	PARSE(&seen, false, "-h");
	assert_string_equal(capture_end(&capture), "help text\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_anywhere),
		cmocka_unit_test(a_command_line_is_left_alone),
		cmocka_unit_test(wrong_options_name_themselves),
		cmocka_unit_test(options_are_written_out),
		cmocka_unit_test(empty_words_are_wrong),
		cmocka_unit_test(help_is_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
