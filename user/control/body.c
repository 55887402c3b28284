/* SPDX-License-Identifier: MIT */
#include "control/body.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "control/http_status.h"
#include "vocab/limits.h"
#include "reason.h"

/* Looks at the bytes before the parser does, for what it would tolerate: it recurses thousands of levels deep.
 * Brackets inside of strings do not count. Whether the rest is JSON is the parser's business. */
static int body_scan(const char *data, size_t len, struct failure *ret_failure)
{
	unsigned depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = data[i];

		if (c == '\0')
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_JSON, "NUL at byte %zu", i);
		if (in_string) {
			if (c == '\\' && i + 1 < len && data[i + 1] != '\0')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > NP_JSON_DEPTH)
				return failure_put(ret_failure, -EINVAL, NP_R_BAD_JSON,
						   "nested deeper than %d at byte %zu", NP_JSON_DEPTH, i);
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return 0;
}

static const char *type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

static const struct body_field *field_find(const struct body_field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static int fields_check(json_t *root, const struct body_field *fields, size_t n, struct failure *ret_failure)
{
	for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at)) {
		const char *name = json_object_iter_key(at);
		const json_t *value = json_object_iter_value(at);
		const struct body_field *field = field_find(fields, n, name);

		if (!field)
			return failure_put(ret_failure, -EINVAL, NP_R_UNKNOWN_FIELD, "\"%.64s\"", name);
		if (field->ret_number && (!json_is_integer(value) || json_integer_value(value) < 0))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
					   "\"%s\" must be a whole number that is not negative", name);
		if (field->ret_flag && !json_is_boolean(value))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be true or false, not %s",
					   name, type_name(value));
		if (field->is_array && !json_is_array(value))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be an array, not %s",
					   name, type_name(value));
		if (field->is_nested && !json_is_array(value) && !json_is_object(value))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
					   "\"%s\" must be an array or an object, not %s", name, type_name(value));
		if (field->ret_text && !json_is_string(value))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be a string, not %s",
					   name, type_name(value));
	}
	for (size_t i = 0; i < n; i++)
		if (fields[i].required && !json_object_get(root, fields[i].name))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" is missing", fields[i].name);
	return 0;
}

int body_read(const char *data, size_t len, const struct body_field *fields, size_t n, json_t **ret_root,
	      struct failure *ret_failure)
{
	_json_ json_t *root = NULL;
	json_error_t error;
	int r;

	if (len == 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_JSON, "the body is empty; a JSON object is expected");
	r = body_scan(data, len, ret_failure);
	if (r < 0)
		return r;
	root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_JSON, "%s (line %d, column %d)", error.text,
				   error.line, error.column);
	if (!json_is_object(root))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_JSON, "the body is %s; a JSON object is expected",
				   type_name(root));
	r = fields_check(root, fields, n, ret_failure);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(root, fields[i].name);

		if (fields[i].ret_number)
			*fields[i].ret_number = (uint64_t)json_integer_value(value);
		else if (fields[i].ret_text)
			*fields[i].ret_text = json_string_value(value);
		else if (fields[i].ret_flag)
			*fields[i].ret_flag = json_is_true(value);
	}
	*ret_root = take_ptr(root);
	return 0;
}
