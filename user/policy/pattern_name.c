/* SPDX-License-Identifier: MIT */
#include "policy/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/quote.h"

/* Only these bytes. */
static bool holds_only(const char *text, size_t len, const char *bytes)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(bytes, text[i]))
			return false;
	return true;
}

/* Such a name would be read as an address: see wire/hostname.h. */
static bool label_is_number(const char *label)
{
	if (label[0] == '0' && label[1] == 'x')
		return holds_only(label + 2, strlen(label + 2), "0123456789abcdef");
	return label[0] && holds_only(label, strlen(label), "0123456789");
}

static int name_refuse(const char *text, size_t len, char *problem)
{
	const char *why = "";

	if (memmem(text, len, "..", 2))
		why = ": it has an empty label";
	else if (len > NAME_SIZE)
		why = ": it is too long";
	else if (memchr(text, '@', len))
		why = "; a list is \"@\" and its name, alone";
	snprintf(problem, PATTERN_PROBLEM_SIZE, "%s is no host name%s", QUOTE(text, len), why);
	return -EINVAL;
}

/* One label of a name with stars, into out, which has room for 64 bytes. */
static int label_read(const char *label, size_t len, bool first, char out[static 64], char *problem)
{
	int e;

	if (len == 2 && !memcmp(label, "**", 2)) {
		if (!first) {
			snprintf(problem, PATTERN_PROBLEM_SIZE,
				 "\"**\" is one or more labels, and only the first part of a name can be that");
			return -EINVAL;
		}
		memcpy(out, "**", 3);
		return 0;
	}
	if (len == 1 && label[0] == '*') {
		memcpy(out, "*", 2);
		return 0;
	}
	if (memchr(label, '*', len)) {
		snprintf(problem, PATTERN_PROBLEM_SIZE, "%s: \"*\" stands for a whole label, never for a part of one",
			 QUOTE(label, len));
		return -EINVAL;
	}
	e = label_canonical(label, len, out);
	return e == -EINVAL ? name_refuse(label, len, problem) : e;
}

/* Meant as a range of addresses: "10.0.*". */
static bool is_range_with_stars(const char *text, size_t len)
{
	return holds_only(text, len, "0123456789.*") && !holds_only(text, len, ".*");
}

static int range_refuse(const char *text, size_t len, char *problem)
{
	snprintf(problem, PATTERN_PROBLEM_SIZE,
		 "%s: a range of addresses has a prefix length, not \"*\": \"10.0.0.0/8\"", QUOTE(text, len));
	return -EINVAL;
}

static int name_with_stars(const char *text, size_t len, char name[static NAME_SIZE], char *problem)
{
	size_t at = 0, used = 0;
	char label[64] = "";

	if (is_range_with_stars(text, len))
		return range_refuse(text, len, problem);
	if (len > 1 && text[len - 1] == '.' && text[len - 2] != '.')
		len--;
	for (;;) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t n = dot ? (size_t)(dot - text) - at : len - at, wrote;
		int e = label_read(text + at, n, at == 0, label, problem);

		if (e < 0)
			return e;
		wrote = strlen(label);
		if (used + wrote >= NAME_SIZE) {
			snprintf(problem, PATTERN_PROBLEM_SIZE, "%s is longer than a name can be", QUOTE(text, len));
			return -EINVAL;
		}
		memcpy(name + used, label, wrote);
		used += wrote;
		at += n + 1;
		if (!dot)
			break;
		name[used++] = '.';
	}
	if (label_is_number(label)) {
		snprintf(problem, PATTERN_PROBLEM_SIZE, "%s: the last label of a name is never a number",
			 QUOTE(text, len));
		return -EINVAL;
	}
	/* Again: digits of other scripts are these digits in the canonical name. */
	if (is_range_with_stars(name, used))
		return range_refuse(text, len, problem);
	name[used] = '\0';
	return 0;
}

/* ".example.org": the domain itself and everything below it. */
static int name_with_dot(const char *text, size_t len, char name[static NAME_SIZE], char *problem)
{
	char out[NAME_SIZE];
	int e;

	if (memchr(text, '*', len)) {
		snprintf(problem, PATTERN_PROBLEM_SIZE,
			 "%s: a dot in front already means everything below; leave the stars out", QUOTE(text, len));
		return -EINVAL;
	}
	e = name_canonical(text + 1, len - 1, out);
	if (e == -EINVAL || (e == 0 && strlen(out) + 2 > NAME_SIZE))
		return name_refuse(text, len, problem);
	if (e == 0)
		snprintf(name, NAME_SIZE, ".%.*s", NAME_SIZE - 2, out);
	return e;
}

int pattern_name(const char *text, size_t len, char name[static NAME_SIZE], char problem[static PATTERN_PROBLEM_SIZE])
{
	char out[NAME_SIZE];
	int e;

	if (len > 1 && text[0] == '.' && text[1] != '.')
		return name_with_dot(text, len, name, problem);
	if (memchr(text, '*', len)) {
		e = name_with_stars(text, len, out, problem);
	} else {
		e = name_canonical(text, len, out);
		if (e == -EINVAL)
			return name_refuse(text, len, problem);
	}
	if (e == 0)
		memcpy(name, out, strlen(out) + 1);
	return e;
}
