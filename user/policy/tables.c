/* SPDX-License-Identifier: MIT */
#include "policy/tables.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "event.h"
#include "policy/port_classes.h"
#include "policy/decide.h"
#include "policy/metadata.h"
#include "policy/net.h"
#include "policy/nets.h"
#include "policy/port_ranges.h"
#include "vocab/limits.h"

struct making {
	const struct policy *policy;
	struct gate_tables *tables;
	struct classes classes;
	uint32_t set; /* a level, NP_SET_FULL or NP_SET_READ */
	const struct rule *rules;
	const struct net_table *nets;
	uint32_t *class_of; /* of each node of nets */
	/* scratch */
	const struct pattern **chain;
	struct range *claims, *segments;
	size_t claims_size, segments_size;
	size_t n_chain, chain_size;
	size_t work; /* patterns looked at, in all */
	int error;
};

static bool is_full(const struct making *m)
{
	return m->set == NP_SET_FULL;
}

/* -- one node ----------------------------------------------------------------- */

static const struct rule *rule_of(const struct making *m, const struct pattern *pattern)
{
	return &m->rules[pattern->rule];
}

/* An allow that is wider than the metadata range does not mean it: see decide.h. */
static bool pattern_counts(const struct making *m, const struct net_node *node, const struct pattern *pattern)
{
	const struct rule *rule = rule_of(m, pattern);

	if (m->set < LEVEL_COUNT && !(rule->levels >> m->set & 1))
		return false;
	return !node->metadata || rule->action == ACTION_DENY ||
	       metadata_holds(&pattern->addr, pattern->bits, pattern->v4);
}

static int pattern_compare(const void *a, const void *b)
{
	const struct pattern *x = *(const struct pattern *const *)a, *y = *(const struct pattern *const *)b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return (x > y) - (x < y);
}

/* Every pattern whose range holds this node, in the order of the rules. */
static int chain_collect(struct making *m, const struct net_node *node)
{
	m->n_chain = 0;
	for (const struct net_node *n = node; n; n = n->up)
		for (uint32_t i = 0; i < n->n_patterns; i++) {
			const struct pattern *pattern = &m->policy->patterns[n->patterns[i]];

			if (!pattern_counts(m, node, pattern))
				continue;
			if (ARRAY_RESERVE(m->chain, m->chain_size, m->n_chain + 1) < 0)
				return -ENOMEM;
			if (++m->work > NP_NETS_WORK)
				return -E2BIG;
			m->chain[m->n_chain++] = pattern;
		}
	if (m->n_chain)
		qsort(m->chain, m->n_chain, sizeof(*m->chain), pattern_compare);
	return 0;
}

