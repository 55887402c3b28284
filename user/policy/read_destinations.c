/* SPDX-License-Identifier: MIT */
/* The destinations of a rule, from its own entries and from lists. */
#include "policy/read.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "policy/decide.h"
#include "policy/quote.h"
#include "vocab/limits.h"

/* A rule whose destinations are read. */
struct adding {
	struct reader *reader;
	const struct node *key; /* "allow", ... */
	enum pattern_use use;
	struct rule *rule;
	const struct list *list; /* that is unfolded; NULL: the entries are the rule's own */
	const struct node *not_http;
};

/* Of a pattern that is not settled, so that only what was written counts. */
static bool pattern_is_http(const struct policy *policy, const struct pattern *pattern)
{
	if (pattern->protocols & PATTERN_UDP)
		return false;
	if (!pattern->first_port)
		return true;
	if (pattern->last_port - pattern->first_port >= NP_INSPECT_PORTS_MAX)
		return false;
	for (unsigned port = pattern->first_port; port <= pattern->last_port; port++)
		if (!policy_inspects(policy, (uint16_t)port))
			return false;
	return true;
}

static void pattern_refused(struct adding *a, const struct node *node, const char *why, bool in_list)
{
	const char *text = QUOTE(node->text, node->len);

	if (in_list)
		problem_other(a->reader,
			      error_at(a->reader, node, "%s: %s (used by the rule in %s:%u)", text, why,
				       node_file(a->reader, a->key), a->key->line),
			      a->key);
	else
		error_at(a->reader, node, "%s: %s", text, why);
}

static void pattern_warn(struct adding *a, const struct node *node, const struct pattern *pattern,
			 struct list_item *item)
{
	bool dns = a->use == PATTERN_GRANT && pattern_spans_dns(pattern);
	bool metadata = a->rule->action != ACTION_DENY && pattern_spans_metadata(pattern);
	/* The DNS gate answers with addresses that lead to the inspector, which takes TCP alone. */
	bool udp = a->use == PATTERN_GRANT && pattern->kind == PATTERN_NAME && pattern->protocols == PATTERN_UDP;

	if (item) {
		dns = dns && !item->reported_dns;
		metadata = metadata && !item->reported_metadata;
		udp = udp && !item->reported_udp;
		item->reported_dns |= dns;
		item->reported_metadata |= metadata;
		item->reported_udp |= udp;
	}
	if (dns)
		warn_at(a->reader, node, "%s leaves port 53 out: it belongs to the DNS gate",
			QUOTE(node->text, node->len));
	if (metadata)
		warn_at(a->reader, node, "%s holds cloud metadata addresses, and these stay refused",
			QUOTE(node->text, node->len));
	if (udp)
		warn_at(a->reader, node, "%s opens nothing: UDP is allowed by address only",
			QUOTE(node->text, node->len));
}

/* A query goes to the server of the name's owner: if the sandbox could choose more of it than that it asks, the
 * query would be a message. */
static const char *dns_refuses(const struct rule *rule, const struct pattern *pattern)
{
	if (!rule->dns)
		return NULL;
	if (pattern->kind != PATTERN_NAME)
		return "\"dns\" is about names, and this is an address";
	return pattern_is_wide(pattern)
		       ? "\"dns\" needs a whole name: in place of a star a lookup could carry anything out"
		       : NULL;
}

/* An address is judged by the kernel's tables, which are the same for every session: there a grant would be everybody's, and
 * a deny too. */
static const char *sessions_refuse(const struct rule *rule, const struct pattern *pattern)
{
	return rule->sessions && pattern->kind == PATTERN_NET
		       ? "\"sessions\" is about names: addresses are judged by the kernel, which knows no sessions"
		       : NULL;
}

static int pattern_add(struct adding *a, const struct node *node, struct pattern pattern, struct list_item *item)
{
	struct reader *reader = a->reader;
	const char *why;

	if (!a->not_http && !pattern_is_http(reader->policy, &pattern))
		a->not_http = node;
	why = pattern_settle(&pattern, a->use);
	if (!why)
		why = dns_refuses(a->rule, &pattern);
	if (!why)
		why = sessions_refuse(a->rule, &pattern);
	if (why) {
		pattern_refused(a, node, why, item != NULL);
		return 0;
	}
	pattern_warn(a, node, &pattern, item);
	if (reader->n_patterns == NP_POLICY_PATTERNS) {
		error_at(reader, a->key, "more than %u destinations in all rules, lists unfolded", NP_POLICY_PATTERNS);
		reader->patterns_full = true;
		return 0;
	}
	if (ARRAY_RESERVE(reader->patterns, reader->max_patterns, reader->n_patterns + 1) < 0)
		return -ENOMEM;
	pattern.rule = a->rule->number;
	pattern.list = a->list ? a->list->name : NULL;
	pattern.quiet = a->list && a->list->quiet;
	reader->patterns[reader->n_patterns++] = pattern;
	a->rule->n_patterns++;
	return 0;
}

/* Lists nest no deeper than NP_POLICY_DEPTH, but they may fan out: the lists walked are counted, as the destinations
 * are, or two dozen lists that name each other twice would take an hour to yield nothing. */
static int list_unfold(struct adding *a, struct list *list)
{
	const struct list *outer = a->list;
	int e = 0;

	if (a->reader->n_unfolded++ == NP_POLICY_PATTERNS) {
		error_at(a->reader, a->key, "more than %u lists to unfold in all rules", NP_POLICY_PATTERNS);
		a->reader->patterns_full = true;
	}
	if (list->quiet && a->rule->action != ACTION_DENY)
		error_at(a->reader, a->key, "list %s is quiet, and so it is for deny",
			 QUOTE(list->key->text, list->key->len));
	list->used = true;
	for (size_t i = 0; i < list->n_items && e == 0 && !a->reader->patterns_full; i++) {
		struct list_item *item = &list->items[i];

		a->list = list;

		if (!item->is_list)
			e = pattern_add(a, item->node, item->pattern, item);
		else if (item->list)
			e = list_unfold(a, item->list);
	}
	a->list = outer;
	return e;
}

static int read_one(struct adding *a, const struct node *entry)
{
	char name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];
	struct pattern pattern;
	int e = pattern_parse(entry->text, entry->len, name, &pattern, problem);

	if (e == -EINVAL) {
		error_at(a->reader, entry, "%s", problem);
		return 0;
	}
	if (e < 0)
		return e;
	if (pattern.kind == PATTERN_NAME) {
		pattern.name = arena_text(a->reader->policy->arena, name, strlen(name));
		if (!pattern.name)
			return -ENOMEM;
	}
	pattern.at = node_place(entry);
	return pattern_add(a, entry, pattern, NULL);
}

int read_destinations(struct reader *reader, const struct node *key, enum pattern_use use, struct rule *rule,
		      const struct node **ret_not_http)
{
	struct adding a = { .reader = reader, .key = key, .use = use, .rule = rule };
	const struct node *entry = NULL;
	size_t n = field_entries(reader, key, &entry);
	int e = 0;

	rule->pattern = (uint32_t)reader->n_patterns;
	for (; n && e == 0 && !reader->patterns_full; n--, entry = entry->next) {
		struct list *list;

		if (!entry_is_text(reader, key, entry))
			continue;
		if (entry->text[0] != '@') {
			e = read_one(&a, entry);
			continue;
		}
		list = list_find(reader, entry->text + 1);
		if (!list)
			list_unknown(reader, entry);
		else if (!reader->lists_broken)
			e = list_unfold(&a, list);
	}
	*ret_not_http = a.not_http;
	return e;
}
