/* SPDX-License-Identifier: MIT */
/* rules: and full: */
#include "policy/read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "policy/quote.h"
#include "vocab/limits.h"

#define RULE_TEXT_MAX 120 /* bytes of rule->text: one line of a terminal, with room for its place */

static const enum action rule_actions[] = {
	[RULE_ALLOW] = ACTION_ALLOW,
	[RULE_DENY] = ACTION_DENY,
	[RULE_ASK] = ACTION_ASK,
	[RULE_DECIDE] = ACTION_DECIDE,
};

static bool node_is_before(const struct node *a, const struct node *b)
{
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* Of the keys that are actions, the one that comes first; NULL when there is none. The others are told of. */
static const struct node *action_find(struct reader *reader, const struct node *const *fields, enum action *ret)
{
	const struct node *found = NULL;

	for (unsigned i = RULE_ALLOW; i <= RULE_DECIDE; i++) {
		if (!fields[i] || (found && node_is_before(found, fields[i])))
			continue;
		found = fields[i];
		*ret = rule_actions[i];
	}
	for (unsigned i = RULE_ALLOW; i <= RULE_DECIDE; i++)
		if (fields[i] && fields[i] != found)
			error_at(reader, fields[i], "a rule has one action, and this one is \"%s\"", found->text);
	return found;
}

/* "allow: a.example (and 3 more)", with quotes as they were written. Around a list's name they are left out: YAML
 * wants them there, not the reader. */
static const char *text_make(struct reader *reader, const struct node *key)
{
	const struct node *value = key->next, *entry = value->kind == NODE_LIST ? value->first : value;
	bool scalar = entry && entry->kind == NODE_SCALAR;
	char quote[2] = { scalar && entry->text[0] != '@' ? entry->quote : '\0' };
	char more[32] = "", text[RULE_TEXT_MAX + sizeof(more)], one[RULE_TEXT_MAX - 16];

	if (value->kind == NODE_LIST && value->len > 1)
		snprintf(more, sizeof(more), " (and %u more)", value->len - 1);
	text_clean(one, sizeof(one), scalar ? entry->text : "?", scalar ? entry->len : 1);
	snprintf(text, sizeof(text), "%s: %s%s%s%s", key->text, quote, one, quote, more);
	return arena_text(reader->policy->arena, text, strlen(text));
}

static void check_http(struct reader *reader, const struct node *const *fields, const struct node *not_http)
{
	for (unsigned i = RULE_METHODS; not_http && i <= RULE_CREDENTIAL; i++) {
		if (!fields[i])
			continue;
		error_at(reader, fields[i], "\"%s\" needs HTTP, and %s is not on a port of inspect_ports",
			 fields[i]->text, QUOTE(not_http->text, not_http->len));
		return;
	}
}

static int read_rule(struct reader *reader, const struct node *map, struct rule *rule)
{
	const struct node *fields[RULE_KEYS], *key, *not_http = NULL;
	bool complete = map_fields(reader, map, &keys_rule, fields);
	int e;

	key = action_find(reader, fields, &rule->action);
	if (!key) {
		if (complete)
			error_at(reader, map, "a rule needs one of allow, deny, ask and decide");
		return 0;
	}
	e = read_conditions(reader, fields, complete, rule);
	if (e == 0)
		e = read_destinations(reader, key, rule->action == ACTION_DENY ? PATTERN_REFUSE : PATTERN_GRANT, rule,
				      &not_http);
	if (e < 0)
		return e;
	check_http(reader, fields, not_http);
	rule->text = text_make(reader, key);
	return rule->text ? 0 : -ENOMEM;
}

/* In FULL the gate alone decides, and it sees addresses and ports. */
static void check_full_keys(struct reader *reader, const struct node *const *fields)
{
	for (unsigned i = RULE_ASK; i < RULE_KEYS; i++) {
		if (!fields[i])
			continue;
		if (i <= RULE_DECIDE)
			error_at(reader, fields[i], "\"%s\" cannot be in \"full\"; there are allow and deny",
				 fields[i]->text);
		else if (i == RULE_FOR)
			error_at(reader, fields[i], "\"for\" cannot be in \"full\": it holds for every level in FULL");
		else if (i == RULE_SESSIONS)
			error_at(reader, fields[i],
				 "\"sessions\" cannot be in \"full\": the kernel decides there, and knows no sessions");
		else if (i == RULE_QUIET)
			error_at(reader, fields[i], "\"quiet\" cannot be in \"full\"; a list of its own can be quiet");
		else
			error_at(reader, fields[i], "\"%s\" cannot be in \"full\": nothing looks at %s there",
				 fields[i]->text, i == RULE_DNS ? "names" : "requests");
	}
}

static int read_full_rule(struct reader *reader, const struct node *map, struct rule *rule)
{
	const struct node *fields[RULE_KEYS], *key, *not_http;
	bool complete = map_fields(reader, map, &keys_rule, fields);
	int e;

	check_full_keys(reader, fields);
	key = action_find(reader, fields, &rule->action);
	if (!key) {
		if (complete)
			error_at(reader, map, "a rule of \"full\" needs allow or deny");
		return 0;
	}
	if (rule->action != ACTION_ALLOW && rule->action != ACTION_DENY)
		return 0;
	e = read_destinations(reader, key, PATTERN_FULL, rule, &not_http);
	if (e < 0)
		return e;
	rule->text = text_make(reader, key);
	return rule->text ? 0 : -ENOMEM;
}

/* Not a rule of its own: it opens nothing that rules do not. */
int read_read_only(struct reader *reader)
{
	struct rule *rule = &reader->policy->read_only;
	const struct node *key = reader->read_only, *not_http;
	int e;

	*rule = (struct rule){ .action = ACTION_ALLOW, .levels = (1u << LEVEL_COUNT) - 1, .max_body = UINT64_MAX };
	if (!key)
		return 0;
	rule->at = node_place(key);
	e = read_destinations(reader, key, PATTERN_READ, rule, &not_http);
	if (e < 0)
		return e;
	rule->text = text_make(reader, key);
	return rule->text ? 0 : -ENOMEM;
}

/* Of a tree: what it says, without its place. */
static uint64_t node_mark(const struct node *node, uint64_t before)
{
	uint64_t mark[3] = { before, node->kind, node->len };

	if (node->kind == NODE_SCALAR)
		return hash_mark(mark, sizeof(mark)) ^ hash_mark(node->text, node->len);
	before = hash_mark(mark, sizeof(mark));
	for (const struct node *child = node->first; child; child = child->next)
		before = node_mark(child, before);
	return before;
}

typedef int (*rule_read)(struct reader *reader, const struct node *map, struct rule *rule);

static int read_section(struct reader *reader, const struct node *key, rule_read read, struct rule **rules, size_t *max,
			size_t *n)
{
	const struct node *map = key->next->first;
	int e = 0;

	if (key->next->kind != NODE_LIST) {
		error_at(reader, key->next, "\"%s\" takes a list of rules", key->text);
		return 0;
	}
	for (; map && e == 0; map = map->next) {
		struct rule rule = {
			.number = (uint32_t)*n,
			.levels = (1u << LEVEL_COUNT) - 1,
			.inspect = true,
			.max_body = UINT64_MAX,
			.at = node_place(map),
			.mark = node_mark(map, RULE_MARK_DEFAULT),
		};

		if (map->kind != NODE_MAP) {
			error_at(reader, map, "a rule is a mapping, as in \"- allow: example.com\"");
			continue;
		}
		if (reader->n_rules + reader->n_full == NP_POLICY_RULES) {
			error_at(reader, map, "more than %u rules", NP_POLICY_RULES);
			break;
		}
		e = array_reserve((void **)rules, max, *n + 1, sizeof(rule));
		if (e == 0)
			e = read(reader, map, &rule);
		if (e == 0)
			(*rules)[(*n)++] = rule;
	}
	return e;
}

int read_rules(struct reader *reader, const struct file *file)
{
	const struct node *key = file->sections[SECTION_RULES];

	return key ? read_section(reader, key, read_rule, &reader->rules, &reader->max_rules, &reader->n_rules) : 0;
}

int read_full(struct reader *reader, const struct file *file)
{
	const struct node *key = file->sections[SECTION_FULL];

	return key ? read_section(reader, key, read_full_rule, &reader->full, &reader->max_full, &reader->n_full) : 0;
}
