/* SPDX-License-Identifier: MIT */
#include "policy/reach_summary.h"

#include <stdio.h>
#include <string.h>

#include "vocab/words.h"
#include "policy/decide.h"
#include "policy/quote.h"
#include "wire/dns.h"
#include "vocab/limits.h"

#define REACH_TEXT_MAX 4096 /* of one item, before it is cut to REACH_ITEM_SIZE */

static void put_words(struct buf *out, const char *const *words, const char *before)
{
	for (const char *const *word = words; word && *word; word++) {
		buf_puts(out, word == words ? before : ", ");
		buf_puts(out, *word);
	}
}

static void put_host(struct buf *out, const struct pattern *pattern, bool with_port)
{
	char text[ADDR_TEXT_SIZE];
	unsigned bits = pattern->v4 ? pattern->bits - 96u : pattern->bits;

	if (pattern->kind == PATTERN_NAME) {
		buf_puts(out, pattern->name);
		return;
	}
	addr_format(&pattern->addr, text);
	buf_printf(out, "%s%s", with_port && !pattern->v4 ? "[" : "", text);
	if (pattern->bits != 128)
		buf_printf(out, "/%u", bits);
	buf_puts(out, with_port && !pattern->v4 ? "]" : "");
}

static void put_queries(struct buf *out, unsigned types)
{
	const char *before = " (and lookups of its ";
	char type[DNS_TYPE_SIZE];

	if (!types)
		return;
	for (; types; before = ", ") {
		dns_type_text(dns_record_next(&types), type);
		buf_printf(out, "%s%s", before, type);
	}
	buf_puts(out, " records)");
}

void pattern_put(struct buf *out, const struct pattern *pattern)
{
	put_host(out, pattern, !pattern->inspected);
	if (!pattern->inspected) {
		if (pattern->first_port == 1 && pattern->last_port == 65535)
			buf_puts(out, ":*");
		else if (pattern->first_port == pattern->last_port)
			buf_printf(out, ":%u", pattern->first_port);
		else
			buf_printf(out, ":%u-%u", pattern->first_port, pattern->last_port);
		buf_puts(out, pattern->protocols == (PATTERN_TCP | PATTERN_UDP) ? ""
			      : pattern->protocols == PATTERN_UDP		? "/udp"
										: "/tcp");
	}
}

static void put_item(struct buf *out, const struct rule *rule, const struct pattern *pattern)
{
	pattern_put(out, pattern);
	if (rule_asks_request(rule)) {
		buf_puts(out, " (only");
		put_words(out, rule->methods, " ");
		put_words(out, rule->paths, rule->methods ? " on " : " ");
		put_words(out, rule->headers, " with ");
		buf_puts(out, ")");
	}
	put_queries(out, rule->dns);
}

/* False for a single host that the policy refuses all the same: by an earlier rule, or because it is built in. */
static bool is_open(const struct policy *policy, const struct np_rung *rung, const char *session,
		    const struct pattern *pattern)
{
	struct facts facts = {
		.rung = { .mode = NP_PROXIED, .level = rung->level },
		.session = session,
		.protocol = pattern->protocols & PATTERN_TCP ? PATTERN_TCP : PATTERN_UDP,
		.port = pattern->last_port, /* the first of several may be the DNS gate's */
	};

	if (pattern->inspected) {
		if (!policy->n_inspect_ports)
			return false;
		facts.port = policy->inspect_ports[policy->n_inspect_ports - 1];
	}
	if (pattern->kind == PATTERN_NAME) {
		facts.name = pattern->name;
		if (pattern_is_wide(pattern))
			return true;
	} else {
		facts.has_addr = true;
		facts.addr = pattern->addr;
		if (pattern->bits != 128)
			return true;
	}
	return policy_decide(policy, &facts).action == ACTION_ALLOW;
}

static void reach_put(struct reach *reach, const char *text, size_t len)
{
	char item[REACH_ITEM_SIZE];

	text_clean(item, sizeof(item), text, len);
	for (size_t i = 0; i < reach->count; i++)
		if (strcmp(reach->items[i], item) == 0)
			return;
	if (reach->count == NP_REACH_ITEMS)
		reach->more++;
	else
		memcpy(reach->items[reach->count++], item, sizeof(item));
}

static void reach_rule(const struct policy *policy, const struct rule *rule, const struct np_rung *rung,
		       const char *session, struct reach *reach)
{
	for (uint32_t i = 0; i < rule->n_patterns; i++) {
		const struct pattern *pattern = &policy->patterns[rule->pattern + i];
		_buf_ struct buf out = BUF_INIT(REACH_TEXT_MAX);

		/* With many rules only those that are shown are looked at closely. */
		if (reach->count == NP_REACH_ITEMS) {
			reach->more += rule->n_patterns - i;
			return;
		}
		if (!is_open(policy, rung, session, pattern))
			continue;
		put_item(&out, rule, pattern);
		if (out.len)
			reach_put(reach, out.data, out.len);
		reach->inspected |= pattern->inspected;
	}
}

void policy_reach(const struct policy *policy, const struct np_rung *rung, const char *session, struct reach *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (rung->mode != NP_PROXIED)
		return;
	ret->asks = policy->fallback[rung->level].action == ACTION_ASK;
	ret->others = policy->fallback[rung->level].action == ACTION_ALLOW;
	for (size_t i = 0; i < policy->n_rules; i++) {
		const struct rule *rule = &policy->rules[i];

		if (!(rule->levels & (1u << rung->level)) || !rule_is_for(rule, session))
			continue;
		if (rule->action == ACTION_ALLOW)
			reach_rule(policy, rule, rung, session, ret);
		ret->asks |= rule->action == ACTION_ASK;
		ret->decides |= rule->action == ACTION_DECIDE;
	}
	for (size_t i = 0; i < policy->n_host_loopback; i++) {
		char text[32];

		snprintf(text, sizeof(text), "localhost:%u", policy->host_loopback[i]);
		reach_put(ret, text, strlen(text));
	}
}

static void put_ports(const struct policy *policy, struct buf *out)
{
	buf_puts(out, " (those without a port: HTTP and HTTPS on port");
	for (size_t i = 0; i < policy->n_inspect_ports; i++)
		buf_printf(out, "%s %u",
			   i == 0			      ? ""
			   : i + 1 == policy->n_inspect_ports ? " or"
							      : ",",
			   policy->inspect_ports[i]);
	buf_puts(out, ")");
}

static void put_asks(const struct reach *reach, struct buf *out)
{
	if (reach->asks)
		buf_puts(out, "; about some others a person is asked first, and what is tried waits for the answer");
	if (reach->decides)
		buf_puts(out, "; about some others a program decides when they are tried");
}

void reach_text(const struct policy *policy, enum np_mode mode, const struct reach *reach, struct buf *out)
{
	if (mode == NP_FULL) {
		buf_puts(out, "everything but cloud metadata, the host's own listeners and other sandboxes");
		return;
	}
	if (reach->others) {
		buf_puts(out, "what no rule of the policy denies, by name or at its HTTP ports, and itself");
		put_asks(reach, out);
		return;
	}
	if (!reach->count) {
		buf_puts(out, "nothing but itself (its own loopback and unix sockets)");
		put_asks(reach, out);
		return;
	}
	buf_puts(out, "only ");
	for (size_t i = 0; i < reach->count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", reach->items[i]);
	if (reach->more)
		buf_printf(out, " and %zu more", reach->more);
	if (reach->inspected)
		put_ports(policy, out);
	buf_puts(out, ", and itself");
	put_asks(reach, out);
}
