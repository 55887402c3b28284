/* SPDX-License-Identifier: MIT */
#include "hook/config.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

static int config_bad(const char **ret_problem, const char *problem)
{
	*ret_problem = problem;
	return -EINVAL;
}

/* Numbers may be larger than a json_int_t (a limit that is none): they are not looked at, and not written anew. */
static json_t *config_load(const char *data, size_t len)
{
	return json_loadb(data, len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
}

int oci_config_read(const char *data, size_t len, struct annotations *ret, const char **ret_problem)
{
	cleanup(cleanup_json) json_t *root = config_load(data, len);

	if (!json_is_object(root))
		return config_bad(ret_problem, "it is no JSON object");
	if (!json_is_array(json_object_get(root, "mounts")) ||
	    !json_is_array(json_object_get(json_object_get(root, "process"), "env")))
		return config_bad(ret_problem, "it has no \"mounts\" or \"env\": --config is for the stage precreate");
	return annotations_read(json_object_get(root, "annotations"), ret, ret_problem);
}

/* -- places in a text that has been read already, so that all that begins ends --------------------------- */

static const char *space_skip(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
		at++;
	return at;
}

static const char *text_skip(const char *at)
{
	for (at++; *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at + 1;
}

static const char *value_skip(const char *at)
{
	size_t depth = 0;

	do {
		if (*at == '"') {
			at = text_skip(at);
			continue;
		}
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
	} while (depth || !strchr(",]} \t\r\n", *at));
	return at;
}

/* The value of a member of the object at this place; NULL: it has none whose name is written like that. */
static const char *member_find(const char *at, const char *name)
{
	size_t len = strlen(name);

	for (at = space_skip(at + 1); *at == '"';) {
		const char *key = at + 1, *value = space_skip(space_skip(text_skip(at)) + 1);

		if (!strncmp(key, name, len) && key[len] == '"')
			return value;
		at = space_skip(value_skip(value));
		if (*at == ',')
			at = space_skip(at + 1);
	}
	return NULL;
}

/* -- what is added ---------------------------------------------------------------------------------------- */

/* Is it there under the same name? A mount is known by where it is, a variable by what stands before the sign. */
static bool item_is_there(const json_t *items, const json_t *item)
{
	const char *text = json_string_value(item), *place = json_string_value(json_object_get(item, "destination"));
	const json_t *other;
	size_t i;

	json_array_foreach(items, i, other)
	{
		const char *words = json_string_value(other),
			   *there = json_string_value(json_object_get(other, "destination"));

		if (text && words && !strncmp(text, words, strcspn(text, "=") + 1))
			return true;
		if (place && there && !strcmp(place, there))
			return true;
	}
	return false;
}

static int items_print(const json_t *theirs, const json_t *ours, struct buf *out)
{
	bool any = json_array_size(theirs) > 0;
	const json_t *item;
	size_t i;

	json_array_foreach(ours, i, item)
	{
		_free_ char *text = NULL;

		if (item_is_there(theirs, item))
			continue;
		text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!text)
			return -ENOMEM;
		buf_puts(out, any ? "," : "");
		buf_puts(out, text);
		any = true;
	}
	return 0;
}

struct addition {
	const char *at; /* the bracket that ends the array */
	const json_t *theirs, *ours;
};

int oci_config_add(const char *data, size_t len, const json_t *mounts, const json_t *variables, struct buf *out,
		   const char **ret_problem)
{
	cleanup(cleanup_json) json_t *root = config_load(data, len);
	const char *object = json_is_object(root) ? space_skip(data) : NULL,
		   *process = object ? member_find(object, "process") : NULL;
	const char *places[2] = { object ? member_find(object, "mounts") : NULL,
				  process && *process == '{' ? member_find(process, "env") : NULL };
	struct addition additions[2] = {
		{ .theirs = json_object_get(root, "mounts"), .ours = mounts },
		{ .theirs = json_object_get(json_object_get(root, "process"), "env"), .ours = variables },
	};
	const char *from = data;
	int r;

	for (size_t i = 0; i < 2; i++) {
		if (!places[i] || *places[i] != '[')
			return config_bad(ret_problem, "it has no \"mounts\" or \"env\" where they are looked for");
		additions[i].at = value_skip(places[i]) - 1;
	}
	if (additions[1].at < additions[0].at) {
		const struct addition later = additions[0];

		additions[0] = additions[1];
		additions[1] = later;
	}
	for (size_t i = 0; i < 2; i++) {
		buf_append(out, from, (size_t)(additions[i].at - from));
		from = additions[i].at;
		r = items_print(additions[i].theirs, additions[i].ours, out);
		if (r < 0)
			return r;
	}
	buf_append(out, from, (size_t)(data + len - from));
	return buf_error(out);
}
