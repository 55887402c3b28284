/* SPDX-License-Identifier: MIT */
/*
 * A text with secrets in many forms, made of what the fuzzer says. However it is cut, the same comes out; and in that neither the text
 * itself nor what it reads as, undone byte by byte by a second and slow reader, has a secret in any form.
 */
#include "secrets/scrub.c"

#include "secrets/forms.c"
#include "secrets/unescape.c"

#include <stdint.h>
#include <stdio.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Letters of secrets; none is in a placeholder or in one's base64 or digits. The last three begin escapes, and are not among the last
 * letters: a value that ends in the beginning of an escape reads otherwise before certain others. */
static const char letters[] = "acdegh/+Z~vw\xe9%\\&";
#define SECRETS 2

struct secret {
	char value[40], placeholder[40];
	size_t len;
};

static char base64_char(const char *value, size_t len, size_t i, bool url)
{
	unsigned bits = 0;

	for (unsigned k = 0; k < 6; k++) {
		size_t bit = 6 * i + k;

		bits = bits << 1 | (bit / 8 < len ? (unsigned char)value[bit / 8] >> (7 - bit % 8) & 1u : 0);
	}
	return (url ? url_safe : standard)[bits];
}

/* A value, in a form and with escapes as the fuzzer says. */
static void put_secret(struct buf *out, const struct secret *secret, uint8_t form, uint8_t escape)
{
	_buf_ struct buf text = BUF_INIT(4096);

	if (form % 4 == 0) {
		buf_append(&text, secret->value, secret->len);
	} else if (form % 4 == 3) {
		for (size_t i = 0; i < secret->len; i++)
			buf_printf(&text, form & 4 ? "%02X" : "%02x", (unsigned char)secret->value[i]);
	} else {
		_buf_ struct buf longer = BUF_INIT(4096);

		buf_append(&longer, "xyz", form / 4 % 4);
		buf_append(&longer, secret->value, secret->len);
		buf_append(&longer, "xyz", form / 16 % 4);
		for (size_t i = 0; 6 * i < 8 * longer.len; i++) {
			char c = base64_char(longer.data, longer.len, i, form % 4 == 2);

			if (escape == 9 && i % 5 == 2)
				buf_append(&text, "\r\n", 2);
			buf_append(&text, &c, 1);
		}
	}
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		bool hit = (escape >> (i % 5)) & 1;

		if (escape == 9 || !hit)
			buf_append(out, &c, 1);
		else if (escape / 32 % 4 == 0)
			buf_printf(out, escape & 128 ? "%%%02X" : "%%%02x", c);
		else if (escape / 32 % 4 == 1 && c < 0x80)
			buf_printf(out, "\\u%04x", c);
		else if (escape / 32 % 4 == 2 && c < 0x80)
			buf_printf(out, escape & 128 ? "&#x%x;" : "&#%u;", c);
		else if (c == '/')
			buf_puts(out, "\\/");
		else
			buf_append(out, &c, 1);
	}
}

/* Text of others, which may begin an escape right in front of a value: then several readings of a text have values that overlap, and which
 * of them is replaced first may depend on the cuts. True: it did. */
static bool put_other(struct buf *out, const uint8_t *data, size_t n)
{
	bool any = false;

	static const char *const begins[] = { "%", "\\u", "\\u0", "\\u00", "\\", "&#", "%4", "\\x" };

	for (size_t i = 0; i < n; i++)
		if (data[i] < 64 || strchr("%\\&", data[i])) {
			buf_puts(out, begins[data[i] % 8]);
			any = true;
		} else {
			buf_append(out, (const char *)&data[i], 1);
		}
	return any;
}

/* Undone without regard to speed, one level only; what it does not know stays. */
static void slow_plain(const char *text, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len;) {
		char head[16] = { 0 };
		unsigned c, n = 0;

		memcpy(head, text + i, len - i < 15 ? len - i : 15);
		if (head[0] == '\r' || head[0] == '\n') {
			i++;
			continue;
		}
		if (sscanf(head, "%%%1x%1x", &c, &c) == 2 && head[1] != '+' && head[1] != '-' && head[2] != '+' && head[2] != '-' &&
		    strspn(head + 1, "0123456789abcdefABCDEF") >= 2) {
			char digits[3] = { head[1], head[2] };

			c = (unsigned)strtoul(digits, NULL, 16);
			n = 3;
		} else if (memcmp(head, "\\u00", 4) == 0 && strspn(head + 4, "0123456789abcdefABCDEF") >= 2) {
			char digits[3] = { head[4], head[5] };

			c = (unsigned)strtoul(digits, NULL, 16);
			n = c < 0x80 ? 6 : 0;
		} else if (memcmp(head, "\\/", 2) == 0) {
			c = '/';
			n = 2;
		} else if (memcmp(head, "\\\\", 2) == 0) {
			c = '\\';
			n = 2;
		}
		if (n && c != '\r' && c != '\n') {
			char byte = (char)c;

			buf_append(out, &byte, 1);
		} else if (!n) {
			buf_append(out, &text[i], 1);
			n = 1;
		}
		i += n;
	}
}

