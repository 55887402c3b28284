/* SPDX-License-Identifier: MIT */
/*
 * The forms in which a secret is searched for: as it is, in base64 (both alphabets, wherever in a longer text it begins) and in
 * hexadecimal digits. What escapes single bytes of these, percent-encoding and JSON's backslashes, is taken away before the
 * search: see unescape.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

enum form {
	FORM_PLAIN,
	FORM_BASE64,
	FORM_BASE64URL,
	FORM_HEX,
	FORM_HEX_UPPER,
};

/* One text to search for. */
struct needle {
	char *text;
	uint32_t len;
	uint32_t secret;    /* whose it is: the caller's number */
	uint32_t value_len; /* of the secret itself */
	uint8_t form;	    /* enum form */
	uint8_t bytes_ahead; /* base64: how many bytes of the first group of three belong to what stands in front of it */
};

#define FORMS_MAX 9

/* Fills needles with the forms of a value, and returns how many there are: none of one that is shorter than
 * NP_SECRET_MIN. -ENOMEM, or -E2BIG: longer than NP_SECRET_MAX. Each needle is to be freed. */
int forms_make(const char *value, size_t len, uint32_t secret, struct needle needles[FORMS_MAX]);
void needle_free(struct needle *needle); /* wipes it */

/*
 * The text that stands for a needle when its secret has become the placeholder. first and last are the characters beside the needle
 * that hold bits of the secret as well, as base64 has it: where needle_shares_*() says so they are replaced by the two that come
 * first and last in what is appended; elsewhere they are not looked at. Where the placeholder is as long as the value, the
 * text is as long as the needle, and what stands around it keeps its meaning.
 */
void needle_replace(const struct needle *needle, const char *placeholder, size_t len, char first, char last,
		    struct buf *out);
int needle_shares_first(const struct needle *needle);
int needle_shares_last(const struct needle *needle);
/* Six bits, or -1; both alphabets. */
int base64_digit(char c);
