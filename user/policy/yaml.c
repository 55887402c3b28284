/* SPDX-License-Identifier: MIT */
#include "policy/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/chars.h"
#include "policy/quote.h"
#include "policy/yaml_text.h"
#include "vocab/limits.h"

struct reading {
	struct arena *arena;
	const char *shown;
	uint16_t file;
	size_t *nodes;
	struct problems *problems;
	const struct node *root;
	bool any; /* a document was there */
	/* The lists and mappings that are open, outermost first, and where the next child of each goes. */
	struct node *open[NP_POLICY_DEPTH];
	struct node **tail[NP_POLICY_DEPTH];
	unsigned depth;
};

bool node_is_null(const struct node *node)
{
	static const char *const nulls[] = { "~", "null", "Null", "NULL" };

	if (node->kind != NODE_SCALAR || !node->len)
		return node->kind == NODE_SCALAR;
	return !node->quote && WORD_IS_ONE_OF(node->text, nulls);
}

static int fail_at(struct reading *r, const yaml_mark_t *mark, const char *what)
{
	problem_add(r->problems, false, r->shown, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1, "%s", what);
	return -EINVAL;
}

static int node_make(struct reading *r, enum node_kind kind, const yaml_mark_t *mark, size_t extra, struct node **ret)
{
	struct node *node;

	if (*r->nodes >= NP_POLICY_NODES) {
		problem_add(r->problems, false, r->shown, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1,
			    "a policy may not have more than %u values", NP_POLICY_NODES);
		return -EINVAL;
	}
	node = arena_alloc(r->arena, 1, sizeof(*node) + extra);
	if (!node)
		return -ENOMEM;
	++*r->nodes;
	node->kind = (uint8_t)kind;
	node->file = r->file;
	node->line = (uint32_t)mark->line + 1;
	node->column = (uint32_t)mark->column + 1;
	*ret = node;
	return 0;
}

/* Hangs a node into the list or mapping that is open. */
static int node_hang(struct reading *r, struct node *node)
{
	struct node *parent = r->depth ? r->open[r->depth - 1] : NULL;

	if (!parent) {
		r->root = node;
		return 0;
	}
	if (parent->kind == NODE_MAP && parent->len % 2 == 0) {
		const yaml_mark_t mark = { .line = node->line - 1, .column = node->column - 1 };

		if (node->kind != NODE_SCALAR)
			return fail_at(r, &mark, "a key is one word, not a list or a mapping");
		if (node_is_null(node))
			return fail_at(r, &mark, "a key is missing before \":\"");
		if (!node->quote && !strcmp(node->text, "<<"))
			return fail_at(r, &mark, "merge keys (<<) are not read in a policy; write the keys out");
	}
	parent->len++;
	*r->tail[r->depth - 1] = node;
	r->tail[r->depth - 1] = &node->next;
	return 0;
}

static int read_scalar(struct reading *r, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	struct node *node;
	uint32_t c = 0;
	int e;

	if (len > NP_POLICY_SCALAR) {
		problem_add(r->problems, false, r->shown, (uint32_t)event->start_mark.line + 1,
			    (uint32_t)event->start_mark.column + 1, "%s is longer than %u bytes", QUOTE(text, len),
			    NP_POLICY_SCALAR);
		return -EINVAL;
	}
	for (size_t i = 0, n; i < len; i += n) {
		n = 1;
		if (text[i] >= ' ' && text[i] <= '~')
			continue;
		n = char_decode(text + i, len - i, &c);
		if (!n || !char_is_printable(c)) {
			problem_add(r->problems, false, r->shown, (uint32_t)event->start_mark.line + 1,
				    (uint32_t)event->start_mark.column + 1,
				    "%s holds a character that does not show (U+%04X)", QUOTE(text, len), (unsigned)c);
			return -EINVAL;
		}
	}
	e = node_make(r, NODE_SCALAR, &event->start_mark, len + 1, &node);
	if (e < 0)
		return e;
	memcpy(node + 1, text, len);
	node->text = (const char *)(node + 1);
	node->len = (uint32_t)len;
	if (event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE)
		node->quote = '"';
	else if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		node->quote = '\'';
	return node_hang(r, node);
}

