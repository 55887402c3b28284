/* SPDX-License-Identifier: MIT */
#include "vocab/event_filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const keys[FILTER_KEYS] = {
	[FILTER_HOST] = "host",		[FILTER_URL] = "url",
	[FILTER_METHOD] = "method",	[FILTER_STATUS] = "status",
	[FILTER_VERDICT] = "verdict",	[FILTER_KIND] = "kind",
	[FILTER_REASON] = "reason",	[FILTER_SESSION] = "session",
	[FILTER_SANDBOX] = "sandbox",	[FILTER_PROGRAM] = "program",
	[FILTER_LEVEL] = "level",	[FILTER_MODE] = "mode",
	[FILTER_RULE] = "rule",		[FILTER_LIST] = "list",
	[FILTER_ADDRESS] = "address",	[FILTER_PORT] = "port",
	[FILTER_QUESTION] = "question", [FILTER_SENT] = "sent",
	[FILTER_RECEIVED] = "received", [FILTER_MS] = "ms",
};

static const char *const verdicts[] = { "allowed", "refused", "change", "error" };
static const char *const kinds[] = { "request", "connection", "dns", "socket", "change", "rise" };

static char char_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool key_is_number(enum filter_key key)
{
	return key == FILTER_STATUS || key == FILTER_PORT || key == FILTER_SENT || key == FILTER_RECEIVED ||
	       key == FILTER_MS;
}

/* 404, 1.5 or 10k, in thousandths; up to the end of the text. */
static bool number_read(const char *text, uint64_t *ret)
{
	static const char units[] = "kmg";
	uint64_t n = 0, part = 100;
	const char *unit;
	int digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 12; digits++)
		n = n * 10 + (uint64_t)(*text++ - '0');
	n *= 1000;
	if (digits && *text == '.' && text[1] >= '0' && text[1] <= '9')
		for (text++; *text >= '0' && *text <= '9' && part; part /= 10)
			n += (uint64_t)(*text++ - '0') * part;
	if (digits && *text && (unit = strchr(units, *text))) {
		for (long i = 0; i <= unit - units; i++)
			n = n > UINT64_MAX / 1000 ? UINT64_MAX : n * 1000;
		text++;
	}
	*ret = n;
	return digits && !*text;
}

/* -- reading ---------------------------------------------------------------------------------- */

struct filter_reader {
	const char *text; /* all of it */
	const char *at;
	char *problem;
	size_t used; /* of the filter's text */
};

static int reader_fail(const struct filter_reader *in, const char *at, const char *what)
{
	snprintf(in->problem, FILTER_PROBLEM_SIZE, "character %zu: %s", (size_t)(at - in->text) + 1, what);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int key_find(const char *text, size_t len)
{
	for (unsigned key = FILTER_ANY + 1; key < FILTER_KEYS; key++)
		if (strlen(keys[key]) == len && !strncasecmp(keys[key], text, len))
			return (int)key;
	return -ENOENT;
}

/* One value: up to a comma or a blank, or what stands between quotes. Commas end values only behind a key. */
static int value_read(struct filter_reader *in, struct event_filter *filter, struct filter_word *word)
{
	const char *const start = in->at;
	const bool quoted = *in->at == '"';
	const size_t begin = in->used;

	if (word->n == FILTER_VALUES_MAX)
		return reader_fail(in, start, "too many values");
	in->at += quoted;
	while (*in->at &&
	       (quoted ? *in->at != '"' : !is_blank(*in->at) && (word->key == FILTER_ANY || *in->at != ','))) {
		if ((unsigned char)*in->at < ' ' || *in->at == 0x7f)
			return reader_fail(in, in->at, "a control character");
		filter->text[in->used++] = char_lower(*in->at++);
	}
	if (quoted && *in->at != '"')
		return reader_fail(in, start, "the quote is not closed");
	in->at += quoted;
	if (in->used == begin)
		return reader_fail(in, start, "a value is missing");
	filter->text[in->used++] = '\0';
	word->values[word->n++] = (unsigned short)begin;
	return 0;
}

static bool word_is_one_of(const char *value, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i], value))
			return true;
	return strchr(value, '*');
}

/* 4xx */
static bool status_is_class(enum filter_key key, const char *value)
{
	return key == FILTER_STATUS && strlen(value) == 3 && *value >= '0' && *value <= '9' && !strcmp(value + 1, "xx");
}

/* ">=", "<=", ">" and "<" in front of a number. */
static size_t comparison_length(const char *value)
{
	return *value != '<' && *value != '>' ? 0 : value[1] == '=' ? 2 : 1;
}

/* A word that can never hold is a slip of the pen. */
static int word_check(const struct filter_reader *in, const char *start, const struct event_filter *filter,
		      const struct filter_word *word)
{
	uint64_t ignored;

	for (unsigned i = 0; i < word->n; i++) {
		const char *value = filter->text + word->values[i];

		if (word->key == FILTER_VERDICT && !word_is_one_of(value, verdicts, 4))
			return reader_fail(in, start, "a verdict is allowed, refused, change or error");
		if (word->key == FILTER_KIND && !word_is_one_of(value, kinds, 6))
			return reader_fail(in, start, "a kind is request, connection, dns, socket, change or rise");
		if (key_is_number(word->key) && !strchr(value, '*') && !status_is_class(word->key, value) &&
		    !number_read(value + comparison_length(value), &ignored))
			return reader_fail(in, start, "a number is 403, >=400, <10k or 4*, and a status 4xx, too");
	}
	return 0;
}

