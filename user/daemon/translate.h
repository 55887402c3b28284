/* SPDX-License-Identifier: MIT */
/* From one part's form of a thing to another part's. No decisions. */
#ifndef NP_DAEMON_TRANSLATE_H
#define NP_DAEMON_TRANSLATE_H

#include "events/event.h"
#include "kernel/kernel.h"
#include "policy/policy.h"
#include "session/service.h"

/* An event of the gate with the words it borrows. */
struct translated {
	struct event event;
	char address[ADDR_TEXT_SIZE + sizeof(((struct np_event *)0)->unix_path)];
	char comm[17];
};

/* sandbox may be NULL. now_ns and wall_us are the two clocks at this moment. */
void translate_event(const struct np_event *raw, const struct sandbox *sandbox, uint64_t now_ns, uint64_t wall_us,
		     struct translated *ret);

/* The policy's host_loopback, and the resolver's port in FULL. ports has room for NP_HOST_PORTS_MAX + 1. */
size_t policy_host_ports(const struct policy *policy, struct host_port *ports);

#endif
