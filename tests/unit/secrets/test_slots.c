/* SPDX-License-Identifier: MIT */
/* Placeholders: made, found, and replaced by values in the places of a request. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "secrets/slots.c"

#include "policy/placeholder_shape.h"
#include "secrets/token.h"

static const char policy_text[] = "version: 1\ncredentials:\n"
				  "  a:\n    source: {env: A}\n    as: [bearer, {basic: u}, {header: X-Key}, {query: k}]\n"
				  "    placeholder: {like: 'ghp_{36}'}\n"
				  "  b:\n    source: {env: B}\n    placeholder: {like: jwt}\n"
				  "  c:\n    source: {env: C}\n    placeholder: {like: 'xoxb-{12:digits}-{12:digits}-{24}'}\n";
static struct policy *policy;
static struct placeholder_set *set;
static const struct placeholder_key key = { .bytes = { 1, 2, 3 } };
static char value_text[] = "v/a+l=ue\"\\x";
static struct secret value = { .value = value_text, .len = sizeof(value_text) - 1 };
static struct slot_place asked;
static bool denied;

static int setup(void **state)
{
	struct problems problems = { 0 };

	(void)state;
	assert_int_equal(policy_load_text("p", policy_text, strlen(policy_text), &policy, &problems), 0);
	problems_clear(&problems);
	return placeholder_set_new(policy, &key, "alice/demo", &set);
}

static int teardown(void **state)
{
	(void)state;
	placeholder_set_free(set);
	policy_free(policy);
	return 0;
}

static const struct secret *on_found(void *ctx, const struct placeholder *placeholder, const struct slot_place *place)
{
	(void)ctx;
	assert_ptr_equal(placeholder, &set->items[placeholder->credential]);
	asked = *place;
	return denied ? NULL : &value;
}

static const struct slot_finder *finder(void)
{
	static struct slot_finder f;

	f = (struct slot_finder){ set, on_found, NULL };
	return &f;
}

static void test_shapes(void **state)
{
	static const char *const bad[] = { "", "ghp_", "{21}", "{31:hex}", "{38:digits}", "{22:x}", "{x}", "{", "{22", "{0}",
					   "{5000}", "a b{22}", "a%{22}", "{22}/" };
	static const char *const good[] = { "{22}", "{32:hex}", "{39:digits}", "jwt", "ghp_{36}", "sk-ant-{90}", "{11}-{11}" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(placeholder_shape_problem(bad[i]));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_null(placeholder_shape_problem(good[i]));
}

/* The same for the same session, another for another one, and as it is to look. */
static void test_made(void **state)
{
	char a[NP_PLACEHOLDER_MAX + 1], b[NP_PLACEHOLDER_MAX + 1];
	const struct placeholder_key other = { .bytes = { 9 } };

	(void)state;
	assert_int_equal(placeholder_make(&key, "alice/demo", "a", "ghp_{36}", a), 40);
	assert_string_equal(a, set->items[0].text);
	assert_memory_equal(a, "ghp_", 4);
	placeholder_make(&key, "alice/other", "a", "ghp_{36}", b);
	assert_string_not_equal(a, b);
	placeholder_make(&key, "alice/demo", "b", "ghp_{36}", b);
	assert_string_not_equal(a, b);
	placeholder_make(&other, "alice/demo", "a", "ghp_{36}", b);
	assert_string_not_equal(a, b);
	/* "ab" of "c" is not "a" of "bc". */
	placeholder_make(&key, "a", "bc", "{30}", a);
	placeholder_make(&key, "ab", "c", "{30}", b);
	assert_string_not_equal(a, b);
	assert_int_equal(strspn(set->items[2].text + 5, "0123456789"), 12);
}

