/* SPDX-License-Identifier: MIT */
/*
 * What gates of older ABI versions left in their maps, as far as an upgrade has to read it: which sandboxes there are and
 * how far each ratchet has turned, and in which network namespace each is. No BPF and no I/O here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox.h"

struct old_gate {
	unsigned version;  /* its NP_ABI_VERSION: the name of its directory is "v%u" */
	const char *map;   /* of its sandboxes; the key is the cgroup id */
	size_t value_size; /* of that map */
	size_t session_at; /* where the label is, of NP_LABEL_SIZE bytes */
	/* False: no gate of that version has written this. *ret then is the strictest rung there is. */
	bool (*rung_read)(const void *value, struct np_rung *ret);
	/* Which of them live in another network namespace than the host's; NULL: none did. */
	const char *homes;
	size_t home_size; /* of a value; keys have 64 bits */
	void (*home_read)(__u64 key, const void *value, __u64 *ret_cgroup_id, struct np_home *ret);
};

/* By number, from 0; NULL after the last. */
const struct old_gate *old_gate_at(size_t i);
/* NULL: that version cannot be read. */
const struct old_gate *old_gate_find(unsigned version);
