/* SPDX-License-Identifier: MIT */
/* Which credentials an attempt would carry, in explanations and in cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/credential_fate.h"

#include "found.h"
#include "policy/case.h"

#define POLICY                                                                                                  \
	"policy:\n    version: 1\n    credentials:\n"                                                           \
	"      a: {source: {env: A}, for: [a.example, a.example:8443], levels: [CONFIDENTIAL], methods: GET}\n" \
	"      b: {source: {env: B}, for: b.example, scope: alice/*, as: [form, {header: X-Key}],\n"            \
	"          capture: {cookies: s, for: api.example, as: bearer}}\n"                                      \
	"      c: {source: {env: C}}\n"                                                                         \
	"    levels: {INTERNAL: proxied}\n"                                                                     \
	"    rules:\n      - {allow: c.example, credential: c}\n"                                               \
	"      - allow: a.example:8443\n"                                                                       \
	"      - allow: [a.example, b.example, api.example, d.example]\n"

static const char cases[] = POLICY "cases:\n"
				   "GET https://a.example/ -> allow credential a\n"
				   "GET https://a.example/x -> allow rule_allows credential a\n"
				   "GET https://a.example/ -> allow line 12 credential a\n"
				   "POST https://a.example/ -> allow no credential\n"
				   "GET http://a.example/ -> allow no credential\n"
				   "GET https://c.example/ -> allow credential c\n"
				   "GET https://d.example/ -> allow no credential\n"
				   "GET https://b.example/ -> allow no credential\n"
				   "GET https://e.example/ -> deny no credential\n"
				   "at INTERNAL\n"
				   "GET https://a.example/ -> allow no credential\n"
				   "at CONFIDENTIAL session alice/x\n"
				   "POST https://b.example/ -> allow credential b\n"
				   "GET https://api.example/ -> allow credential b\n"
				   "at CONFIDENTIAL session bob/x\n"
				   "POST https://b.example/ -> allow no credential\n";

static struct case_file *read_cases(const char *text)
{
	struct case_file *file = NULL;

	found_clear(NULL);
	if (case_file_parse("c.case", text, strlen(text), &file, &found) == 0)
		assert_int_equal(policy_load_text("c.case", file->text, file->len, &policy, &found), 0);
	return file;
}

static void test_cases(void **state)
{
	struct case_file *file = read_cases(cases);

	(void)state;
	assert_non_null(file);
	assert_int_equal(file->n_items, 13);
	for (size_t i = 0; i < file->n_items; i++) {
		struct case_item other = file->items[i];
		char text[CASE_TEXT_SIZE];
		struct case_outcome out = case_run(policy, &other);

		case_actual_format(policy, &out, text);
		if (!out.holds)
			fail_msg("line %u: %s", other.line, text);
		other.credential = *other.credential ? "" : "a"; /* and the contrary does not hold */
		assert_false(case_run(policy, &other).holds);
		case_expected_format(&file->items[i], text);
		assert_non_null(strstr(text, "credential"));
	}
	case_file_free(file);
	found_clear(NULL);
}

static void test_what_is_not_understood(void **state)
{
	static const char *const lines[][2] = {
		{ "GET https://a.example/ -> allow credential\n", "credential NAME" },
		{ "GET https://a.example/ -> allow credential a b\n", "behind the credential" },
		{ "GET https://a.example/ -> allow line 3 other\n", "behind the place" },
		{ "GET https://a.example/ -> allow no\n", "neither a reason" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[2048];

		snprintf(text, sizeof(text), POLICY "cases:\n%s", lines[i][0]);
		assert_null(read_cases(text));
		assert_non_null(strstr(found_join(), lines[i][1]));
	}
	found_clear(NULL);
}

/* The first that has to do with the attempt, and why it does not go. */
static const char *why(const char *line, struct credential_fate *ret)
{
	struct credential_fate other;
	struct case_outcome out;
	struct case_file *file;
	char text[2048];
	const char *words;
	size_t next = 0;

	snprintf(text, sizeof(text), POLICY "cases:\n%s -> allow\n", line);
	file = read_cases(text);
	assert_non_null(file);
	out = case_run(policy, &file->items[0]);
	assert_true(credential_fate_next(policy, &out.facts, &out.verdict, &next, ret));
	words = ret->why;
	assert_false(credential_fate_next(policy, &out.facts, &out.verdict, &next, &other));
	case_file_free(file);
	return words;
}

static void test_why(void **state)
{
	char places[CREDENTIAL_PLACES_SIZE];
	struct credential_fate fate;

	(void)state;
	assert_null(why("GET https://a.example/", &fate));
	credential_places(&fate, places);
	assert_string_equal(places, "bearer");
	assert_string_equal(why("GET http://a.example:443/", &fate), "the request goes without TLS");
	assert_string_equal(why("GET http://a.example/", &fate), "the request goes without TLS");
	assert_string_equal(why("GET https://a.example:8443/", &fate), "requests pass unseen there");
	assert_string_equal(why("POST https://a.example/", &fate), "it is for other methods or paths");
	assert_string_equal(why("TRACE https://c.example/", &fate), "an answer to TRACE would show it");
	assert_string_equal(why("at SECRET\nGET https://a.example/", &fate), "the request is refused");
	assert_string_equal(why("at INTERNAL\nGET https://a.example/", &fate), "it is not for this level");
	assert_string_equal(why("at PUBLIC\nGET https://a.example/", &fate), "requests are inspected in PROXIED alone");
	assert_string_equal(why("at CONFIDENTIAL session bob/x\nGET https://b.example/", &fate),
			    "it is for other sessions or classes of runs");
	assert_null(why("at CONFIDENTIAL session alice/x\nGET https://api.example/", &fate));
	assert_true(fate.tokens);
	credential_places(&fate, places);
	assert_string_equal(places, "form, header x-key, bearer");
	found_clear(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_what_is_not_understood),
					    cmocka_unit_test(test_why) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