/* What the claims of the chain are on one protocol's ports; owner is an index into the chain. */
static int claims_collect(struct making *m, uint8_t protocol, size_t *ret_n)
{
	size_t n = 0, need = m->n_chain * NP_INSPECT_PORTS_MAX;

	if (ARRAY_RESERVE(m->claims, m->claims_size, need) < 0 ||
	    ARRAY_RESERVE(m->segments, m->segments_size, segments_room(need, NP_INSPECT_PORTS_MAX + 1)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_chain; i++) {
		const struct pattern *p = m->chain[i];

		if (!(p->protocols & protocol))
			continue;
		/* A condition on requests can be met where requests are seen, and nowhere else: there a deny of some
		 * refuses all. */
		if (!p->inspected && (rule_of(m, p)->action == ACTION_DENY || !rule_asks_request(rule_of(m, p))))
			m->claims[n++] = (struct range){ p->first_port, p->last_port, (uint32_t)i };
		else if (protocol == PATTERN_TCP)
			for (size_t k = 0; k < m->policy->n_inspect_ports; k++) {
				uint16_t port = m->policy->inspect_ports[k];

				m->claims[n++] = (struct range){ port, port, (uint32_t)i };
			}
	}
	*ret_n = n;
	return 0;
}

/* The number that events carry: rules first, then those of FULL. No event speaks of the list for reading. */
static uint32_t rule_number(const struct making *m, const struct rule *rule)
{
	return rule->number + 1 + (is_full(m) ? (uint32_t)m->policy->n_rules : 0);
}

/* May the gate answer for this segment by itself? Port 53 is the DNS gate's, inspected ports are the inspector's unless
 * the rule says inspect: false. */
static bool segment_is_ours(const struct making *m, const struct range *segment, uint8_t protocol)
{
	const struct rule *rule = rule_of(m, m->chain[segment->owner]);

	if (is_full(m))
		return true;
	if (segment->first == 53)
		return false;
	if (protocol == PATTERN_TCP && policy_inspects(m->policy, segment->first))
		return rule->action == ACTION_ALLOW && !rule->inspect;
	return true;
}

/* Does a rule grant it, whichever may decide? For metadata addresses, which the gate refuses by itself unless one does. */
static bool chain_grants(const struct making *m, uint16_t port)
{
	for (size_t i = 0; i < m->n_chain; i++) {
		const struct pattern *p = m->chain[i];

		if (rule_of(m, p)->action != ACTION_DENY && p->protocols & PATTERN_TCP &&
		    (p->inspected || (p->first_port <= port && p->last_port >= port)))
			return true;
	}
	return false;
}

/* Later fragments have no port: they follow an allow of PROXIED, and a deny of FULL, that holds for any port. */
static int fragments_put(const struct making *m, const struct net_node *node, uint16_t protocol, size_t from,
			 struct port_rules *port_rules)
{
	uint32_t wanted = is_full(m) && !node->metadata ? ACTION_DENY : ACTION_ALLOW;

	for (size_t i = from; i < port_rules->n; i++)
		if (port_rules->items[i].action == wanted) {
			struct port_rule port_rule = { protocol, 0, 0, wanted, port_rules->items[i].rule };

			return port_rule_add(port_rules, &port_rule);
		}
	return 0;
}

static int ports_put(struct making *m, const struct net_node *node, uint8_t protocol, struct port_rules *port_rules)
{
	uint16_t cuts[NP_INSPECT_PORTS_MAX + 1] = { 53 }, number = protocol == PATTERN_TCP ? IPPROTO_TCP : IPPROTO_UDP;
	size_t n_claims, n_segments, from = port_rules->n;
	int r = claims_collect(m, protocol, &n_claims);

	if (r < 0 || !n_claims)
		return r;
	memcpy(cuts + 1, m->policy->inspect_ports, m->policy->n_inspect_ports * sizeof(*cuts));
	n_segments = segments_make(m->claims, n_claims, cuts, m->policy->n_inspect_ports + 1, m->segments);
	if (n_segments == SIZE_MAX)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n_segments; i++) {
		const struct rule *rule = rule_of(m, m->chain[m->segments[i].owner]);
		struct port_rule port_rule = { number, m->segments[i].first, m->segments[i].last, rule->action,
					       rule_number(m, rule) };

		if (segment_is_ours(m, &m->segments[i], protocol)) {
			r = port_rule_add(port_rules, &port_rule);
		} else if (node->metadata && port_rule.first != 53 && chain_grants(m, port_rule.first)) {
			port_rule.action = NP_LOOK; /* the inspector's: of one protocol, and of one port */
			r = port_rule_add(port_rules, &port_rule);
		}
	}
	return r ? r : fragments_put(m, node, number, from, port_rules);
}

/* In FULL there are protocols without ports. A rule that asks for no port speaks of them as well. */
static int portless_put(struct making *m, struct port_rules *port_rules)
{
	for (size_t i = 0; is_full(m) && i < m->n_chain; i++) {
		const struct pattern *p = m->chain[i];
		const struct rule *rule = rule_of(m, p);
		struct port_rule port_rule = { 0, 0, 0, rule->action, rule_number(m, rule) };

		if (p->protocols == (PATTERN_TCP | PATTERN_UDP) && p->first_port <= 1 && p->last_port == UINT16_MAX)
			return port_rule_add(port_rules, &port_rule);
	}
	return 0;
}

/* -- tables ------------------------------------------------------------------- */

