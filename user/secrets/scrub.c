/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "secrets/scrub.h"
#include "vocab/limits.h"

/* Where a secret was found. */
struct span {
	size_t begin, end; /* in the text */
	size_t at;	   /* in the text, or in what it is without escapes */
	const struct needle *needle;
	uint8_t text;	/* at is in: 0 the text; else plain[text - 1] */
	bool with_last; /* end is behind a base64 digit that has bits of the secret and of what follows */
	bool in_escape; /* it begins in what reads as an escape: what takes its place is written as it is */
};

void scrubber_free(struct scrubber *s)
{
	for (unsigned way = 0; way < UNESCAPE_WAYS; way++)
		plain_text_free(&s->plain[way]);
	signs_free(&s->signs);
	free(s->spans);
	*s = (struct scrubber){ 0 };
}

static struct origin_span origin_of(const struct scrubber *s, unsigned in, size_t index)
{
	if (in)
		return plain_text_origin(&s->plain[in - 1], index);
	return (struct origin_span){ .begin = index, .end = index + 1 };
}

/* All that are in one of the texts. *cut becomes less when something is pending. */
static int spans_collect(struct scrubber *s, unsigned in, const char *text, size_t len, bool end, size_t *cut)
{
	size_t at = 0;
	struct hit hit;
	enum found found;

	while ((found = search_next(s->search, text, len, at, end, &hit)) == FOUND_HIT) {
		size_t behind = hit.at + hit.needle->len;
		struct span *span;

		if (ARRAY_RESERVE(s->spans, s->room, s->n + 1) < 0)
			return -ENOMEM;
		span = &s->spans[s->n];
		*span = (struct span){
			.begin = origin_of(s, in, hit.at).begin,
			.end = origin_of(s, in, behind - 1).end,
			.at = hit.at,
			.needle = hit.needle,
			.text = (uint8_t)in,
		};
		if (needle_shares_last(hit.needle)) {
			if (behind == len && !end) {
				found = FOUND_PENDING;
				break;
			}
			if (behind < len && base64_digit(text[behind]) >= 0) {
				span->end = origin_of(s, in, behind).end;
				span->with_last = true;
			}
		}
		s->n++;
		at = behind;
	}
	if (found == FOUND_PENDING) {
		/* With the byte in front of it, which may have bits of it. */
		size_t from = hit.at > at ? hit.at - 1 : hit.at;
		size_t begin = origin_of(s, in, from).begin;

		if (begin < *cut)
			*cut = begin;
	}
	return 0;
}

static int span_compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end == y->end ? x->text - y->text : x->end > y->end ? -1 : 1;
}

/* The escape that a place is in the middle of, or NULL. */
static const struct escape *escape_around(const struct plain_text *plain, size_t place)
{
	size_t low = 0, high = plain->n;
	const struct escape *last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (plain->escapes[middle].at < place)
			low = middle + 1;
		else
			high = middle;
	}
	last = low ? &plain->escapes[low - 1] : NULL;
	return last && place < (size_t)last->at + last->len ? last : NULL;
}

/* No escape and no secret may be cut in two: what comes then would not be known for what it is. */
static size_t cut_settle(const struct scrubber *s, size_t cut)
{
	size_t before;

	do {
		before = cut;
		for (unsigned way = 0; way < UNESCAPE_WAYS; way++) {
			const struct escape *escape = escape_around(&s->plain[way], cut);

			if (escape)
				cut = escape->at;
		}
		for (size_t i = s->n; i--;)
			if (s->spans[i].begin < cut && s->spans[i].end > cut)
				cut = s->spans[i].begin;
	} while (cut != before);
	return cut;
}

/* A secret whose first characters what stands in front of it has taken for its own escape ("\\u" before four hexadecimal digits): it
 * begins inside of that. */
static int tails_collect(struct scrubber *s, enum unescape_way way, const char *data, bool end, size_t *cut)
{
	const struct plain_text *plain = &s->plain[way];

	for (size_t i = 0; i < plain->n; i++) {
		const struct escape *escape = &plain->escapes[i];
		const size_t behind = (size_t)escape->plain + escape->n;

		for (size_t k = 1; k < escape->len; k++) {
			const struct needle *needle;
			enum found found = search_begins(s->search, data + escape->at + k, escape->len - k,
							 plain->text + behind, plain->len - behind, end, &needle);

			if (found == FOUND_PENDING && escape->at < *cut)
				*cut = escape->at;
			if (found != FOUND_HIT)
				continue;
			if (ARRAY_RESERVE(s->spans, s->room, s->n + 1) < 0)
				return -ENOMEM;
			s->spans[s->n++] = (struct span){
				.begin = escape->at + k,
				.end = plain_text_origin(plain, behind + needle->len - (escape->len - k) - 1).end,
				.needle = needle,
				.text = (uint8_t)(way + 1),
				.in_escape = true,
			};
		}
	}
	return 0;
}

