/* SPDX-License-Identifier: MIT */
#include "policy/editors.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/keys.h"
#include "policy/yaml.h"
#include "vocab/limits.h"

static bool nodes_equal(const struct node *a, const struct node *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind || a->len != b->len)
		return false;
	if (a->kind == NODE_SCALAR) /* "" is something else than nothing */
		return !memcmp(a->text, b->text, a->len) && node_is_null(a) == node_is_null(b);
	for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
		if (!nodes_equal(a, b))
			return false;
	return !a && !b;
}

/* The value of a key; NULL: it is not there, or map is none. */
static const struct node *map_find(const struct node *map, const char *key)
{
	const struct node *node = map && map->kind == NODE_MAP ? map->first : NULL;

	for (; node; node = node->next->next)
		if (node->kind == NODE_SCALAR && !strcmp(node->text, key))
			return node->next;
	return NULL;
}

/* A rule that names a credential sends it somewhere: one that was there may stay or go, and none comes. */
static bool rules_send_more(const struct node *before, const struct node *after)
{
	const struct node *rule = after && after->kind == NODE_LIST ? after->first : NULL, *old;

	for (; rule; rule = rule->next) {
		if (!map_find(rule, keys_rule.keys[RULE_CREDENTIAL].name))
			continue;
		for (old = before && before->kind == NODE_LIST ? before->first : NULL; old; old = old->next)
			if (nodes_equal(old, rule))
				break;
		if (!old)
			return true;
	}
	return false;
}

/* Of a mapping whose keys from first to last are the editors', what another key changed. */
static const char *others_changed(const struct node *before, const struct node *after, const struct key_set *set,
				  const bool *theirs)
{
	if ((before && before->kind != NODE_MAP) || (after && after->kind != NODE_MAP))
		return nodes_equal(before, after) ? NULL : set->where;
	for (size_t i = 0; i < set->count; i++)
		if (!theirs[i] && !nodes_equal(map_find(before, set->keys[i].name), map_find(after, set->keys[i].name)))
			return set->keys[i].name;
	return NULL;
}

static const char *section_changed(const struct node *before, const struct node *after)
{
	static const bool sections[SECTION_COUNT] = {
		[SECTION_LISTS] = true,	 [SECTION_RULES] = true,    [SECTION_DEFAULT] = true,
		[SECTION_GRANTS] = true, [SECTION_APPROVAL] = true, [SECTION_SANDBOX] = true
	};
	static const bool approval[APPROVAL_KEYS] = {
		[APPROVAL_TIMEOUT] = true, [APPROVAL_HOLD] = true, [APPROVAL_REMEMBER] = true
	};
	bool sandbox[SANDBOX_KEYS] = { [SANDBOX_IDLE] = true };
	const char *changed = others_changed(before, after, &keys_file, sections);

	for (size_t i = 0; i < RUN_N_LIMITS; i++)
		sandbox[SANDBOX_LIMITS + i] = true;
	if (!changed)
		changed = others_changed(map_find(before, "approval"), map_find(after, "approval"), &keys_approval,
					 approval);
	if (!changed)
		changed =
			others_changed(map_find(before, "sandbox"), map_find(after, "sandbox"), &keys_sandbox, sandbox);
	if (!changed && rules_send_more(map_find(before, "rules"), map_find(after, "rules")))
		changed = "credential";
	return changed;
}

int editor_change_check(const char *before, size_t before_len, const char *after, size_t after_len,
			const char **ret_key)
{
	_problems_ struct problems problems = { 0 };
	const struct node *old = NULL, *new = NULL;
	_arena_ struct arena *arena = NULL;
	size_t nodes = 0;
	int r = arena_new(NP_POLICY_MEMORY, &arena);

	if (r == 0)
		r = yaml_read(arena, before, before_len, "", 0, &nodes, &problems, &old);
	nodes = 0;
	if (r == 0)
		r = yaml_read(arena, after, after_len, "", 0, &nodes, &problems, &new);
	if (r == 0 && problems.errors)
		r = -EINVAL;
	if (r < 0)
		return r;
	*ret_key = section_changed(old, new);
	return *ret_key ? -EACCES : 0;
}
