/* SPDX-License-Identifier: MIT */
#include "policy/notice_text.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "make.h"
#include "vocab/limits.h"

static const struct notice_facts customers = {
	.session = "alice/demo",
	.rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL },
	.dataset = "customers.csv",
	.reason = "ticket 4711",
	.raised = true,
};

static const char *written(const char *yaml, const struct notice_facts *facts)
{
	static char text[NP_NOTICE_TEXT + 64];
	_policy_ struct policy *policy = policy_of(yaml);
	_buf_ struct buf out = BUF_INIT(NP_NOTICE_TEXT);

	notice_write(policy, facts, &out);
	assert_int_equal(buf_error(&out), 0);
	assert_true(out.len <= NP_NOTICE_TEXT);
	snprintf(text, sizeof(text), "%s", out.data);
	return text;
}

static const char *problem_of(const char *text)
{
	static char problem[NOTICE_PROBLEM_SIZE];

	return notice_template_check(text, strlen(text), problem);
}

static void own_words(void **state)
{
	struct notice_facts facts = customers;
	const char *text = written("rules:\n  - allow: a.example\n", &facts);

	(void)state;
	assert_non_null(strstr(text,
			       "the dataset \"customers.csv\" came in (ticket 4711), so session alice/demo is now at "
			       "level CONFIDENTIAL, network mode PROXIED. It may reach only a.example"));
	assert_non_null(strstr(text, "will not help"));
	assert_non_null(strstr(text, "files and work so far are kept"));
	facts.rung.mode = NP_NONE;
	facts.rung.level = LEVEL_SECRET;
	text = written("rules:\n  - allow: a.example\n", &facts);
	assert_non_null(strstr(text,
			       "level SECRET, network mode NONE: its network is closed and stays closed. It may reach "
			       "nothing but itself"));
	assert_null(strstr(text, "a.example"));
	for (unsigned mode = NP_PROXIED; mode <= NP_NONE; mode++)
		assert_null(problem_of(notice_defaults[mode]));
}

static void causes(void **state)
{
	struct notice_facts facts = customers;

	(void)state;
	facts.reason = NULL;
	assert_string_equal(written("notices: {proxied: \"{cause}|{dataset}|{reason}\"}\n", &facts),
			    "the dataset \"customers.csv\" came in|customers.csv|no reason was given");
	facts.dataset = NULL;
	assert_string_equal(written("notices: {proxied: \"{cause}|{dataset}\"}\n", &facts),
			    "its level was raised|data that was not named");
	facts.starts = true;
	assert_string_equal(written("notices: {proxied: \"{cause}\"}\n", &facts), "it began at this level");
	facts.starts = facts.raised = false;
	facts.reason = "r";
	assert_string_equal(written("notices: {proxied: \"{cause}|{reason}\"}\n", &facts),
			    "the platform's policy became stricter (r)|r");
}

/* What stands for a placeholder is not looked into again. */
static void placeholders_are_filled_once(void **state)
{
	struct notice_facts facts = customers;

	(void)state;
	facts.dataset = "{level} {{ }";
	assert_string_equal(written("notices: {proxied: \"{{{dataset}}}{mode}{session}{level}{{x}}\"}\n", &facts),
			    "{{level} {{ }}PROXIEDalice/demoCONFIDENTIAL{x}");
}

static void bound(void **state)
{
	struct notice_facts facts = customers;
	char dataset[NP_DATASET_MAX + 1] = "", yaml[NP_NOTICE_TEMPLATE + 64] = "notices: {proxied: \"";
	const char *text;

	(void)state;
	/* Of three bytes each, so that the bound falls into one of them in some of the rounds. */
	for (int i = 0; i < NP_DATASET_MAX / 3; i++)
		strcat(dataset, "\xe2\x82\xac");
	facts.dataset = dataset;
	for (int i = 0; i < 200; i++)
		strcat(yaml, "{dataset}");
	for (int i = 0; i < 3; i++) {
		char padded[sizeof(yaml) + 8];

		snprintf(padded, sizeof(padded), "%.20s%.*s%s\"}\n", yaml, i, "xx", yaml + 20);
		text = written(padded, &facts);
		assert_true(strlen(text) > NP_NOTICE_TEXT - 8);
		assert_string_equal(text + strlen(text) - 6, "\xe2\x82\xac...");
	}
}

static void templates(void **state)
{
	static char longest[NP_NOTICE_TEMPLATE + 2];

	(void)state;
	assert_null(problem_of("plain"));
	assert_null(problem_of("{session}{cause}{dataset}{reason}{level}{mode}{allowed}{{}}"));
	assert_string_equal(
		problem_of("a {host} b"),
		"nothing is called \"host\"; there are {session}, {cause}, {dataset}, {reason}, {level}, {mode} and "
		"{allowed}");
	assert_non_null(strstr(problem_of("{}"), "nothing is called \"\""));
	assert_non_null(strstr(problem_of("{Level}"), "nothing is called \"Level\""));
	assert_non_null(strstr(problem_of("{level"), "a \"{\" without its other half"));
	assert_non_null(strstr(problem_of("level}"), "a \"}\" without its other half"));
	assert_non_null(strstr(problem_of("{{level}"), "a \"}\" without its other half"));
	assert_non_null(strstr(problem_of("{{{level"), "a \"{\" without its other half"));
	memset(longest, 'x', NP_NOTICE_TEMPLATE);
	assert_null(problem_of(longest));
	longest[NP_NOTICE_TEMPLATE] = 'x';
	assert_string_equal(problem_of(longest), "a notice of 2049 bytes; it has at most 2048");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_words),
		cmocka_unit_test(causes),
		cmocka_unit_test(placeholders_are_filled_once),
		cmocka_unit_test(bound),
		cmocka_unit_test(templates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
