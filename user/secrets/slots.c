/* SPDX-License-Identifier: MIT */
#include "secrets/slots.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX (NP_HEAD_BYTES + 4 * NP_SECRET_MAX)

void buf_wipe(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->cap);
	buf_free(buf);
}

static bool slots_have(const struct credential_slot *slots, size_t n, const struct slot_place *place)
{
	for (size_t i = 0; i < n; i++) {
		const struct credential_slot *slot = &slots[i];

		if (slot->kind != place->kind)
			continue;
		if ((slot->kind != SLOT_HEADER && slot->kind != SLOT_QUERY) ||
		    (strlen(slot->name) == place->name_len && !memcmp(slot->name, place->name, place->name_len)))
			return true;
	}
	return false;
}

bool slot_fits(const struct credential *credential, const struct slot_place *place)
{
	return slots_have(credential->slots, credential->n_slots, place);
}

bool slot_fits_token(const struct credential *credential, bool is_cookie, const struct slot_place *place)
{
	static const struct credential_slot cookie = { .kind = SLOT_HEADER, .name = "cookie" };
	const struct credential_capture *capture = credential->capture;

	if (!capture || place->kind == SLOT_SIGV4)
		return false;
	return slot_fits(credential, place) || slots_have(capture->slots, capture->n_slots, place) ||
	       (is_cookie && slots_have(&cookie, 1, place));
}

/* RFC 3986: everything but unreserved characters. */
static void put_percent(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];

		if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr("-._~", c)))
			buf_append(out, &text[i], 1);
		else
			buf_printf(out, "%%%02X", c);
	}
}

/* A value is visible ASCII (vault/source.c): two characters have a meaning in a string. */
static void put_json(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			buf_puts(out, "\\");
		buf_append(out, &text[i], 1);
	}
}

static void put_value(struct buf *out, const struct slot_place *place, const struct secret *secret)
{
	const enum slot_kind kind = place->kind;

	if (kind == SLOT_QUERY || kind == SLOT_PATH || kind == SLOT_FORM)
		put_percent(out, secret->value, secret->len);
	else if (kind == SLOT_JSON || place->json)
		put_json(out, secret->value, secret->len);
	else
		buf_append(out, secret->value, secret->len);
}

int slot_replace(const struct slot_finder *finder, const struct slot_place *place, const char *text, size_t len,
		 struct buf *out)
{
	const struct placeholder *found;
	bool any = false;
	size_t at;

	while ((found = placeholder_set_find(finder->set, text, len, &at))) {
		const struct secret *secret = finder->value(finder->ctx, found, place);

		if (!secret)
			return -EACCES;
		buf_append(out, text, at);
		put_value(out, place, secret);
		text += at + found->len;
		len -= at + found->len;
		any = true;
	}
	if (!any)
		return 0;
	buf_append(out, text, len);
	return out->error ? out->error : 1;
}

/* "dXNlcjpwYXNzd29yZA==": user, colon, password. What is no base64 holds no placeholder of ours. */
static int basic_replace(const struct slot_finder *finder, const char *text, size_t len, struct buf *out)
{
	static const struct slot_place place = { .kind = SLOT_BASIC };
	_wiped_ struct buf plain = BUF_INIT(TEXT_MAX), fresh = BUF_INIT(TEXT_MAX);
	struct base64_decode_ctx ctx;
	size_t n = BASE64_DECODE_LENGTH(len), room;
	char *encoded;
	int r;

	buf_append(&plain, text, len); /* room for what it becomes, which is shorter */
	if (buf_error(&plain))
		return buf_error(&plain);
	base64_decode_init(&ctx);
	if (n > len || !base64_decode_update(&ctx, &n, (uint8_t *)plain.data, len, text) || !base64_decode_final(&ctx))
		return 0;
	r = slot_replace(finder, &place, plain.data, n, &fresh);
	if (r <= 0)
		return r;
	room = BASE64_ENCODE_RAW_LENGTH(fresh.len);
	encoded = malloc(room + 1);
	if (!encoded)
		return -ENOMEM;
	base64_encode_raw(encoded, fresh.len, (const uint8_t *)fresh.data);
	buf_puts(out, "Basic ");
	buf_append(out, encoded, room);
	explicit_bzero(encoded, room);
	free(encoded);
	return out->error ? out->error : 1;
}

/* The token of a scheme, and where it begins; 0: it is another scheme. */
static size_t scheme_skip(const char *text, size_t len, const char *scheme)
{
	size_t n = strlen(scheme);

	if (len <= n || strncasecmp(text, scheme, n) != 0 || text[n] != ' ')
		return 0;
	while (n < len && text[n] == ' ')
		n++;
	return n;
}

