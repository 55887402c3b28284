/* SPDX-License-Identifier: MIT */
/*
 * The names of one session that have a synthetic address, each known by an index from 1 to NAMES_ALL. Pure: time is
 * passed in, in milliseconds of a monotonic clock. Names that may be reached and names that are refused have indexes of
 * their own, so that a flood of the latter takes nothing from the former: 1 to NP_NAMES_PER_SESSION, and
 * NP_REFUSED_NAMES behind those. A name may have one of each kind. An index goes to another name only when no new one
 * is left and the name was neither queried nor its address used for NP_NAME_REST_MS (NP_REFUSED_REST_MS), because
 * sockets and caches remember addresses. The daemon stores an index before it gives it out: one that was forgotten in a
 * restart would be given to another name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "vocab/limits.h"

struct names;

enum names_kind { NAMES_ALLOWED, NAMES_REFUSED, NAMES_KINDS };
#define NAMES_ALL (NP_NAMES_PER_SESSION + NP_REFUSED_NAMES)

int names_new(const struct hash_key *key, struct names **ret); /* 0 or -ENOMEM */
void names_free(struct names *names);			       /* NULL is fine */

/* The index of a canonical name, its own or a new one. 0; -ENOSPC when none is free (refuse); -EINVAL when it is no name;
 * -ENOMEM. */
int names_get(struct names *names, enum names_kind kind, const char *name, uint64_t now_ms, uint32_t *ret_index);
/* The name of an index, or NULL. It is the table's, until the next names_get() or names_restore(). */
const char *names_find(const struct names *names, uint32_t index);
/* The index of that kind of a name, or 0; it does not count as a use. */
uint32_t names_index(const struct names *names, enum names_kind kind, const char *name);
uint64_t names_used_ms(const struct names *names, uint32_t index); /* when the name was last asked for or used */
/* A connection used the address. An index that has no name is none of ours: nothing happens. */
void names_touch(struct names *names, uint32_t index, uint64_t now_ms);

/* An entry that another process made, or an earlier one: what had the index before goes. It counts as used now, for clocks
 * differ and the other's last uses may not have been stored. 0; -EEXIST when the name has another index; -EINVAL;
 * -ENOMEM. */
int names_restore(struct names *names, uint32_t index, const char *name, uint64_t now_ms);

size_t names_count(const struct names *names, enum names_kind kind);
