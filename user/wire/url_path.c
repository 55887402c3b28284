/* SPDX-License-Identifier: MIT */
#include "wire/url_path.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/chars.h"
#include "vocab/limits.h"

/* The byte that text escapes, or -1. */
static int escape_read(const char *text, size_t len)
{
	int high, low;

	if (len < 3 || text[0] != '%')
		return -1;
	high = hex_digit(text[1]);
	low = hex_digit(text[2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* How far the bytes read so far are UTF-8. Shortest forms only, no surrogates, nothing above U+10FFFF. */
struct utf8 {
	unsigned more;	   /* bytes that are still to come */
	uint8_t low, high; /* bounds of the next one */
};

static bool utf8_next(struct utf8 *u, uint8_t c)
{
	if (u->more) {
		if (c < u->low || c > u->high)
			return false;
		u->more--;
		u->low = 0x80;
		u->high = 0xbf;
		return true;
	}
	if (c < 0x80)
		return true;
	if (c < 0xc2 || c > 0xf4)
		return false;
	u->more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	u->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	u->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return true;
}

/* -- one segment after the other ------------------------------------------------ */

struct writer {
	char *out;
	size_t len, max;
	size_t segment; /* where the one that is being written starts: behind its slash */
	struct utf8 utf8;
	unsigned percent; /* the last bytes were: 1 a percent sign, 2 one and a digit of an escape */
};

enum segment { SEGMENT_NAME, SEGMENT_EMPTY, SEGMENT_DOTS, SEGMENT_ODD };

static enum segment segment_kind(const struct writer *w)
{
	const char *text = w->out + w->segment;
	size_t len = w->len - w->segment, dots = 0;

	if (!len)
		return SEGMENT_EMPTY;
	if (memchr(text, ';', len))
		return SEGMENT_ODD;
	while (dots < len && dots < 2 && text[dots] == '.')
		dots++;
	return !dots || dots < len ? SEGMENT_NAME : SEGMENT_DOTS;
}

/* Dot segments are for clients to resolve: a server that does not would see another path than a rule does. Parameters
 * (";") some servers cut off. */
static int segment_end(const struct writer *w, bool last)
{
	switch (segment_kind(w)) {
	case SEGMENT_EMPTY:
		return last ? 0 : -EINVAL;
	case SEGMENT_NAME:
		return 0;
	default:
		return -EINVAL;
	}
}

static int path_writer_put(struct writer *w, const char *text, size_t len)
{
	if (len > w->max - w->len)
		return -E2BIG;
	memcpy(w->out + w->len, text, len);
	w->len += len;
	return 0;
}

static int put_byte(struct writer *w, uint8_t byte)
{
	static const char digits[] = "0123456789ABCDEF";
	const char escape[3] = { '%', digits[byte >> 4], digits[byte & 15] }, raw = (char)byte;

	if (!utf8_next(&w->utf8, byte))
		return -EINVAL;
	if (hex_digit((char)byte) < 0)
		w->percent = byte == '%';
	else if (w->percent && ++w->percent > 2)
		return -EINVAL; /* it was escaped twice */
	return byte < 0x80 ? path_writer_put(w, &raw, 1) : path_writer_put(w, escape, 3);
}

/* Bytes that no request may have in its path, escaped or not. */
static bool is_refused(int byte)
{
	return byte < 0x20 || byte == 0x7f || byte == '\\';
}

static int put_escape(struct writer *w, const char *text, size_t len)
{
	int byte = escape_read(text, len);

	if (byte < 0 || is_refused(byte) || byte == '/')
		return -EINVAL;
	return put_byte(w, (uint8_t)byte);
}

static int put_raw(struct writer *w, char c)
{
	if (is_refused((unsigned char)c) || c == ' ' || c == '#' || (unsigned char)c >= 0x80)
		return -EINVAL;
	return put_byte(w, (uint8_t)c);
}

static int put_slash(struct writer *w)
{
	int e = w->utf8.more ? -EINVAL : segment_end(w, false);

	if (e == 0)
		e = path_writer_put(w, "/", 1);
	w->segment = w->len;
	w->percent = 0;
	return e;
}

int path_normalise(const char *target, size_t len, char ret[static NP_PATH_MAX + 1])
{
	const char *query = memchr(target, '?', len);
	char out[NP_PATH_MAX];
	struct writer w = { .out = out, .len = 1, .max = sizeof(out), .segment = 1 };
	int e = 0;

	if (query)
		len = (size_t)(query - target);
	if (!len || target[0] != '/')
		return -EINVAL;
	out[0] = '/';
	for (size_t i = 1; i < len && e >= 0; i++) {
		if (target[i] == '%') {
			e = put_escape(&w, target + i, len - i);
			i += 2;
		} else {
			e = target[i] == '/' ? put_slash(&w) : put_raw(&w, target[i]);
		}
	}
	if (e >= 0)
		e = w.utf8.more ? -EINVAL : segment_end(&w, true);
	if (e < 0)
		return e;
	memcpy(ret, out, w.len);
	ret[w.len] = '\0';
	return 0;
}

/* -- globs ---------------------------------------------------------------------- */

static const char *glob_segment_problem(struct writer *w, bool last)
{
	enum segment kind = segment_kind(w);

	w->percent = 0;
	if (w->utf8.more)
		return "its escapes are not UTF-8";
	if (kind == SEGMENT_NAME || (kind == SEGMENT_EMPTY && last))
		return NULL;
	if (kind == SEGMENT_EMPTY)
		return "no path that reaches a rule has an empty segment (//)";
	return "no path that reaches a rule has a . or .. segment, or a semicolon";
}

static const char *glob_escape_problem(struct writer *w, const char *text, size_t len)
{
	int byte = escape_read(text, len), e;

	if (byte < 0)
		return "a % that starts no escape; write %25 for the character itself";
	if (byte == '*')
		return "a * always stands for any run of bytes; it cannot be escaped";
	if (is_refused(byte) || byte == '/')
		return "no path that reaches a rule has an escaped slash, backslash or control byte";
	e = put_byte(w, (uint8_t)byte);
	if (e == -E2BIG)
		return "too long";
	return e ? "escaped twice, or its escapes are not UTF-8" : NULL;
}

static const char *glob_raw_problem(struct writer *w, char c)
{
	int e;

	if (c == '?' || c == '#')
		return "rules look at the path only; write %3F or %23 for a ? or # in it";
	if (is_refused((unsigned char)c))
		return "a backslash or a control byte";
	if (c == '*' && w->utf8.more)
		return "its escapes are not UTF-8";
	e = put_byte(w, (uint8_t)c);
	if (e == -E2BIG)
		return "too long";
	return e ? "escaped twice, or not UTF-8" : NULL;
}

int glob_normalise(const char *text, size_t len, char ret[static NP_GLOB_MAX + 1], const char **ret_problem)
{
	char out[NP_GLOB_MAX];
	struct writer w = { .out = out, .max = sizeof(out) };
	const char *problem = NULL;

	if (!len || (text[0] != '/' && (len < 2 || text[0] != '*' || text[1] != '*')))
		problem = "a path starts with a slash (or **)";
	for (size_t i = 0; i < len && !problem; i++) {
		if (text[i] == '%') {
			problem = glob_escape_problem(&w, text + i, len - i);
			i += 2;
		} else if (text[i] != '/') {
			problem = glob_raw_problem(&w, text[i]);
		} else {
			problem = i ? glob_segment_problem(&w, false) : NULL;
			if (!problem && path_writer_put(&w, "/", 1) < 0)
				problem = "too long";
			w.segment = w.len;
		}
	}
	if (!problem)
		problem = glob_segment_problem(&w, true);
	if (problem) {
		*ret_problem = problem;
		return -EINVAL;
	}
	memcpy(ret, out, w.len);
	ret[w.len] = '\0';
	return 0;
}

/* A byte is itself; runs of stars are one. */
enum { STAR = 256, STARS };

static size_t glob_split(const char *glob, uint16_t tokens[static NP_GLOB_MAX])
{
	size_t n = 0;

	while (*glob) {
		if (n == NP_GLOB_MAX)
			return 0;
		if (*glob != '*') {
			tokens[n++] = (unsigned char)*glob++;
			continue;
		}
		tokens[n++] = glob[1] == '*' ? STARS : STAR;
		while (*glob == '*')
			glob++;
	}
	return n;
}

/* Places in the glob that the bytes so far may have led to, ascending. */
struct places {
	size_t n;
	uint16_t at[NP_GLOB_MAX + 1];
};

/* With place come those that need no further byte. What is not above the last one is there already. */
static void places_add(struct places *p, const uint16_t *tokens, size_t n_tokens, size_t place)
{
	for (;; place++) {
		if (!p->n || place > p->at[p->n - 1])
			p->at[p->n++] = (uint16_t)place;
		if (place == n_tokens || tokens[place] < STAR)
			return;
	}
}

/* All ways at once, byte by byte: the cost is bounded by the product of the lengths. */
static bool tokens_match(const uint16_t *tokens, size_t n_tokens, const char *path)
{
	struct places sets[2], *now = &sets[0], *next = &sets[1], *swap;

	now->n = 0;
	places_add(now, tokens, n_tokens, 0);
	for (; *path && now->n; path++) {
		next->n = 0;
		for (size_t i = 0; i < now->n; i++) {
			size_t place = now->at[i];

			if (place == n_tokens)
				continue;
			if (tokens[place] == STARS && place == n_tokens - 1)
				return true;
			if (tokens[place] == STARS || (tokens[place] == STAR && *path != '/'))
				places_add(next, tokens, n_tokens, place);
			else if (tokens[place] == (unsigned char)*path)
				places_add(next, tokens, n_tokens, place + 1);
		}
		swap = now;
		now = next;
		next = swap;
	}
	return now->n && now->at[now->n - 1] == n_tokens;
}

bool path_matches(const char *glob, const char *path)
{
	uint16_t tokens[NP_GLOB_MAX];
	size_t n;

	for (; *glob && *glob != '*'; glob++, path++)
		if (*glob != *path)
			return false;
	if (!*glob)
		return !*path;
	if (strcmp(glob, "**") == 0)
		return true;
	n = glob_split(glob, tokens);
	return n && tokens_match(tokens, n, path);
}