int slot_header(const struct slot_finder *finder, const char *name, size_t name_len, const char *text, size_t len,
		struct buf *out)
{
	struct slot_place place = { .kind = SLOT_HEADER, .name = name, .name_len = name_len };
	size_t skip;

	if (name_len != strlen("authorization") || memcmp(name, "authorization", name_len) != 0)
		return slot_replace(finder, &place, text, len, out);
	skip = scheme_skip(text, len, "basic");
	if (skip)
		return basic_replace(finder, text + skip, len - skip, out);
	if (scheme_skip(text, len, "bearer") || scheme_skip(text, len, "token"))
		place = (struct slot_place){ .kind = SLOT_BEARER };
	else if (scheme_skip(text, len, "AWS4-HMAC-SHA256"))
		place = (struct slot_place){ .kind = SLOT_SIGV4 };
	return slot_replace(finder, &place, text, len, out);
}

int slot_target(const struct slot_finder *finder, const char *target, size_t len, struct buf *out)
{
	const struct slot_place path = { .kind = SLOT_PATH };
	const char *query = memchr(target, '?', len), *end = target + len, *at;
	_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
	size_t path_len = query ? (size_t)(query - target) : len;
	int r = slot_replace(finder, &path, target, path_len, &fresh);
	bool any = r > 0;

	if (r == 0)
		buf_append(&fresh, target, path_len);
	for (at = query; r >= 0 && at && at < end;) {
		const char *next = memchr(at + 1, '&', (size_t)(end - at - 1));
		const size_t part = (size_t)((next ? next : end) - at);
		const char *equals = memchr(at + 1, '=', part - 1);
		const struct slot_place place = { .kind = SLOT_QUERY,
						  .name = at + 1,
						  .name_len = equals ? (size_t)(equals - at - 1) : 0 };

		r = slot_replace(finder, &place, at, part, &fresh);
		if (r == 0)
			buf_append(&fresh, at, part);
		any |= r > 0;
		at += part;
	}
	if (r < 0 || !any)
		return r < 0 ? r : 0;
	buf_append(out, fresh.data, fresh.len);
	return fresh.error ? fresh.error : out->error ? out->error : 1;
}

void slot_write(const struct credential_slot *slot, const struct secret *secret, struct buf *out)
{
	_wiped_ struct buf plain = BUF_INIT(TEXT_MAX);
	char *encoded;

	if (slot->kind != SLOT_BASIC) {
		buf_puts(out, slot->kind == SLOT_BEARER ? "Bearer " : "");
		buf_append(out, secret->value, secret->len);
		return;
	}
	buf_printf(&plain, "%s:", slot->name);
	buf_append(&plain, secret->value, secret->len);
	encoded = plain.error ? NULL : malloc(BASE64_ENCODE_RAW_LENGTH(plain.len) + 1);
	if (!encoded) {
		out->error = -ENOMEM;
		return;
	}
	base64_encode_raw(encoded, plain.len, (const uint8_t *)plain.data);
	buf_puts(out, "Basic ");
	buf_append(out, encoded, BASE64_ENCODE_RAW_LENGTH(plain.len));
	explicit_bzero(encoded, BASE64_ENCODE_RAW_LENGTH(plain.len));
	free(encoded);
}

/* The parameter's name as servers may read it: with its escapes undone. */
static bool name_is(const char *text, size_t len, const char *name)
{
	size_t i = 0;

	for (; *name && i < len; name++) {
		unsigned char c = (unsigned char)text[i++];

		if (c == '%' && len - i >= 2) {
			char hex[3] = { text[i], text[i + 1], '\0' };

			c = (unsigned char)strtoul(hex, NULL, 16);
			i += 2;
		}
		if (c != (unsigned char)*name)
			return false;
	}
	return !*name && i == len;
}

void slot_write_query(const struct credential_slot *slot, const struct secret *secret, const char *target,
		      struct buf *out)
{
	const char *query = strchr(target, '?'), *at = query;
	char before = '?';

	buf_append(out, target, query ? (size_t)(query - target) : strlen(target));
	while (at && *at) {
		const size_t part = 1 + strcspn(at + 1, "&");
		const size_t name = strcspn(at + 1, "=&");

		if (!name_is(at + 1, name, slot->name)) {
			buf_append(out, &before, 1);
			buf_append(out, at + 1, part - 1);
			before = '&';
		}
		at += part;
	}
	buf_append(out, &before, 1);
	put_percent(out, slot->name, strlen(slot->name));
	buf_puts(out, "=");
	put_percent(out, secret->value, secret->len);
}
