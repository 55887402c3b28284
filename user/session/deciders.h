/* SPDX-License-Identifier: MIT */
/* What the session service needs of the deciders, as an interface beside struct inspectors: supervisor/ provides it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct decider_calls {
	void *ctx;
	/* Asks, by a line of JSON, and does not wait: service_decision() is called once, later, with the answer or without one
	 * (DECISION_NONE), and perhaps once before with DECISION_NEED_BODY. -errno: it cannot be asked, for what *ret_why says; nothing is called then. */
	int (*ask)(void *ctx, const char *decider, uint64_t id, const char *line, size_t len, const char **ret_why);
	int (*show)(void *ctx, uint64_t id, const char *line, size_t len); /* what it needs; 0 or -errno */
	void (*withdraw)(void *ctx,
			 uint64_t id); /* nobody waits for the answer: it does not come. An unknown one is fine */
};
