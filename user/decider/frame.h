/* SPDX-License-Identifier: MIT */
/*
 * The frames that a decider sends, one JSON object a line. Pure: bytes in, one struct out. Anything that the protocol
 * (docs/deciders.md) does not name is an error, and an error is the end of the channel: whoever is asked whether bytes may leave
 * is understood, or not believed at all.
 *
 *   {"type":"hello","version":1}
 *   {"type":"answer","id":7,"answer":"need_body","max":1024}
 *   {"type":"answer","id":7,"answer":"deny","reason":"...","remember":"host","ttl":300}
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "vocab/decision.h"

#define FRAME_VERSION 1

enum frame_type { FRAME_HELLO, FRAME_ANSWER };

struct frame {
	enum frame_type type;
	struct decision decision; /* of FRAME_ANSWER */
};

/* line is without its end. 0, or -EPROTO with what is wrong with it. */
int frame_read(const char *line, size_t len, struct frame *ret, const char **ret_problem);

/* What a decider was asked and has not answered, in the order of the numbers, which only rise. Zeroed: nothing. */
struct unanswered {
	size_t n;
	struct unanswered_one {
		uint64_t id;
		bool needed_body; /* it has asked to see that */
	} all[NP_DECIDER_UNANSWERED];
};
int unanswered_add(struct unanswered *unanswered, uint64_t id);	  /* 0; -E2BIG; -EPROTO: the number has not risen */
bool unanswered_take(struct unanswered *unanswered, uint64_t id); /* false: it was never asked, or is answered */
bool unanswered_need_body(struct unanswered *unanswered, uint64_t id); /* likewise, or it has had that already */
