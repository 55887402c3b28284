/* SPDX-License-Identifier: MIT */
#include "policy/editors.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "policy/credential.h"
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

/* -- what lists make of it ------------------------------------------------------- */

static bool patterns_equal(const struct pattern *a, const struct pattern *b)
{
	if (a->kind != b->kind || a->protocols != b->protocols || a->inspected != b->inspected ||
	    a->first_port != b->first_port || a->last_port != b->last_port || a->quiet != b->quiet)
		return false;
	if (a->kind == PATTERN_NAME)
		return !strcmp(a->name, b->name);
	return a->bits == b->bits && a->v4 == b->v4 && !memcmp(&a->addr, &b->addr, sizeof(a->addr));
}

static bool runs_equal(const struct policy *before, struct pattern_run a, const struct policy *after,
		       struct pattern_run b)
{
	if (a.n != b.n)
		return false;
	for (uint32_t i = 0; i < a.n; i++)
		if (!patterns_equal(&before->patterns[a.first + i], &after->patterns[b.first + i]))
			return false;
	return true;
}

static bool rules_equal(const struct policy *before, const struct rule *a, const struct policy *after,
			const struct rule *b)
{
	return a->mark == b->mark && runs_equal(before, (struct pattern_run){ a->pattern, a->n_patterns }, after,
						(struct pattern_run){ b->pattern, b->n_patterns });
}

static bool carrier_is_new(const struct policy *before, const struct policy *after, const struct rule *rule)
{
	for (size_t i = 0; rule->credential && i < before->n_rules; i++)
		if (before->rules[i].credential && rules_equal(before, &before->rules[i], after, rule))
			return false;
	return rule->credential != NULL;
}

/* Hosts that get what is captured for it. */
static struct pattern_run tokens_for(const struct credential *credential)
{
	return credential->capture ? credential->capture->hosts : (struct pattern_run){ 0, 0 };
}

const char *editor_lists_check(const struct policy *before, const struct policy *after)
{
	if (before->n_credentials != after->n_credentials)
		return "credentials";
	for (size_t i = 0; i < after->n_credentials; i++)
		if (!runs_equal(before, before->credentials[i].hosts, after, after->credentials[i].hosts) ||
		    !runs_equal(before, tokens_for(&before->credentials[i]), after, tokens_for(&after->credentials[i])))
			return "credentials";
	for (size_t i = 0; i < after->n_rules; i++)
		if (carrier_is_new(before, after, &after->rules[i]))
			return "credential";
	if (before->n_proxies != after->n_proxies)
		return "upstream_proxy";
	for (size_t i = 0; i < after->n_proxies; i++)
		if (!runs_equal(before, before->proxies[i].hosts, after, after->proxies[i].hosts) ||
		    !runs_equal(before, before->proxies[i].except, after, after->proxies[i].except))
			return "upstream_proxy";
	if (before->n_full != after->n_full)
		return "full";
	for (size_t i = 0; i < after->n_full; i++)
		if (!rules_equal(before, &before->full[i], after, &after->full[i]))
			return "full";
	return rules_equal(before, &before->read_only, after, &after->read_only) ? NULL : "read_only";
}
