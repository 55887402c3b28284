/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/case.c"
#include "policy/case_run.c"

#include "vocab/limits.h"

static struct case_file *parse(const char *text)
{
	_problems_ struct problems problems = { 0 };
	struct case_file *file = NULL;
	char first[PROBLEM_LINE_SIZE];
	int e = case_file_parse("t.case", text, strlen(text), &file, &problems);

	problems_first(&problems, first);
	if (e < 0)
		fail_msg("%s", first);
	assert_int_equal(problems.count, 0);
	return file;
}

/* The one error of a text: its line, and words of it. */
static void refused(const char *text, unsigned line, const char *words)
{
	_problems_ struct problems problems = { 0 };
	struct case_file *file = NULL;

	if (case_file_parse("t.case", text, strlen(text), &file, &problems) == 0)
		fail_msg("accepted: %s", text);
	assert_null(file);
	assert_int_equal(problems.errors, 1);
	assert_string_equal(problems.items[0].file, "t.case");
	assert_int_equal(problems.items[0].line, line);
	if (!strstr(problems.items[0].text, words))
		fail_msg("%s\nis refused with: %s", text, problems.items[0].text);
}

static void forms(void **state)
{
	_case_file_ struct case_file *file = parse("# a comment\n"
						   "policy: dir/my policy.yaml   # and another\n"
						   "\n"
						   "cases:\r\n"
						   "GET https://h.example/a#b -> allow\r\n"
						   "  PUT https://h.example/up  with header X-A, b ,c body 2kB "
						   "websocket resolving to 10.0.0.7\t->  deny bad_path # no\n"
						   "at secret\n"
						   "connect 192.0.2.7:53/udp -> deny mode_none line 14\n"
						   "at PUBLIC\n"
						   "connect h.example:22 -> ask lib/x.yaml:3\n"
						   "lookup  TXT H.example. -> allow");
	const struct case_item *item = file->items;

	(void)state;
	assert_string_equal(file->path, "dir/my policy.yaml");
	assert_null(file->text);
	assert_int_equal(file->n_items, 5);

	assert_int_equal(item->line, 5);
	assert_int_equal(item->facts.rung.level, LEVEL_CONFIDENTIAL);
	assert_string_equal(item->text, "GET https://h.example/a#b");
	assert_int_equal(item->action, ACTION_ALLOW);
	assert_int_equal(item->reason, -1);
	assert_int_equal(item->at, 0);

	item++;
	assert_int_equal(item->line, 6);
	assert_string_equal(item->facts.method, "PUT");
	assert_string_equal(item->facts.headers[0], "x-a");
	assert_string_equal(item->facts.headers[1], "b");
	assert_string_equal(item->facts.headers[2], "c");
	assert_null(item->facts.headers[3]);
	assert_int_equal(item->facts.body, 2000);
	assert_true(item->facts.websocket && item->facts.has_addr);
	assert_int_equal(item->reason, NP_R_BAD_PATH);

	item++;
	assert_int_equal(item->facts.rung.level, LEVEL_SECRET);
	assert_int_equal(item->facts.protocol, PATTERN_UDP);
	assert_int_equal(item->reason, NP_R_MODE_NONE);
	assert_int_equal(item->at, 14);
	assert_null(item->file);

	item++;
	assert_int_equal(item->facts.rung.level, LEVEL_PUBLIC);
	assert_int_equal(item->action, ACTION_ASK);
	assert_string_equal(item->file, "lib/x.yaml");
	assert_int_equal(item->at, 3);

	item++;
	assert_int_equal(item->facts.query, 16);
	assert_string_equal(item->facts.name, "h.example");
	assert_null(item->facts.method);
}

static void inline_policy_keeps_its_lines(void **state)
{
	_case_file_ struct case_file *file = parse("# one\n"
						   "policy:\n"
						   "    version: 1\n"
						   "\n"
						   "# a comment does not end it\n"
						   "    rules: []\n"
						   "connect h.example:1 -> deny\n");

	(void)state;
	assert_null(file->path);
	assert_string_equal(file->text, "\n\n    version: 1\n\n\n    rules: []\n\n");
	assert_int_equal(file->len, strlen(file->text));
	assert_int_equal(file->n_items, 1);
}

