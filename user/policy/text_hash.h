/* SPDX-License-Identifier: MIT */
/* A text's SHA-256, by which somebody says which one they have seen. Pure. */
#ifndef NP_POLICY_TEXT_HASH_H
#define NP_POLICY_TEXT_HASH_H

#include <stddef.h>

#define TEXT_HASH_SIZE 65

/* Hexadecimal digits, as sha256sum prints them. */
void text_hash(const char *text, size_t len, char ret[static TEXT_HASH_SIZE]);

#endif
