/* SPDX-License-Identifier: MIT */
#include "policy/policy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/words.h"

static const char *const level_keys[] = { "PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET" };

struct reading {
	const char *name;
	yaml_document_t document;
	struct policy *policy;
	char *problem; /* 512 bytes */
};

void policy_default(struct policy *ret)
{
	*ret = (struct policy){ .modes = { NP_FULL, NP_FULL, NP_PROXIED, NP_NONE } };
}

static int fail_at(struct reading *r, const yaml_mark_t *mark, const char *what, const char *word)
{
	snprintf(r->problem, 512, "%.200s:%zu:%zu: %s%s%.64s%s", r->name, mark->line + 1, mark->column + 1, what,
		 *word ? " \"" : "", word, *word ? "\"" : "");
	return -EINVAL;
}

static const char *scalar_text(const yaml_node_t *node)
{
	/* A NUL inside would end the word early for us, but not for a person who reads the file. */
	if (node->type != YAML_SCALAR_NODE || strlen((char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL;
	return (char *)node->data.scalar.value;
}

static int read_levels(struct reading *r, const yaml_node_t *node)
{
	bool seen[ARRAY_SIZE(level_keys)] = { false };

	if (node->type != YAML_MAPPING_NODE)
		return fail_at(r, &node->start_mark, "levels takes a mapping of levels to modes", "");
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = yaml_document_get_node(&r->document, p->key);
		const yaml_node_t *v = yaml_document_get_node(&r->document, p->value);
		const char *key = scalar_text(k), *value = scalar_text(v);
		unsigned mode = value ? mode_parse(value) : 0;
		size_t i = 0;

		while (key && i < ARRAY_SIZE(level_keys) && strcmp(key, level_keys[i]))
			i++;
		if (!key || i == ARRAY_SIZE(level_keys))
			return fail_at(
				r, &k->start_mark,
				"no such level; there are PUBLIC, INTERNAL, CONFIDENTIAL, SECRET:", key ? key : "?");
		if (seen[i])
			return fail_at(r, &k->start_mark, "the level is listed twice:", key);
		if (!mode)
			return fail_at(r, &v->start_mark,
				       "no such mode; there are full, proxied, none:", value ? value : "?");
		seen[i] = true;
		r->policy->modes[i] = (enum np_mode)mode;
	}
	for (size_t i = 1; i < ARRAY_SIZE(level_keys); i++)
		if (r->policy->modes[i] < r->policy->modes[i - 1])
			return fail_at(r, &node->start_mark,
				       "a higher level may not mean a looser mode than the one below:", level_keys[i]);
	return 0;
}

static int read_host_loopback(struct reading *r, const yaml_node_t *node)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return fail_at(r, &node->start_mark, "host_loopback takes a list of ports", "");
	for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
		const yaml_node_t *v = yaml_document_get_node(&r->document, *i);
		const char *text = scalar_text(v);
		char *end = NULL;
		unsigned long port = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

		if (!port || port > 65535 || *end)
			return fail_at(r, &v->start_mark, "not a port:", text ? text : "?");
		if (r->policy->n_host_loopback == NP_HOST_PORTS_MAX)
			return fail_at(r, &v->start_mark, "too many ports", "");
		r->policy->host_loopback[r->policy->n_host_loopback++] = (uint16_t)port;
	}
	return 0;
}

static int read_version(struct reading *r, const yaml_node_t *node)
{
	const char *text = scalar_text(node);

	if (!text || strcmp(text, "1") != 0)
		return fail_at(r, &node->start_mark, "this netpawld reads version 1, not", text ? text : "?");
	return 0;
}

static const struct {
	const char *key;
	int (*read)(struct reading *r, const yaml_node_t *node);
} sections[] = {
	{ "version", read_version },
	{ "levels", read_levels },
	{ "host_loopback", read_host_loopback },
};

static int read_sections(struct reading *r)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->document);
	const yaml_mark_t start = { 0 };
	bool seen[ARRAY_SIZE(sections)] = { false };

	if (!root || root->type != YAML_MAPPING_NODE)
		return fail_at(r, &start, "the file is not a mapping", "");
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = yaml_document_get_node(&r->document, p->key);
		const char *key = scalar_text(k);
		size_t i = 0;
		int e;

		while (key && i < ARRAY_SIZE(sections) && strcmp(key, sections[i].key))
			i++;
		if (!key || i == ARRAY_SIZE(sections))
			return fail_at(r, &k->start_mark, "unknown key", key ? key : "?");
		if (seen[i])
			return fail_at(r, &k->start_mark, "the key is there twice:", key);
		seen[i] = true;
		e = sections[i].read(r, yaml_document_get_node(&r->document, p->value));
		if (e < 0)
			return e;
	}
	return seen[0] ? 0 : fail_at(r, &root->start_mark, "version: 1 is missing", "");
}

/* A second document would be read by a person and by nobody else. */
static int read_no_more(struct reading *r, yaml_parser_t *parser)
{
	const yaml_node_t *root;
	int e = 0;

	if (!yaml_parser_load(parser, &r->document))
		return fail_at(r, &parser->problem_mark, parser->problem ? parser->problem : "not YAML", "");
	root = yaml_document_get_root_node(&r->document);
	if (root)
		e = fail_at(r, &root->start_mark, "a second document; a policy file has one", "");
	yaml_document_delete(&r->document);
	return e;
}

int policy_parse(const char *name, const char *text, size_t len, struct policy *ret, char problem[static 512])
{
	struct policy policy;
	struct reading r = { .name = name, .policy = &policy, .problem = problem };
	yaml_parser_t parser;
	int e;

	policy_default(&policy);
	if (len > NP_POLICY_BYTES) {
		snprintf(problem, 512, "%.200s: larger than %u bytes", name, NP_POLICY_BYTES);
		return -E2BIG;
	}
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &r.document)) {
		e = fail_at(&r, &parser.problem_mark, parser.problem ? parser.problem : "not YAML", "");
	} else {
		e = read_sections(&r);
		yaml_document_delete(&r.document);
		if (e == 0)
			e = read_no_more(&r, &parser);
	}
	yaml_parser_delete(&parser);
	if (e == 0)
		*ret = policy;
	return e;
}
