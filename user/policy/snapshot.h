/* SPDX-License-Identifier: MIT */
/* A policy as the bytes it was read from, for a process that has no files: read there, it is the same policy. */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"

/* As policy_load_file(), and writes down what was read. */
int policy_record_file(const char *path, struct buf *record, struct policy **ret, struct problems *problems);
int policy_record_default(struct buf *record, struct policy **ret);

/* What a record holds. -EINVAL when it is none. */
int policy_load_snapshot(const void *data, size_t len, struct policy **ret, struct problems *problems);

/* The files of one, in the order they were read; -EINVAL when it is none. */
typedef int snapshot_file_fn(void *ctx, const char *name, const char *text, size_t len);
int snapshot_each(const void *data, size_t len, const char **ret_shown, const char **ret_first, snapshot_file_fn *fn,
		  void *ctx);

void snapshot_begin(struct buf *record, const char *shown, const char *first);
void snapshot_add(struct buf *record, const char *name, const char *text, size_t len);
