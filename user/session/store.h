/* SPDX-License-Identifier: MIT */
/*
 * Sessions on disk (SQLite, WAL, synchronous=FULL): what was acknowledged is here.
 * The store can raise and cannot lower: its only update of a level or a mode takes
 * the maximum, in SQL, and a trigger refuses anything else.
 */
#ifndef NP_STORE_H
#define NP_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "policy/level.h"
#include "session/name.h"

struct store;

struct session_row {
	struct session_name name;
	enum level level;
	enum np_mode mode; /* only ever tightens, even when a policy later says less */
	uint32_t generation;
	bool ended;
	uint64_t created_us; /* CLOCK_REALTIME */
	uint64_t ended_us;
	unsigned datasets; /* how many */
};

struct dataset_row {
	char name[NP_DATASET_MAX + 1];
	enum level level;
	char reason[NP_REASON_TEXT_MAX + 1];
	uint64_t added_us;
};

/* What an agent is told of a change of mode. A session has at most NP_NOTICES_PER_SESSION of them. */
struct notice_row {
	uint32_t number; /* of the session's notices, from 1; given by the store */
	uint64_t made_us;
	enum level level;
	enum np_mode mode;
	char dataset[NP_DATASET_MAX + 1];    /* empty: none was named */
	char reason[NP_REASON_TEXT_MAX + 1]; /* empty: none was given */
	const char *text;		     /* borrowed */
};

/* A sandbox on record, so that a restarted daemon knows whose cgroup it finds. */
struct sandbox_row {
	char id[NP_SANDBOX_ID_MAX + 1];
	struct session_name session;
	uint64_t cgroup_id;
	char path[4096];
	bool adopted;
	uint64_t created_us;
};

/* path is the database file; it is made with mode 0600. -EPROTO when its schema version is unknown, or it
 * is no database of ours. */
int store_open(const char *path, struct store **ret);
void store_close(struct store *store);

/* All return 0 or -errno: -ENOENT no such row, -EEXIST, -ENOSPC disk full, -EIO other failures.
 * When one of them returns 0 the change is on the disk. */
/* New, or revives an ended one: then level, mode and generation are the maximum of the row and of what was
 * recorded, and created_us stays. -EEXIST when it is there and not ended. The notice (may be NULL) is written in the
 * same transaction. */
int store_session_put(struct store *store, const struct session_row *row, const struct notice_row *notice);
int store_session_get(struct store *store, const char *name, struct session_row *ret);
int store_session_end(struct store *store, const char *name, uint64_t now_us);
/* Takes the maximum of each; adds the dataset (may be NULL) unless it is there: then its level is raised
 * to the maximum and the rest stays as it was first recorded. Adds the notice (may be NULL). One transaction.
 * -E2BIG when the session has NP_DATASETS_MAX and this would be one more: nothing was changed then. */
int store_session_raise(struct store *store, const char *name, enum level level, enum np_mode mode, uint32_t generation,
			const struct dataset_row *dataset, const struct notice_row *notice, bool *ret_dataset_new);
/* The each functions stop at a negative answer of fn and return it. fn may use the store; whether rows that
 * it writes are visited is undefined. */
int store_sessions_each(struct store *store, int (*fn)(void *data, const struct session_row *row), void *data);
int store_datasets_each(struct store *store, const char *name, int (*fn)(void *data, const struct dataset_row *row),
			void *data);

/* Notices after that number, in order. */
int store_notices_each(struct store *store, const char *name, uint32_t after,
		       int (*fn)(void *data, const struct notice_row *row), void *data);
/* How far a reader has acknowledged the session's notices; 0 for one that is not known. */
int store_reader_get(struct store *store, const char *name, const char *reader, uint32_t *ret_upto);
/* Only ever moves it on. -ERANGE when there is no such notice yet: it would never be read. -E2BIG when the session has
 * NP_NOTICE_READERS others. */
int store_reader_put(struct store *store, const char *name, const char *reader, uint32_t upto);

unsigned store_sessions_count(const struct store *store); /* ended ones included; from memory */

/* -EEXIST when the id is taken, -ENOENT when there is no such session. */
int store_sandbox_put(struct store *store, const struct sandbox_row *row);
int store_sandbox_remove(struct store *store, const char *id); /* a missing row is fine */
int store_sandboxes_each(struct store *store, int (*fn)(void *data, const struct sandbox_row *row), void *data);

#endif
