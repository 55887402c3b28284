/* SPDX-License-Identifier: MIT */
/*
 * Responses that tokens are captured from. Where another reader of JSON (Jansson) finds a member that is wanted, it finds no token there
 * any more, or the text was refused; a text in pieces becomes what it becomes as a whole. Cookies likewise. And what was sealed is
 * found again wherever it stands, in pieces too, while nothing else is taken for it.
 */
#include "secrets/issued.c"

#include "secrets/token.c"

#include <jansson.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SESSION "alice/demo"

static struct sealer *sealer;

static bool on_wanted(void *ctx, const char *name)
{
	(void)ctx;
	return strcmp(name, "t") == 0 || strcmp(name, "access_token") == 0;
}

static int on_taken(void *ctx, const char *name, const char *text, size_t len, struct buf *out)
{
	struct token token = { .credential = "c", .value = text, .len = len };

	(void)ctx;
	check(on_wanted(NULL, name));
	return token_seal(sealer, SESSION, &token, out);
}

static const struct issued_taker taker = { on_wanted, on_taken, NULL };

/* No token is left in what another reads. */
static void json_check(json_t *value)
{
	const char *name;
	json_t *below;
	size_t i;

	json_array_foreach(value, i, below) json_check(below);
	json_object_foreach(value, name, below)
	{
		struct token token;

		if (on_wanted(NULL, name) && !json_is_null(below)) {
			check(json_is_string(below));
			check(!json_string_length(below) || token_unseal(sealer, SESSION, json_string_value(below),
									 json_string_length(below), &token));
		}
		json_check(below);
	}
}

static void json_try(const char *text, size_t len, size_t each)
{
	_buf_ struct buf whole = BUF_INIT(1 << 22), parts = BUF_INIT(1 << 22);
	struct issued_json first = { 0 }, second = { 0 };
	int r = issued_json_read(&first, &taker, text, len, true, &whole), n = 0;
	json_error_t error;
	json_t *value;

	for (size_t at = 0; n >= 0 && at <= len; at += each)
		n = issued_json_read(&second, &taker, text + at, at + each < len ? each : len - at, at + each > len,
				     &parts);
	issued_json_free(&first);
	issued_json_free(&second);
	check((r < 0) == (n < 0));
	if (r < 0)
		return;
	check(whole.len == parts.len && !memcmp(whole.data ? whole.data : "", parts.data ? parts.data : "", whole.len));
	value = json_loadb(whole.data ? whole.data : "", whole.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (value)
		json_check(value);
	json_decref(value);
}

static void sealed_try(const char *text, size_t len, size_t each)
{
	struct token token = { .credential = "github", .is_cookie = each & 1, .value = text, .len = len }, got;
	_buf_ struct buf out = BUF_INIT(1 << 20);
	size_t at, found_len, before = each % 40;

	for (size_t i = 0; i < before; i++)
		buf_append(&out, &".ekotpn"[(before - i - 1) % 7],
			   1); /* a dot last: it begins nothing with what follows */
	if (token_seal(sealer, SESSION, &token, &out) < 0)
		return;
	buf_puts(&out, "A_tail");
	for (size_t cut = before + 1; cut < out.len - 6; cut += each)
		check(token_pending(out.data, cut) == cut - before);
	check(token_find(out.data, out.len, &at, &found_len) && at == before && found_len == out.len - 6 - before);
	check(token_unseal(sealer, SESSION, out.data + at, found_len, &got));
	check(got.len == len && !memcmp(got.value, text, len) && got.is_cookie == token.is_cookie &&
	      !strcmp(got.credential, "github"));
	check(!token_unseal(sealer, "alice/other", out.data + at, found_len, &got));
	out.data[at + SEALED_HEAD + each % (found_len - SEALED_HEAD - 1)] ^= 1;
	check(!token_unseal(sealer, SESSION, out.data + at, found_len, &got));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct placeholder_key key = { .bytes = { 7 } };
	const char *text = (const char *)data + 1;
	_buf_ struct buf out = BUF_INIT(1 << 20);
	struct token token;
	size_t at, len;

	if (!sealer)
		check(sealer_new(&key, &sealer) == 0);
	if (size < 2)
		return 0;
	json_try(text, size - 1, 1 + data[0]);
	issued_cookie(&taker, text, size - 1, &out);
	sealed_try(text, size - 1, 1 + data[0]);
	check(token_pending(text, size - 1) <= size - 1);
	if (token_find(text, size - 1, &at, &len)) /* nobody makes one by chance */
		check(!token_unseal(sealer, SESSION, text + at, len, &token));
	return 0;
}
