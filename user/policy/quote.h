/* SPDX-License-Identifier: MIT */
/* Text from a policy file on its way into a message: nothing of it moves a cursor, hides, or turns around. */
#pragma once

#include <stddef.h>

/* text in double quotes; what is not printable is escaped, and what is too long ends in three dots. Returns out. */
#define QUOTE_SIZE 112
const char *text_quote(char out[static QUOTE_SIZE], const char *text, size_t len);
#define QUOTE(text, len) text_quote((char[QUOTE_SIZE]){ 0 }, text, len)

/* Copies text: what is not printable becomes a question mark, and what does not fit is cut and ends in three dots.
 * out and text may be the same. size is at least 4. */
void text_clean(char *out, size_t size, const char *text, size_t len);
