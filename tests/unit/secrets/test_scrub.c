/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "secrets/scrub.c"

#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define VALUE	    "ghp_s3cr3t+Value/0123456789"
#define PLACEHOLDER "ghp_PLACEHOLDER_PLACEHOLDER"
_Static_assert(sizeof(VALUE) == sizeof(PLACEHOLDER), "as long");

struct fixture {
	struct search *search;
	struct scrubber scrubber;
	struct scrub_word word;
};

static void set_up(struct fixture *f, const char *value, const char *placeholder)
{
	struct needle needles[FORMS_MAX];
	int n = forms_make(value, strlen(value), 0, needles);

	assert_true(n > 0);
	assert_int_equal(search_new(needles, (size_t)n, &f->search), 0);
	f->scrubber = (struct scrubber){ .search = f->search };
	f->word = (struct scrub_word){ placeholder, strlen(placeholder) };
}

static bool the_word(void *ctx, uint32_t secret, struct scrub_word *ret)
{
	*ret = ((struct scrub_word *)ctx)[secret];
	return ret->text;
}

static struct scrub_words words_of(struct scrub_word *words)
{
	return (struct scrub_words){ the_word, words };
}

static void tear_down(struct fixture *f)
{
	scrubber_free(&f->scrubber);
	search_free(f->search);
}

/* In pieces of `each` bytes; what comes out. */
static char *scrubbed(struct fixture *f, const char *text, size_t each)
{
	struct buf out = BUF_INIT(1u << 20);
	_buf_ struct buf has = BUF_INIT(1u << 20);
	const struct scrub_words words = words_of(&f->word);
	const size_t len = strlen(text);

	for (size_t at = 0; at < len; at += each) {
		size_t n = len - at < each ? len - at : each, used;
		_buf_ struct buf made = BUF_INIT(1u << 20);
		int hits;

		buf_append(&has, text + at, n);
		hits = scrub(&f->scrubber, &words, has.data, has.len, at + n == len, &made, &used);
		assert_true(hits >= 0);
		if (hits)
			buf_append(&out, made.data, made.len);
		else
			buf_append(&out, has.data, used);
		buf_drop(&has, used);
	}
	assert_int_equal(has.len, 0);
	return buf_take(&out);
}

static void expect(const char *text, const char *want)
{
	struct fixture f;

	set_up(&f, VALUE, PLACEHOLDER);
	for (size_t each = 1; each <= strlen(text); each++) {
		_free_ char *got = scrubbed(&f, text, each);

		assert_string_equal(got, want);
	}
	tear_down(&f);
}

static void test_plain(void **state)
{
	(void)state;
	expect("token=" VALUE ";", "token=" PLACEHOLDER ";");
	expect(VALUE, PLACEHOLDER);
	expect(VALUE VALUE, PLACEHOLDER PLACEHOLDER);
	expect("ghp_ghp_s3cr3" VALUE "ghp_", "ghp_ghp_s3cr3" PLACEHOLDER "ghp_");
	expect("nothing of it, ghp_s3cr3t+Value/012345678", "nothing of it, ghp_s3cr3t+Value/012345678");
}

static void test_escaped(void **state)
{
	(void)state;
	expect("a=ghp_s3cr3t%2BValue%2f0123456789&b", "a=ghp_PLACEH%4FLDER_%50LACEHOLDER&b");
	expect("%67h%70_s3cr3t+Value/0123456789", "%67h%70_PLACEHOLDER_PLACEHOLDER");
	/* An escape of an escape's first sign. */
	expect("%252567hp_s3cr3t+Value/0123456789", "%252567hp_PLACEHOLDER_PLACEHOLDER");
	expect("\"ghp_s3cr3t+Value\\/0123456789\"", "\"ghp_PLACEHOLDER_PLACEHOLDER\"");
	expect("\\u0067hp_s3cr3t\\u002bValue\\u002F0123456789", "\\u0067hp_PLACEH\\u004fLDER_\\u0050LACEHOLDER");
	expect("\\\\u0067hp_s3cr3t+Value\\\\\\/0123456789", "\\\\u0067hp_PLACEHOLDER_PLACEHOLDER");
	expect("\\x67hp_s3cr3t+Value/0123456789", "\\x67hp_PLACEHOLDER_PLACEHOLDER");
	expect("ghp_s3cr3t&#43;Value&#x2F;0123456789", "ghp_PLACEH&#79;LDER_&#x50;LACEHOLDER");
	/* In lines, as mail has it. */
	expect("ghp_s3cr3t+V\r\nalue/0123456789", "ghp_PLACEHOL\r\nDER_PLACEHOLDER");
	/* An escape that takes the first byte of the value with it: the text itself is searched as well. */
	expect("%aghp_s3cr3t+Value/0123456789", "%aghp_PLACEHOLDER_PLACEHOLDER");
}

