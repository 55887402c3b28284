/* SPDX-License-Identifier: MIT */
/* Tokens that an origin issues: found in JSON and cookies, sealed, and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include <errno.h>

#include "secrets/issued.h"
#include "secrets/slots.h"
#include "secrets/token.h"

static struct sealer *sealer;

static int setup(void **state)
{
	static const struct placeholder_key key = { .bytes = { 1, 2, 3 } };

	(void)state;
	return sealer_new(&key, &sealer);
}

static int teardown(void **state)
{
	(void)state;
	sealer_free(sealer);
	return 0;
}

/* -- readers: the word that takes a token's place is the token in brackets ------------------------------ */

static bool on_wanted(void *ctx, const char *name)
{
	(void)ctx;
	return strcmp(name, "access_token") == 0 || strcmp(name, "t") == 0;
}

static int on_taken(void *ctx, const char *name, const char *text, size_t len, struct buf *out)
{
	(void)ctx;
	assert_true(on_wanted(NULL, name));
	buf_puts(out, "<");
	buf_append(out, text, len);
	buf_puts(out, ">");
	return 0;
}

static const struct issued_taker taker = { on_wanted, on_taken, NULL };

/* In pieces of each size: always the same. */
static void reads(const char *text, const char *want, int taken)
{
	const size_t len = strlen(text);

	for (size_t each = 1; each <= len + 1; each++) {
		_buf_ struct buf out = BUF_INIT(1 << 16);
		struct issued_json json = { 0 };
		int n = 0, r = 0;

		for (size_t at = 0; r >= 0 && at < len; at += each, n += r)
			r = issued_json_read(&json, &taker, text + at, at + each < len ? each : len - at,
					     at + each >= len, &out);
		issued_json_free(&json);
		if (!want) {
			assert_int_equal(r, taken);
			continue;
		}
		assert_true(r >= 0);
		assert_int_equal(n, taken);
		assert_string_equal(out.data, want);
	}
}

static void members(void **state)
{
	(void)state;
	reads("{\"access_token\": \"abc\", \"x\": \"abc\"}", "{\"access_token\": \"<abc>\", \"x\": \"abc\"}", 1);
	reads("{\"a\":{\"b\":[1,{\"t\":\"q\"}]},\"t\":\"r\"}", "{\"a\":{\"b\":[1,{\"t\":\"<q>\"}]},\"t\":\"<r>\"}", 2);
}

static void escapes(void **state)
{
	(void)state;
	reads("{\"\\u0074\":\"a\\u0062\\/c\"}", "{\"\\u0074\":\"<ab/c>\"}", 1);
	reads("{\"x\":\"\\\",\\\"t\\\":\\\"y\"}", "{\"x\":\"\\\",\\\"t\\\":\\\"y\"}", 0);
	reads("{\"tt\":\"a\",\"T\":\"b\"}", "{\"tt\":\"a\",\"T\":\"b\"}", 0);
}

static void what_is_no_token(void **state)
{
	(void)state;
	reads("{\"t\":null,\"u\":1}", "{\"t\":null,\"u\":1}", 0);
	reads("{\"t\":\"\"}", "{\"t\":\"\"}", 0);
	reads("{\"t\":12345678}", NULL, -EINVAL);
	reads("{\"t\":true}", NULL, -EINVAL);
	reads("{\"t\":[\"a\"]}", NULL, -EINVAL);
	reads("{\"t\":{\"v\":\"a\"}}", NULL, -EINVAL);
}

static void what_is_no_json(void **state)
{
	static const char *const texts[] = { "{\"t\":\"a\"",
					     "{\"t\":\"a",
					     "{'t':'a'}",
					     "{\"a\" \"b\"}",
					     "{\"a\":\"b\",}",
					     "[1,]",
					     "[1 2]",
					     "{]",
					     "t=a&b=c",
					     "<t>a</t>",
					     "{\"a\":\"\\q\"}",
					     "{\"a\":\"\\u00g0\"}",
					     "/* */ {\"a\":1}",
					     "{\"a\":\"x\ny\"}",
					     "}",
					     "{\"a\":1}}" };
	char deep[2 * NP_ISSUED_DEPTH];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		reads(texts[i], NULL, -EBADMSG);
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	reads(deep, NULL, -EBADMSG);
}

