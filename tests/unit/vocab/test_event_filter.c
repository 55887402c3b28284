/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "vocab/event_filter.c"

static const struct filter_facts request = { .of = {
						     [FILTER_HOST] = "api.GitHub.com",
						     [FILTER_URL] = "https://api.GitHub.com/repos/a?b=c",
						     [FILTER_METHOD] = "POST",
						     [FILTER_STATUS] = "403",
						     [FILTER_VERDICT] = "refused",
						     [FILTER_KIND] = "request",
						     [FILTER_REASON] = "not_in_policy",
						     [FILTER_SESSION] = "alice/demo",
						     [FILTER_PROGRAM] = "python3",
						     [FILTER_LEVEL] = "INTERNAL",
						     [FILTER_MODE] = "PROXIED",
						     [FILTER_RULE] = "coding-agent.yaml:14",
						     [FILTER_PORT] = "443",
						     [FILTER_ADDRESS] = "2001:db8::1",
					     } };
static const struct filter_facts model = { .of = { [FILTER_HOST] = "api.anthropic.com", [FILTER_LIST] = "@llm" } };
static const struct filter_facts nothing = { 0 };

static bool passes(const char *text, const struct filter_facts *facts)
{
	struct event_filter filter;
	char problem[FILTER_PROBLEM_SIZE];

	if (event_filter_parse(text, &filter, problem))
		fail_msg("%s: %s", text, problem);
	return event_filter_passes(&filter, facts);
}

static void test_what_passes(void **state)
{
	static const char *const yes[] = {
		"",
		"  \t ",
		"host:github.com",
		"host:api.github.com",
		"host:*.github.com",
		"host:GITHUB.com",
		"host:x.test,github.com",
		"verdict:refused",
		"verdict:allowed,refused",
		"-verdict:allowed",
		"-llm",
		"session:alice/*",
		"session:*/demo",
		"method:post",
		"status:403",
		"status:4xx",
		"status:4*",
		"-status:5xx",
		"reason:not_*",
		"program:python*",
		"level:internal",
		"mode:proxied",
		"rule:coding-agent",
		"rule:*:14",
		"port:443",
		"url:/repos/",
		"url:https://*c",
		"github",
		"REPOS/a",
		"-\"no such\"",
		"https://api.github.com/",
		"kind:request,dns",
		"address:2001:db8::1",
		"host:github.com verdict:refused -llm session:alice/*",
		"url:\"/repos/\"",
		"db8",
		"-question:7",
	};
	static const char *const no[] = {
		"host:hub.com",
		"host:github.com.evil.test",
		"host:api",
		"verdict:allowed",
		"-verdict:refused",
		"llm",
		"session:alice",
		"session:bob/*",
		"method:get",
		"status:40",
		"status:5xx",
		"-github",
		"list:llm",
		"port:44",
		"host:github.com method:get",
		"-host:x.test,github.com",
		"kind:dns",
		"url:*/repos",
		"question:7",
		"elsewhere",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		if (!passes(yes[i], &request))
			fail_msg("it does not pass: %s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		if (passes(no[i], &request))
			fail_msg("it passes: %s", no[i]);
}

static void test_calls_of_models_have_a_mark(void **state)
{
	(void)state;
	assert_true(passes("llm", &model));
	assert_false(passes("-llm", &model));
	assert_true(passes("list:llm", &model) && passes("list:@llm", &model) && passes("list:*", &model));
	assert_false(passes("list:registries", &model));
}

static void test_what_an_event_does_not_say(void **state)
{
	(void)state;
	assert_true(passes("-host:github.com", &nothing) && passes("host:*", &nothing) && !passes("host:?", &nothing));
	assert_false(passes("x", &nothing));
}

static void complains(const char *text, const char *about)
{
	struct event_filter filter = { .n = 7 };
	char problem[FILTER_PROBLEM_SIZE] = "";

	assert_int_equal(event_filter_parse(text, &filter, problem), -EINVAL);
	if (!strstr(problem, about))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, problem, about);
	assert_int_equal(filter.n, 7); /* untouched */
}

static void test_a_slip_is_told_with_its_place(void **state)
{
	char longest[FILTER_TEXT_MAX + 2], many[FILTER_WORDS_MAX * 2 + 3] = "";

	(void)state;
	complains("hots:github.com", "character 1: there is no key \"hots\"");
	complains("llm -hots:x", "character 6: there is no key");
	complains("host:", "character 6: a value is missing");
	complains("host:a,", "character 8: a value is missing");
	complains("-", "character 2: a value is missing");
	complains("verdict:denied", "a verdict is allowed, refused");
	complains("kind:http", "a kind is request");
	complains("\"open", "character 1: the quote is not closed");
	complains("\"a\"b", "character 4: a blank is missing");
	complains("a\x1b[31m", "a control character");
	complains("port:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "too many values");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	complains(longest, "too long");
	for (int i = 0; i <= FILTER_WORDS_MAX; i++)
		strcat(many, "a ");
	complains(many, "too many words");
}

/* All of a filter's text may be values, each with its NUL. */
static void test_the_longest_one_fits(void **state)
{
	char text[FILTER_TEXT_MAX + 1];
	size_t n = 0;

	(void)state;
	for (int w = 0; w < FILTER_WORDS_MAX; w++) {
		n += (size_t)sprintf(text + n, "url:");
		for (int v = 0; v < 13; v++)
			n += (size_t)sprintf(text + n, "%sa", v ? "," : "");
		text[n++] = ' ';
	}
	memset(text + n, 'b', FILTER_TEXT_MAX - n);
	text[n - 1] = 'a';
	text[FILTER_TEXT_MAX] = '\0';
	assert_true(passes(text, &request));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_passes),
		cmocka_unit_test(test_calls_of_models_have_a_mark),
		cmocka_unit_test(test_what_an_event_does_not_say),
		cmocka_unit_test(test_a_slip_is_told_with_its_place),
		cmocka_unit_test(test_the_longest_one_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
