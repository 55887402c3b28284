/* SPDX-License-Identifier: MIT */
#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <string.h>
#include <strings.h>

#include "http/websocket.h"

#define KEY_LEN	   24 /* 16 bytes in base64 */
#define ACCEPT_LEN 28 /* 20 bytes */
#define VERSION	   "13"
#define DEFLATE	   "permessage-deflate"

/* The one field of that name; *ret_n: how many there are. */
static const struct field *field_only(const struct fields *fields, const char *name, size_t *ret_n)
{
	const struct field *found = NULL;
	size_t len = strlen(name);

	*ret_n = 0;
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];

		if (field->name_len != len || memcmp(field->name, name, len) != 0)
			continue;
		found = field;
		(*ret_n)++;
	}
	return *ret_n == 1 ? found : NULL;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* The next element of a list, up to a comma that no quotes are around; false at its end. Empty ones are skipped. */
static bool list_next(const char **at, const char *end, const char **ret, size_t *ret_len)
{
	while (*at < end) {
		const char *start = *at, *p = start, *stop;
		bool quoted = false;

		for (; p < end && (quoted || *p != ','); p++) {
			if (quoted && *p == '\\' && p + 1 < end)
				p++;
			else if (*p == '"')
				quoted = !quoted;
		}
		*at = p < end ? p + 1 : end;
		for (stop = p; start < stop && is_space(*start);)
			start++;
		while (start < stop && is_space(stop[-1]))
			stop--;
		if (start < stop) {
			*ret = start;
			*ret_len = (size_t)(stop - start);
			return true;
		}
	}
	return false;
}

/* Does a field of that name list it? Names of protocols are compared as they are. */
static bool field_lists(const struct fields *fields, const char *name, const char *word, size_t word_len)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		const char *at = field->value, *item;
		size_t len;

		if (strcmp(field->name, name) != 0)
			continue;
		while (list_next(&at, field->value + field->value_len, &item, &len))
			if (len == word_len && memcmp(item, word, len) == 0)
				return true;
	}
	return false;
}

/* How many extensions all fields of the name list, and how many of them are permessage-deflate, with its parameters. */
static void extensions_count(const struct fields *fields, size_t *ret_all, size_t *ret_deflate)
{
	*ret_all = *ret_deflate = 0;
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		const char *at = field->value, *item;
		size_t len, word;

		if (strcmp(field->name, "sec-websocket-extensions") != 0)
			continue;
		while (list_next(&at, field->value + field->value_len, &item, &len)) {
			for (word = 0; word < len && item[word] != ';' && !is_space(item[word]);)
				word++;
			(*ret_all)++;
			*ret_deflate += word == strlen(DEFLATE) && strncasecmp(item, DEFLATE, word) == 0;
		}
	}
}

static bool key_is_valid(const struct field *key)
{
	struct base64_decode_ctx ctx;
	uint8_t bytes[BASE64_DECODE_LENGTH(KEY_LEN)];
	size_t n = sizeof(bytes);

	if (key->value_len != KEY_LEN)
		return false;
	base64_decode_init(&ctx);
	return base64_decode_update(&ctx, &n, bytes, KEY_LEN, key->value) && base64_decode_final(&ctx) && n == 16;
}

static void accept_make(const struct field *key, char ret[static ACCEPT_LEN])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx ctx;

	_Static_assert(BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) == ACCEPT_LEN, "20 bytes in base64");
	sha1_init(&ctx);
	sha1_update(&ctx, key->value_len, (const uint8_t *)key->value);
	sha1_update(&ctx, sizeof(guid) - 1, (const uint8_t *)guid);
	sha1_digest(&ctx, sizeof(digest), digest);
	base64_encode_raw(ret, sizeof(digest), digest);
}

static bool protocols_are_tokens(const struct fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		const char *at = field->value, *item;
		size_t len;

		if (strcmp(field->name, "sec-websocket-protocol") != 0)
			continue;
		while (list_next(&at, field->value + field->value_len, &item, &len))
			if (!field_name_is_valid(item, len))
				return false;
	}
	return true;
}

const char *websocket_request_check(struct head *request)
{
	const struct field *version, *key;
	size_t n, all, deflate;

	if (!request->upgrade || strcmp(request->upgrade, "websocket") != 0)
		return "it asks for another protocol than websocket";
	if (strcmp(request->method, "GET") != 0)
		return "a websocket is asked for with GET";
	if (request->has_body || (request->has_length && request->length))
		return "a request for a websocket has no body";
	version = field_only(&request->fields, "sec-websocket-version", &n);
	if (!version || version->value_len != strlen(VERSION) || memcmp(version->value, VERSION, strlen(VERSION)) != 0)
		return "Sec-WebSocket-Version is not 13";
	key = field_only(&request->fields, "sec-websocket-key", &n);
	if (!key || !key_is_valid(key))
		return "Sec-WebSocket-Key is not 16 bytes in base64";
	if (!protocols_are_tokens(&request->fields))
		return "Sec-WebSocket-Protocol is not a list of names";
	extensions_count(&request->fields, &all, &deflate);
	if (deflate < all)
		fields_remove(&request->fields, "sec-websocket-extensions");
	return NULL;
}

const char *websocket_response_check(const struct head *request, const struct head *response, bool *ret_deflate)
{
	size_t n, all, deflate, offered, offered_deflate;
	const struct field *key = field_only(&request->fields, "sec-websocket-key", &n);
	const struct field *accept = field_only(&response->fields, "sec-websocket-accept", &n);
	const struct field *protocol;
	char want[ACCEPT_LEN];

	if (!key || !accept || accept->value_len != ACCEPT_LEN)
		return "its Sec-WebSocket-Accept does not answer the key";
	accept_make(key, want);
	if (memcmp(accept->value, want, ACCEPT_LEN) != 0)
		return "its Sec-WebSocket-Accept does not answer the key";
	protocol = field_only(&response->fields, "sec-websocket-protocol", &n);
	if (n > 1 || (protocol &&
		      !field_lists(&request->fields, "sec-websocket-protocol", protocol->value, protocol->value_len)))
		return "it chose a subprotocol that was not offered";
	extensions_count(&request->fields, &offered, &offered_deflate);
	extensions_count(&response->fields, &all, &deflate);
	if (all > 1 || deflate < all || (all && !offered_deflate))
		return "it chose an extension that was not offered";
	*ret_deflate = all > 0;
	return NULL;
}