static void test_hex(void **state)
{
	_buf_ struct buf text = BUF_INIT(1024), want = BUF_INIT(1024);

	(void)state;
	for (unsigned upper = 0; upper < 2; upper++) {
		buf_clear(&text), buf_clear(&want);
		for (const char *p = VALUE; *p; p++)
			buf_printf(&text, upper ? "%02X" : "%02x", *p);
		for (const char *p = PLACEHOLDER; *p; p++)
			buf_printf(&want, upper ? "%02X" : "%02x", *p);
		buf_puts(&text, "00"), buf_puts(&want, "00");
		expect(text.data, want.data);
	}
}

/* Wherever in a longer text the value is, what is decoded has the placeholder in its place. */
static void test_base64(void **state)
{
	static const char *const around[] = { "", "u", "us", "user:", "x-access-token:", "\xff\xff" };
	struct fixture f;

	(void)state;
	set_up(&f, VALUE, PLACEHOLDER);
	for (unsigned a = 0; a < ARRAY_SIZE(around); a++)
		for (unsigned b = 0; b < ARRAY_SIZE(around); b++)
			for (unsigned url = 0; url < 2; url++) {
				char text[256], plain[256], want[256], decoded[256] = { 0 };
				int n = snprintf(plain, sizeof(plain), "%s" VALUE "%s", around[a], around[b]);
				struct base64_decode_ctx ctx;
				size_t len = sizeof(decoded) - 1;
				_free_ char *got = NULL;

				text[BASE64_ENCODE_RAW_LENGTH((size_t)n)] = '\0';
				base64_encode_raw(text, (size_t)n, (const uint8_t *)plain);
				for (char *p = text; url && *p; p++)
					*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
				snprintf(want, sizeof(want), "%s" PLACEHOLDER "%s", around[a], around[b]);
				got = scrubbed(&f, text, sizeof(text));
				for (char *p = got; *p; p++)
					*p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
				base64_decode_init(&ctx);
				assert_true(base64_decode_update(&ctx, &len, (uint8_t *)decoded, strlen(got), got));
				assert_true(base64_decode_final(&ctx));
				assert_string_equal(decoded, want);
				/* Without its padding, and in small pieces, hardly a bit of it is left. */
				text[strcspn(text, "=")] = '\0';
				for (size_t each = 1; each < 12; each++) {
					_free_ char *pieces = scrubbed(&f, text, each);

					assert_int_equal(strlen(pieces), strlen(text));
					assert_null(strstr(pieces, "zM2NyM3"));
					assert_null(strstr(pieces, "zY3IzdC"));
					assert_null(strstr(pieces, "czNjcjN0"));
				}
			}
	tear_down(&f);
}

/* A placeholder of another length: what stands around it is still read as before. */
static void test_other_length(void **state)
{
	struct fixture f;
	_free_ char *plain = NULL, *base64 = NULL;

	(void)state;
	set_up(&f, "twelve-bytes", "eleven-byte");
	plain = scrubbed(&f, "<twelve-bytes>", 100);
	assert_string_equal(plain, "<eleven-byte>");
	base64 = scrubbed(&f, "PHR3ZWx2ZS1ieXRlcz4=", 100);  /* <twelve-bytes> */
	assert_string_equal(base64, "PGVsZXZlbi1ieXRlXz4="); /* <eleven-byte_> */
	tear_down(&f);
}

/* Only what could still become the value is kept: a line of events goes on at once. */
static void test_held_back(void **state)
{
	static const struct {
		const char *text;
		size_t used;
	} cases[] = {
		{ "data: hello\n\n", 13 },
		{ "data: gh", 5 }, /* with the byte in front, which may have bits of it */
		{ "data: ghp_s3cr3t+Value/012345678", 5 },
		{ "100%", 3 },
		{ "100%2", 3 },
		{ "back\\", 4 },
		{ "", 0 },
	};
	struct fixture f;
	const struct scrub_words words = words_of(&f.word);

	(void)state;
	set_up(&f, VALUE, PLACEHOLDER);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		_buf_ struct buf out = BUF_INIT(100);
		size_t used;

		assert_int_equal(scrub(&f.scrubber, &words, cases[i].text, strlen(cases[i].text), false, &out, &used),
				 0);
		assert_int_equal(used, cases[i].used);
		assert_int_equal(out.len, 0);
	}
	tear_down(&f);
}

static void test_look(void **state)
{
	struct fixture f;
	size_t used;

	(void)state;
	set_up(&f, VALUE, PLACEHOLDER);
	assert_int_equal(scrub_look(&f.scrubber, "innocent", 8, true, &used), -1);
	assert_int_equal(used, 8);
	assert_int_equal(scrub_look(&f.scrubber, "x=" VALUE, 2 + strlen(VALUE), true, &used), 0);
	assert_int_equal(used, 2);
	assert_int_equal(scrub_look(&f.scrubber, "x=ghp_s3", 8, false, &used), -1);
	assert_true(used <= 2);
	tear_down(&f);
}

static void test_bounds(void **state)
{
	struct needle needles[FORMS_MAX];
	char *big = calloc(1, NP_SECRET_MAX + 1);

	(void)state;
	assert_int_equal(forms_make("1234567", 7, 0, needles), 0);
	assert_int_equal(forms_make("\n\n\n\n\n\n\n\n", 8, 0, needles), 5); /* not as ends of lines */
	for (int i = 0; i < 5; i++)
		needle_free(&needles[i]);
	memset(big, 'x', NP_SECRET_MAX + 1);
	assert_int_equal(forms_make(big, NP_SECRET_MAX + 1, 0, needles), -E2BIG);
	free(big);
}

