/* SPDX-License-Identifier: MIT */
#include "vocab/session_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/chars.h"
#include "vocab/limits.h"

/* Not isalnum(): the locale has no say in what a name is. */
static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The sentences for one half of a name, or for a name of that form, so that each of them names the place. */
struct half {
	const char *empty, *too_long, *first, *other;
	const char *more; /* characters that it may have beside letters and digits */
};

static const struct half user_half = {
	.empty = "the user before the slash is empty",
	.too_long = "the user before the slash is longer than 64 bytes",
	.first = "the user before the slash does not start with a letter or a digit",
	.other = "the user before the slash has a character outside A-Z a-z 0-9 . _ - @ +",
	.more = "._-@+", /* those of an e-mail address */
};

static const struct half session_half = {
	.empty = "the session after the slash is empty",
	.too_long = "the session after the slash is longer than 64 bytes",
	.first = "the session after the slash does not start with a letter or a digit",
	.other = "the session after the slash has a character outside A-Z a-z 0-9 . _ -",
	.more = "._-",
};
static const struct half reader_half = {
	.empty = "the reader's name is empty",
	.too_long = "the reader's name is longer than 64 bytes",
	.first = "the reader's name does not start with a letter or a digit",
	.other = "the reader's name has a character outside A-Z a-z 0-9 . _ -",
	.more = "._-",
};
_Static_assert(NP_NAME_MAX == 64, "the sentences above say 64");
_Static_assert(NP_SESSION_MAX == 2 * NP_NAME_MAX + 1, "two halves and a slash");
_Static_assert(NP_SESSION_MAX < NP_LABEL_SIZE, "a label holds a session's name and its NUL");
_Static_assert(NP_SESSION_MAX + 9 <= NP_SANDBOX_ID_MAX, "an id is a session's name, a dot and 8 digits");

/* NULL when it is fine. */
static const char *half_check(const char *text, size_t len, const struct half *half)
{
	if (!len)
		return half->empty;
	if (len > NP_NAME_MAX)
		return half->too_long;
	if (!is_alnum(text[0]))
		return half->first;
	for (size_t i = 1; i < len; i++)
		if (!is_alnum(text[i]) && !(text[i] && strchr(half->more, text[i])))
			return half->other;
	return NULL;
}

int session_name_parse(const char *text, struct session_name *ret, const char **ret_problem)
{
	const char *slash = strchr(text, '/');
	const char *problem;
	size_t user_len, session_len;

	if (!slash) {
		*ret_problem = "the name has no slash: it is USER/SESSION";
		return -EINVAL;
	}
	user_len = (size_t)(slash - text);
	/* Bounded: what a stranger sent may be long, and everything past the bound is refused alike. */
	session_len = strnlen(slash + 1, NP_NAME_MAX + 1);
	problem = half_check(text, user_len, &user_half);
	if (!problem)
		problem = half_check(slash + 1, session_len, &session_half);
	if (problem) {
		*ret_problem = problem;
		return -EINVAL;
	}
	/* Zeroed to its end: a name is hashed, compared and copied into labels that others can read. */
	*ret = (struct session_name){ .user_len = user_len };
	memcpy(ret->text, text, user_len + 1 + session_len);
	return 0;
}

bool session_name_is_temporary(const struct session_name *name)
{
	return !strncmp(name->text + name->user_len + 1, NP_TEMPORARY_NAME, strlen(NP_TEMPORARY_NAME));
}

bool session_name_same_user(const struct session_name *a, const struct session_name *b)
{
	return a->user_len == b->user_len && !memcmp(a->text, b->text, a->user_len);
}

int reader_name_check(const char *text, const char **ret_problem)
{
	*ret_problem = half_check(text, strnlen(text, NP_NAME_MAX + 1), &reader_half);
	return *ret_problem ? -EINVAL : 0;
}

/* Characters that make a terminal or a reader see something else than what is there. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

static bool is_bidi_control(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

int text_check(const char *text, size_t max, const char **ret_problem)
{
	const char *problem = NULL;
	uint32_t c = 0;
	unsigned n;

	if (!*text)
		problem = "the text is empty";
	else if (strnlen(text, max + 1) > max)
		problem = "the text is too long";
	for (; !problem && *text; text += n) {
		n = char_decode(text, strnlen(text, 4), &c);
		if (!n)
			problem = "the text is not valid UTF-8";
		else if (is_control(c))
			problem = "the text has a control character";
		else if (is_bidi_control(c))
			problem = "the text has a character that changes the direction of writing";
	}
	if (!problem)
		return 0;
	*ret_problem = problem;
	return -EINVAL;
}
