/* SPDX-License-Identifier: MIT */
#include "secrets/issued.h"

#include <errno.h>
#include <string.h>

#include "secrets/slots.h"

#define NAME_TOO_LONG ISSUED_NAME_SIZE

static bool is_object(const struct issued_json *j)
{
	return j->depth && j->objects[(j->depth - 1) / 8] >> (j->depth - 1) % 8 & 1;
}

static int json_open(struct issued_json *j, bool object)
{
	if (j->depth == NP_ISSUED_DEPTH)
		return -EBADMSG;
	j->objects[j->depth / 8] =
		(uint8_t)((j->objects[j->depth / 8] & ~(1u << j->depth % 8)) | (unsigned)object << j->depth % 8);
	j->depth++;
	j->at = object ? AT_FIRST_KEY : AT_FIRST;
	return 0;
}

static int json_close(struct issued_json *j, bool object)
{
	if (!j->depth || is_object(j) != object)
		return -EBADMSG;
	j->depth--;
	j->at = AT_NEXT;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* -- strings ----------------------------------------------------------------------------------- */

static void name_put(struct issued_json *j, char c)
{
	if (j->name_len >= NAME_TOO_LONG - 1 || c < ' ' || c > '~')
		j->name_len = NAME_TOO_LONG; /* no name that a policy has */
	else
		j->name[j->name_len++] = c;
}

static int char_put(struct issued_json *j, char c)
{
	if (j->at == AT_KEY_TEXT)
		name_put(j, c);
	else if (j->at == AT_TOKEN)
		buf_append(&j->token, &c, 1);
	return j->token.error;
}

/* A character of \u: '\x7f' stands for all that are not ASCII, and is as little part of a name or a token as these. */
static int digit_read(struct issued_json *j, char c)
{
	const char lower = (char)(c | 0x20);
	const int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;

	if (digit < 0)
		return -EBADMSG;
	j->code = j->code << 4 | (uint32_t)digit;
	if (--j->escape > 1)
		return 0;
	j->escape = 0;
	return char_put(j, j->code < 0x7f ? (char)j->code : '\x7f');
}

static int escape_read(struct issued_json *j, char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(from, c) : NULL;

	if (j->escape > 1)
		return digit_read(j, c);
	j->code = 0;
	j->escape = c == 'u' ? 5 : 0;
	if (!at && c != 'u')
		return -EBADMSG;
	return at ? char_put(j, to[at - from]) : 0;
}

/* A character within a string. 1: the string is over. */
static int text_read(struct issued_json *j, char c)
{
	if (j->escape)
		return escape_read(j, c);
	if (c == '"')
		return 1;
	if (c == '\\') {
		j->escape = 1;
		return 0;
	}
	return (unsigned char)c < ' ' ? -EBADMSG : char_put(j, c);
}

static int token_end(struct issued_json *j, const struct issued_taker *taker, struct buf *out)
{
	int r = j->token.len ? taker->take(taker->ctx, j->name, j->token.data, j->token.len, out) : 0;

	if (j->token.data)
		explicit_bzero(j->token.data, j->token.cap);
	buf_clear(&j->token);
	return r < 0 ? r : buf_error(out);
}

/* -- all else ---------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	const char lower = (char)(c | 0x20);

	return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '+' || c == '-' || c == '.';
}

static int word_end(struct issued_json *j)
{
	if (j->at == AT_TAKEN_WORD && (j->word_len != 4 || memcmp(j->word, "null", 4) != 0))
		return -EINVAL;
	j->at = AT_NEXT;
	return 0;
}

static void word_put(struct issued_json *j, char c)
{
	if (j->word_len < sizeof(j->word))
		j->word[j->word_len++] = c;
}

static int value_begin(struct issued_json *j, char c)
{
	const bool wanted = j->wanted;

	j->wanted = false;
	if (c == '"') {
		j->at = wanted ? AT_TOKEN : AT_TEXT;
		j->token.max = NP_TOKEN_MAX;
		return 0;
	}
	if (c == '{' || c == '[')
		return wanted ? -EINVAL : json_open(j, c == '{');
	if (!is_word(c))
		return -EBADMSG;
	j->at = wanted ? AT_TAKEN_WORD : AT_WORD;
	j->word_len = 0;
	word_put(j, c);
	return 0;
}

static int next_read(struct issued_json *j, char c)
{
	if (c == '}' || c == ']')
		return json_close(j, c == '}');
	if (!j->depth) { /* one text behind the other: lines of JSON */
		j->wanted = false;
		return value_begin(j, c);
	}
	if (c != ',')
		return -EBADMSG;
	j->at = is_object(j) ? AT_KEY : AT_VALUE;
	return 0;
}