/* Two values, one of which begins with the other. */
static void test_longest(void **state)
{
	struct needle needles[2 * FORMS_MAX];
	struct scrub_word both[] = { { "SSSSSSSS", 8 }, { "LLLLLLLLLLLL", 12 } };
	const struct scrub_words words = words_of(both);
	struct scrubber s = { 0 };
	struct search *search;
	_buf_ struct buf out = BUF_INIT(100), rest = BUF_INIT(100);
	size_t used;
	int n;

	(void)state;
	n = forms_make("abcdefgh", 8, 0, needles);
	n += forms_make("abcdefghijkl", 12, 1, needles + n);
	assert_int_equal(search_new(needles, (size_t)n, &search), 0);
	s.search = search;
	assert_int_equal(scrub(&s, &words, "abcdefgh", 8, false, &out, &used), 0);
	assert_int_equal(used, 0);
	assert_int_equal(scrub(&s, &words, "abcdefghijkl", 12, false, &out, &used), 1);
	assert_string_equal(out.data, "LLLLLLLLLLLL");
	assert_int_equal(scrub(&s, &words, "abcdefghijk-", 12, false, &rest, &used), 1);
	assert_string_equal(rest.data, "SSSSSSSSijk-");
	/* One that may pass. */
	both[0].text = NULL;
	assert_int_equal(scrub(&s, &words, "abcdefgh-", 9, false, &rest, &used), 0);
	assert_int_equal(used, 9);
	scrubber_free(&s);
	search_free(search);
}

/* Values that have signs of escapes of their own, written by one who escapes another kind, or some twice. */
static void test_signs_of_escapes(void **state)
{
	static const struct {
		const char *value, *text;
	} cases[] = {
		{ "abcd%41efgh", "x abcd%41efgh y" },	  { "abcd%41efgh", "abcd%2541efgh" },
		{ "a/cd%41efgh", "\"a\\/cd%41efgh\"" },	  { "a\"cd%41efgh", "a&quot;cd%41efgh<" },
		{ "a/cd\\nefgh", "a%2Fcd\\nefgh" },	  { "a/cd\\nefgh", "\"a\\/cd\\\\nefgh\"" },
		{ "a/cd&lt;efgh", "\"a\\/cd&lt;efgh\"" }, { "a/cdefgh%", "a\\/cdefgh%41" },
		{ "ab/cd&fgh", "q=ab%252Fcd%2526fgh" },	  { "a<cd&amp;ef", "a&lt;cd&amp;amp;ef" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		_free_ char *whole = NULL, *bytes = NULL;
		struct fixture f;
		size_t used;

		set_up(&f, cases[i].value, "PLACEHOLDER");
		assert_int_equal(scrub_look(&f.scrubber, cases[i].text, strlen(cases[i].text), true, &used), 0);
		whole = scrubbed(&f, cases[i].text, strlen(cases[i].text));
		bytes = scrubbed(&f, cases[i].text, 1);
		assert_string_equal(whole, bytes);
		assert_int_equal(scrub_look(&f.scrubber, whole, strlen(whole), true, &used), -1);
		tear_down(&f);
	}
}

/* One value with a sign of an escape leaves the others as they are: theirs are found in an escape's escape. */
static void test_signs_of_another(void **state)
{
	static const char value[] = "ab/cdefgh", other[] = "zz%zzzzzzz", text[] = "ab%252Fcdefgh";
	struct needle needles[2 * FORMS_MAX];
	struct scrubber s = { 0 };
	struct search *search;
	size_t used;
	int n = forms_make(value, strlen(value), 0, needles);

	(void)state;
	n += forms_make(other, strlen(other), 1, needles + n);
	assert_int_equal(search_new(needles, (size_t)n, &search), 0);
	s.search = search;
	assert_int_equal(scrub_look(&s, text, strlen(text), true, &used), 0);
	scrubber_free(&s);
	search_free(search);
}

/* The beginning of an escape right in front of a value takes the value's first characters for its own. */
static void test_begins_in_an_escape(void **state)
{
	static const char value[] = "abcd0/secret;";
	static const char *const texts[] = { "\\uabcd0%2Fsecret;", "%abcd0%2Fsecret;", "%25abcd0%2fsecret;", "\\xabcd0\\/secret;",
					     "x%\nabcd0%2Fsecret;" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
		for (size_t each = 1; each < 32; each++) {
			struct fixture f;
			char *out;

			set_up(&f, value, "PLACEHOLDERxx");
			out = scrubbed(&f, texts[i], each);
			assert_non_null(strstr(out, "PLACE"));
			assert_null(strstr(out, "secret"));
			free(out);
			tear_down(&f);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_escaped),
		cmocka_unit_test(test_hex),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_other_length),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_signs_of_escapes),
		cmocka_unit_test(test_signs_of_another),
		cmocka_unit_test(test_begins_in_an_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
