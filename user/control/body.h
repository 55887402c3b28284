/* SPDX-License-Identifier: MIT */
/*
 * The strict reading of a request's body: one JSON object with the fields that the
 * call knows, and nothing else. Pure: bytes in, texts out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "session/service.h"

/* A field is a text, a whole number, true or false, an array, or nested: one of the five is set. */
struct body_field {
	const char *name;
	bool required;
	bool is_nested;	       /* an array or an object, to be looked up in *ret_root */
	bool is_array;	       /* likewise, but no object */
	const char **ret_text; /* set to NULL when the field is absent; lives as long as *ret_root */
	uint64_t *ret_number;  /* set to 0 when the field is absent */
	bool *ret_flag;	       /* set to false when the field is absent */
};

/* Returns 0, or -EINVAL and a failure that names the field or the place. json_decref(*ret_root) when done.
 * Refused: anything but an object, a field twice, an unknown field, a field of the wrong type, bytes after the
 * object, NUL anywhere, text that is not UTF-8, nesting deeper than NP_JSON_DEPTH. */
int body_read(const char *data, size_t len, const struct body_field *fields, size_t n, json_t **ret_root,
	      struct failure *ret_failure);

static inline void cleanup_json(json_t **json)
{
	json_decref(*json);
}
#define _json_ cleanup(cleanup_json)
