/* SPDX-License-Identifier: MIT */
/* Patterns and a text of few letters, so that they overlap and nearly match: what is found is what a search finds that compares every
 * needle at every place, also when the text comes in pieces. */
#include "secrets/search.c"

#include "secrets/forms.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NEEDLES 12

struct list {
	struct needle needles[NEEDLES]; /* copies, for the slow one */
	size_t n;
};

static const struct needle *slow_at(const struct list *list, const char *text, size_t left)
{
	const struct needle *longest = NULL;

	for (size_t i = 0; i < list->n; i++) {
		const struct needle *p = &list->needles[i];

		if (p->len <= left && memcmp(p->text, text, p->len) == 0 && (!longest || p->len > longest->len))
			longest = p;
	}
	return longest;
}

/* Could more behind it make another, longer one of it? */
static bool slow_pending(const struct list *list, const char *text, size_t left)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->needles[i].len > left && memcmp(list->needles[i].text, text, left) == 0)
			return true;
	return false;
}

static void whole(const struct search *s, const struct list *list, const char *text, size_t len)
{
	size_t at = 0, slow = 0;
	struct hit hit;

	while (search_next(s, text, len, at, true, &hit) == FOUND_HIT) {
		const struct needle *p = NULL;

		while (slow < len && !(p = slow_at(list, text + slow, len - slow)))
			slow++;
		check(p && hit.at == slow && hit.needle->len == p->len);
		at = slow = hit.at + p->len;
	}
	for (; slow < len; slow++)
		check(!slow_at(list, text + slow, len - slow));
}

static void pieces(const struct search *s, const struct list *list, const char *text, size_t len, size_t each)
{
	size_t at = 0, has = 0;
	struct hit hit;

	while (at < len) {
		bool end;
		enum found found;
		size_t to;

		has = len - has < each ? len : has + each;
		end = has == len;
		found = search_next(s, text, has, at, end, &hit);
		to = found == FOUND_NOTHING ? has : hit.at;
		for (size_t i = at; i < to; i++) {
			check(!slow_at(list, text + i, has - i));
			check(end || !slow_pending(list, text + i, has - i));
		}
		if (found == FOUND_HIT)
			check(slow_at(list, text + hit.at, has - hit.at)->len == hit.needle->len);
		if (found == FOUND_PENDING)
			check(!end && slow_pending(list, text + hit.at, has - hit.at));
		at = found == FOUND_HIT ? hit.at + hit.needle->len : to;
		if (end && found == FOUND_NOTHING)
			break;
		if (found == FOUND_HIT)
			has = has > each ? has - each : 0; /* look once more at the same */
		if (has < at)
			has = at;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list list = { .n = 0 };
	struct needle given[NEEDLES];
	struct search *s;
	size_t want = size ? data[0] % (NEEDLES + 1) : 0, at = 1, each;
	char *text;

	for (; list.n < want && at < size; list.n++) {
		size_t len = NP_SECRET_MIN + data[at++] % 80;
		struct needle *p = &list.needles[list.n];

		if (len > size - at)
			break;
		*p = (struct needle){ .text = malloc(len), .len = (uint32_t)len };
		for (size_t i = 0; i < len; i++)
			p->text[i] = (char)('a' + data[at + i] % 3);
		at += len / 4; /* the next overlaps */
		given[list.n] = *p;
		given[list.n].text = malloc(len);
		memcpy(given[list.n].text, p->text, len);
	}
	check(search_new(given, list.n, &s) == 0);
	at = at > size ? size : at;
	each = 1 + (size ? data[size - 1] % 61 : 0);
	text = malloc(size - at + 1);
	for (size_t i = at; i < size; i++)
		text[i - at] = (char)('a' + data[i] % 3);
	whole(s, &list, text, size - at);
	pieces(s, &list, text, size - at, each);
	free(text);
	search_free(s);
	for (size_t i = 0; i < list.n; i++)
		free(list.needles[i].text);
	return 0;
}
