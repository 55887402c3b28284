/* SPDX-License-Identifier: MIT */
/* The members of an event as receivers get them. */
#pragma once

#include <jansson.h>
#include <string.h>

#include "vocab/limits.h"

/* Headers and bodies that rules have captured stay in the record; what is no single value has no place elsewhere. */
static inline bool member_is_sent(const char *name, const json_t *value)
{
	return (json_is_string(value) || json_is_integer(value) || json_is_boolean(value)) &&
	       strncmp(name, "request_", 8) != 0 && strncmp(name, "response_", 9) != 0;
}

/* How much of a text is passed on: cut between two characters. */
static inline size_t member_text_length(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (len <= NP_EXPORT_STRING)
		return len;
	for (len = NP_EXPORT_STRING; len && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}
