/* SPDX-License-Identifier: MIT */
#include "kernel/old_gate.h"

#include <string.h>

#include "base/cleanup.h"

/* -- ABI 4 ---------------------------------------------------------------------------- */

#define ABI4_READ_ONLY 4 /* beside the level */

struct abi4_sandbox {
	__u32 mode;
	__u32 generation;
	__u32 level; /* 0..3, and ABI4_READ_ONLY */
	__u32 flows;
	__u64 raised_ns;
	struct np_meter meter;
	struct np_bucket queries;
	__s32 sockets;
	__u32 released;
	char session[136];
};
_Static_assert(sizeof(struct abi4_sandbox) == 216, "the layout of ABI 4 does not change any more");
_Static_assert(offsetof(struct abi4_sandbox, session) == 80, "the layout of ABI 4 does not change any more");
_Static_assert(NP_LABEL_SIZE == 136, "a label of ABI 4 fits");

static bool abi4_rung_read(const void *value, struct np_rung *ret)
{
	struct abi4_sandbox old;

	memcpy(&old, value, sizeof(old));
	*ret = (struct np_rung){ .mode = NP_NONE, .level = NP_LEVELS - 1, .generation = old.generation };
	if (old.mode < NP_FULL || old.mode > NP_NONE || old.level >= 2 * ABI4_READ_ONLY)
		return false;
	ret->mode = (enum np_mode)old.mode;
	ret->level = (__u8)(old.level % ABI4_READ_ONLY);
	ret->flags = old.level & ABI4_READ_ONLY ? NP_READ_ONLY : 0;
	return true;
}

/* -- ABI 5 ---------------------------------------------------------------------------- */

struct abi5_sandbox {
	struct np_rung rung;
	__u64 raised_ns;
	__u32 flows;
	__u32 slots;
	struct np_meter meter;
	struct np_bucket queries;
	struct np_bucket callers;
	__s32 sockets;
	__u32 released;
	char session[136];
};
_Static_assert(sizeof(struct abi5_sandbox) == 232, "the layout of ABI 5 does not change any more");
_Static_assert(offsetof(struct abi5_sandbox, session) == 96, "the layout of ABI 5 does not change any more");
_Static_assert(NP_LABEL_SIZE == 136, "a label of ABI 5 fits");

static bool abi5_rung_read(const void *value, struct np_rung *ret)
{
	struct abi5_sandbox old;

	memcpy(&old, value, sizeof(old));
	*ret = (struct np_rung){ .mode = NP_NONE, .level = NP_LEVELS - 1, .generation = old.rung.generation };
	if (!np_rung_is_valid(&old.rung))
		return false;
	*ret = old.rung;
	return true;
}

/* -- ABI 6 ---------------------------------------------------------------------------- */

/* By the cookie of a network namespace that `netpawl run` made. */
struct abi6_namespace {
	char inspector[64];
	__u64 cgroup_id;
};
_Static_assert(sizeof(struct abi6_namespace) == 72, "the layout of ABI 6 does not change any more");

static void abi6_home_read(__u64 key, const void *value, __u64 *ret_cgroup_id, struct np_home *ret)
{
	struct abi6_namespace old;

	memcpy(&old, value, sizeof(old));
	*ret_cgroup_id = old.cgroup_id;
	*ret = (struct np_home){ .netns = key };
}

/* -- ABI 7 ---------------------------------------------------------------------------- */

struct abi7_home {
	__u64 netns;
	__u32 bound;
	__u32 pad;
};
_Static_assert(sizeof(struct abi7_home) == 16, "the layout of ABI 7 does not change any more");

static void abi7_home_read(__u64 key, const void *value, __u64 *ret_cgroup_id, struct np_home *ret)
{
	struct abi7_home old;

	memcpy(&old, value, sizeof(old));
	*ret_cgroup_id = key;
	*ret = (struct np_home){ .netns = old.netns, .bound = old.bound };
}

/* -- the table --------------------------------------------------------------------------- */

static const struct old_gate old_gates[] = {
	{ 4, "np_boxes", sizeof(struct abi4_sandbox), offsetof(struct abi4_sandbox, session), abi4_rung_read, NULL, 0,
	  NULL },
	{ 5, "np_sandboxes", sizeof(struct abi5_sandbox), offsetof(struct abi5_sandbox, session), abi5_rung_read, NULL,
	  0, NULL },
	/* likewise, and np_namespaces */
	{ 6, "np_sandboxes", sizeof(struct abi5_sandbox), offsetof(struct abi5_sandbox, session), abi5_rung_read,
	  "np_namespaces", sizeof(struct abi6_namespace), abi6_home_read },
	/* likewise, and np_homes */
	{ 7, "np_sandboxes", sizeof(struct abi5_sandbox), offsetof(struct abi5_sandbox, session), abi5_rung_read,
	  "np_homes", sizeof(struct abi7_home), abi7_home_read },
};

const struct old_gate *old_gate_at(size_t i)
{
	return i < ARRAY_SIZE(old_gates) ? &old_gates[i] : NULL;
}

const struct old_gate *old_gate_find(unsigned version)
{
	for (size_t i = 0; i < ARRAY_SIZE(old_gates); i++)
		if (old_gates[i].version == version)
			return &old_gates[i];
	return NULL;
}