static void test_found_at_every_place(void **state)
{
	char text[512];
	size_t at;

	(void)state;
	for (size_t i = 0; i < set->n; i++)
		for (size_t before = 0; before < 20; before++) {
			int len = snprintf(text, sizeof(text), "%.*s%s tail", (int)before, "####################",
					   set->items[i].text);

			assert_ptr_equal(placeholder_set_find(set, text, (size_t)len, &at), &set->items[i]);
			assert_int_equal(at, before);
			assert_null(placeholder_set_find(set, text, before + set->items[i].len - 1, &at));
			text[before + set->items[i].len / 2] ^= 1;
			assert_null(placeholder_set_find(set, text, (size_t)len, &at));
		}
	assert_int_equal(placeholder_set_pending(set, "x gh", 4), 2);
	assert_int_equal(placeholder_set_pending(set, "x ghz", 5), 0);
	assert_int_equal(placeholder_set_pending(set, "xoxb", 4), 4);
	assert_int_equal(placeholder_set_pending(set, "e", 1), 1); /* a JWT begins so */
}

/* What clients of these services look for before they send anything. A JWT is read by test_a_placeholder_in_the_shape_of_a_jwt. */
static void test_shapes_that_clients_check(void **state)
{
	static const char *const shapes[][2] = {
		{ "ghp_{36}", "^ghp_[A-Za-z0-9]{36}$" },
		{ "github_pat_{22}_{59}", "^github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}$" },
		{ "sk-ant-api03-{93}AA", "^sk-ant-api03-[A-Za-z0-9_-]{93}AA$" },
		{ "sk-proj-{48}", "^sk-proj-[A-Za-z0-9]{48}$" },
		{ "xoxb-{12:digits}-{12:digits}-{24}", "^xoxb-[0-9]{12}-[0-9]{12}-[A-Za-z0-9]{24}$" },
		{ "AKIA{24}", "^AKIA[A-Za-z0-9]{24}$" },
		{ "{8:hex}-{4:hex}-{4:hex}-{4:hex}-{12:hex}", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" },
		{ "jwt", "^eyJ[A-Za-z0-9_-]+[.]eyJ[A-Za-z0-9_-]+[.][A-Za-z0-9_-]{43}$" },
	};
	char text[NP_PLACEHOLDER_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const size_t len = placeholder_make(&key, "alice/demo", "a", shapes[i][0], text);
		regex_t pattern;

		assert_null(placeholder_shape_problem(shapes[i][0]));
		assert_int_equal(len, strlen(text));
		assert_int_equal(regcomp(&pattern, shapes[i][1], REG_EXTENDED | REG_NOSUB), 0);
		assert_int_equal(regexec(&pattern, text, 0, NULL, 0), 0);
		regfree(&pattern);
	}
}

/* One that ends with what another begins with is whole all the same: it is not cut there. */
static void test_the_end_of_one_is_not_the_beginning_of_another(void **state)
{
	static const char two[] = "version: 1\ncredentials:\n"
				  "  a: {source: {env: A}, placeholder: {like: '{22}sk-'}}\n"
				  "  b: {source: {env: B}, placeholder: {like: 'sk-{22}'}}\n";
	struct problems problems = { 0 };
	struct placeholder_set *both = NULL;
	struct policy *other = NULL;
	char text[128];
	int len;

	(void)state;
	assert_int_equal(policy_load_text("p", two, strlen(two), &other, &problems), 0);
	problems_clear(&problems);
	assert_int_equal(placeholder_set_new(other, &key, "alice/demo", &both), 0);
	len = snprintf(text, sizeof(text), "k=%s", both->items[0].text);
	assert_int_equal(placeholder_set_pending(both, text, (size_t)len), 0);
	assert_int_equal(placeholder_set_pending(both, text, (size_t)len - 1), (size_t)len - 3);
	len = snprintf(text, sizeof(text), "%s%s", both->items[0].text, "sk");
	assert_int_equal(placeholder_set_pending(both, text, (size_t)len), 2);
	len = snprintf(text, sizeof(text), "%s%s", both->items[1].text, both->items[0].text);
	assert_int_equal(placeholder_set_pending(both, text, (size_t)len), 0);
	assert_int_equal(placeholder_set_pending(both, text + 1, (size_t)len - 1), 0);
	placeholder_set_free(both);
	policy_free(other);
}

/* Nor is a token. */
static void test_the_end_of_a_token_is_not_the_beginning_of_a_placeholder(void **state)
{
	const char first = set->items[0].text[0];
	struct placeholder_set *with_tokens = NULL;
	struct sealer *sealer = NULL;
	unsigned n = 0;

	(void)state;
	assert_int_equal(placeholder_set_new(policy, &key, "alice/demo", &with_tokens), 0);
	assert_int_equal(sealer_new(&key, &sealer), 0);
	assert_int_equal(placeholder_set_add_tokens(with_tokens, sealer, policy, "alice/demo"), 0);
	for (unsigned i = 0; i < 2000; i++) {
		struct buf text = BUF_INIT(SEALED_MAX + 16);
		struct token token = { .credential = "a" };
		char words[32];

		token.len = (size_t)snprintf(words, sizeof(words), "token-number-%u", i);
		token.value = words;
		buf_puts(&text, "t=");
		assert_int_equal(token_seal(sealer, "alice/demo", &token, &text), 0);
		n += text.data[text.len - 1] == first;
		assert_int_equal(placeholder_set_pending(with_tokens, text.data, text.len), 0);
		assert_int_equal(placeholder_set_pending(with_tokens, text.data, text.len - 1), text.len - 3);
		buf_append(&text, &first, 1);
		assert_int_equal(placeholder_set_pending(with_tokens, text.data, text.len), 1);
		buf_free(&text);
	}
	assert_true(n > 0);
	placeholder_set_free(with_tokens);
	sealer_free(sealer);
}

static void check(int r, const char *is, const char *want, struct buf *out)
{
	(void)is;
	assert_int_equal(r, want ? 1 : 0);
	if (want)
		assert_string_equal(out->data, want);
	else
		assert_int_equal(out->len, 0);
	buf_free(out);
}

/* Each "$" is the placeholder. */
static void fill(const char *fmt, char text[static 512])
{
	size_t n = 0;

	for (; *fmt; fmt++) {
		if (*fmt != '$')
			text[n++] = *fmt;
		else
			n += (size_t)snprintf(text + n, 512 - n, "%s", set->items[0].text);
	}
	text[n] = '\0';
}

static void header(const char *name, const char *fmt, const char *want)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	char text[512];

	fill(fmt, text);
	check(slot_header(finder(), name, strlen(name), text, strlen(text), &out), text, want, &out);
}

