/* SPDX-License-Identifier: MIT */
/* lists: names for destinations. A list may hold others, but not itself, however far around. */
#include "policy/read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "policy/quote.h"
#include "policy/suggest.h"
#include "vocab/limits.h"

#define SUGGEST_LISTS 1000 /* names looked at to suggest one: enough for a person, little for a computer */

static int read_item(struct reader *reader, const struct node *key, const struct node *entry, struct list_item *item)
{
	char name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];
	int e;

	if (!entry_is_text(reader, key, entry))
		return -EINVAL;
	item->node = entry;
	if (entry->text[0] == '@') {
		item->is_list = true;
		return 0;
	}
	e = pattern_parse(entry->text, entry->len, name, &item->pattern, problem);
	if (e == -EINVAL)
		error_at(reader, entry, "%s", problem);
	if (e < 0)
		return e;
	if (item->pattern.kind == PATTERN_NAME) {
		item->pattern.name = arena_text(reader->policy->arena, name, strlen(name));
		if (!item->pattern.name)
			return -ENOMEM;
	}
	item->pattern.at = node_place(entry);
	return 0;
}

/* The destinations of a list, which may be written below hosts: with other keys beside it. */
static const struct node *list_hosts(struct reader *reader, const struct node *key, struct list *list)
{
	const struct node *value = key->next, *fields[LIST_KEYS];

	if (node_is_null(value)) {
		error_at(reader, key, "list %s has no value", QUOTE(key->text, key->len));
		return NULL;
	}
	if (value->kind == NODE_MAP) {
		bool complete = map_fields(reader, value, &keys_list, fields);

		if (fields[LIST_QUIET])
			field_flag(reader, fields[LIST_QUIET], &list->quiet);
		if (!fields[LIST_HOSTS] && complete)
			error_at(reader, value, "list %s needs \"hosts\"", QUOTE(key->text, key->len));
		value = fields[LIST_HOSTS] ? fields[LIST_HOSTS]->next : NULL;
	}
	if (!value || (value->kind == NODE_LIST && value->len))
		return value;
	error_at(reader, value, value->kind == NODE_LIST ? "list %s is empty" : "list %s takes a list of destinations",
		 QUOTE(key->text, key->len));
	return NULL;
}

static int read_list(struct reader *reader, const struct node *key, struct list *list)
{
	const struct node *value = list_hosts(reader, key, list);
	char name[NP_NAME_MAX + 2];

	snprintf(name, sizeof(name), "@%s", key->text);
	list->name = arena_text(reader->policy->arena, name, strlen(name));
	if (!list->name)
		return -ENOMEM;
	if (!value)
		return 0;
	list->items = arena_alloc(reader->trees, value->len, sizeof(*list->items));
	if (!list->items)
		return -ENOMEM;
	for (const struct node *entry = value->first; entry; entry = entry->next) {
		int e = read_item(reader, key, entry, &list->items[list->n_items]);

		if (e == -ENOMEM)
			return e;
		if (e == 0)
			list->n_items++;
	}
	return 0;
}

int read_lists(struct reader *reader, const struct file *file)
{
	const struct node *section = file->sections[SECTION_LISTS];
	const struct node *map = section ? section_map(reader, section, "names to lists of destinations") : NULL;
	int e = 0;

	for (const struct node *key = map ? map->first : NULL; key && e == 0; key = key->next->next) {
		struct list *list;

		if (!word_is_name(key->text)) {
			error_at(reader, key, "%s is no name for a list: 1 to %u of a-z, 0-9, \"_\" and \"-\"",
				 QUOTE(key->text, key->len), NP_NAME_MAX);
			continue;
		}
		e = ARRAY_RESERVE(reader->lists, reader->max_lists, reader->n_lists + 1);
		if (e < 0)
			break;
		list = &reader->lists[reader->n_lists++];
		*list = (struct list){ .key = key, .shipped = file->shipped };
		e = read_list(reader, key, list);
	}
	return e;
}

/* -- from names to lists --------------------------------------------------------- */

static int list_compare(const void *a, const void *b)
{
	const struct list *x = *(struct list *const *)a, *y = *(struct list *const *)b;
	int order = strcmp(x->key->text, y->key->text);

	return order ? order : (x > y) - (x < y);
}