/* What is found when it is read in one of the ways. */
static int way_find(struct scrubber *s, enum unescape_way way, const char *data, size_t len, bool end, size_t *cut)
{
	struct plain_text *plain = &s->plain[way];
	int r = unescape(data, len, end, way, &s->signs, plain);

	if (r < 0)
		return r;
	if (plain->whole < *cut)
		*cut = plain->whole;
	if (!plain->n) /* None is one, or the first of all is incomplete: what stands in front of it may be pending. */
		return s->signs.n ? spans_collect(s, 0, data, plain->whole, end, cut) : 0;
	r = spans_collect(s, way + 1, plain->text, plain->len, end, cut);
	return r == 0 && plain->kinds & ~ESCAPE_LINE ? tails_collect(s, way, data, end, cut) : r;
}

/* Values that have what reads as an escape are looked for in each way, but for those that read a text as one before it did. */
static int other_ways_find(struct scrubber *s, const char *data, size_t len, bool end, size_t *cut)
{
	static const struct {
		enum unescape_way way;
		unsigned kind;
	} single[] = { { UNESCAPE_PERCENT, ESCAPE_PERCENT },
		       { UNESCAPE_BACKSLASH, ESCAPE_BACKSLASH },
		       { UNESCAPE_ENTITY, ESCAPE_ENTITY } };
	const unsigned all = ESCAPE_PERCENT | ESCAPE_BACKSLASH | ESCAPE_ENTITY;
	unsigned kinds = s->plain[UNESCAPE_NESTED].kinds;
	bool lines = false; /* one that undoes ends of lines alone was there */
	int r = 0;

	if (kinds & ESCAPE_NESTED) {
		r = way_find(s, UNESCAPE_ONCE, data, len, end, cut);
		kinds |= s->plain[UNESCAPE_ONCE].kinds;
	}
	for (unsigned i = 0; r == 0 && i < ARRAY_SIZE(single); i++) {
		if (!(kinds & all & ~single[i].kind) || (lines && !(kinds & single[i].kind)))
			continue;
		lines |= !(kinds & single[i].kind);
		r = way_find(s, single[i].way, data, len, end, cut);
	}
	return r;
}

/* What is found in any, in order. *cut: what is decided. */
static int spans_find(struct scrubber *s, const char *data, size_t len, bool end, size_t *ret_cut)
{
	size_t cut = len;
	int r;

	s->n = 0;
	for (unsigned way = 0; way < UNESCAPE_WAYS; way++)
		s->plain[way].n = 0;
	r = signs_find(data, len, &s->signs);
	/* A value without escapes reads the same when they are undone, or begins in one: see tails_collect(). */
	if (r == 0 && (!s->signs.n || search_has_escapes(s->search)))
		r = spans_collect(s, 0, data, len, end, &cut);
	if (r == 0)
		r = way_find(s, UNESCAPE_NESTED, data, len, end, &cut);
	if (r == 0 && search_has_escapes(s->search))
		r = other_ways_find(s, data, len, end, &cut);
	if (r < 0)
		return r;
	if (s->n > 1)
		qsort(s->spans, s->n, sizeof(*s->spans), span_compare);
	if (cut < len)
		cut = cut_settle(s, cut);
	while (s->n && s->spans[s->n - 1].begin >= cut)
		s->n--;
	*ret_cut = cut;
	return 0;
}

/* -- what stands in its place ------------------------------------------------------------------- */

static void put_hex(struct buf *out, char c, bool lower)
{
	const char *digits = lower ? "0123456789abcdef" : "0123456789ABCDEF";

	buf_append(out, &digits[(unsigned char)c >> 4], 1);
	buf_append(out, &digits[(unsigned char)c & 15], 1);
}

