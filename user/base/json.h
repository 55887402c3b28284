/* SPDX-License-Identifier: MIT */
/* JSON strings, for what is written without a library. */
#ifndef NP_BASE_JSON_H
#define NP_BASE_JSON_H

#include "base/buf.h"

/*
 * Appends text as a JSON string, valid UTF-8 on one line. Written as \uXXXX: control characters, what hides or reorders
 * text on a screen, and each byte that is not UTF-8 (as \u00XX). Over max bytes it is cut at a character and ends in
 * "...".
 */
void json_quote(struct buf *out, const char *text, size_t max);

#endif
