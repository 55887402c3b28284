/* SPDX-License-Identifier: MIT */
/* What the daemon says to an inspector that asked: one list for both. */
#pragma once

enum question_reply {
	REPLY_PENDING, /* there is a question, and nobody has answered yet */
	REPLY_ALLOWED,
	REPLY_DENIED,
	REPLY_AGAIN, /* the question is void, or the level or the policy is another: judge it again, and ask again if need be */
	REPLY_REFUSED, /* nobody is asked, or nobody answered in time */
	REPLY_OVER,    /* to nobody in particular: what this question let pass ends */
	REPLY_BODY,    /* the decider wants to see how its body begins, and answers then */
	REPLIES,
};