static int word_read(struct filter_reader *in, struct event_filter *filter)
{
	struct filter_word *word = &filter->words[filter->n];
	const char *const start = in->at;
	size_t len;
	int r;

	if (filter->n == FILTER_WORDS_MAX)
		return reader_fail(in, start, "too many words");
	*word = (struct filter_word){ .key = FILTER_ANY };
	if (*in->at == '-') {
		word->negated = true;
		in->at++;
	}
	len = strspn(in->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	if (len && in->at[len] == ':' &&
	    strncmp(in->at + len, "://", 3) != 0) { /* "https://..." is a word, not a key */
		int key = key_find(in->at, len);

		if (key < 0) {
			snprintf(in->problem, FILTER_PROBLEM_SIZE, "character %zu: there is no key \"%.*s\"",
				 (size_t)(in->at - in->text) + 1, len < 32 ? (int)len : 32, in->at);
			return -EINVAL;
		}
		word->key = (enum filter_key)key;
		in->at += len + 1;
	}
	do
		r = value_read(in, filter, word);
	while (!r && *in->at == ',' && in->at++);
	if (!r && *in->at && !is_blank(*in->at))
		r = reader_fail(in, in->at, "a blank is missing");
	if (!r)
		r = word_check(in, start, filter, word);
	if (!r)
		filter->n++;
	return r;
}

int event_filter_parse(const char *text, struct event_filter *ret, char problem[static FILTER_PROBLEM_SIZE])
{
	struct filter_reader in = { .text = text, .at = text, .problem = problem };
	struct event_filter filter = { 0 };

	if (strlen(text) > FILTER_TEXT_MAX)
		return reader_fail(&in, text + FILTER_TEXT_MAX, "the filter is too long");
	for (;;) {
		int r;

		while (is_blank(*in.at))
			in.at++;
		if (!*in.at)
			break;
		r = word_read(&in, &filter);
		if (r)
			return r;
	}
	*ret = filter;
	return 0;
}

/* -- asking ------------------------------------------------------------------------------------ */

/* glob with stars, text in any case; at each star one place to go back to, so that it takes no more than |glob| x |text| steps. */
static bool glob_matches(const char *glob, const char *text)
{
	const char *star = NULL, *back = text;

	while (*text) {
		if (*glob == '*') {
			star = glob++;
			back = text;
		} else if (*glob == char_lower(*text)) {
			glob++;
			text++;
		} else if (star) {
			glob = star + 1;
			text = ++back;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

/* The name itself, and every name below it. */
static bool host_matches(const char *value, const char *host)
{
	const size_t len = strlen(value), have = strlen(host);

	if (glob_matches(value, host))
		return true;
	return have > len && host[have - len - 1] == '.' && glob_matches(value, host + have - len);
}

/* 403, 4xx, 4*, >=400, <10k. What an event does not say is no number. */
static bool number_matches(enum filter_key key, const char *value, const char *fact)
{
	uint64_t want, have;

	if (status_is_class(key, value))
		return strlen(fact) == 3 && *fact == *value;
	if (strchr(value, '*'))
		return glob_matches(value, fact);
	if (!number_read(value + comparison_length(value), &want) || !number_read(fact, &have))
		return false;
	if (*value == '>')
		return value[1] == '=' ? have >= want : have > want;
	if (*value == '<')
		return value[1] == '=' ? have <= want : have < want;
	return have == want;
}

static bool text_contains(const char *value, const char *text)
{
	const size_t len = strlen(value);

	for (; *text; text++)
		if (!strncasecmp(text, value, len))
			return true;
	return false;
}

static bool found_anywhere(const char *value, const struct filter_facts *facts)
{
	static const enum filter_key where[] = { FILTER_HOST,	 FILTER_URL,	FILTER_SESSION,
						 FILTER_PROGRAM, FILTER_REASON, FILTER_ADDRESS };

	if (!strcmp(value, "llm")) /* the mark of what goes to models */
		return facts->of[FILTER_LIST] && !strcmp(facts->of[FILTER_LIST], "@llm");
	for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++)
		if (facts->of[where[i]] && text_contains(value, facts->of[where[i]]))
			return true;
	return false;
}

static bool value_matches(enum filter_key key, const char *value, const struct filter_facts *facts)
{
	const char *fact = facts->of[key] ? facts->of[key] : "";

	switch (key) {
	case FILTER_ANY:
		return found_anywhere(value, facts);
	case FILTER_HOST:
		return host_matches(value, fact);
	case FILTER_STATUS:
	case FILTER_PORT:
	case FILTER_SENT:
	case FILTER_RECEIVED:
	case FILTER_MS:
		return number_matches(key, value, fact);
	case FILTER_KIND:
		return glob_matches(value, fact) || (!strcmp(fact, "rise") && glob_matches(value, "change"));
	case FILTER_URL:
	case FILTER_RULE:
		return strchr(value, '*') ? glob_matches(value, fact) : text_contains(value, fact);
	case FILTER_LIST:
		return glob_matches(value, *fact == '@' && *value != '@' ? fact + 1 : fact);
	default:
		return glob_matches(value, fact);
	}
}

bool event_filter_passes(const struct event_filter *filter, const struct filter_facts *facts)
{
	for (unsigned i = 0; i < filter->n; i++) {
		const struct filter_word *word = &filter->words[i];
		bool holds = false;

		for (unsigned v = 0; v < word->n && !holds; v++)
			holds = value_matches(word->key, filter->text + word->values[v], facts);
		if (holds == word->negated)
			return false;
	}
	return true;
}