static void check_names(struct reader *reader)
{
	for (size_t i = 1; i < reader->n_lists; i++) {
		const struct node *first = reader->by_name[i - 1]->key, *key = reader->by_name[i]->key;

		/* Two in one file are a repeated key, which is told already. */
		if (strcmp(key->text, first->text) != 0 || key->file == first->file)
			continue;
		problem_other(reader,
			      error_at(reader, key, "list %s is already in %s:%u", QUOTE(key->text, key->len),
				       node_file(reader, first), first->line),
			      first);
	}
}

static int name_compare(const void *name, const void *element)
{
	const struct list *list = *(struct list *const *)element;

	return strcmp(name, list->key->text);
}

struct list *list_find(const struct reader *reader, const char *name)
{
	struct list **found = NULL;

	if (reader->n_lists)
		found = bsearch(name, reader->by_name, reader->n_lists, sizeof(*reader->by_name), name_compare);
	return found ? *found : NULL;
}

void list_unknown(struct reader *reader, const struct node *entry)
{
	struct suggestion suggestion = { .text = entry->text + 1 };

	if (memchr(entry->text, ':', entry->len) || memchr(entry->text, '/', entry->len)) {
		error_at(reader, entry, "%s: a list takes no port; write ports in the list",
			 QUOTE(entry->text, entry->len));
		return;
	}
	for (size_t i = 0; error_is_kept(reader) && i < reader->n_lists && i < SUGGEST_LISTS; i++)
		suggestion_offer(&suggestion, reader->lists[i].key->text);
	if (suggestion.best)
		error_at(reader, entry, "unknown list %s; did you mean \"@%s\"?", QUOTE(entry->text, entry->len),
			 suggestion.best);
	else
		error_at(reader, entry, "unknown list %s", QUOTE(entry->text, entry->len));
}

/* The list below this one that is to be walked next. NULL when all are. */
static struct list *list_below(struct reader *reader, struct list *list)
{
	while (list->turn < list->n_items) {
		struct list_item *item = &list->items[list->turn++];

		if (!item->is_list)
			continue;
		item->list = list_find(reader, item->node->text + 1);
		if (!item->list) {
			list_unknown(reader, item->node);
		} else if (item->list->state == LIST_OPEN) {
			error_at(reader, item->node, "list %s holds itself%s%s",
				 QUOTE(item->list->key->text, item->list->key->len),
				 item->list == list ? "" : " by way of list ",
				 item->list == list ? "" : QUOTE(list->key->text, list->key->len));
			reader->lists_broken = true;
		} else if (item->list->state == LIST_NEW) {
			return item->list;
		} else if (item->list->height >= list->height) {
			list->height = item->list->height + 1;
		}
	}
	return NULL;
}

/* Depth first, without recursion: a chain may have as many lists as fit into a file. */
static void list_walk(struct reader *reader, struct list *list)
{
	while (list) {
		struct list *below, *above = list->above;

		list->state = LIST_OPEN;
		below = list_below(reader, list);
		if (below) {
			below->above = list;
			list = below;
			continue;
		}
		list->state = LIST_DONE;
		if (list->height == NP_POLICY_DEPTH) { /* those above it are not told of again */
			error_at(reader, list->key, "lists in lists, more than %u deep", NP_POLICY_DEPTH);
			reader->lists_broken = true;
		}
		if (above && above->height <= list->height)
			above->height = list->height + 1;
		list = above;
	}
}

int lists_link(struct reader *reader)
{
	if (!reader->n_lists)
		return 0;
	reader->by_name = calloc(reader->n_lists, sizeof(*reader->by_name));
	if (!reader->by_name)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n_lists; i++)
		reader->by_name[i] = &reader->lists[i];
	qsort(reader->by_name, reader->n_lists, sizeof(*reader->by_name), list_compare);
	check_names(reader);
	for (size_t i = 0; i < reader->n_lists; i++)
		if (reader->lists[i].state == LIST_NEW)
			list_walk(reader, &reader->lists[i]);
	return 0;
}

void lists_warn(struct reader *reader)
{
	for (size_t i = 0; i < reader->n_lists; i++) {
		const struct node *key = reader->lists[i].key;

		if (!reader->lists[i].used && !reader->lists[i].shipped)
			warn_at(reader, key, "list %s is never used", QUOTE(key->text, key->len));
	}
}
