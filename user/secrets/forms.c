/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "secrets/forms.h"
#include "vocab/limits.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* The digit at an index of the base64 of: ahead bytes of which nothing is known (zero here), the value, zeros. */
static unsigned digit_at(const char *value, size_t len, unsigned ahead, size_t index)
{
	const size_t bit = 6 * index, byte = bit / 8;
	unsigned pair = 0;

	for (size_t i = byte; i < byte + 2; i++) {
		pair <<= 8;
		if (i >= ahead && i - ahead < len)
			pair |= (unsigned char)value[i - ahead];
	}
	return pair >> (10 - bit % 8) & 63;
}

/* Digits that hold bits of the value alone. */
static size_t digits_begin(unsigned ahead)
{
	return (8 * ahead + 5) / 6;
}

static size_t digits_end(size_t len, unsigned ahead)
{
	return 8 * (ahead + len) / 6;
}

int needle_shares_first(const struct needle *needle)
{
	return (needle->form == FORM_BASE64 || needle->form == FORM_BASE64URL) && needle->bytes_ahead;
}

int needle_shares_last(const struct needle *needle)
{
	return (needle->form == FORM_BASE64 || needle->form == FORM_BASE64URL) &&
	       8 * (needle->bytes_ahead + (size_t)needle->value_len) % 6;
}

static bool form_base64(const char *value, size_t len, const char *alphabet, unsigned ahead, struct needle *p)
{
	const size_t from = digits_begin(ahead), to = digits_end(len, ahead);

	p->text = malloc(to - from + 1);
	if (!p->text)
		return false;
	p->len = (uint32_t)(to - from);
	p->bytes_ahead = (uint8_t)ahead;
	for (size_t i = from; i < to; i++)
		p->text[i - from] = alphabet[digit_at(value, len, ahead, i)];
	p->text[p->len] = '\0';
	return true;
}

static void hex_put(char *to, const char *from, size_t len, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		to[2 * i] = digits[(unsigned char)from[i] >> 4];
		to[2 * i + 1] = digits[(unsigned char)from[i] & 15];
	}
}

static bool form_hex(const char *value, size_t len, bool upper, struct needle *p)
{
	p->text = malloc(2 * len + 1);
	if (!p->text)
		return false;
	p->len = (uint32_t)(2 * len);
	hex_put(p->text, value, len, upper);
	p->text[p->len] = '\0';
	return true;
}

/* Without the ends of lines, which the search does not see either: keys of several lines are found however they were wrapped. */
static bool form_plain(const char *value, size_t len, struct needle *p)
{
	p->text = malloc(len + 1);
	if (!p->text)
		return false;
	p->len = 0;
	for (size_t i = 0; i < len; i++)
		if (value[i] != '\r' && value[i] != '\n')
			p->text[p->len++] = value[i];
	p->text[p->len] = '\0';
	return true;
}

static bool form_make(const char *value, size_t len, struct needle *p)
{
	switch ((enum form)p->form) {
	case FORM_PLAIN:
		return form_plain(value, len, p);
	case FORM_BASE64:
		return form_base64(value, len, standard, p->bytes_ahead, p);
	case FORM_BASE64URL:
		return form_base64(value, len, url_safe, p->bytes_ahead, p);
	case FORM_HEX:
	case FORM_HEX_UPPER:
		break;
	}
	return form_hex(value, len, p->form == FORM_HEX_UPPER, p);
}

void needle_free(struct needle *p)
{
	if (p->text)
		explicit_bzero(p->text, p->len);
	free(p->text);
	*p = (struct needle){ 0 };
}

static bool is_known(const struct needle *needles, int n, const struct needle *p)
{
	for (int i = 0; i < n; i++)
		if (needles[i].len == p->len && memcmp(needles[i].text, p->text, p->len) == 0)
			return true;
	return false;
}

int forms_make(const char *value, size_t len, uint32_t secret, struct needle needles[FORMS_MAX])
{
	static const struct needle all[FORMS_MAX] = {
		{ .form = FORM_PLAIN },
		{ .form = FORM_BASE64 },
		{ .form = FORM_BASE64, .bytes_ahead = 1 },
		{ .form = FORM_BASE64, .bytes_ahead = 2 },
		{ .form = FORM_BASE64URL },
		{ .form = FORM_BASE64URL, .bytes_ahead = 1 },
		{ .form = FORM_BASE64URL, .bytes_ahead = 2 },
		{ .form = FORM_HEX },
		{ .form = FORM_HEX_UPPER },
	};
	int n = 0;

	if (len < NP_SECRET_MIN)
		return 0;
	if (len > NP_SECRET_MAX)
		return -E2BIG;
	for (unsigned i = 0; i < FORMS_MAX; i++) {
		struct needle *p = &needles[n];

		*p = all[i];
		p->secret = secret;
		p->value_len = (uint32_t)len;
		if (!form_make(value, len, p)) {
			while (n)
				needle_free(&needles[--n]);
			return -ENOMEM;
		}
		/* Also what is short only because it was all ends of lines. */
		if (p->len < NP_SECRET_MIN || is_known(needles, n, p))
			needle_free(p);
		else
			n++;
	}
	return n;
}

/* With as many bytes in the last group of three as the value has, so that what follows is read as before. */
static size_t fitting_length(size_t len, size_t value_len)
{
	return len + (value_len + 3 - len % 3) % 3;
}

static void replace_base64(const struct needle *p, const char *placeholder, size_t len, char first, char last,
			   struct buf *out)
{
	const char *alphabet = p->form == FORM_BASE64URL ? url_safe : standard;
	const unsigned ahead = p->bytes_ahead;
	const size_t fits = fitting_length(len, p->value_len);
	char padded[NP_SECRET_MAX + 3];
	size_t from = digits_begin(ahead), to = digits_end(fits, ahead);

	if (fits > sizeof(padded)) {
		out->error = -E2BIG;
		return;
	}
	memset(padded, '_', fits);
	memcpy(padded, placeholder, len);
	if (ahead && base64_digit(first) >= 0) {
		/* The upper bits are those of the byte in front. */
		unsigned mine = ahead == 1 ? 0x0f : 0x03;

		from--;
		first = alphabet[((unsigned)base64_digit(first) & ~mine) | digit_at(padded, fits, ahead, from)];
		buf_append(out, &first, 1);
		from++;
	}
	for (size_t i = from; i < to; i++)
		buf_append(out, &alphabet[digit_at(padded, fits, ahead, i)], 1);
	if (needle_shares_last(p) && base64_digit(last) >= 0) {
		/* 2 or 4 bits of the last byte, then those of what follows. */
		unsigned others = 8 * (ahead + fits) % 6 == 2 ? 0x0f : 0x03;

		last = alphabet[((unsigned)base64_digit(last) & others) | digit_at(padded, fits, ahead, to)];
		buf_append(out, &last, 1);
	}
}

void needle_replace(const struct needle *p, const char *placeholder, size_t len, char first, char last, struct buf *out)
{
	char pair[2];

	switch ((enum form)p->form) {
	case FORM_PLAIN:
		buf_append(out, placeholder, len);
		return;
	case FORM_BASE64:
	case FORM_BASE64URL:
		replace_base64(p, placeholder, len, first, last, out);
		return;
	case FORM_HEX:
	case FORM_HEX_UPPER:
		break;
	}
	for (size_t i = 0; i < len; i++) {
		hex_put(pair, placeholder + i, 1, p->form == FORM_HEX_UPPER);
		buf_append(out, pair, 2);
	}
}
