/* SPDX-License-Identifier: MIT */
/* A text's SHA-256, by which somebody says which one they have seen. Pure. */
#pragma once

#include <stddef.h>

#define TEXT_HASH_SIZE 65

/* Hexadecimal digits, as sha256sum prints them. */
void text_hash(const char *text, size_t len, char ret[static TEXT_HASH_SIZE]);
