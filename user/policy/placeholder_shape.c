/* SPDX-License-Identifier: MIT */
#include "policy/placeholder_shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/limits.h"

#define DIGITS	"0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define PLAIN	DIGITS LETTERS "-._~" /* RFC 3986: what is never escaped */

#define BITS_MIN 128

static const char *alphabet_find(const char *word, size_t len)
{
	if (len == 0)
		return DIGITS LETTERS;
	if (len == 4 && !memcmp(word, ":hex", 4))
		return DIGITS "abcdef";
	return len == 7 && !memcmp(word, ":digits", 7) ? DIGITS : NULL;
}

int shape_next(const char **at, struct shape_part *ret)
{
	const char *text = *at, *close;
	unsigned long n;
	char *end;

	if (!*text)
		return 0;
	if (*text != '{') {
		*ret = (struct shape_part){ .text = text, .len = strcspn(text, "{") };
		*at = text + ret->len;
		return 1;
	}
	close = strchr(text, '}');
	if (!close || !strchr(DIGITS, text[1]) || !text[1])
		return -EINVAL;
	n = strtoul(text + 1, &end, 10);
	if (!n || n > NP_PLACEHOLDER_MAX || end > close)
		return -EINVAL;
	*ret = (struct shape_part){ .alphabet = alphabet_find(end, (size_t)(close - end)), .len = n };
	*at = close + 1;
	return ret->alphabet ? 1 : -EINVAL;
}

/* Of one character, in hundredths and rounded down. */
static unsigned alphabet_bits(const char *alphabet)
{
	size_t n = strlen(alphabet);

	return n >= 62 ? 595 : n >= 16 ? 400 : 332;
}

const char *placeholder_shape_problem(const char *like)
{
	const char *at = like;
	struct shape_part part;
	size_t len = 0, bits = 0;
	int r;

	if (!strcmp(like, PLACEHOLDER_JWT))
		return NULL;
	if (strstr(like, "nptoken_"))
		return "\"nptoken_\" is how placeholders of tokens begin that are captured";
	while ((r = shape_next(&at, &part)) > 0) {
		len += part.len;
		if (len > NP_PLACEHOLDER_MAX)
			return "it is too long";
		if (part.alphabet)
			bits += part.len * alphabet_bits(part.alphabet);
		else if (strspn(part.text, PLAIN) < part.len)
			return "it may have letters, digits and -._~ beside {N}, so that it looks the same wherever it "
			       "stands";
	}
	if (r < 0)
		return "\"{\" begins {N}, {N:hex} or {N:digits}, N characters that are random, as in \"ghp_{36}\"";
	return bits < BITS_MIN * 100 ? "too little of it is random: it needs {22} at least, or {32:hex}" : NULL;
}