static int key_begin(struct issued_json *j, char c)
{
	if (c == '}' && j->at == AT_FIRST_KEY)
		return json_close(j, true);
	if (c != '"')
		return -EBADMSG;
	j->at = AT_KEY_TEXT;
	j->name_len = 0;
	return 0;
}

static void key_end(struct issued_json *j, const struct issued_taker *taker)
{
	const bool fits = j->name_len < NAME_TOO_LONG;

	j->name[fits ? j->name_len : 0] = '\0';
	j->wanted = fits && taker->wants(taker->ctx, j->name);
	j->at = AT_COLON;
}

/* Between strings. */
static int byte_read(struct issued_json *j, char c)
{
	if (j->at == AT_WORD || j->at == AT_TAKEN_WORD) {
		int r = 0;

		if (is_word(c)) {
			word_put(j, c);
			return 0;
		}
		r = word_end(j);
		if (r < 0)
			return r;
	}
	if (is_blank(c))
		return 0;
	switch (j->at) {
	case AT_FIRST:
		if (c == ']')
			return json_close(j, false);
		return value_begin(j, c);
	case AT_VALUE:
		return value_begin(j, c);
	case AT_FIRST_KEY:
	case AT_KEY:
		return key_begin(j, c);
	case AT_COLON:
		j->at = AT_VALUE;
		return c == ':' ? 0 : -EBADMSG;
	default:
		return next_read(j, c);
	}
}

static bool in_string(const struct issued_json *j)
{
	return j->at == AT_KEY_TEXT || j->at == AT_TEXT || j->at == AT_TOKEN;
}

/* The end of the text: is anything open? */
static int end_read(struct issued_json *j)
{
	if (j->at == AT_WORD || j->at == AT_TAKEN_WORD) {
		int r = word_end(j);

		if (r < 0)
			return r;
	}
	return j->depth || (j->at != AT_NEXT && j->at != AT_VALUE) ? -EBADMSG : 0;
}

int issued_json_read(struct issued_json *j, const struct issued_taker *taker, const char *data, size_t len, bool end,
		     struct buf *out)
{
	size_t from = 0; /* bytes from here on are not in out yet, unless they are of a token */
	int taken = 0, r;

	for (size_t i = 0; i < len; i++) {
		const enum issued_at was = j->at;

		r = in_string(j) ? text_read(j, data[i]) : byte_read(j, data[i]);
		if (r < 0)
			return r;
		if (was != AT_TOKEN && j->at == AT_TOKEN) { /* its quote goes on, and no more */
			buf_append(out, data + from, i + 1 - from);
			continue;
		}
		if (!r)
			continue;
		if (was == AT_KEY_TEXT) {
			key_end(j, taker);
			continue;
		}
		if (was == AT_TOKEN) {
			taken += j->token.len > 0;
			r = token_end(j, taker, out);
			from = i;
		}
		if (r < 0)
			return r;
		j->at = AT_NEXT;
	}
	if (j->at != AT_TOKEN)
		buf_append(out, data + from, len - from);
	r = end ? end_read(j) : 0;
	return r < 0 ? r : buf_error(out) ? buf_error(out) : taken;
}

void issued_json_free(struct issued_json *j)
{
	buf_wipe(&j->token);
	explicit_bzero(j, sizeof(*j));
}

/* -- cookies ----------------------------------------------------------------------------------- */

int issued_cookie(const struct issued_taker *taker, const char *text, size_t len, struct buf *out)
{
	const char *end = memchr(text, ';', len), *equals, *value;
	char name[ISSUED_NAME_SIZE];
	size_t skip = 0, name_len;
	int r;

	end = end ? end : text + len;
	equals = memchr(text, '=', (size_t)(end - text));
	while (skip < len && is_blank(text[skip]))
		skip++;
	if (!equals || text + skip >= equals)
		return 0;
	for (name_len = (size_t)(equals - text) - skip; name_len && is_blank(text[skip + name_len - 1]);)
		name_len--;
	if (name_len >= sizeof(name))
		return 0;
	memcpy(name, text + skip, name_len);
	name[name_len] = '\0';
	for (value = equals + 1; value < end && is_blank(*value);)
		value++;
	for (; end > value && is_blank(end[-1]);)
		end--;
	if (value == end || !taker->wants(taker->ctx, name))
		return 0;
	if (end - value > NP_TOKEN_MAX)
		return -E2BIG;
	buf_append(out, text, (size_t)(value - text));
	r = taker->take(taker->ctx, name, value, (size_t)(end - value), out);
	buf_append(out, end, (size_t)(text + len - end));
	return r < 0 ? r : buf_error(out) ? buf_error(out) : 1;
}
