/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The policy's address rules as the gate reads them. Rules are first-match, tries are longest-match; the
 * compiler in user/policy joins the two: every prefix that some rule names is an entry of np_nets, and its
 * class stands for all that the rules say, in their order, of the ports at such an address.
 *
 *   (set, address) --np_nets--> class      (class, protocol, port) --np_net_ports--> action and rule
 *
 * Every key carries the epoch of its policy. A reload writes the new epoch's entries beside the old ones and then
 * sets np_in_force, one word: a packet sees the old policy or the new one, never parts of both.
 */
#pragma once

#include "sandbox.h"

/* Which of the policy's lists an address is judged by: 0..3, see np_in_force.sets, or what is refused even in FULL. */
#define NP_SET_FULL 4
/* What a sandbox that may only read (NP_READ_ONLY) reaches past the inspector, of what its own list allows. */
#define NP_SET_READ 5

enum np_action {
	NP_ALLOW = 1,
	NP_DENY,
	NP_ASK,
	NP_DECIDE,
	NP_READ, /* in no table: a rule allows it, but the sandbox may only read */
	NP_LOOK, /* on an inspected port: rules may grant it, and the inspector looks which. Only in tables for metadata */
};

/* The one entry of np_in_force. */
struct np_in_force {
	__u32 epoch;	  /* 0: no policy was ever loaded, so nothing is allowed by rule */
	__u16 sets;	  /* four bits a level, PUBLIC lowest: levels with the same rules share a set */
	__u16 full_rules; /* the FULL list says more than the metadata addresses: look there for every address */
};
_Static_assert(sizeof(struct np_in_force) == 8, "np_in_force layout: written and read as one word");

struct np_net_key {
	__u32 prefixlen; /* NP_NET_FIXED_BITS + bits of the address */
	__u32 epoch;
	__u8 set;
	__u8 family; /* 4 or 6: an IPv6 range never holds an IPv4 address, not even ::/0 */
	__u16 pad;
	__u32 pad2;
	struct np_addr addr; /* as np_addr_carried() gives it */
};
#define NP_NET_FIXED_BITS 96
_Static_assert(sizeof(struct np_net_key) == 32, "np_net_key layout");

struct np_port_key {
	__u32 prefixlen; /* NP_PORT_FIXED_BITS + bits of the port */
	__u32 epoch;
	__u32 class;
	__u16 protocol; /* IPPROTO_TCP or IPPROTO_UDP in host order; 0 stands for all that have no ports */
	__u16 port;	/* network order; 0 stands for a later fragment, which has none */
};
#define NP_PORT_FIXED_BITS 80
_Static_assert(sizeof(struct np_port_key) == 16, "np_port_key layout");

struct np_port_rule {
	enum np_action action;
	__u32 rule; /* number of the rule in its policy, from 1: user space knows its file and line */
};
_Static_assert(sizeof(struct np_port_rule) == 8, "np_port_rule layout");

/* What the policy says of a port number as such. Key and value of np_ports. */
struct np_listed_key {
	__u32 epoch;
	__u32 port; /* host order */
};
struct np_listed {
	__u8 host_modes; /* host_loopback: bit (1 << mode) for each mode in which a sandbox may use it */
	__u8 inspected;	 /* inspect_ports */
	__u8 inbound;	 /* callers from beyond the host reach it in FULL */
	__u8 pad;
};
