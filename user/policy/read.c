/* SPDX-License-Identifier: MIT */
#include "policy/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "vocab/words.h"
#include "policy/grant.h"
#include "policy/quote.h"
#include "policy/suggest.h"
#include "vocab/limits.h"

#define DURATION_MAX_MS (24u * 60 * 60 * 1000)

void reader_clear(struct reader *reader)
{
	free(reader->lists);
	free(reader->by_name);
	free(reader->rules);
	free(reader->full);
	free(reader->patterns);
	free(reader->grants);
}

const char *node_file(const struct reader *reader, const struct node *node)
{
	return reader->policy->files[node->file];
}

struct place node_place(const struct node *node)
{
	return (struct place){ .file = node->file, .line = node->line, .column = node->column };
}

bool error_is_kept(const struct reader *reader)
{
	return reader->problems->errors < NP_POLICY_PROBLEMS;
}

struct problem *problem_at(struct reader *reader, bool warning, const struct node *node, const char *fmt, ...)
{
	char text[PROBLEM_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return problem_add(reader->problems, warning, node_file(reader, node), node->line, node->column, "%s", text);
}

void problem_other(const struct reader *reader, struct problem *problem, const struct node *other)
{
	if (!problem)
		return;
	text_clean(problem->other_file, sizeof(problem->other_file), node_file(reader, other),
		   strlen(node_file(reader, other)));
	problem->other_line = other->line;
}

static void key_unknown(struct reader *reader, const struct node *key, const struct key_set *set)
{
	const char *names[KEY_SET_MAX], *near;

	for (size_t i = 0; i < set->count; i++)
		names[i] = set->keys[i].name;
	near = error_is_kept(reader) ? suggest_word(key->text, names, set->count) : NULL;
	if (near)
		error_at(reader, key, "unknown key %s in %s; did you mean \"%s\"?", QUOTE(key->text, key->len),
			 set->where, near);
	else
		error_at(reader, key, "unknown key %s in %s", QUOTE(key->text, key->len), set->where);
}

bool map_fields(struct reader *reader, const struct node *map, const struct key_set *set, const struct node **ret)
{
	bool good = true;

	memset(ret, 0, set->count * sizeof(*ret));
	for (const struct node *key = map->first; key; key = key->next->next) {
		size_t i = 0;

		while (i < set->count && strcmp(key->text, set->keys[i].name) != 0)
			i++;
		if (i == set->count) {
			key_unknown(reader, key, set);
			good = false;
		} else if (node_is_null(key->next)) {
			error_at(reader, key, "\"%s\" has no value", set->keys[i].name);
			good = false;
		} else if (!ret[i]) { /* a second one was told of when the tree was made */
			ret[i] = key;
		}
	}
	return good;
}

const struct node *field_scalar(struct reader *reader, const struct node *key)
{
	if (key->next->kind == NODE_SCALAR)
		return key->next;
	error_at(reader, key->next, "%s takes one value, not a %s", QUOTE(key->text, key->len),
		 key->next->kind == NODE_LIST ? "list" : "mapping");
	return NULL;
}

size_t field_entries(struct reader *reader, const struct node *key, const struct node **ret_first)
{
	const struct node *value = key->next;

	if (value->kind == NODE_SCALAR) {
		*ret_first = value;
		return 1;
	}
	if (value->kind == NODE_MAP) {
		error_at(reader, value, "%s takes a value or a list of them, not a mapping",
			 QUOTE(key->text, key->len));
		return 0;
	}
	if (!value->len)
		error_at(reader, value, "the list of %s is empty", QUOTE(key->text, key->len));
	*ret_first = value->first;
	return value->len;
}

bool entry_is_text(struct reader *reader, const struct node *key, const struct node *entry)
{
	if (entry->kind != NODE_SCALAR) {
		error_at(reader, entry, "an entry of %s is one value, not a %s", QUOTE(key->text, key->len),
			 entry->kind == NODE_LIST ? "list" : "mapping");
		return false;
	}
	if (node_is_null(entry)) {
		error_at(reader, entry, "an entry of %s is empty", QUOTE(key->text, key->len));
		return false;
	}
	return true;
}

bool word_is_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return len && len <= NP_NAME_MAX && !text[len];
}

bool key_is_name(struct reader *reader, const struct node *key, const char *what)
{
	if (word_is_name(key->text))
		return true;
	error_at(reader, key, "%s is no name for a %s: 1 to %u of a-z, 0-9, \"_\" and \"-\"",
		 QUOTE(key->text, key->len), what, NP_NAME_MAX);
	return false;
}

bool key_is_new(struct reader *reader, const struct node *key, const char *what, const char *name,
		const struct place *at)
{
	const struct node there = { .file = (uint16_t)at->file, .line = at->line };

	if (strcmp(name, key->text) != 0)
		return true;
	if (there.file != key->file)
		problem_other(reader,
			      error_at(reader, key, "%s %s is already in %s:%u", what, QUOTE(key->text, key->len),
				       node_file(reader, &there), there.line),
			      &there);
	return false;
}

bool field_duration(struct reader *reader, const struct node *key, uint64_t *ret_ms)
{
	const struct node *value = field_scalar(reader, key);
	uint64_t ms = 0;

	if (value && (!duration_parse(value->text, &ms) || ms > DURATION_MAX_MS)) {
		error_at(reader, value, "%s is no time from 1ms to 24h; write a number and ms, s, m or h, as in \"5s\"",
			 QUOTE(value->text, value->len));
		return false;
	}
	if (value)
		*ret_ms = ms;
	return value != NULL;
}

/* A copy in the policy's own memory; an empty array is NULL. */
static int array_keep(struct arena *arena, const void *array, size_t n, size_t size, const void **ret)
{
	void *copy;

	if (!n)
		return 0;
	copy = arena_alloc(arena, n, size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, array, n * size);
	*ret = copy;
	return 0;
}

int reader_finish(struct reader *reader)
{
	struct policy *policy = reader->policy;
	struct arena *arena = policy->arena;
	const void *rules = NULL, *full = NULL, *patterns = NULL, *deciders = NULL, *grants = NULL;

	for (size_t i = 0; i < reader->n_grants; i++)
		reader->grants[i].rule.number = (uint32_t)reader->n_rules; /* it is looked at behind all of them */
	if (array_keep(arena, reader->rules, reader->n_rules, sizeof(struct rule), &rules) < 0 ||
	    array_keep(arena, reader->full, reader->n_full, sizeof(struct rule), &full) < 0 ||
	    array_keep(arena, reader->patterns, reader->n_patterns, sizeof(struct pattern), &patterns) < 0 ||
	    array_keep(arena, reader->grants, reader->n_grants, sizeof(struct grant), &grants) < 0 ||
	    array_keep(arena, reader->deciders, reader->n_deciders, sizeof(struct decider), &deciders) < 0)
		return -ENOMEM;
	policy->rules = rules;
	policy->n_rules = reader->n_rules;
	policy->full = full;
	policy->n_full = reader->n_full;
	policy->patterns = patterns;
	policy->n_patterns = reader->n_patterns;
	policy->grants = grants;
	policy->n_grants = reader->n_grants;
	policy->deciders = deciders;
	policy->n_deciders = reader->n_deciders;
	policy->credentials = reader->credentials; /* in the arena already: rules point there */
	policy->n_credentials = reader->n_credentials;
	return 0;
}
