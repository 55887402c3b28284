/* SPDX-License-Identifier: MIT */
/* Where the values of a policy file stand, as the reader of policies sees them: so the form of the page changes these, and no other byte. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Each is {line, column} and of a scalar {text}, of a list {list: [...]}, of a mapping {map: [key, value, key, value, ...]}. Columns count
 * characters, from 1. NULL: it is no YAML, says nothing, has more than NP_CONSOLE_OUTLINE values, or there is no memory. */
json_t *outline_make(const char *text, size_t len);
