/* SPDX-License-Identifier: MIT */
/* Characters of text that a stranger may have written, on its way to a person. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a hexadecimal digit; -1: it is none. */
static inline int hex_digit(char c)
{
	const char lower = (char)(c | 0x20);

	return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Which of n words it is: an index, or -EINVAL. A word of the table may be NULL, and so may word. */
int word_index(const char *const *words, size_t n, const char *word);
/* Is it one of them? words: an array. */
#define WORD_IS_ONE_OF(word, words) (word_index(words, sizeof(words) / sizeof((words)[0]), word) >= 0)
/* The same as a value of the enum that ret points to: 0, or -EINVAL. */
#define WORD_PARSE(words, word, ret)                                                      \
	({                                                                                \
		int index_ = word_index(words, sizeof(words) / sizeof((words)[0]), word); \
		if (index_ >= 0)                                                          \
			*(ret) = (typeof(*(ret)))index_;                                  \
		index_ < 0 ? index_ : 0;                                                  \
	})

/* Decimal digits and nothing else. -EINVAL, or -ERANGE when it is more than max. */
int number_parse(const char *text, size_t len, uint64_t max, uint64_t *ret);

/* The length of the UTF-8 character at text (1 to 4); 0 when there is none: len is 0, a stray byte, an overlong form,
 * a surrogate, above U+10FFFF. */
unsigned char_decode(const char *text, size_t len, uint32_t *ret_char);
/* False for controls, for what ends a line, has no width or turns text around. */
bool char_is_printable(uint32_t c);

/* Copies text: what is not a letter, a digit or a sign of ASCII becomes a question mark, and what does not fit is cut and ends
 * in three dots. size is at least 4. */
void text_ascii(char *out, size_t size, const char *text);
bool text_is_ascii(const char *text, size_t size); /* such a copy: it ends within size */
/* Copies UTF-8: what char_is_printable() does not let pass, and each byte that is no UTF-8, becomes a question mark; what does not
 * fit is cut between characters and ends in three dots. size is at least 8. */
void text_printable(char *out, size_t size, const char *text);
bool text_is_printable(const char *text, size_t size); /* such a copy: it ends within size */
