/* SPDX-License-Identifier: MIT */
/* The part of a policy that the gate decides by itself, as entries for its maps. kernel/ loads them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rules.h"

struct np_event;
struct pattern;
struct policy;
struct rule;

/* Keys have epoch 0: whoever loads them says which one it is. */
struct net_entry {
	struct np_net_key key;
	__u32 class;
};
struct port_entry {
	struct np_port_key key;
	struct np_port_rule value;
};
struct listed_entry {
	__u16 port;
	struct np_listed value;
};

struct gate_tables {
	struct net_entry *nets;
	size_t n_nets;
	struct port_entry *ports;
	size_t n_ports;
	struct listed_entry *listed;
	size_t n_listed;
	__u16 sets; /* as np_in_force has them */
	bool full_rules;
	bool direct; /* a rule of PROXIED, or host_loopback, lets traffic pass that no inspector carries */
};

/* 0; -E2BIG when it is more than the gate's maps hold; -ENOMEM. */
int gate_tables_make(const struct policy *policy, struct gate_tables *ret);
void gate_tables_free(struct gate_tables *tables);

/* The rule that np_port_rule.rule speaks of, or NULL. */
const struct rule *gate_rule_find(const struct policy *policy, __u32 number);
/* The destination of the rule that a decision of the gate was about, or NULL. */
const struct pattern *gate_pattern_find(const struct policy *policy, const struct rule *rule,
					const struct np_event *event);
