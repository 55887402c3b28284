/* SPDX-License-Identifier: MIT */
/* Text in paths and query parameters. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Decodes %XX in place. -EINVAL (and unchanged) for a broken sequence, for NUL and other control characters. */
int url_decode(char *text);

/* A decimal number of at most max, without sign, space or anything around it. -EINVAL, -ERANGE. */
int url_number(const char *text, uint64_t max, uint64_t *ret);

/* "1" or "0"; NULL is false. -EINVAL. */
int url_flag(const char *text, bool *ret);
