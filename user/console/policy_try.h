/* SPDX-License-Identifier: MIT */
/*
 * A policy that somebody is writing, looked at before anybody is judged by it: its errors and warnings, what .case lines say
 * of it, and what it would have said to the requests of the history. Nothing is stored, and the daemon does not hear of it.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* source: as GET /v1/policy/source has it. name and text: the file that is other than there. cases: lines of a .case file, without
 * the policy, or NULL. events: NDJSON of the history, or NULL.
 * {ok, hash, rules, errors, warnings; failed: of cases; compared, changes: of events}; NULL: out of memory, or source is none. */
json_t *policy_try(const json_t *source, const char *name, const char *text, const char *cases,
		   const struct buf *events);