static void test_headers(void **state)
{
	(void)state;
	header("authorization", "Bearer $", "Bearer v/a+l=ue\"\\x");
	assert_int_equal(asked.kind, SLOT_BEARER);
	header("authorization", "token  $", "token  v/a+l=ue\"\\x");
	header("authorization", "Digest $", "Digest v/a+l=ue\"\\x");
	assert_int_equal(asked.kind, SLOT_HEADER);
	header("authorization", "AWS4-HMAC-SHA256 Credential=$/x", "AWS4-HMAC-SHA256 Credential=v/a+l=ue\"\\x/x");
	assert_int_equal(asked.kind, SLOT_SIGV4);
	header("x-key", "$,$", "v/a+l=ue\"\\x,v/a+l=ue\"\\x");
	assert_int_equal(asked.kind, SLOT_HEADER);
	header("x-key", "nothing", NULL);
	header("authorization", "Basic !!!", NULL);
	header("authorization", "Basic", NULL);
	header("authorization", "", NULL);
}

static void basic(const char *plain, const char *want)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	char text[512] = "basic ", encoded[512] = "";

	base64_encode_raw(text + 6, strlen(plain), (const uint8_t *)plain);
	if (want) {
		strcpy(encoded, "Basic ");
		base64_encode_raw(encoded + 6, strlen(want), (const uint8_t *)want);
	}
	check(slot_header(finder(), "authorization", 13, text, strlen(text), &out), plain, want ? encoded : NULL, &out);
}

static void test_basic(void **state)
{
	char plain[128];

	(void)state;
	snprintf(plain, sizeof(plain), "user:%s", set->items[0].text);
	basic(plain, "user:v/a+l=ue\"\\x");
	assert_int_equal(asked.kind, SLOT_BASIC);
	snprintf(plain, sizeof(plain), "%s:", set->items[0].text);
	basic(plain, "v/a+l=ue\"\\x:");
	basic("user:password", NULL);
}

