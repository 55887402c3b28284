/* SPDX-License-Identifier: MIT */
/*
 * Many needles in one pass, after Wu and Manber: a window as long as the shortest needle moves over the text, and a table says by
 * its last three bytes how far it may jump. Secrets are long, so that most bytes are never looked at.
 *
 * Nothing is kept between two calls: a text that comes in pieces is searched by holding back what could still become a hit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "secrets/forms.h"

struct search;

/* Takes the texts of the needles, also when it fails, into locked memory; each is at least NP_SECRET_MIN long.
 * 0, -ENOMEM, or -E2BIG: more than NP_SECRET_NEEDLES. */
int search_new(struct needle *needles, size_t n, struct search **ret);
void search_free(struct search *search); /* wipes the needles; NULL is fine */

/* Does a needle read otherwise when escapes are undone, since it holds what is one ("%41", "&amp;"), or may be with what follows? */
bool search_has_escapes(const struct search *search);

enum found {
	FOUND_NOTHING, /* in all of the text */
	FOUND_HIT,
	FOUND_PENDING, /* the text from at on is the beginning of a needle, and more of it is to come */
};

struct hit {
	size_t at;
	const struct needle *needle;
};

/* The first place from `from` on where a needle begins, and the longest of those that begin there. end: nothing follows the text,
 * so nothing is pending. */
enum found search_next(const struct search *search, const char *text, size_t len, size_t from, bool end,
		       struct hit *ret);

/* Does a text that comes in two parts begin with a needle? The head is not empty, and shorter than any. */
enum found search_begins(const struct search *search, const char *head, size_t head_len, const char *text, size_t len,
			 bool end, const struct needle **ret);
