/* SPDX-License-Identifier: MIT */
/* The answer to a POST, of a receiver that may be anybody: HTTP/1.0 or 1.1 with "Connection: close" asked for. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct post_answer {
	unsigned status;
	unsigned retry_after_ms; /* Retry-After in seconds; 0: none that is understood. A date is not: clocks differ */
};

/* Of the bytes so far. 1: the head is there, and *ret; 0: more must come; -EPROTO: that is no answer. What follows the head is
 * nobody's concern: the status says whether the events were taken. */
int post_answer_read(const char *data, size_t len, struct post_answer *ret);