static int read_open(struct reading *r, const yaml_event_t *event, enum node_kind kind)
{
	struct node *node;
	int e;

	if (r->depth == NP_POLICY_DEPTH) {
		problem_add(r->problems, false, r->shown, (uint32_t)event->start_mark.line + 1,
			    (uint32_t)event->start_mark.column + 1, "nested deeper than %u lists and mappings",
			    NP_POLICY_DEPTH);
		return -EINVAL;
	}
	e = node_make(r, kind, &event->start_mark, 0, &node);
	if (e == 0)
		e = node_hang(r, node);
	if (e < 0)
		return e;
	r->open[r->depth] = node;
	r->tail[r->depth++] = &node->first;
	return 0;
}

static int key_compare(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
	int order = strcmp(x->text, y->text);

	if (order)
		return order;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->column < y->column ? -1 : x->column > y->column;
}

static void key_repeated(struct reading *r, const struct node *key, const struct node *first)
{
	struct problem *problem;

	problem = problem_add(r->problems, false, r->shown, key->line, key->column,
			      "the key %s is there twice, first in line %u", QUOTE(key->text, key->len), first->line);
	if (problem) {
		memcpy(problem->other_file, problem->file, sizeof(problem->other_file));
		problem->other_line = first->line;
	}
}

/* Sorted, so that a mapping with a hundred thousand keys is no burden. A key that is repeated is told of once for
 * each time; the tree keeps it, for after an error nobody uses the tree for more than to look for other errors. */
static int map_check(struct reading *r, const struct node *map)
{
	struct node *few[16];
	_free_ struct node **many = NULL;
	struct node **keys = few;
	size_t n = 0;

	if (map->len > ARRAY_SIZE(few)) {
		keys = many = calloc(map->len, sizeof(*keys));
		if (!many)
			return -ENOMEM;
	}
	for (struct node *key = map->first; key; key = key->next->next)
		keys[n++] = key;
	qsort(keys, n, sizeof(*keys), key_compare);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (strcmp(keys[i]->text, keys[first]->text) != 0)
			first = i;
		else
			key_repeated(r, keys[i], keys[first]);
	}
	return 0;
}

static int read_close(struct reading *r)
{
	struct node *node = r->depth ? r->open[--r->depth] : NULL;

	if (!node || node->kind != NODE_MAP)
		return 0;
	node->len /= 2;
	return node->len > 1 ? map_check(r, node) : 0;
}

static int read_event(struct reading *r, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (r->any)
			return fail_at(r, &event->start_mark, "a second document; a policy file has one");
		if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
			return fail_at(r, &event->start_mark, "tags are not read in a policy, nor %TAG");
		r->any = true;
		return 0;
	case YAML_ALIAS_EVENT:
		return yaml_unquoted_star(r->problems, r->shown, &event->start_mark, (char *)event->data.alias.anchor);
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return read_close(r);
	default:
		return 0;
	}
	if (anchor)
		return fail_at(r, &event->start_mark, "anchors (&name) are not read in a policy; use \"lists\"");
	if (tag)
		return fail_at(r, &event->start_mark, "tags (!name) are not read in a policy");
	if (event->type == YAML_SCALAR_EVENT)
		return read_scalar(r, event);
	return read_open(r, event, event->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST);
}

static int read_events(struct reading *r, yaml_parser_t *parser, const char *text, size_t len)
{
	yaml_event_t event;
	bool end = false;
	int e = 0;

	while (e == 0 && !end) {
		if (!yaml_parser_parse(parser, &event))
			return yaml_syntax_problem(r->problems, r->shown, parser, text, len);
		end = event.type == YAML_STREAM_END_EVENT;
		e = read_event(r, &event);
		yaml_event_delete(&event);
	}
	return e;
}

int yaml_read(struct arena *arena, const char *text, size_t len, const char *shown, uint16_t file, size_t *nodes,
	      struct problems *problems, const struct node **ret_root)
{
	struct reading r = {
		.arena = arena,
		.shown = shown,
		.file = file,
		.nodes = nodes,
		.problems = problems,
	};
	yaml_parser_t parser;
	int e;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	e = yaml_text_check(problems, shown, text, len);
	if (e < 0)
		return e;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	e = read_events(&r, &parser, text, len);
	yaml_parser_delete(&parser);
	if (e == 0)
		*ret_root = r.root;
	return e;
}
