/* SPDX-License-Identifier: MIT */
/* Sources of values that answer at once: files and variables. */
#pragma once

#include <stddef.h>

#include "policy/credential.h"

#define SOURCE_ROOM (NP_SECRET_MAX + 2) /* a value, the end of its line, and a byte that shows that it is longer */

/* Reads a value; not of SOURCE_COMMAND. NULL, or what is wrong in words, which hold nothing of the value. Whoever lent ret wipes
 * it. */
const char *source_read(const struct credential_source *source, char ret[static SOURCE_ROOM], size_t *ret_len);

/* What a source gave, without the end of its line. NULL, or why it is no value: one that could not stand in a header would be a
 * second header. */
const char *value_problem(const char *text, size_t *len);
