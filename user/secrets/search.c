/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "secrets/locked.h"
#include "secrets/search.h"
#include "vocab/limits.h"

#define BLOCK	   3  /* bytes that the table is asked about */
#define WINDOW_MAX 64 /* a longer window jumps hardly further, and fills the table */
#define BITS_MIN   12 /* of the table's index: fits into the first cache ... */
#define BITS_MAX   18 /* ... and into the second */
#define BEGIN_BITS 15 /* 4 KiB */
#define NONE	   UINT32_MAX

struct search {
	struct needle *needles;
	uint32_t n;
	char *texts; /* theirs, locked */
	size_t texts_size;
	unsigned window, bits;
	bool has_escapes;
	uint64_t begins[1u << (BEGIN_BITS - 6)]; /* bits by the hash of a needle's first block */
	uint8_t *jumps;				 /* by the hash of a block */
	uint32_t *last;	      /* by the same: the first of the needles whose window ends with such a block */
	uint32_t *next;	      /* of each needle: the next of those */
	uint32_t *next_first; /* likewise, of those that begin with the same byte */
	uint32_t by_first[256];
};

static inline uint32_t block_hash(const char *last, unsigned bits)
{
	uint32_t word;

	memcpy(&word, last - BLOCK, sizeof(word)); /* one byte more than the block: a window has it */
	word = le32toh(word) >> 8;
	return word * 0x9e3779b1u >> (32 - bits);
}

static inline uint32_t begin_hash(const char block[static BLOCK])
{
	const unsigned char *b = (const unsigned char *)block;

	return (b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16) * 0x9e3779b1u >> (32 - BEGIN_BITS);
}

/* What comes behind the needle's end may be anything. */
static bool begins_escape(const char *text, size_t len)
{
	switch (text[0]) {
	case '%':
		return (len < 2 || hex_digit(text[1]) >= 0) && (len < 3 || hex_digit(text[2]) >= 0);
	case '\\':
		return true; /* before others of an escape it is read with them, whatever follows */
	case '&':
		return len < 2 || memchr("algq#", text[1], 5); /* amp, apos, lt, gt, quot, or a number */
	default:
		return false;
	}
}

static void jumps_fill(struct search *s)
{
	memset(s->jumps, (int)(s->window - BLOCK + 1), (size_t)1 << s->bits);
	memset(s->last, 0xff, sizeof(*s->last) << s->bits);
	memset(s->by_first, 0xff, sizeof(s->by_first));
	for (uint32_t i = 0; i < s->n; i++) {
		const struct needle *p = &s->needles[i];
		const uint32_t begin = begin_hash(p->text);
		uint32_t *head;

		s->begins[begin / 64] |= 1ull << begin % 64;
		for (unsigned end = BLOCK; end <= s->window; end++) {
			/* The first block has no byte in front of it. */
			char block[BLOCK + 1] = { 0 };
			uint8_t *jump;
			uint32_t h;

			memcpy(block + 1, p->text + end - BLOCK, BLOCK);
			h = block_hash(block + BLOCK, s->bits);
			jump = &s->jumps[h];
			if (*jump > s->window - end)
				*jump = (uint8_t)(s->window - end);
			if (end == s->window) {
				s->next[i] = s->last[h];
				s->last[h] = i;
			}
		}
		head = &s->by_first[(unsigned char)p->text[0]];
		s->next_first[i] = *head;
		*head = i;
		for (uint32_t k = 0; k < p->len; k++)
			s->has_escapes |= begins_escape(p->text + k, p->len - k);
	}
}

void search_free(struct search *s)
{
	if (!s)
		return;
	locked_free(s->texts, s->texts_size);
	free(s->needles);
	free(s->jumps);
	free(s->last);
	free(s->next);
	free(s->next_first);
	free(s);
}

/* The needles, with their texts in one block of locked memory. */
static int needles_copy(struct search *s, const struct needle *needles, size_t n)
{
	size_t used = 0;

	if (n > NP_SECRET_NEEDLES)
		return -E2BIG;
	s->texts_size = 1;
	for (size_t i = 0; i < n; i++)
		s->texts_size += needles[i].len;
	s->needles = calloc(n + 1, sizeof(*s->needles));
	s->texts = locked_alloc(s->texts_size);
	if (!s->needles || !s->texts)
		return -ENOMEM;
	s->window = WINDOW_MAX;
	for (size_t i = 0; i < n; i++) {
		struct needle *needle = &s->needles[i];

		*needle = needles[i];
		needle->text = memcpy(s->texts + used, needles[i].text, needles[i].len);
		used += needle->len;
		if (needle->len < s->window)
			s->window = needle->len;
	}
	s->n = (uint32_t)n;
	return 0;
}

