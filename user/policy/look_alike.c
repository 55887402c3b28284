/* SPDX-License-Identifier: MIT */
#include "policy/look_alike.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "policy/suggest.h"
#include "wire/hostname.h"

#define NAME_TEXT  1024 /* of one in UTF-8: up to four bytes a character */
#define NAME_SHORT 6	/* any short name is near to any other */

/* Letters of other scripts that a Latin one is drawn like, or nearly: those of names that were registered to deceive. */
static const struct {
	uint16_t c;
	char as;
} drawn_alike[] = {
	/* Latin with marks, and without its dot */
	{ 0xdf, 'b' },
	{ 0xe0, 'a' },
	{ 0xe1, 'a' },
	{ 0xe2, 'a' },
	{ 0xe3, 'a' },
	{ 0xe4, 'a' },
	{ 0xe5, 'a' },
	{ 0xe7, 'c' },
	{ 0xe8, 'e' },
	{ 0xe9, 'e' },
	{ 0xea, 'e' },
	{ 0xeb, 'e' },
	{ 0xec, 'i' },
	{ 0xed, 'i' },
	{ 0xee, 'i' },
	{ 0xef, 'i' },
	{ 0xf1, 'n' },
	{ 0xf2, 'o' },
	{ 0xf3, 'o' },
	{ 0xf4, 'o' },
	{ 0xf5, 'o' },
	{ 0xf6, 'o' },
	{ 0xf8, 'o' },
	{ 0xf9, 'u' },
	{ 0xfa, 'u' },
	{ 0xfb, 'u' },
	{ 0xfc, 'u' },
	{ 0xfd, 'y' },
	{ 0xff, 'y' },
	{ 0x101, 'a' },
	{ 0x105, 'a' },
	{ 0x10d, 'c' },
	{ 0x117, 'e' },
	{ 0x119, 'e' },
	{ 0x121, 'g' },
	{ 0x12b, 'i' },
	{ 0x131, 'i' },
	{ 0x137, 'k' },
	{ 0x142, 'l' },
	{ 0x144, 'n' },
	{ 0x14d, 'o' },
	{ 0x15b, 's' },
	{ 0x15f, 's' },
	{ 0x161, 's' },
	{ 0x163, 't' },
	{ 0x16b, 'u' },
	{ 0x17a, 'z' },
	{ 0x17c, 'z' },
	{ 0x17e, 'z' },
	{ 0x251, 'a' },
	{ 0x261, 'g' },
	{ 0x269, 'i' },
	/* Greek */
	{ 0x3ac, 'a' },
	{ 0x3b1, 'a' },
	{ 0x3b3, 'y' },
	{ 0x3b5, 'e' },
	{ 0x3b7, 'n' },
	{ 0x3b9, 'i' },
	{ 0x3ba, 'k' },
	{ 0x3bd, 'v' },
	{ 0x3bf, 'o' },
	{ 0x3c1, 'p' },
	{ 0x3c4, 't' },
	{ 0x3c5, 'u' },
	{ 0x3c7, 'x' },
	{ 0x3c9, 'w' },
	/* Cyrillic */
	{ 0x430, 'a' },
	{ 0x432, 'b' },
	{ 0x433, 'r' },
	{ 0x435, 'e' },
	{ 0x43a, 'k' },
	{ 0x43c, 'm' },
	{ 0x43d, 'h' },
	{ 0x43e, 'o' },
	{ 0x43f, 'n' },
	{ 0x440, 'p' },
	{ 0x441, 'c' },
	{ 0x442, 't' },
	{ 0x443, 'y' },
	{ 0x445, 'x' },
	{ 0x455, 's' },
	{ 0x456, 'i' },
	{ 0x457, 'i' },
	{ 0x458, 'j' },
	{ 0x4bb, 'h' },
	{ 0x4cf, 'l' },
	{ 0x501, 'd' },
	{ 0x51b, 'q' },
	{ 0x51d, 'w' },
	/* Armenian */
	{ 0x566, 'q' },
	{ 0x570, 'h' },
	{ 0x578, 'n' },
	{ 0x57d, 'u' },
	{ 0x581, 'g' },
	{ 0x585, 'o' },
};

static unsigned labels_count(const char *name)
{
	unsigned n = 1;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

/* As much of the end of the host as the name has labels; NULL: it has fewer. */
static const char *host_tail(const char *host, unsigned labels)
{
	unsigned have = labels_count(host);

	for (; have > labels; have--)
		host = strchr(host, '.') + 1;
	return have == labels ? host : NULL;
}

/* What is drawn like a Latin letter becomes one. */
static void name_latin(const char *name, char to[static NAME_TEXT])
{
	char text[NAME_TEXT];
	size_t n = 0;
	const char *at = text;

	if (!strstr(name, "xn--") || name_unicode(name, text, sizeof(text)) < 0)
		snprintf(text, sizeof(text), "%s", name);
	while (*at && n + 1 < NAME_TEXT) {
		uint32_t c = 0;
		unsigned len = char_decode(at, strlen(at), &c);
		char as = len == 1 ? *at : '?';

		for (size_t i = 0; len > 1 && i < ARRAY_SIZE(drawn_alike); i++)
			if (drawn_alike[i].c == c)
				as = drawn_alike[i].as;
		to[n++] = as;
		at += len ? len : 1;
	}
	to[n] = '\0';
}

/* What looks the same in many typefaces becomes the same. */
static void name_skeleton(const char *name, char to[static NAME_TEXT])
{
	size_t n = 0;

	for (; *name && n + 1 < NAME_TEXT; name++) {
		if (name[0] == 'r' && name[1] == 'n')
			to[n++] = 'm', name++;
		else if (name[0] == 'v' && name[1] == 'v')
			to[n++] = 'w', name++;
		else
			to[n++] = *name == '0' ? 'o' : *name == '1' || *name == 'i' ? 'l' : *name == '5' ? 's' : *name;
	}
	to[n] = '\0';
}

bool name_looks_alike(const char *host, const char *name)
{
	const char *tail;
	char latin[NAME_TEXT], a[NAME_TEXT], b[NAME_TEXT];
	const size_t len = strlen(name);
	const unsigned slips = len < 2 * NAME_SHORT ? 1 : 2;

	/* "github.com.other.example" begins with it and is another's. */
	if (!strncmp(host, name, len) && host[len] == '.' && strchr(name, '.'))
		return true;
	tail = host_tail(host, labels_count(name));
	if (!tail || !strcmp(tail, name) || len < NAME_SHORT || !strchr(name, '.'))
		return false;
	name_latin(tail, latin);
	name_skeleton(latin, a);
	name_skeleton(name, b);
	return !strcmp(a, b) || edit_distance(latin, name, slips) <= slips;
}
