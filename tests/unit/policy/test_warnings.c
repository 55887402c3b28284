/* SPDX-License-Identifier: MIT */
#include "policy/warnings.c"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static struct policy *policy;

static int policy_make(void **state)
{
	static const char text[] = "version: 1\nrules:\n  - allow: [api.corp.example, .payments.example, ab.cd]\n"
				   "  - deny: secrets.example\n  - ask: other.example\n";
	_problems_ struct problems problems = { 0 };

	(void)state;
	return policy_load_text("p.yaml", text, sizeof(text) - 1, &policy, &problems);
}

static int policy_drop(void **state)
{
	(void)state;
	policy_free(policy);
	return 0;
}

static struct warning_facts reads(const char *host)
{
	return (struct warning_facts){ .host = host, .method = "GET", .url = "https://x/", .asked_before = true };
}

/* Is there a warning with these words? NULL: is there any? */
static bool warns(const struct warning_facts *facts, const char *words)
{
	struct warnings found;

	warnings_find(policy, facts, &found);
	for (size_t i = 0; i < found.n; i++)
		if (!words || strstr(found.text[i], words))
			return true;
	return false;
}

static void names_that_look_like_others(void **state)
{
	static const char *const alike[][2] = {
		{ "githud.com", "github.com" },
		{ "githubb.com", "github.com" },
		{ "glthub.com", "github.com" },
		{ "api.githvb.com", "github.com" },
		{ "rnicrosoft.com", "microsoft.com" },
		{ "g0ogle.com", "google.com" },
		{ "api.c0rp.example", "corp.example" },
		{ "paymnets.example", "payments.example" },
		{ "github.com.evil.example", "github.com" },
		{ "xn--pple-43d.com", "apple.com" },		   /* Cyrillic a */
		{ "www.xn--80ak6aa92e.com", "apple.com" },	   /* all of it Cyrillic */
		{ "xn--githb-bva.com", "github.com" },		   /* u with a mark */
		{ "xn--pyments-2fg.example", "payments.example" }, /* of the policy */
	};
	static const char *const others[] = {
		"github.com",	   "api.github.com", "api.corp.example", "x.payments.example",
		"weather.example", "ab.ce",	     "secrets.examples", "localhost",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(alike); i++) {
		const struct warning_facts facts = reads(alike[i][0]);

		if (!warns(&facts, "looks like") || !warns(&facts, alike[i][1]))
			fail_msg("%s", alike[i][0]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		const struct warning_facts facts = reads(others[i]);

		if (warns(&facts, NULL))
			fail_msg("%s", others[i]);
	}
}

static void addresses_scripts_and_long_labels(void **state)
{
	struct warning_facts facts = reads("192.0.2.7");

	(void)state;
	assert_true(warns(&facts, "an address"));
	facts = reads("2001:db8::7");
	assert_true(warns(&facts, "an address"));
	facts = reads("www.xn--pple-43d.com");
	assert_true(warns(&facts, "other scripts"));
	facts = reads("0123456789012345678901234567890123456789.example");
	assert_true(warns(&facts, "40 characters"));
}

static void what_is_sent(void **state)
{
	struct warning_facts facts = reads("weather.example");

	(void)state;
	facts.write = true;
	facts.method = "POST";
	assert_true(warns(&facts, "may send data: POST"));
	facts.body = (1u << 20) - 1;
	assert_false(warns(&facts, "its body"));
	facts.body++;
	assert_true(warns(&facts, "its body has 1048576 bytes"));
	facts.body = UINT64_MAX;
	assert_true(warns(&facts, "how long its body is"));
	facts.method = "";
	assert_true(warns(&facts, "nothing of the connection"));
	facts = reads("weather.example");
	facts.url = "https://weather.example/?q=QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2";
	assert_true(warns(&facts, "it may carry data"));
	facts.url = "https://weather.example/c/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
	assert_true(warns(&facts, "it may carry data"));
	facts.url = "https://weather.example/t/aB3xK9qLm2Zr7TvYw8NcPd4FgHj6SkQe";
	assert_true(warns(&facts, "32 characters in one piece"));
	facts.url = "https://weather.example/wiki/How-To-Read-The-Weather-Of-The-Last-10-Years";
	assert_false(warns(&facts, NULL));
	facts.url = "https://weather.example/commit/da39a3ee5e6b4b0d3255bfef95601890afd80709";
	assert_false(warns(&facts, NULL));
	facts.url = "https://weather.example/----------------------------------------------------------------------";
	assert_false(warns(&facts, NULL));
	facts.asked_before = false;
	assert_true(warns(&facts, "never asked"));
}

static void long_urls_and_bodies_that_nobody_reads(void **state)
{
	static const char prose[] =
		"{\"title\": \"The build fails\", \"body\": \"Since the last release the tests of the parser "
		"fail on 32 bit machines; see line 117 of read.c, where a length is taken for an int.\", \"labels\": "
		"3}";
	struct warning_facts facts = reads("weather.example");
	char url[700] = "https://weather.example/?", noise[256];

	(void)state;
	while (strlen(url) < 600)
		strcat(url, "word=some&");
	facts.url = url;
	assert_true(warns(&facts, "the URL has 605 characters"));
	facts = reads("weather.example");
	facts.preview = prose;
	facts.preview_len = sizeof(prose) - 1;
	assert_false(warns(&facts, NULL));
	for (unsigned i = 0, x = 1; i < sizeof(noise); i++, x = x * 1103515245 + 12345)
		noise[i] = (char)(x >> 16);
	facts.preview = noise;
	facts.preview_len = sizeof(noise);
	assert_true(warns(&facts, "compressed, encrypted or encoded"));
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[noise[i] & 63];
	assert_true(warns(&facts, "compressed, encrypted or encoded"));
	facts.preview_len = 16; /* too few to say */
	assert_false(warns(&facts, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_look_like_others),
		cmocka_unit_test(addresses_scripts_and_long_labels),
		cmocka_unit_test(what_is_sent),
		cmocka_unit_test(long_urls_and_bodies_that_nobody_reads),
	};

	return cmocka_run_group_tests(tests, policy_make, policy_drop);
}