/* Another byte, escaped as the one was that was there. */
static void put_escaped(struct buf *out, const char *was, size_t len, char c)
{
	bool lower = false;

	for (size_t i = len - 2; i < len; i++)
		lower |= was[i] >= 'a' && was[i] <= 'f';
	if (was[0] == '%') {
		buf_append(out, was, len - 2);
		put_hex(out, c, lower);
	} else if (was[0] == '\\' && len >= 6 && was[len - 5] == 'u') {
		buf_append(out, was, len - 4);
		buf_append(out, "00", 2);
		put_hex(out, c, lower);
	} else if (was[0] == '\\' && len >= 4 && was[len - 3] == 'x') {
		buf_append(out, was, len - 2);
		put_hex(out, c, lower);
	} else if (was[0] == '&' && was[1] == '#') {
		buf_printf(out, (was[2] | 0x20) == 'x' ? "&#x%X;" : "&#%u;", (unsigned char)c);
	} else {
		if (was[0] == '\\' && (c == '"' || c == '\\'))
			buf_append(out, was, len - 1);
		buf_append(out, &c, 1);
	}
}

/* text stands for what was at span->at, up to count bytes of it, whose escapes and ends of lines it takes over. */
static void put_as_found(const struct scrubber *s, const char *data, unsigned in, size_t at, size_t count,
			 const struct buf *text, struct buf *out)
{
	size_t pos = origin_of(s, in, at).begin;

	if (!in) {
		buf_append(out, text->data, text->len);
		return;
	}
	for (size_t i = 0; i < text->len; i++) {
		struct origin_span span = { 0 };

		if (i < count) {
			span = origin_of(s, in, at + i);
			if (span.begin > pos) /* ends of lines */
				buf_append(out, data + pos, span.begin - pos);
			if (span.end > pos)
				pos = span.end;
		}
		if (span.escape && span.escape->n == 1)
			put_escaped(out, data + span.begin, span.escape->len, text->data[i]);
		else
			buf_append(out, &text->data[i], 1);
	}
}

/* From the character in front of it on that has bits of it, if that has not gone: *ret_begin. */
static int span_replace(const struct scrubber *s, const struct scrub_word *word, const char *data,
			const struct span *span, size_t pos, struct buf *out)
{
	const char *text = span->text ? s->plain[span->text - 1].text : data;
	const size_t behind = span->at + span->needle->len;
	_buf_ struct buf made = BUF_INIT(4 * NP_SECRET_MAX + 16);
	size_t at = span->at, begin = span->begin;
	char first = '\0';

	if (span->in_escape) {
		buf_append(out, data + pos, begin - pos);
		needle_replace(span->needle, word->text, word->len, '\0', '\0', out);
		return buf_error(out);
	}
	if (needle_shares_first(span->needle) && at && base64_digit(text[at - 1]) >= 0 &&
	    origin_of(s, span->text, at - 1).begin >= pos) {
		first = text[--at];
		begin = origin_of(s, span->text, at).begin;
	}
	buf_append(out, data + pos, begin - pos);
	needle_replace(span->needle, word->text, word->len, first, span->with_last ? text[behind] : '\0', &made);
	if (buf_error(&made))
		return buf_error(&made);
	put_as_found(s, data, span->text, at, behind + span->with_last - at, &made, out);
	return 0;
}

int scrub(struct scrubber *s, const struct scrub_words *words, const char *data, size_t len, bool end, struct buf *out,
	  size_t *ret_used)
{
	size_t cut, pos = 0;
	int hits = 0, r;

	r = spans_find(s, data, len, end, &cut);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n; i++) {
		const struct span *span = &s->spans[i];
		struct scrub_word word;

		if (!words->find(words->ctx, span->needle->secret, &word))
			continue;
		if (span->begin >= pos) {
			r = span_replace(s, &word, data, span, pos, out);
			if (r < 0)
				return r;
			hits++;
		}
		if (span->end > pos) /* what overlaps goes with the first */
			pos = span->end;
	}
	*ret_used = cut;
	if (!hits)
		return 0;
	buf_append(out, data + pos, cut - pos);
	for (unsigned way = 0; way < UNESCAPE_WAYS; way++)
		if (s->plain[way].n) /* it held a secret in the clear */
			explicit_bzero(s->plain[way].text, s->plain[way].text_room);
	return buf_error(out) ? buf_error(out) : hits;
}

int scrub_look(struct scrubber *s, const char *data, size_t len, bool end, size_t *ret_used)
{
	size_t cut;
	int r = spans_find(s, data, len, end, &cut);

	if (r < 0)
		return r;
	*ret_used = s->n ? s->spans[0].begin : cut;
	return s->n ? (int)s->spans[0].needle->secret : -1;
}