static void lines_of_json(void **state)
{
	(void)state;
	reads("{\"t\":\"a\"}\n{\"t\":\"b\"}\n", "{\"t\":\"<a>\"}\n{\"t\":\"<b>\"}\n", 2);
	reads("  \"t\" ", "  \"t\" ", 0);
	reads("12", "12", 0);
}

static void one_too_long(void **state)
{
	static char text[NP_TOKEN_MAX + 32];
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct issued_json json = { 0 };

	(void)state;
	snprintf(text, sizeof(text), "{\"t\":\"");
	memset(text + 6, 'x', NP_TOKEN_MAX + 1);
	strcpy(text + 6 + NP_TOKEN_MAX + 1, "\"}");
	assert_int_equal(issued_json_read(&json, &taker, text, strlen(text), true, &out), -E2BIG);
	issued_json_free(&json);
}

static void cookies(void **state)
{
	static const char *const texts[][2] = {
		{ "t=abc; Path=/; HttpOnly", "t=<abc>; Path=/; HttpOnly" },
		{ "t=\"a b\"", "t=<\"a b\">" },
		{ "  t = abc ;Secure", "  t = <abc> ;Secure" },
		{ "t=a=b=c", "t=<a=b=c>" },
		{ "u=abc; t=x", NULL },
		{ "t=; Max-Age=0", NULL },
		{ "t", NULL },
		{ "=t", NULL },
		{ "", NULL },
		{ "tt=1", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		_buf_ struct buf out = BUF_INIT(1024);

		assert_int_equal(issued_cookie(&taker, texts[i][0], strlen(texts[i][0]), &out), texts[i][1] != NULL);
		if (texts[i][1])
			assert_string_equal(out.data, texts[i][1]);
	}
}

/* -- sealed ------------------------------------------------------------------------------------------- */

static void seal(const char *session, const char *value, struct buf *out)
{
	const struct token token = { .credential = "github", .value = value, .len = strlen(value) };

	buf_clear(out);
	assert_int_equal(token_seal(sealer, session, &token, out), 0);
}

static void sealed_and_read_again(void **state)
{
	_buf_ struct buf out = BUF_INIT(1 << 16), again = BUF_INIT(1 << 16);
	struct token got;

	(void)state;
	seal("alice/demo", "real-token", &out);
	assert_int_equal(strspn(out.data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), out.len);
	assert_null(strstr(out.data, "real"));
	assert_true(token_unseal(sealer, "alice/demo", out.data, out.len, &got));
	assert_string_equal(got.credential, "github");
	assert_memory_equal(got.value, "real-token", got.len);
	assert_int_equal(got.len, 10);
	assert_false(got.is_cookie);
	seal("alice/demo", "real-token", &again);
	assert_string_equal(out.data, again.data);
	seal("alice/other", "real-token", &again);
	assert_string_not_equal(out.data, again.data);
	assert_false(token_unseal(sealer, "alice/demo", again.data, again.len, &got));
}

static void changed_in_any_bit(void **state)
{
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct token got;

	(void)state;
	seal("alice/demo", "real-token", &out);
	for (size_t i = 0; i + 1 < out.len; i++) { /* of the last digit some bits may stand for nothing */
		const char was = out.data[i];

		out.data[i] = was == 'A' ? 'B' : 'A';
		assert_false(token_unseal(sealer, "alice/demo", out.data, out.len, &got));
		out.data[i] = was;
	}
	for (size_t n = 0; n < out.len; n++)
		assert_false(token_unseal(sealer, "alice/demo", out.data, n, &got));
}

static void under_another_key(void **state)
{
	static const struct placeholder_key key = { .bytes = { 9 } };
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct sealer *other;
	struct token got;

	(void)state;
	seal("alice/demo", "real-token", &out);
	assert_int_equal(sealer_new(&key, &other), 0);
	assert_false(token_unseal(other, "alice/demo", out.data, out.len, &got));
	sealer_free(other);
}

static void what_can_be_sealed(void **state)
{
	static char longest[NP_TOKEN_MAX + 1];
	_buf_ struct buf out = BUF_INIT(1 << 16);
	char name[NP_NAME_MAX + 1];
	struct token token = { .value = longest, .len = sizeof(longest) }, got;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	memset(name, 'n', NP_NAME_MAX);
	name[NP_NAME_MAX] = '\0';
	memcpy(token.credential, name, sizeof(name));
	assert_int_equal(token_seal(sealer, "a/b", &token, &out), -E2BIG);
	token.len = NP_TOKEN_MAX;
	assert_int_equal(token_seal(sealer, "a/b", &token, &out), 0);
	assert_int_equal(out.len, SEALED_MAX);
	assert_true(token_unseal(sealer, "a/b", out.data, out.len, &got));
	assert_int_equal(got.len, NP_TOKEN_MAX);
	assert_string_equal(got.credential, name);
	for (int c = 0; c < 256; c++) {
		char text[] = "valu?";

		buf_clear(&out);
		text[4] = (char)c;
		token = (struct token){ .credential = "c", .value = text, .len = 5 };
		assert_int_equal(token_seal(sealer, "a/b", &token, &out), c >= ' ' && c <= '~' ? 0 : -EINVAL);
	}
	token.len = 0;
	assert_int_equal(token_seal(sealer, "a/b", &token, &out), -EINVAL);
}

static void found_in_a_text(void **state)
{
	_buf_ struct buf sealed = BUF_INIT(1 << 16), text = BUF_INIT(1 << 16), again = BUF_INIT(1 << 16);
	size_t at, len;

	(void)state;
	seal("alice/demo", "real-token", &sealed);
	buf_printf(&text, "nptoken_ and nptoken_zzz Bearer %sAndMore", sealed.data);
	assert_true(token_find(text.data, text.len, &at, &len));
	assert_memory_equal(text.data + at, sealed.data, sealed.len);
	assert_int_equal(len, sealed.len);
	for (size_t cut = at + 1; cut < at + len; cut++)
		assert_int_equal(token_pending(text.data, cut), cut - at);
	assert_int_equal(token_pending(text.data, at + len), 0);
	for (char c = 'a'; c <= 'z'; c++) { /* whatever its last letters are */
		const char value[] = { 'v', c, c, c, '\0' };

		seal("alice/demo", value, &again);
		assert_int_equal(token_pending(again.data, again.len), 0);
	}
	assert_int_equal(token_pending(text.data, at), 0);
	assert_true(token_find(text.data, at + len - 5, &at, &len)); /* cut short: it is one, and says so itself */
	assert_int_equal(len, sealed.len - 5);
	assert_false(token_find("nptoken_", 8, &at, &len));
	assert_false(token_find("nptoken_AAA0123", 15, &at, &len));
}

/* -- where they may stand ------------------------------------------------------------------------------ */

static void places(void **state)
{
	static const char *const none[] = { "t", NULL };
	const struct credential_capture capture = { .json = none, .slots = { { .kind = SLOT_BEARER } }, .n_slots = 1 };
	const struct credential credential = { .slots = { { .kind = SLOT_FORM } }, .n_slots = 1, .capture = &capture };
	const struct slot_place form = { .kind = SLOT_FORM }, bearer = { .kind = SLOT_BEARER },
				query = { .kind = SLOT_QUERY, "t", 1, 0 },
				cookie = { .kind = SLOT_HEADER, "cookie", 6, 0 },
				other = { .kind = SLOT_HEADER, "x-cookie", 8, 0 };
	const struct credential plain = { .slots = { { .kind = SLOT_FORM } }, .n_slots = 1 };

	(void)state;
	assert_true(slot_fits_token(&credential, false, &form) && slot_fits_token(&credential, false, &bearer));
	assert_false(slot_fits(&credential, &bearer));
	assert_false(slot_fits_token(&credential, false, &query) || slot_fits_token(&credential, false, &cookie));
	assert_true(slot_fits_token(&credential, true, &cookie));
	assert_false(slot_fits_token(&credential, true, &other) || slot_fits_token(&plain, true, &cookie));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members),
		cmocka_unit_test(escapes),
		cmocka_unit_test(what_is_no_token),
		cmocka_unit_test(what_is_no_json),
		cmocka_unit_test(lines_of_json),
		cmocka_unit_test(one_too_long),
		cmocka_unit_test(cookies),
		cmocka_unit_test(sealed_and_read_again),
		cmocka_unit_test(changed_in_any_bit),
		cmocka_unit_test(under_another_key),
		cmocka_unit_test(what_can_be_sealed),
		cmocka_unit_test(found_in_a_text),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