static void check_clean(const struct needle *needles, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		check(!memmem(text, len, needles[i].text, needles[i].len));
}

static bool the_word(void *ctx, uint32_t secret, struct scrub_word *ret)
{
	const struct secret *secrets = ctx;

	*ret = (struct scrub_word){ secrets[secret].placeholder, secrets[secret].len };
	return true;
}

static void run(struct scrubber *s, const struct scrub_words *words, const struct buf *text, const uint8_t *cuts, size_t n,
		struct buf *out)
{
	_buf_ struct buf has = BUF_INIT(1u << 20);
	size_t at = 0, turn = 0;
	bool end;

	do {
		size_t each = n ? 1 + cuts[turn++ % n] : text->len, used = 0;
		_buf_ struct buf made = BUF_INIT(1u << 20);
		int hits;

		each = text->len - at < each ? text->len - at : each;
		buf_append(&has, text->data + at, each);
		at += each;
		end = at == text->len;
		hits = scrub(s, words, has.data, has.len, end, &made, &used);
		check(hits >= 0 && used <= has.len && (!end || used == has.len));
		if (hits)
			buf_append(out, made.data, made.len);
		else
			buf_append(out, has.data, used);
		buf_drop(&has, used);
	} while (!end);
	check(!buf_error(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct secret secrets[SECRETS] = { 0 };
	const struct scrub_words words = { the_word, secrets };
	struct needle needles[SECRETS * FORMS_MAX], given[SECRETS * FORMS_MAX];
	struct scrubber scrubber = { 0 };
	struct search *search;
	_buf_ struct buf text = BUF_INIT(1u << 20);
	_buf_ struct buf whole = BUF_INIT(1u << 20);
	_buf_ struct buf cut = BUF_INIT(1u << 20);
	_buf_ struct buf plain = BUF_INIT(1u << 20);
	size_t n = 0, at = 0, differ = 0;
	bool overlaps = false;

	if (size < 41 * SECRETS)
		return 0;
	for (unsigned k = 0; k < SECRETS; k++) {
		struct secret *secret = &secrets[k];
		int made;

		secret->len = 8 + data[at++] % 32;
		for (size_t i = 0; i < secret->len; i++) {
			secret->value[i] = letters[data[at + i] % (sizeof(letters) - 1 - (i + 12 > secret->len ? 3 : 0))];
			secret->placeholder[i] = 'P';
		}
		at += secret->len;
		made = forms_make(secret->value, secret->len, k, needles + n);
		check(made >= 3);
		check(forms_make(secret->value, secret->len, k, given + n) == made);
		n += (size_t)made;
	}
	/* One that is in the other: which of the two is replaced first may depend on the cuts, too. */
	overlaps = memmem(secrets[0].value, secrets[0].len, secrets[1].value, secrets[1].len) ||
		   memmem(secrets[1].value, secrets[1].len, secrets[0].value, secrets[0].len);
	check(search_new(given, n, &search) == 0);
	scrubber.search = search;
	for (size_t i = at; i + 3 < size; i += 3) {
		if (data[i] < 64)
			put_secret(&text, &secrets[data[i] % SECRETS], data[i + 1], data[i + 2]);
		else if (data[i] < 128)
			buf_append(&text, secrets[data[i] % SECRETS].value, data[i + 1] % secrets[data[i] % SECRETS].len);
		else
			overlaps |= put_other(&text, data + i, 3);
	}
	if (buf_error(&text) || !text.len)
		goto out;
	run(&scrubber, &words, &text, NULL, 0, &whole);
	run(&scrubber, &words, &text, data, size < 64 ? size : 64, &cut);
	/* The digit in front of base64 may have gone when it is known for what it is; nothing else depends on the cuts. */
	check(overlaps || whole.len == cut.len);
	for (size_t i = 0; !overlaps && i < whole.len; i++)
		if (whole.data[i] != cut.data[i]) {
			check(base64_digit(whole.data[i]) >= 0 || hex_digit(whole.data[i]) >= 0);
			differ++;
		}
	check(differ <= 8 * (text.len / NP_SECRET_MIN));
	check_clean(needles, n, whole.data, whole.len);
	check_clean(needles, n, cut.data, cut.len);
	slow_plain(cut.data, cut.len, &plain);
	check_clean(needles, n, plain.data, plain.len);
out:
	scrubber_free(&scrubber);
	search_free(search);
	for (size_t i = 0; i < n; i++)
		needle_free(&needles[i]);
	return 0;
}