struct block_writer {
	struct making *m;
	uint32_t class;
	const struct port_rule *port_rule;
};

static void port_write(void *data, uint16_t first, unsigned bits)
{
	struct block_writer *w = data;
	struct gate_tables *t = w->m->tables;

	if (t->n_ports == NP_NET_PORTS_MAX / 2) {
		w->m->error = -E2BIG;
		return;
	}
	t->ports[t->n_ports++] = (struct port_entry){
		.key = { .prefixlen = NP_PORT_FIXED_BITS + bits,
			 .class = w->class,
			 .protocol = w->port_rule->protocol,
			 .port = htons(first) },
		.value = { .action = w->port_rule->action, .rule = w->port_rule->rule },
	};
}

static void class_write(struct making *m, uint32_t class, const struct port_rules *port_rules)
{
	for (size_t i = 0; i < port_rules->n; i++) {
		struct block_writer w = { m, class, &port_rules->items[i] };

		if (port_rules->items[i].first)
			range_blocks(port_rules->items[i].first, port_rules->items[i].last, port_write, &w);
		else
			port_write(&w, 0, 16);
	}
}

static void net_write(struct making *m, const struct net_node *node, uint32_t class)
{
	struct gate_tables *t = m->tables;

	if (t->n_nets == NP_NETS_MAX / 2) {
		m->error = -E2BIG;
		return;
	}
	t->nets[t->n_nets++] = (struct net_entry){
		.key = { .prefixlen = NP_NET_FIXED_BITS + node->bits,
			 .set = (__u8)m->set,
			 .family = node->v4 ? 4 : 6,
			 .addr = node->addr },
		.class = class,
	};
}

static int node_make(struct making *m, const struct net_node *node, struct port_rules *port_rules)
{
	size_t index = (size_t)(node - m->nets->nodes);
	uint32_t class = 0, around = node->up ? m->class_of[node->up - m->nets->nodes] : 0;
	bool is_new = false;
	int r = chain_collect(m, node);

	port_rules->n = 0;
	if (r == 0)
		r = ports_put(m, node, PATTERN_TCP, port_rules);
	if (r == 0)
		r = ports_put(m, node, PATTERN_UDP, port_rules);
	if (r == 0)
		r = portless_put(m, port_rules);
	if (r == 0)
		r = classes_find(&m->classes, port_rules, &class, &is_new);
	if (r < 0)
		return r;
	for (size_t i = 0; m->set < LEVEL_COUNT && i < port_rules->n; i++)
		m->tables->direct |= port_rules->items[i].action == ACTION_ALLOW;
	m->class_of[index] = class;
	if (is_new)
		class_write(m, class, port_rules);
	if (class != around) /* else the range around it answers just so */
		net_write(m, node, class);
	return m->error;
}

static int set_make(struct making *m, uint32_t set)
{
	const struct policy *policy = m->policy;
	struct port_rules port_rules = { 0 };
	int r = 0;

	m->set = set;
	m->rules = is_full(m) ? policy->full : set == NP_SET_READ ? &policy->read_only : policy->rules;
	m->nets = is_full(m) ? policy->full_nets : set == NP_SET_READ ? policy->read_nets : policy->nets;
	m->class_of = calloc(m->nets->n + 1, sizeof(*m->class_of));
	if (!m->class_of)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < m->nets->n; i++)
		r = node_make(m, &m->nets->nodes[i], &port_rules);
	free(port_rules.items);
	free(m->class_of);
	m->class_of = NULL;
	return r;
}

static bool rule_has_nets(const struct policy *policy, const struct rule *rule)
{
	for (uint32_t i = 0; i < rule->n_patterns; i++)
		if (policy->patterns[rule->pattern + i].kind == PATTERN_NET)
			return true;
	return false;
}

/* Do the same address rules hold at both levels? */
static bool levels_agree(const struct policy *policy, unsigned a, unsigned b)
{
	for (size_t i = 0; i < policy->n_rules; i++) {
		uint8_t levels = policy->rules[i].levels;

		if ((levels >> a & 1) != (levels >> b & 1) && rule_has_nets(policy, &policy->rules[i]))
			return false;
	}
	return true;
}