static void wrong_lines(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *words;
	} bad[] = {
		{ "", 0, "no case" },
		{ "policy: x.yaml\n# connect h.example:1 -> deny\n", 0, "no case" },
		{ "\n\nGET\n", 3, "METHOD URL" },
		{ "GET -> allow\n", 1, "METHOD URL" },
		{ "-> allow\n", 1, "METHOD URL" },
		{ "GET https://h.example/\n", 1, "verdict is missing" },
		{ "GET https://h.example/->allow\n", 1, "verdict is missing" },
		{ "GET https://h.example/ ->\n", 1, "one of allow, deny, ask, decide" },
		{ "GET https://h.example/ -> permit\n", 1, "one of allow, deny, ask, decide: \"permit\"" },
		{ "GET https://h.example/ -> allow because\n", 1, "neither a reason nor the place" },
		{ "GET https://h.example/ -> deny unknown\n", 1, "neither a reason nor the place" },
		{ "GET https://h.example/ -> deny raised\n", 1, "neither a reason nor the place" },
		{ "GET https://h.example/ -> deny metadata because\n", 1, "line N" },
		{ "GET https://h.example/ -> deny line\n", 1, "neither" },
		{ "GET https://h.example/ -> deny line 0\n", 1, "neither" },
		{ "GET https://h.example/ -> deny line 4294967296\n", 1, "neither" },
		{ "GET https://h.example/ -> deny line 3x\n", 1, "neither" },
		{ "GET https://h.example/ -> deny x.yaml:\n", 1, "neither" },
		{ "GET https://h.example/ -> deny :3\n", 1, "neither" },
		{ "GET https://h.example/ -> deny line 3 more\n", 1, "nothing comes behind" },
		{ "GET wss://h.example/ -> deny\n", 1, "URL" },
		{ "G@T https://h.example/ -> deny\n", 1, "method" },
		{ "GET https://h.example/ with x -> deny\n", 1, "not understood" },
		{ "lookup MX -> deny\n", 1, "lookup TYPE NAME" },
		{ "lookup -> deny\n", 1, "lookup TYPE NAME" },
		{ "lookup A h.example -> deny\n", 1, "MX, SRV and TXT" },
		{ "lookup MX 192.0.2.7 -> deny\n", 1, "not a name" },
		{ "lookup MX *.example -> deny\n", 1, "not a name" },
		{ "lookup MX h.example resolving to 192.0.2.7 -> deny\n", 1, "leads to no address" },
		{ "lookup MX h.example body 3 -> deny\n", 1, "no body" },
		{ "GET https://h.example/ sideways -> deny\n", 1, "not understood" },
		{ "GET https://h.example/ with header -> deny\n", 1, "by name" },
		{ "GET https://h.example/ with header a, -> deny\n", 1, "by name" },
		{ "GET https://h.example/ with header a with header b -> deny\n", 1, "twice" },
		{ "GET https://h.example/ body -> deny\n", 1, "size" },
		{ "GET https://h.example/ body big -> deny\n", 1, "size like 1234, 500kB or 20MiB: \"big\"" },
		{ "GET https://h.example/ resolving 10.0.0.1 -> deny\n", 1, "not understood" },
		{ "GET https://h.example/ resolving to -> deny\n", 1, "address" },
		{ "GET https://10.0.0.1/ resolving to 10.0.0.2 -> deny\n", 1, "address already" },
		{ "connect h.example -> deny\n", 1, "HOST:PORT" },
		{ "connect h.example:1 with header a -> deny\n", 1, "no headers" },
		{ "connect h.example:1 body 1 -> deny\n", 1, "no body" },
		{ "connect h.example:1 websocket -> deny\n", 1, "no websocket" },
		{ "at\n", 1, "levels are" },
		{ "at TOP\nconnect h.example:1 -> deny\n", 1,
		  "levels are PUBLIC, INTERNAL, CONFIDENTIAL, SECRET: \"TOP\"" },
		{ "at SECRET now\n", 1, "session USER/SESSION\": \"now\"" },
		{ "at SECRET class write\n", 1, "session USER/SESSION\": \"write\"" },
		{ "at SECRET class read_only x\n", 1, "session USER/SESSION\": \"x\"" },
		{ "cases: all\n", 1, "behind the heading" },
		{ "policy: a.yaml\npolicy: b.yaml\nconnect h.example:1 -> deny\n", 2, "second" },
		{ "connect h.example:1 -> deny\npolicy: b.yaml\n", 2, "before the cases" },
		{ "policy: /etc/x.yaml\nconnect h.example:1 -> deny\n", 1, "relative" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refused(bad[i].text, bad[i].line, bad[i].words);
}

static void columns_and_many_errors(void **state)
{
	static const char text[] = "GET https://h.example/ -> maybe\n"
				   "  connect h.example:x -> deny\n"
				   "connect h.example:1 -> deny\n";
	_problems_ struct problems problems = { 0 };
	struct case_file *file = NULL;

	(void)state;
	assert_int_equal(case_file_parse("t.case", text, strlen(text), &file, &problems), -EINVAL);
	assert_int_equal(problems.errors, 2);
	assert_int_equal(problems.items[0].column, 27);
	assert_int_equal(problems.items[1].line, 2);
	assert_int_equal(problems.items[1].column, 11);
}

static void bounds(void **state)
{
	static const char nul[] = "connect h.example:1 -> deny\n\0connect h.example:1 -> allow\n";
	_free_ char *big = malloc(NP_CASE_BYTES + 2);
	_problems_ struct problems problems = { 0 };
	struct case_file *file = NULL;

	(void)state;
	assert_non_null(big);
	assert_int_equal(case_file_parse("t.case", nul, sizeof(nul) - 1, &file, &problems), -EINVAL);
	assert_non_null(strstr(problems.items[0].text, "NUL"));

	memset(big, 'x', NP_CASE_LINE + 1);
	strcpy(big + NP_CASE_LINE + 1, "\nconnect h.example:1 -> deny\n");
	refused(big, 1, "too long");
	memset(big, '\n', NP_CASE_LINES);
	big[NP_CASE_LINES] = '\0';
	refused(big, 0, "lines");
	memset(big, '#', NP_CASE_BYTES + 1);
	big[NP_CASE_BYTES + 1] = '\0';
	refused(big, 0, "bytes");
	/* As many cases as lines. */
	big[0] = '\0';
	for (size_t i = 0, at = 0; i < NP_CASE_LINES - 1; i++)
		at += (size_t)sprintf(big + at, "connect h.example:1 -> deny\n");
	file = parse(big);
	assert_int_equal(file->n_items, NP_CASE_LINES - 1);
	case_file_free(file);
}

static const char policy_text[] = "version: 1\n"
				  "rules:\n"
				  "  - allow: a.example\n"
				  "  - deny: b.example\n";

static void runs(void **state)
{
	static const struct {
		const char *text;
		bool holds;
	} cases[] = {
		{ "GET https://a.example/ -> allow", true },
		{ "GET https://a.example/ -> deny", false },
		{ "GET https://a.example/ -> allow rule_allows line 3", true },
		{ "GET https://a.example/ -> allow open_mode", false },
		{ "GET https://a.example/ -> allow line 4", false },
		{ "GET https://a.example/ -> allow p.yaml:3", true },
		{ "GET https://a.example/ -> allow yaml:3", false },
		{ "GET https://a.example/ -> allow q.yaml:3", false },
		{ "GET https://b.example/ -> deny rule_denies p.yaml:4", true },
		{ "GET https://c.example/ -> deny not_in_policy", true },
		{ "GET https://c.example/ -> deny line 4", false },
		{ "at SECRET\nGET https://a.example/ -> deny mode_none", true },
		{ "at PUBLIC\nGET https://b.example/ -> allow open_mode", true },
	};
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;

	(void)state;
	assert_int_equal(policy_load_text("dir/p.yaml", policy_text, strlen(policy_text), &policy, &problems), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_case_file_ struct case_file *file = parse(cases[i].text);

		if (case_run(policy, file->items).holds != cases[i].holds)
			fail_msg("%s", cases[i].text);
	}
}

static void texts(void **state)
{
	_case_file_ struct case_file *file = parse("GET https://a.example/ -> allow\n"
						   "GET https://b.example/ -> deny rule_denies line 14\n"
						   "GET https://c.example/ -> ask x.yaml:3\n");
	static const char *const expected[] = { "allow", "deny rule_denies line 14", "ask x.yaml:3" };
	static const char *const actual[] = { "allow rule_allows, p.yaml:3", "deny rule_denies, p.yaml:4",
					      "deny not_in_policy, no rule" };
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	char text[CASE_TEXT_SIZE];

	(void)state;
	assert_int_equal(policy_load_text("p.yaml", policy_text, strlen(policy_text), &policy, &problems), 0);
	for (size_t i = 0; i < 3; i++) {
		struct case_outcome outcome = case_run(policy, &file->items[i]);

		case_expected_format(&file->items[i], text);
		assert_string_equal(text, expected[i]);
		case_actual_format(policy, &outcome, text);
		assert_string_equal(text, actual[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),       cmocka_unit_test(inline_policy_keeps_its_lines),
		cmocka_unit_test(wrong_lines), cmocka_unit_test(columns_and_many_errors),
		cmocka_unit_test(bounds),      cmocka_unit_test(runs),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
