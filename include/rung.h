/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How far a ratchet has turned: that of a session, and that of each of its sandboxes. One struct wherever it is kept,
 * sent or recorded, so that it is copied whole; and one aligned word, so that the gate loads and replaces it whole: no
 * decision is ever made, or recorded, at half of one rung and half of the next.
 */
#pragma once

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Ordered: a larger number is stricter. */
enum np_mode {
	NP_FULL = 1,
	NP_PROXIED = 2,
	NP_NONE = 3,
} __attribute__((packed));

#define NP_LEVELS 4 /* PUBLIC to SECRET: enum level */

/* Flags. A flag that is set stays set. */
#define NP_READ_ONLY \
	1 /* only the inspector may be reached, which lets only requests pass that read; never of a session */
#define NP_RUNG_FLAGS NP_READ_ONLY

struct np_rung {
	enum np_mode mode; /* 0: there is none, nothing is registered */
	__u8 level;	   /* of its session, below NP_LEVELS: which of the policy's rules hold */
	__u8 flags;
	__u8 pad;
	__u32 generation; /* goes up with every change */
} __attribute__((aligned(8)));
_Static_assert(sizeof(enum np_mode) == 1, "np_mode layout");
_Static_assert(sizeof(struct np_rung) == 8, "np_rung layout");
_Static_assert(__builtin_offsetof(struct np_rung, level) == 1, "np_rung layout");
_Static_assert(__builtin_offsetof(struct np_rung, flags) == 2, "np_rung layout");
_Static_assert(__builtin_offsetof(struct np_rung, generation) == 4, "np_rung layout");

/* Is it one that may be asked for? */
static __always_inline _Bool np_rung_is_valid(const struct np_rung *r)
{
	return r->mode >= NP_FULL && r->mode <= NP_NONE && r->level < NP_LEVELS && !(r->flags & ~NP_RUNG_FLAGS) &&
	       !r->pad;
}

/* The stricter of the two, member by member. */
static __always_inline struct np_rung np_rung_join(struct np_rung a, struct np_rung b)
{
	if (b.mode > a.mode)
		a.mode = b.mode;
	if (b.level > a.level)
		a.level = b.level;
	if (b.generation > a.generation)
		a.generation = b.generation;
	a.flags |= b.flags;
	return a;
}

/* Does it permit anything that the other one forbids? Generations do not matter for that. */
static __always_inline _Bool np_rung_is_looser(const struct np_rung *r, const struct np_rung *than)
{
	return r->mode < than->mode || r->level < than->level || (than->flags & ~r->flags);
}

static __always_inline _Bool np_rung_equal(const struct np_rung *a, const struct np_rung *b)
{
	return a->mode == b->mode && a->level == b->level && a->flags == b->flags && a->generation == b->generation;
}
