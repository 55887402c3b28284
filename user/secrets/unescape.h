/* SPDX-License-Identifier: MIT */
/*
 * A text as it reads when the escapes in it are undone: %41, \u0041, \x41, \/ and the other backslashes of JSON, &#65; &#x41; and
 * the named ones of HTML. Ends of lines vanish, raw or escaped, for base64 is often wrapped. Which of them a text is written
 * in nobody says reliably, so all are undone at once; a search looks at both, the text and this. One for values that have signs of escapes
 * of their own looks at what the text is in other ways, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the place of len bytes of the text stand n others (0 to 4). */
struct escape {
	uint32_t at;	/* in the text */
	uint32_t plain; /* in what was made of it */
	uint8_t len, n;
};

/* Kinds of escapes that were undone. */
#define ESCAPE_PERCENT	 1u
#define ESCAPE_BACKSLASH 2u
#define ESCAPE_ENTITY	 4u
#define ESCAPE_LINE	 8u  /* an end of a line */
#define ESCAPE_NESTED	 16u /* one within another, which UNESCAPE_ONCE reads otherwise */

struct plain_text {
	char *text;
	size_t len;
	unsigned kinds; /* ESCAPE_* */
	size_t whole; /* bytes of the escaped text that this stands for: behind them is the beginning of an escape, or nothing */
	struct escape *escapes;
	size_t n;
	/* memory, used again by the next */
	size_t text_room, escapes_room;
};

enum unescape_way {
	UNESCAPE_NESTED,    /* also an escape within an escape: %2541, \\u0041 */
	UNESCAPE_ONCE,	    /* as it was written by one who escaped a '%', '\\' or '&' of the value as well */
	UNESCAPE_PERCENT,   /* no other kind, once: ... */
	UNESCAPE_BACKSLASH, /* ... those of the others are the value's own */
	UNESCAPE_ENTITY,
	UNESCAPE_WAYS,
};

/* Where an escape may begin: found once for all ways. */
struct signs {
	uint32_t *at;
	size_t n, room;
};
/* 0, -ENOMEM, or -E2BIG: a text of more than 1 GiB. */
int signs_find(const char *text, size_t len, struct signs *signs);
void signs_free(struct signs *signs);

/* How many escapes there are, all in ret; 0: none, and ret says nothing but whole. -ENOMEM. end: nothing comes behind it. */
int unescape(const char *text, size_t len, bool end, enum unescape_way way, const struct signs *signs,
	     struct plain_text *ret);
void plain_text_free(struct plain_text *plain); /* wipes it */

/* Where the byte at an index of plain->text begins and ends in the escaped text; which escape it is, or NULL. */
struct origin_span {
	size_t begin, end;
	const struct escape *escape;
};
struct origin_span plain_text_origin(const struct plain_text *plain, size_t index);
