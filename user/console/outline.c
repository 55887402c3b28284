/* SPDX-License-Identifier: MIT */
#include "console/outline.h"

#include "base/arena.h"
#include "policy/yaml.h"
#include "vocab/limits.h"

/* Trees are no deeper than yaml.c lets them be. */
static json_t *node_object(const struct node *node, size_t *left)
{
	json_t *object, *array;

	if (!*left)
		return NULL;
	--*left;
	object = json_pack("{s:i,s:i}", "line", (int)node->line, "column", (int)node->column);
	if (node->kind == NODE_SCALAR) {
		json_object_set_new(object, "text", json_stringn(node->text, node->len));
		return object;
	}
	array = json_array();
	json_object_set_new(object, node->kind == NODE_MAP ? "map" : "list", array);
	for (const struct node *below = node->first; below; below = below->next) {
		json_t *one = node_object(below, left);

		if (!one || json_array_append_new(array, one) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *outline_make(const char *text, size_t len)
{
	_problems_ struct problems problems = { 0 };
	_arena_ struct arena *arena = NULL;
	const struct node *root = NULL;
	size_t nodes = 0, left = NP_CONSOLE_OUTLINE;

	if (arena_new(NP_POLICY_MEMORY, &arena) < 0 ||
	    yaml_read(arena, text, len, "", 0, &nodes, &problems, &root) < 0 || problems.errors || !root)
		return NULL;
	return node_object(root, &left);
}
