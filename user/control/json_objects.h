/* SPDX-License-Identifier: MIT */
/* Sessions and sandboxes as the API shows them. NULL when memory ran out. */
#pragma once

#include <jansson.h>

#include "session/service.h"

/* datasets is what stands for the member of that name: a count or an array. Taken over. */
/* Destinations of the policy, in words; of many the first. */
json_t *patterns_array(const struct policy *policy, const struct pattern_run *run);
json_t *session_object(const struct session_row *row, json_t *datasets);
json_t *dataset_object(const struct dataset_row *row);
json_t *dataset_names(struct store *store, const char *session);       /* an array of what it holds */
void counts_put(const struct sandbox_counts *counts, struct buf *out); /* members of an object */
void sandbox_put(const struct sandbox_info *sandbox, struct buf *out); /* the one form of it; */
json_t *sandbox_object(const struct sandbox_info *sandbox);
/* With what it uses of CPU and memory now. */
json_t *sandbox_object_used(const struct sandbox_info *sandbox);
/* NULL: it is the host's, or out of memory. */
json_t *netns_object(const struct sandbox_netns *netns);
json_t *run_object(const struct run_row *row);
json_t *question_object(const struct question_row *row);
json_t *escalation_object(const struct escalation *escalation);

/* Array of the sandboxes of a session, NULL for all of them; at most NP_LIST_MAX. */
json_t *sandboxes_array(struct service *service, const char *session, bool *ret_cut_short);

/* Appends, and takes over item, also when it fails. 0, -ENOMEM, or -E2BIG when the array has NP_LIST_MAX items. */
int array_add(json_t *array, json_t *item);

/* forwards.c */
json_t *forwards_array(struct service *service, const char *session); /* NULL: out of memory */
