/* SPDX-License-Identifier: MIT */
/* From one part's form of a thing to another part's. No decisions. */
#pragma once

#include "daemon/policy_reload.h"
#include "events/event.h"
#include "link/link.h"
#include "kernel/kernel.h"
#include "session/service.h"

/* An event of the gate with the words it borrows. */
struct translated {
	struct event event;
	char address[ADDR_TEXT_SIZE + sizeof(((struct np_event *)0)->unix_path)];
	char comm[17];
	char rule[PLACE_TEXT_SIZE];
};

/* What an inspector tells of a request, with the words it borrows: those, and the tails. */
struct requested {
	struct event event;
	struct link_request request;
};
/* False when it tells nonsense: an inspector reads hostile bytes, and is not believed more than need be. */
bool translate_request(const struct link_request *reported, const char *const tails[LINK_TAILS],
		       const struct sandbox_info *sandbox, struct requested *ret);

/* sandbox may be NULL, and so may policies. now_ns and wall_us are the two clocks at this moment. */
void translate_event(const struct np_event *raw, const struct sandbox_info *sandbox,
		     const struct loaded_policy *policies, uint64_t now_ns, uint64_t wall_us, struct translated *ret);
