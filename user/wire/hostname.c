/* SPDX-License-Identifier: MIT */
#include "wire/hostname.h"

#include <arpa/inet.h>
#include <errno.h>
#include <idn2.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#define NAME_MAX_LEN  (NAME_SIZE - 1)
#define LABEL_MAX_LEN 63
/* A code point takes at most four bytes of UTF-8 and at least one of the name it becomes. */
#define UTF8_MAX_LEN (4 * NAME_MAX_LEN)

#define IDN_FLAGS (IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT)

enum { OTHER, WORD, UPPER, HYPHEN, DOT };
static const uint8_t classes[256] = {
	['a' ... 'z'] = WORD, ['0' ... '9'] = WORD, ['_'] = WORD, ['A' ... 'Z'] = UPPER, ['-'] = HYPHEN, ['.'] = DOT,
};

/* A name that has passed name_plain(). */
struct plain {
	size_t len;
	bool ace; /* has an xn-- label, which only libidn2 can judge */
	char text[NAME_SIZE];
};

static bool has_high_byte(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return true;
	return false;
}

static bool label_ends_well(struct plain *p, size_t start)
{
	const char *label = p->text + start;
	size_t len = p->len - start;

	if (!len || len > LABEL_MAX_LEN || label[0] == '-' || label[len - 1] == '-')
		return false;
	if (len >= 4 && memcmp(label, "xn--", 4) == 0)
		p->ace = true;
	return true;
}

/* 0; -EINVAL; -EILSEQ when there is a byte that is not ASCII, and nothing wrong in front of it. */
static int name_plain(const char *text, size_t len, struct plain *p)
{
	size_t start = 0;

	p->len = 0;
	p->ace = false;
	if (len && text[len - 1] == '.')
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (p->len == NAME_MAX_LEN)
			return -EINVAL;
		switch (classes[c]) {
		case OTHER:
			return c >= 0x80 ? -EILSEQ : -EINVAL;
		case UPPER:
			c |= 0x20;
			break;
		case DOT:
			if (!label_ends_well(p, start))
				return -EINVAL;
			start = p->len + 1;
			break;
		}
		p->text[p->len++] = (char)c;
	}
	if (!label_ends_well(p, start))
		return -EINVAL;
	p->text[p->len] = '\0';
	return 0;
}

/* Every xn-- label of ascii stands in unicode as something that ASCII could not say. */
static bool ace_labels_decode(const char *ascii, const char *unicode)
{
	for (;;) {
		size_t a = strcspn(ascii, "."), u = strcspn(unicode, ".");

		if (strncmp(ascii, "xn--", 4) == 0 && !has_high_byte(unicode, u))
			return false;
		if (ascii[a] != unicode[u])
			return false;
		if (!ascii[a])
			return true;
		ascii += a + 1;
		unicode += u + 1;
	}
}

static int idn_encode(const char *text, struct plain *p)
{
	char *ascii = NULL;
	int e = idn2_to_ascii_8z(text, &ascii, IDN_FLAGS);

	if (e != IDN2_OK)
		return e == IDN2_MALLOC ? -ENOMEM : -EINVAL;
	e = name_plain(ascii, strlen(ascii), p);
	idn2_free(ascii);
	return e < 0 ? -EINVAL : 0;
}

/* There and back: a name has one form or none. */
static int idn_verify(const struct plain *p)
{
	struct plain again;
	char *unicode = NULL;
	int e = idn2_to_unicode_8z8z(p->text, &unicode, 0);

	if (e != IDN2_OK)
		return e == IDN2_MALLOC ? -ENOMEM : -EINVAL;
	if (!ace_labels_decode(p->text, unicode))
		e = -EINVAL;
	else
		e = idn_encode(unicode, &again);
	idn2_free(unicode);
	if (e < 0)
		return e;
	return strcmp(again.text, p->text) ? -EINVAL : 0;
}

