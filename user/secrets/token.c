/* SPDX-License-Identifier: MIT */
#include "secrets/token.h"

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/siv-cmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "secrets/locked.h"

#define PREFIX_LEN (sizeof(SEALED_PREFIX) - 1)

struct sealer {
	struct siv_cmac_aes256_ctx siv;
	uint8_t plain[SEALED_PLAIN];
};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Six bits, or -1. */
static int digit_of(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int sealer_new(const struct placeholder_key *key, struct sealer **ret)
{
	static const char *const words[] = { "netpawl token, first half", "netpawl token, second half" };
	uint8_t bytes[SIV_CMAC_AES256_KEY_SIZE];
	struct sealer *sealer = locked_alloc(sizeof(*sealer));

	if (!sealer)
		return -ENOMEM;
	for (unsigned i = 0; i < 2; i++) {
		struct hmac_sha256_ctx ctx;

		hmac_sha256_set_key(&ctx, sizeof(key->bytes), key->bytes);
		hmac_sha256_update(&ctx, strlen(words[i]), (const uint8_t *)words[i]);
		hmac_sha256_digest(&ctx, SHA256_DIGEST_SIZE, bytes + (size_t)i * SHA256_DIGEST_SIZE);
		explicit_bzero(&ctx, sizeof(ctx));
	}
	_Static_assert(sizeof(bytes) == 2 * SHA256_DIGEST_SIZE, "two halves make a key");
	siv_cmac_aes256_set_key(&sealer->siv, bytes);
	explicit_bzero(bytes, sizeof(bytes));
	*ret = sealer;
	return 0;
}

void sealer_free(struct sealer *sealer)
{
	locked_free(sealer, sizeof(*sealer));
}

/* What a header may have: slots.c puts it there as it is. */
static bool value_is_clean(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (value[i] < ' ' || value[i] > '~')
			return false;
	return len;
}

/* Behind the prefix: how many digits follow, and these. */
static void digits_put(struct buf *out, const uint8_t *data, size_t len)
{
	char text[SEALED_MAX + 4];
	size_t n = BASE64_ENCODE_RAW_LENGTH(len);

	base64_encode_raw(text, len, data);
	while (n && text[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++)
		text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
	buf_printf(out, SEALED_PREFIX "%c%c%c", digits[n >> 12 & 63], digits[n >> 6 & 63], digits[n & 63]);
	buf_append(out, text, n);
}

int token_seal(const struct sealer *sealer, const char *session, const struct token *token, struct buf *out)
{
	const size_t name_len = strlen(token->credential), len = 2 + name_len + token->len;
	uint8_t plain[SEALED_PLAIN], sealed[SEALED_PLAIN];

	if (token->len > NP_TOKEN_MAX || name_len > NP_NAME_MAX)
		return -E2BIG;
	if (!value_is_clean(token->value, token->len))
		return -EINVAL;
	plain[0] = token->is_cookie;
	plain[1] = (uint8_t)name_len;
	memcpy(plain + 2, token->credential, name_len);
	memcpy(plain + 2 + name_len, token->value, token->len);
	/* No nonce but the session: who is told the same token twice may see that it is the same. */
	siv_cmac_aes256_encrypt_message(&sealer->siv, strlen(session), (const uint8_t *)session, 0, NULL,
					len + SIV_DIGEST_SIZE, sealed, plain);
	explicit_bzero(plain, sizeof(plain));
	digits_put(out, sealed, len + SIV_DIGEST_SIZE);
	return buf_error(out);
}

/* Of one that stands at the beginning of the text, by what it says itself; 0: it is none. The text has SEALED_HEAD bytes. */
static size_t length_stated(const char *text)
{
	const int a = digit_of(text[PREFIX_LEN]), b = digit_of(text[PREFIX_LEN + 1]),
		  c = digit_of(text[PREFIX_LEN + 2]);
	size_t n;

	if (a < 0 || b < 0 || c < 0)
		return 0;
	n = (size_t)a << 12 | (size_t)b << 6 | (size_t)c;
	return n <= SIV_DIGEST_SIZE || n > SEALED_MAX - SEALED_HEAD ? 0 : SEALED_HEAD + n;
}

static size_t digits_there(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && digit_of(text[n]) >= 0)
		n++;
	return n;
}

bool token_find(const char *text, size_t len, size_t *ret_at, size_t *ret_len)
{
	const char *at = text, *end = text + len;

	while (at < end && (at = memmem(at, (size_t)(end - at), SEALED_PREFIX, PREFIX_LEN))) {
		const size_t left = (size_t)(end - at), stated = left >= SEALED_HEAD ? length_stated(at) : 0;

		if (stated) {
			*ret_at = (size_t)(at - text);
			*ret_len = SEALED_HEAD +
				   digits_there(at + SEALED_HEAD, (stated < left ? stated : left) - SEALED_HEAD);
			return true;
		}
		at++;
	}
	return false;
}

bool token_find_whole(const char *text, size_t len, size_t *ret_at, size_t *ret_len)
{
	size_t from = 0;

	while (token_find(text + from, len - from, ret_at, ret_len)) {
		*ret_at += from;
		if (*ret_len == length_stated(text + *ret_at))
			return true;
		from = *ret_at + PREFIX_LEN;
	}
	return false;
}

bool token_unseal(struct sealer *sealer, const char *session, const char *text, size_t len, struct token *ret)
{
	char standard[SEALED_MAX + 4];
	uint8_t sealed[SEALED_PLAIN];
	struct base64_decode_ctx ctx;
	size_t n = len - SEALED_HEAD, room, name_len;

	if (len > SEALED_MAX || len < SEALED_HEAD || memcmp(text, SEALED_PREFIX, PREFIX_LEN) != 0 ||
	    length_stated(text) != len)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char c = text[SEALED_HEAD + i];

		standard[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
	}
	while (n % 4)
		standard[n++] = '=';
	base64_decode_init(&ctx);
	room = sizeof(sealed);
	if (BASE64_DECODE_LENGTH(n) > sizeof(sealed) + 3 || !base64_decode_update(&ctx, &room, sealed, n, standard) ||
	    !base64_decode_final(&ctx) || room < SIV_DIGEST_SIZE + 2)
		return false;
	if (!siv_cmac_aes256_decrypt_message(&sealer->siv, strlen(session), (const uint8_t *)session, 0, NULL,
					     room - SIV_DIGEST_SIZE, sealer->plain, sealed))
		return false;
	/* Whoever has the key wrote it, so it is what token_seal() writes. */
	name_len = sealer->plain[1];
	if (name_len > NP_NAME_MAX || 2 + name_len > room - SIV_DIGEST_SIZE)
		return false;
	ret->is_cookie = sealer->plain[0];
	memcpy(ret->credential, sealer->plain + 2, name_len);
	ret->credential[name_len] = '\0';
	ret->value = (const char *)sealer->plain + 2 + name_len;
	ret->len = room - SIV_DIGEST_SIZE - 2 - name_len;
	return true;
}

size_t token_pending(const char *text, size_t len)
{
	const char *end = text + len, *at = len > SEALED_MAX ? end - SEALED_MAX : text;

	for (; at < end && (at = memchr(at, SEALED_PREFIX[0], (size_t)(end - at))); at++) {
		const size_t left = (size_t)(end - at), stated = left >= SEALED_HEAD ? length_stated(at) : 0;

		if (memcmp(at, SEALED_PREFIX, left < PREFIX_LEN ? left : PREFIX_LEN) != 0)
			continue;
		if (stated && stated <= left &&
		    digits_there(at + SEALED_HEAD, stated - SEALED_HEAD) == stated - SEALED_HEAD)
			at += stated - 1; /* a whole one: its last letters begin no other */
		else if (left < SEALED_HEAD ||
			 (stated > left && digits_there(at + SEALED_HEAD, left - SEALED_HEAD) == left - SEALED_HEAD))
			return left;
	}
	return 0;
}
