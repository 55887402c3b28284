/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/array.h"
#include "base/chars.h"
#include "base/cleanup.h"
#include "secrets/unescape.h"

#define NESTED_MAX 4 /* escapes of an escape's first sign */

static bool starts_escape(char c)
{
	return c == '%' || c == '\\' || c == '&' || c == '\n' || c == '\r';
}

/* -- signs: where an escape may begin ------------------------------------------------------- */

#ifdef __SSE2__
static unsigned block_signs(const char *text)
{
	const __m128i v = _mm_loadu_si128((const __m128i *)text);
	const __m128i found = _mm_or_si128(
		_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('%')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
		_mm_or_si128(
			_mm_cmpeq_epi8(v, _mm_set1_epi8('&')),
			_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\r')))));

	return (unsigned)_mm_movemask_epi8(found);
}
#endif

int signs_find(const char *text, size_t len, struct signs *signs)
{
	size_t i = 0;

	signs->n = 0;
	if (len > 1u << 30)
		return -E2BIG;
#ifdef __SSE2__
	for (; len - i >= 64; i += 64) {
		uint64_t mask = 0;

		for (unsigned k = 0; k < 4; k++)
			mask |= (uint64_t)block_signs(text + i + 16 * k) << 16 * k;
		if (!mask)
			continue;
		if (ARRAY_RESERVE(signs->at, signs->room, signs->n + 64) < 0)
			return -ENOMEM;
		for (; mask; mask &= mask - 1)
			signs->at[signs->n++] = (uint32_t)i + (uint32_t)__builtin_ctzll(mask);
	}
#endif
	for (; i < len; i++) {
		if (!starts_escape(text[i]))
			continue;
		if (ARRAY_RESERVE(signs->at, signs->room, signs->n + 1) < 0)
			return -ENOMEM;
		signs->at[signs->n++] = (uint32_t)i;
	}
	return 0;
}

void signs_free(struct signs *signs)
{
	free(signs->at);
	*signs = (struct signs){ 0 };
}

/* -- one escape ----------------------------------------------------------------------------- */

#define INCOMPLETE (-1)

struct reader {
	const char *text;
	size_t len;
	bool end, nested;
	char out[4];
	uint8_t n, kinds; /* what was undone: ESCAPE_* */
};

/* digits of a number; how many of the wanted there are, or INCOMPLETE. */
static int hex_read(const struct reader *r, size_t at, unsigned want, uint32_t *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < want; i++) {
		int d;

		if (at + i >= r->len)
			return r->end ? (int)i : INCOMPLETE;
		d = hex_digit(r->text[at + i]);
		if (d < 0)
			return (int)i;
		*ret = *ret << 4 | (uint32_t)d;
	}
	return (int)want;
}

static void put_char(struct reader *r, uint32_t c)
{
	r->n = 0;
	if (c == '\n' || c == '\r')
		return;
	if (c < 0x80) {
		r->out[r->n++] = (char)c;
	} else if (c < 0x800) {
		r->out[r->n++] = (char)(0xc0 | c >> 6);
		r->out[r->n++] = (char)(0x80 | (c & 63));
	} else {
		r->out[r->n++] = (char)(0xe0 | (c >> 12 & 15));
		r->out[r->n++] = (char)(0x80 | (c >> 6 & 63));
		r->out[r->n++] = (char)(0x80 | (c & 63));
	}
}

static void put_byte(struct reader *r, uint32_t byte)
{
	r->n = 0;
	if (byte != '\n' && byte != '\r')
		r->out[r->n++] = (char)byte;
}

/* Each of these returns the length of the escape, 0 if it is none, or INCOMPLETE. */
static int read_percent(struct reader *r)
{
	uint32_t byte, next;
	int at = 1, got;

	got = hex_read(r, 1, 2, &byte);
	if (got != 2)
		return got == INCOMPLETE ? INCOMPLETE : 0;
	for (unsigned depth = 0; r->nested && byte == '%' && depth < NESTED_MAX; depth++) {
		got = hex_read(r, (size_t)at + 2, 2, &next);
		if (got == INCOMPLETE)
			return INCOMPLETE;
		if (got != 2)
			break;
		byte = next;
		at += 2;
		r->kinds |= ESCAPE_NESTED;
	}
	put_byte(r, byte);
	return at + 2;
}

static int read_backslash(struct reader *r)
{
	const unsigned most = r->nested ? 2 * NESTED_MAX : 1;
	size_t run = 1;
	uint32_t c;
	int got;

	while (run < most && run < r->len && r->text[run] == '\\')
		run++;
	if (run >= r->len)
		return r->end ? 0 : INCOMPLETE;
	if (run > 1)
		r->kinds |= ESCAPE_NESTED;
	switch (r->text[run]) {
	case 'u':
	case 'x':
		got = hex_read(r, run + 1, r->text[run] == 'u' ? 4 : 2, &c);
		if (got == INCOMPLETE)
			return INCOMPLETE;
		if (r->text[run] == 'u' && got == 4)
			put_char(r, c);
		else if (r->text[run] == 'x' && got == 2)
			put_byte(r, c);
		else
			return 0;
		return (int)run + 1 + got;
	case '/':
	case '"':
	case '\'':
		put_byte(r, (unsigned char)r->text[run]);
		return (int)run + 1;
	default:
		break;
	}
	if (run > 1 || r->text[run] == '\\') {
		put_byte(r, '\\');
		return 2;
	}
	switch (r->text[run]) {
	case 'n':
	case 'r':
		put_byte(r, '\n');
		return 2;
	case 't':
		put_byte(r, '\t');
		return 2;
	default:
		return 0;
	}
}

static int read_entity(struct reader *r)
{
	static const struct {
		const char *name;
		char len, c;
	} named[] = {
		{ "&amp;", 5, '&' }, { "&lt;", 4, '<' }, { "&gt;", 4, '>' }, { "&quot;", 6, '"' }, { "&apos;", 6, '\'' }
	};
	size_t i = 2;
	uint32_t c = 0;
	bool hex;

	for (unsigned k = 0; k < ARRAY_SIZE(named); k++) {
		const size_t n = (size_t)named[k].len, has = r->len < n ? r->len : n;

		if ((has > 1 && r->text[1] != named[k].name[1]) || memcmp(named[k].name, r->text, has) != 0)
			continue;
		if (has < n)
			return r->end ? 0 : INCOMPLETE;
		put_byte(r, (unsigned char)named[k].c);
		return (int)n;
	}
	if (r->len < 3)
		return r->end || (r->len == 2 && r->text[1] != '#') ? 0 : INCOMPLETE;
	if (r->text[1] != '#')
		return 0;
	hex = (r->text[2] | 0x20) == 'x';
	for (i += hex; i < r->len && i < 9; i++) {
		int d = hex_digit(r->text[i]);

		if (r->text[i] == ';')
			break;
		if (d < 0 || (!hex && d > 9))
			return 0;
		c = c * (hex ? 16 : 10) + (uint32_t)d;
	}
	if (i == 9 || (i >= r->len && r->end))
		return 0;
	if (i >= r->len)
		return INCOMPLETE;
	if (i == (hex ? 3u : 2u) || c > 0xffff)
		return 0;
	put_char(r, c);
	return (int)i + 1;
}

static int escape_read(struct reader *r)
{
	switch (r->text[0]) {
	case '%':
		r->kinds = ESCAPE_PERCENT;
		return read_percent(r);
	case '\\':
		r->kinds = ESCAPE_BACKSLASH;
		return read_backslash(r);
	case '&':
		r->kinds = ESCAPE_ENTITY;
		return read_entity(r);
	default:
		r->n = 0;
		r->kinds = ESCAPE_LINE;
		return 1;
	}
}

/* -- all of them ------------------------------------------------------------------------------ */

/* Ends of lines are undone in every way. */
static bool way_undoes(enum unescape_way way, char c)
{
	switch (way) {
	case UNESCAPE_PERCENT:
		return c != '\\' && c != '&';
	case UNESCAPE_BACKSLASH:
		return c != '%' && c != '&';
	case UNESCAPE_ENTITY:
		return c != '%' && c != '\\';
	default:
		return true;
	}
}

/* What stands between two escapes is short as a rule: then it is copied as a whole block, beyond its end. */
#define BLOCK 32
static void plain_copy(struct plain_text *plain, const char *text, size_t from, size_t to, size_t len)
{
	if (to - from <= BLOCK && len - from >= BLOCK)
		memcpy(plain->text + plain->len, text + from, BLOCK);
	else
		memcpy(plain->text + plain->len, text + from, to - from);
	plain->len += to - from;
}

int unescape(const char *text, size_t len, bool end, enum unescape_way way, const struct signs *signs,
	     struct plain_text *plain)
{
	const size_t whole = len;
	size_t from = 0;

	plain->len = plain->n = 0;
	plain->whole = len;
	plain->kinds = 0;
	/* What is made is never longer than what was there. */
	if (signs->n && (ARRAY_RESERVE(plain->text, plain->text_room, len + BLOCK) < 0 ||
			 ARRAY_RESERVE(plain->escapes, plain->escapes_room, signs->n) < 0))
		return -ENOMEM;
	for (size_t i = 0; i < signs->n; i++) {
		const size_t at = signs->at[i];
		struct reader r = { .text = text + at, .len = len - at, .end = end, .nested = way == UNESCAPE_NESTED };
		int n;

		if (at < from || !way_undoes(way, text[at]))
			continue; /* it is inside of the one before, or stays */
		n = escape_read(&r);
		if (n == 0)
			continue;
		if (n == INCOMPLETE) {
			plain->whole = len = at;
			break;
		}
		plain_copy(plain, text, from, at, whole);
		plain->kinds |= r.kinds;
		plain->escapes[plain->n++] = (struct escape){
			.at = (uint32_t)at, .plain = (uint32_t)plain->len, .len = (uint8_t)n, .n = r.n
		};
		memcpy(plain->text + plain->len, r.out, sizeof(r.out));
		plain->len += r.n;
		from = at + (size_t)n;
	}
	if (!plain->n)
		return 0;
	memcpy(plain->text + plain->len, text + from, len - from);
	plain->len += len - from;
	return (int)plain->n;
}

void plain_text_free(struct plain_text *plain)
{
	if (plain->text)
		explicit_bzero(plain->text, plain->text_room);
	free(plain->text);
	free(plain->escapes);
	*plain = (struct plain_text){ 0 };
}

struct origin_span plain_text_origin(const struct plain_text *plain, size_t index)
{
	size_t low = 0, high = plain->n;
	const struct escape *e;
	size_t behind;

	/* The last escape that stands for something at the index, or in front of it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (plain->escapes[middle].plain <= index)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return (struct origin_span){ .begin = index, .end = index + 1 };
	e = &plain->escapes[low - 1];
	if (index < (size_t)e->plain + e->n)
		return (struct origin_span){ .begin = e->at, .end = (size_t)e->at + e->len, .escape = e };
	behind = (size_t)e->at + e->len + (index - e->plain - e->n);
	return (struct origin_span){ .begin = behind, .end = behind + 1 };
}