int name_unicode(const char *name, char *ret, size_t size)
{
	char *unicode = NULL;
	int e = idn2_to_unicode_8z8z(name, &unicode, 0);

	if (e != IDN2_OK)
		return e == IDN2_MALLOC ? -ENOMEM : -EINVAL;
	e = (size_t)snprintf(ret, size, "%s", unicode) < size ? 0 : -E2BIG;
	idn2_free(unicode);
	return e;
}

static int name_idn(const char *text, size_t len, struct plain *p)
{
	char copy[UTF8_MAX_LEN + 1];
	int e;

	if (len > UTF8_MAX_LEN)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x80 && classes[(unsigned char)text[i]] == OTHER)
			return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	e = idn_encode(copy, p);
	return e < 0 || !p->ace ? e : idn_verify(p);
}

static int name_any(const char *text, size_t len, struct plain *p)
{
	int e = name_plain(text, len, p);

	if (e == -EILSEQ || (e == 0 && p->ace))
		e = name_idn(text, len, p);
	return e;
}

/* Browsers and resolvers read such a name as an IPv4 address, in one of its many spellings. */
static bool last_label_is_number(const struct plain *p)
{
	const char *dot = memrchr(p->text, '.', p->len);
	const char *label = dot ? dot + 1 : p->text;

	if (label[0] < '0' || label[0] > '9')
		return false;
	if (label[0] == '0' && label[1] == 'x')
		return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
	return label[strspn(label, "0123456789")] == '\0';
}

int name_canonical(const char *text, size_t len, char ret[static NAME_SIZE])
{
	struct plain p;
	int e = name_any(text, len, &p);

	if (e < 0)
		return e;
	if (last_label_is_number(&p))
		return -EINVAL;
	memcpy(ret, p.text, p.len + 1);
	return 0;
}

int label_canonical(const char *text, size_t len, char ret[static 64])
{
	static const char *const dots[] = { ".", "\xe3\x80\x82", "\xef\xbc\x8e", "\xef\xbd\xa1" };
	struct plain p;
	int e;

	/* A trailing one would be dropped and never be seen in the result. */
	for (size_t i = 0; i < sizeof(dots) / sizeof(dots[0]); i++)
		if (memmem(text, len, dots[i], strlen(dots[i])))
			return -EINVAL;
	e = name_any(text, len, &p);
	if (e < 0)
		return e;
	if (memchr(p.text, '.', p.len))
		return -EINVAL;
	memcpy(ret, p.text, p.len + 1);
	return 0;
}

int addr_parse(const char *text, size_t len, struct np_addr *ret)
{
	struct np_addr addr = { .b = { [10] = 0xff, [11] = 0xff } };
	char copy[INET6_ADDRSTRLEN];

	if (len >= sizeof(copy) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	/* glibc's takes four decimal numbers without leading zeros, and no zone; inet_aton() would take far more. */
	if (inet_pton(AF_INET, copy, addr.b + 12) != 1 && inet_pton(AF_INET6, copy, addr.b) != 1)
		return -EINVAL;
	*ret = addr;
	return 0;
}

int host_parse(const char *text, size_t len, struct host *ret)
{
	struct host host = { .is_addr = true };
	int e;

	if (len && text[0] == '[') {
		if (len < 2 || text[len - 1] != ']' || !memchr(text, ':', len))
			return -EINVAL;
		e = addr_parse(text + 1, len - 2, &host.addr);
	} else if (!memchr(text, ':', len) && addr_parse(text, len, &host.addr) == 0) {
		e = 0;
	} else {
		host.is_addr = false;
		e = name_canonical(text, len, host.name);
	}
	if (e == 0)
		*ret = host;
	return e;
}

bool name_is_localhost(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, "localhost");
}

bool host_equal(const struct host *a, const struct host *b)
{
	if (a->is_addr != b->is_addr)
		return false;
	return a->is_addr ? !memcmp(&a->addr, &b->addr, sizeof(a->addr)) : !strcmp(a->name, b->name);
}
