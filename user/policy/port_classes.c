/* SPDX-License-Identifier: MIT */
#include "policy/port_classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

int port_rule_add(struct port_rules *port_rules, const struct port_rule *port_rule)
{
	struct port_rule *last = port_rules->n ? &port_rules->items[port_rules->n - 1] : NULL;

	if (last && last->protocol == port_rule->protocol && last->action == port_rule->action &&
	    last->rule == port_rule->rule && last->last && last->last + 1 == port_rule->first) {
		last->last = port_rule->last;
		return 0;
	}
	if (ARRAY_RESERVE(port_rules->items, port_rules->size, port_rules->n + 1) < 0)
		return -ENOMEM;
	/* Byte by byte the same for the same words: classes are compared as memory. */
	memset(&port_rules->items[port_rules->n], 0, sizeof(*port_rule));
	port_rules->items[port_rules->n].protocol = port_rule->protocol;
	port_rules->items[port_rules->n].first = port_rule->first;
	port_rules->items[port_rules->n].last = port_rule->last;
	port_rules->items[port_rules->n].action = port_rule->action;
	port_rules->items[port_rules->n].rule = port_rule->rule;
	port_rules->n++;
	return 0;
}

static const char *class_content(const struct classes *classes, uint32_t class, size_t *ret_len)
{
	size_t start = class > 1 ? classes->ends[class - 2] : 0;

	*ret_len = classes->ends[class - 1] - start;
	return classes->port_rule.data + start;
}

static int classes_rehash(struct classes *classes)
{
	size_t n_slots = classes->n_slots ? classes->n_slots * 2 : 256;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(classes->slots);
	classes->slots = slots;
	classes->n_slots = n_slots;
	for (uint32_t c = 1; c <= classes->n; c++) {
		size_t len, at;
		const char *content = class_content(classes, c, &len);

		for (at = hash_mark(content, len); slots[at & (n_slots - 1)]; at++)
			;
		slots[at & (n_slots - 1)] = c;
	}
	return 0;
}

int classes_find(struct classes *classes, const struct port_rules *port_rules, uint32_t *ret, bool *ret_new)
{
	size_t bytes = port_rules->n * sizeof(*port_rules->items), at;

	*ret_new = false;
	*ret = 0;
	if (!port_rules->n)
		return 0;
	if (2 * (classes->n + 1) > classes->n_slots && classes_rehash(classes) < 0)
		return -ENOMEM;
	for (at = hash_mark(port_rules->items, bytes);; at++) {
		uint32_t class = classes->slots[at & (classes->n_slots - 1)];
		const char *content;
		size_t len;

		if (!class)
			break;
		content = class_content(classes, class, &len);
		if (len == bytes && !memcmp(content, port_rules->items, bytes)) {
			*ret = class;
			return 0;
		}
	}
	if (ARRAY_RESERVE(classes->ends, classes->size, classes->n + 1) < 0)
		return -ENOMEM;
	buf_append(&classes->port_rule, port_rules->items, bytes);
	if (buf_error(&classes->port_rule))
		return buf_error(&classes->port_rule);
	classes->ends[classes->n++] = classes->port_rule.len;
	classes->slots[at & (classes->n_slots - 1)] = (uint32_t)classes->n;
	*ret = (uint32_t)classes->n;
	*ret_new = true;
	return 0;
}

void classes_free(struct classes *classes)
{
	buf_free(&classes->port_rule);
	free(classes->ends);
	free(classes->slots);
}
