/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON, on one line. It keeps no state: the last byte of the buffer says whether a comma is due, so a function may
 * add members to an object that its caller opened. A key is NULL for an element of an array and for the outermost value.
 * Reading is jansson's; the names here are none of its names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

void json_open_object(struct buf *out, const char *key);
void json_close_object(struct buf *out);
void json_open_array(struct buf *out, const char *key);
void json_close_array(struct buf *out);
void json_put_text(struct buf *out, const char *key, const char *text, size_t max); /* json_quote(); NULL is null */
/* Any bytes, NUL among them: json_quote() without a bound, and each byte that is not UTF-8 becomes U+FFFD. */
void json_put_bytes(struct buf *out, const char *key, const char *data, size_t len);
void json_put_number(struct buf *out, const char *key, uint64_t number);
void json_put_bool(struct buf *out, const char *key, bool value);
void json_put_json(struct buf *out, const char *key, const char *value); /* it is JSON already, on one line */

/*
 * Appends text as a JSON string and nothing else, valid UTF-8 on one line. Written as \uXXXX: control characters, what
 * hides or reorders text on a screen, and each byte that is not UTF-8 (as \u00XX). Over max bytes it is cut at a
 * character and ends in "...".
 */
void json_quote(struct buf *out, const char *text, size_t max);