static int sets_make(struct making *m)
{
	int r = 0;

	for (unsigned level = 0; r == 0 && level < LEVEL_COUNT; level++) {
		unsigned same = 0;

		while (same < level && !levels_agree(m->policy, same, level))
			same++;
		m->tables->sets |= (__u16)(same << level * 4);
		if (same == level)
			r = set_make(m, level);
	}
	if (r == 0 && m->policy->n_full) {
		m->tables->full_rules = true;
		r = set_make(m, NP_SET_FULL);
	}
	return r == 0 && m->policy->read_only.n_patterns ? set_make(m, NP_SET_READ) : r;
}

static struct np_listed *listed_at(struct gate_tables *tables, uint16_t port)
{
	size_t i = 0;

	while (i < tables->n_listed && tables->listed[i].port != port)
		i++;
	if (i == tables->n_listed)
		tables->listed[tables->n_listed++].port = port;
	return &tables->listed[i].value;
}

static void listed_make(const struct policy *policy, struct gate_tables *tables)
{
	tables->direct |= policy->n_host_loopback > 0;
	for (size_t i = 0; i < policy->n_host_loopback; i++)
		listed_at(tables, policy->host_loopback[i])->host_modes = 1 << NP_FULL | 1 << NP_PROXIED;
	/* FULL without a resolver would be FULL in name only, and many hosts have theirs on loopback. */
	listed_at(tables, 53)->host_modes |= 1 << NP_FULL;
	for (size_t i = 0; i < policy->n_inspect_ports; i++)
		listed_at(tables, policy->inspect_ports[i])->inspected = 1;
	for (size_t i = 0; i < policy->n_inbound; i++)
		listed_at(tables, policy->inbound[i])->inbound = 1;
}

int gate_tables_make(const struct policy *policy, struct gate_tables *ret)
{
	struct gate_tables tables = {
		.nets = calloc(NP_NETS_MAX / 2, sizeof(*tables.nets)),
		.ports = calloc(NP_NET_PORTS_MAX / 2, sizeof(*tables.ports)),
		.listed = calloc(NP_HOST_PORTS_MAX + NP_INSPECT_PORTS_MAX + NP_INBOUND_MAX + 1, sizeof(*tables.listed)),
	};
	struct making m = { .policy = policy, .tables = &tables, .classes = CLASSES_INIT };
	int r = -ENOMEM;

	if (tables.nets && tables.ports && tables.listed) {
		listed_make(policy, &tables);
		r = sets_make(&m);
	}
	classes_free(&m.classes);
	free(m.chain);
	free(m.claims);
	free(m.segments);
	if (r < 0)
		gate_tables_free(&tables);
	else
		*ret = tables;
	return r;
}

void gate_tables_free(struct gate_tables *tables)
{
	free(tables->nets);
	free(tables->ports);
	free(tables->listed);
	*tables = (struct gate_tables){ 0 };
}

const struct rule *gate_rule_find(const struct policy *policy, uint32_t number)
{
	if (!number)
		return NULL;
	if (number <= policy->n_rules)
		return &policy->rules[number - 1];
	number -= (uint32_t)policy->n_rules;
	return number <= policy->n_full ? &policy->full[number - 1] : NULL;
}

const struct pattern *gate_pattern_find(const struct policy *policy, const struct rule *rule,
					const struct np_event *event)
{
	const uint8_t protocol = event->protocol == IPPROTO_TCP ? PATTERN_TCP : PATTERN_UDP;
	const struct np_addr addr = np_addr_carried(&event->addr);

	for (uint32_t i = 0; i < rule->n_patterns; i++) {
		const struct pattern *p = &policy->patterns[rule->pattern + i];

		if (p->kind == PATTERN_NET && p->v4 == np_addr_is_v4(&addr) && net_holds(&p->addr, p->bits, &addr) &&
		    p->protocols & protocol && p->first_port <= event->port &&
		    (p->inspected || p->last_port >= event->port))
			return p;
	}
	return NULL;
}