static void target(const char *fmt, const char *want)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	char text[512];

	fill(fmt, text);
	check(slot_target(finder(), text, strlen(text), &out), text, want, &out);
}

static void test_targets(void **state)
{
	(void)state;
	target("/a/$/b?x=1", "/a/v%2Fa%2Bl%3Due%22%5Cx/b?x=1");
	assert_int_equal(asked.kind, SLOT_PATH);
	target("/a?x=1&k=$&y", "/a?x=1&k=v%2Fa%2Bl%3Due%22%5Cx&y");
	assert_int_equal(asked.kind, SLOT_QUERY);
	assert_int_equal(asked.name_len, 1);
	assert_memory_equal(asked.name, "k", 1);
	target("/$?k=$", "/v%2Fa%2Bl%3Due%22%5Cx?k=v%2Fa%2Bl%3Due%22%5Cx");
	target("/a?", NULL);
	target("/a?&&=&x", NULL);
	target("*", NULL);
	target("/a?$", "/a?v%2Fa%2Bl%3Due%22%5Cx");
	assert_int_equal(asked.name_len, 0);
}

static void test_refused(void **state)
{
	struct buf out = BUF_INIT(TEXT_MAX);

	(void)state;
	denied = true;
	assert_int_equal(slot_header(finder(), "x", 1, set->items[0].text, set->items[0].len, &out), -EACCES);
	assert_int_equal(slot_target(finder(), set->items[0].text, set->items[0].len, &out), -EACCES);
	denied = false;
	buf_free(&out);
}

static void test_places(void **state)
{
	const struct credential *a = &policy->credentials[0], *b = &policy->credentials[1];

	(void)state;
	assert_true(slot_fits(a, &(struct slot_place){ .kind = SLOT_HEADER, .name = "x-key", .name_len = 5 }));
	assert_false(slot_fits(a, &(struct slot_place){ .kind = SLOT_HEADER, .name = "x-key2", .name_len = 6 }));
	assert_true(slot_fits(a, &(struct slot_place){ .kind = SLOT_QUERY, .name = "k", .name_len = 1 }));
	assert_false(slot_fits(a, &(struct slot_place){ .kind = SLOT_QUERY, .name = "", .name_len = 0 }));
	assert_false(slot_fits(a, &(struct slot_place){ .kind = SLOT_PATH }));
	assert_true(slot_fits(b, &(struct slot_place){ .kind = SLOT_BEARER }));
	assert_false(slot_fits(b, &(struct slot_place){ .kind = SLOT_BASIC }));
	assert_false(slot_fits(b, &(struct slot_place){ .kind = SLOT_KINDS }));
}

static void query(const char *before, const char *want)
{
	const struct credential_slot slot = { .kind = SLOT_QUERY, .name = "key" };
	struct buf out = BUF_INIT(TEXT_MAX);

	slot_write_query(&slot, &value, before, &out);
	assert_string_equal(out.data, want);
	buf_free(&out);
}

static void test_written(void **state)
{
	(void)state;
	query("/a", "/a?key=v%2Fa%2Bl%3Due%22%5Cx");
	query("/a?key=mine&b=2", "/a?b=2&key=v%2Fa%2Bl%3Due%22%5Cx");
	query("/a?b=2&%6bey=mine&ke%79&key", "/a?b=2&key=v%2Fa%2Bl%3Due%22%5Cx");
	query("/a?key2=1&%", "/a?key2=1&%&key=v%2Fa%2Bl%3Due%22%5Cx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),	cmocka_unit_test(test_made),	cmocka_unit_test(test_found_at_every_place),
		cmocka_unit_test(test_headers), cmocka_unit_test(test_basic),	cmocka_unit_test(test_targets),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_places), cmocka_unit_test(test_written),
		cmocka_unit_test(test_shapes_that_clients_check),
		cmocka_unit_test(test_the_end_of_one_is_not_the_beginning_of_another),
		cmocka_unit_test(test_the_end_of_a_token_is_not_the_beginning_of_a_placeholder),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