static int tables_make(struct search *s)
{
	for (s->bits = BITS_MIN; s->bits < BITS_MAX && (size_t)1 << s->bits < 8 * (size_t)s->n * s->window; s->bits++)
		;
	s->jumps = malloc((size_t)1 << s->bits);
	s->last = malloc(sizeof(*s->last) << s->bits);
	s->next = calloc(s->n + 1, sizeof(*s->next));
	s->next_first = calloc(s->n + 1, sizeof(*s->next_first));
	if (!s->jumps || !s->last || !s->next || !s->next_first)
		return -ENOMEM;
	jumps_fill(s);
	return 0;
}

int search_new(struct needle *needles, size_t n, struct search **ret)
{
	struct search *s = calloc(1, sizeof(*s));
	int r = s ? needles_copy(s, needles, n) : -ENOMEM;

	for (size_t i = 0; i < n; i++)
		needle_free(&needles[i]);
	if (r == 0)
		r = tables_make(s);
	if (r < 0) {
		search_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

bool search_has_escapes(const struct search *s)
{
	return s->has_escapes;
}

/* The longest needle of a list that the text begins with. Pending if a longer one could still come of it. */
static enum found begins_with(const struct search *s, const char *text, size_t left, bool end, uint32_t i,
			      const uint32_t *next, const struct needle **ret)
{
	const struct needle *longest = NULL;
	bool pending = false;

	for (; i != NONE; i = next[i]) {
		const struct needle *p = &s->needles[i];

		if (p->len > left)
			pending = pending || (!end && memcmp(p->text, text, left) == 0);
		else if ((!longest || p->len > longest->len) && memcmp(p->text, text, p->len) == 0)
			longest = p;
	}
	if (pending)
		return FOUND_PENDING;
	*ret = longest;
	return longest ? FOUND_HIT : FOUND_NOTHING;
}

enum found search_begins(const struct search *s, const char *head, size_t head_len, const char *text, size_t len,
			 bool end, const struct needle **ret)
{
	const size_t all = head_len + len;
	const struct needle *longest = NULL;
	char block[BLOCK] = { 0 };
	bool pending = false;

	for (size_t i = 0; i < BLOCK && i < all; i++)
		block[i] = i < head_len ? head[i] : text[i - head_len];
	if (all >= BLOCK) {
		const uint32_t begin = begin_hash(block);

		if (!(s->begins[begin / 64] >> begin % 64 & 1))
			return FOUND_NOTHING;
	}
	for (uint32_t i = s->by_first[(unsigned char)head[0]]; i != NONE; i = s->next_first[i]) {
		const struct needle *p = &s->needles[i];
		const size_t has = p->len < all ? p->len : all;

		if (has < head_len || memcmp(p->text, head, head_len) != 0 ||
		    memcmp(p->text + head_len, text, has - head_len) != 0)
			continue;
		if (has < p->len)
			pending = pending || !end;
		else if (!longest || p->len > longest->len)
			longest = p;
	}
	if (pending)
		return FOUND_PENDING;
	*ret = longest;
	return longest ? FOUND_HIT : FOUND_NOTHING;
}

enum found search_next(const struct search *s, const char *text, size_t len, size_t at, bool end, struct hit *ret)
{
	enum found found;

	if (!s->n)
		return FOUND_NOTHING;
	while (len - at >= s->window) {
		const uint32_t h = block_hash(text + at + s->window - 1, s->bits);
		const uint8_t jump = s->jumps[h];

		if (jump) {
			at += jump; /* less than a window */
			continue;
		}
		found = begins_with(s, text + at, len - at, end, s->last[h], s->next, &ret->needle);
		if (found != FOUND_NOTHING) {
			ret->at = at;
			return found;
		}
		at++;
	}
	/* What is left is shorter than any needle. */
	for (; !end && at < len; at++) {
		found = begins_with(s, text + at, len - at, end, s->by_first[(unsigned char)text[at]], s->next_first,
				    &ret->needle);
		if (found != FOUND_NOTHING) {
			ret->at = at;
			return found;
		}
	}
	return FOUND_NOTHING;
}
