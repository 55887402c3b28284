/* SPDX-License-Identifier: MIT */
/*
 * Sessions on disk (SQLite, WAL, synchronous=FULL): what was acknowledged is here. Rows of sandboxes, and of temporary sessions
 * but for what raises them, are written, but not synced: they outlive the daemon, and need not outlive the kernel, which takes
 * all cgroups with it. The store can raise and cannot lower: its only update of a level or a mode takes the maximum, in SQL,
 * and a trigger refuses anything else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vocab/limits.h"
#include "vocab/level.h"
#include "session/question.h"
#include "vocab/session_name.h"

struct store;

/* What a single run may do on the network, on top of its session's mode: the stricter wins. */
enum run_class {
	CLASS_OPEN, /* none was given: what the mode says */
	CLASS_NONE,
	CLASS_READ_ONLY,
	CLASS_WRITE, /* what the mode says, once it was approved */
};
enum np_mode class_mode(enum run_class class);		/* the least strict that it leaves */
const char *class_name(enum run_class class);		/* "" for CLASS_OPEN */
int class_parse(const char *name, enum run_class *ret); /* 0 or -EINVAL */

enum run_state {
	RUN_PENDING,
	RUN_RUNNING,
	RUN_COMPLETED,
	RUN_REJECTED,
	RUN_FAILED,
};
const char *run_state_name(enum run_state state);
int run_state_parse(const char *name, enum run_state *ret); /* 0 or -EINVAL */

#define RUN_WHO_SIZE 64

/* Times are 0 for what has not happened. */
struct run_row {
	uint64_t id; /* never used again */
	struct session_name session;
	enum run_class class;
	enum run_state state;
	char command[NP_RUN_COMMAND + 1]; /* a JSON array of texts */
	char options[NP_RUN_OPTIONS + 1]; /* a JSON object: how it is to be run */
	bool launched;			  /* by the daemon's launcher, and nobody else */
	char who[RUN_WHO_SIZE];		  /* asked for it */
	uint64_t created_us, expires_us, started_us, ended_us, lost_us;
	char sandbox[NP_SANDBOX_ID_MAX + 1]; /* "": it has none yet */
	char result[NP_RUN_RESULT + 1];	     /* a JSON object, or "" */
	bool decided, approved;
	char decider[RUN_WHO_SIZE];
	char reason[NP_REASON_TEXT_MAX + 1];
	uint64_t decided_us;
};

struct session_row {
	struct session_name name;
	struct np_rung rung; /* only ever tightens, even when a policy later says less */
	bool ended;
	uint64_t created_us; /* CLOCK_REALTIME */
	uint64_t ended_us;
	uint64_t used_us;  /* made, revived or ended; a sandbox of it was made or removed */
	unsigned datasets; /* how many */
	bool temporary;	   /* of one run that nobody comes back to: forgotten when that is over, its level too */
	bool workspace_due; /* it has ended, and what becomes of its workspace is still to be done; perhaps it is open again */
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
	struct np_rung rung;		     /* that it tells of; a notice has no generation */
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
	enum run_class class;
	uint64_t created_us;
};

/* path is the database file; it is made with mode 0600. -EPROTO when its schema version is unknown, or it
 * is no database of ours. */
int store_open(const char *path, struct store **ret);
void store_close(struct store *store);
/* Work that keeps commits short, done off their path: to be called periodically, and soon after fn was called, which
 * a commit does. */
void store_tend(struct store *store);
void store_on_due(struct store *store, void (*fn)(void *data), void *data);

/* All return 0 or -errno: -ENOENT no such row, -EEXIST, what sql_errno() says of the database (base/sql.h: -EBUSY locked,
 * -EUCLEAN corrupt, -EROFS, -ENOSPC), -EIO other failures. When one of them returns 0 the change is on the disk; of a
 * sandbox, and of a temporary session's beginning and end, in the file. */
/* New, or revives an ended one: then level, mode and generation are the maximum of the row and of what was recorded, and
 * created_us stays. -EEXIST when it is there and not ended. The notice (may be NULL) is written in the same transaction. */
int store_session_put(struct store *store, const struct session_row *row, struct notice_row *notice);
int store_session_get(struct store *store, const char *name, struct session_row *ret);
int store_session_end(struct store *store, const char *name, bool workspace_due, uint64_t now_us);
int store_temporary_end(struct store *store, const char *name, uint64_t now_us); /* it has no workspace */
/* Takes the maximum of each; adds the dataset (may be NULL) unless it is there: then its level is raised
 * to the maximum and the rest stays as it was first recorded. Adds the notice (may be NULL). One transaction.
 * -E2BIG when the session has NP_DATASETS_MAX and this would be one more: nothing was changed then. */
int store_session_raise(struct store *store, const char *name, const struct np_rung *rung,
			const struct dataset_row *dataset, struct notice_row *notice, bool *ret_dataset_new);
/*
 * The same in steps, for whoever cannot wait for all of it: an acknowledgement does not (raise_log.h). After begin() write() sets the raise on its way
 * to the disk, in a log of its own, and wait() waits until it is there; meanwhile check() sees whether the database can be written to. end()
 * is told what these two said. When it returns 0 the raise is on the disk, and the database follows as soon as
 * somebody writes to it or asks for a session, and at the latest in the next store_tend(); when it fails the database gets nothing of it. begin()
 * fails where this way is not to be had: then store_session_raise() does it. Nothing else is asked of the store between begin() and end().
 */
struct raise_entry;
int store_raise_begin(struct store *store, const struct raise_entry *entry);
void store_raise_write(struct store *store);
int store_raise_wait(struct store *store);
int store_raise_check(struct store *store, const char *name, uint32_t *ret_number); /* of the session's next notice */
int store_raise_end(struct store *store, int written, int checked);
int store_catch_up(struct store *store); /* has the database follow now. -errno: it cannot, and the log has it */
/* What followed is on the disk when it returns 0, and the log has room for other raises. To be called periodically. */
int store_sync(struct store *store);
/* What the database did not have at the start, and the log had. Each is told of once. */
#define STORE_REPLAYED 64
struct replayed_raise {
	struct session_name session;
	struct np_rung rung;
};
void store_replayed_each(struct store *store, void (*fn)(void *data, const struct replayed_raise *raise), void *data);
/* The each functions stop at a negative answer of fn and return it. fn may use the store; whether rows that
 * it writes are visited is undefined. */
int store_datasets_each(struct store *store, const char *name, int (*fn)(void *data, const struct dataset_row *row),
			void *data);

/* What a session is for, as its platform says; empty: nothing. */
struct context_row {
	char purpose[NP_PURPOSE_MAX + 1];
	char context[NP_CONTEXT_MAX + 1]; /* JSON */
};
/* NULL stays as it is. On disk when it returns. -ENOENT: no such session. */
int store_context_put(struct store *store, const char *name, const char *purpose, const char *context);
int store_context_get(struct store *store, const char *name, struct context_row *ret); /* -ENOENT: there is none */

/* Notices after that number, in order. */
int store_notices_each(struct store *store, const char *name, uint32_t after,
		       int (*fn)(void *data, const struct notice_row *row), void *data);
/* How far a reader has acknowledged the session's notices; 0 for one that is not known. */
int store_reader_get(struct store *store, const char *name, const char *reader, uint32_t *ret_upto);
/* Only ever moves it on. -ERANGE when there is no such notice yet: it would never be read. -E2BIG when the session has
 * NP_NOTICE_READERS others. */
int store_reader_put(struct store *store, const char *name, const char *reader, uint32_t upto);

/* Is the file where it was, and a database? -ESTALE, -EPROTO, or what reading it said. */
int store_check(struct store *store);
/*
 * What is forgotten, and what is not (store_lifetime.c). A session that has ended may go from the record; unless it was
 * temporary, or never rose, a row with its rung stays: one that comes back under that name starts from there. The triggers
 * in the file keep that, whoever writes: no session goes without its level, none comes back below it, and a level goes only
 * by store_level_release().
 */
unsigned store_sessions_count(const struct store *store); /* ended ones included; from memory, as those below */
unsigned store_sessions_ended(const struct store *store);
unsigned store_levels_count(const struct store *store);
int store_sessions_by_level(struct store *store, unsigned ret[static LEVEL_COUNT]); /* that have not ended */
/* At most limit sessions, by name, behind the name after ("": from the first). */
int store_sessions_page(struct store *store, const char *after, bool with_ended, unsigned limit,
			int (*fn)(void *data, const struct session_row *row), void *data);
/* Names of sessions that something is due for, the oldest first where there is an order. */
enum store_due {
	DUE_TEMPORARY, /* temporary, and ended or not used since then, without a sandbox or an open run */
	DUE_WORKSPACE, /* with workspace_due */
	DUE_IDLE,      /* not ended, not used since then, without a sandbox or an open run */
	DUE_OLD,       /* ended before that, without a sandbox or an open run */
	DUE_LEVEL,     /* not on record; went before that, and its level is remembered */
};
#define STORE_BATCH 64
struct store_names {
	size_t count, max;
	struct session_name names[STORE_BATCH];
};
/* At most max of them, and at most STORE_BATCH. */
int store_due(struct store *store, enum store_due due, uint64_t before_us, unsigned max, struct store_names *ret);
int store_session_seen_to(struct store *store, const char *name); /* its workspace */
/* All of them or none. -EPERM: one has not ended; -E2BIG: more than NP_LEVELS_MAX levels would be remembered. */
int store_sessions_forget(struct store *store, const struct session_name *names, size_t n, uint64_t now_us);
int store_temporary_forget(struct store *store, const struct session_name *names, size_t n, uint64_t now_us);
int store_level_get(struct store *store, const char *name, struct np_rung *ret); /* -ENOENT: none is remembered */
/* Of a session that is not on record: -EPERM else. None is fine. */
int store_level_release(struct store *store, const char *name);
int store_level_renew(struct store *store, const char *name, uint64_t now_us); /* as if it went now */

/* -EEXIST when the id is taken, -ENOENT when there is no such session. */
int store_sandbox_put(struct store *store, const struct sandbox_row *row);
/* Its cgroup is gone, and the row stays, with 0 for it: restarted.c. */
int store_sandbox_await(struct store *store, const char *id, uint64_t now_us);
int store_sandbox_remove(struct store *store, const char *id, uint64_t now_us); /* a missing row is fine */
int store_sandboxes_each(struct store *store, int (*fn)(void *data, const struct sandbox_row *row), void *data);

/*
 * Runs. That one of class write is approved before it runs is kept by triggers in the file, whoever writes there: a run
 * enters as pending, goes on to running only with its own approval, and what was approved never changes.
 */
/* Of *row: session, class, command, who, created_us, expires_us. -ENOENT: no such session; -E2BIG: NP_RUNS_PENDING wait;
 * -EDQUOT: NP_RUNS_PER_USER of this who's. */
int store_run_put(struct store *store, const struct run_row *row, uint64_t *ret_id);
int store_run_get(struct store *store, uint64_t id, struct run_row *ret);
/* The approval or the rejection, once. An approved run may start for NP_RUN_START_S. -EALREADY: it was decided
 * or is not pending any more. */
int store_run_decide(struct store *store, uint64_t id, bool approved, const char *who, const char *reason,
		     uint64_t now_us);
/* It is not to be started any more, whether it was approved or nobody has decided: rejected either way. */
int store_run_withdraw(struct store *store, uint64_t id, const char *who, const char *reason, uint64_t now_us);
/* -EPERM: not approved. -EALREADY: it is not pending, or its time is over. */
int store_run_start(struct store *store, uint64_t id, const char *sandbox, uint64_t now_us);
int store_run_lose(struct store *store, uint64_t id, uint64_t now_us); /* its sandbox is gone */
/* -EALREADY: it does not run. */
int store_run_end(struct store *store, uint64_t id, enum run_state state, const char *result, uint64_t now_us);
/* All of them, the newest first (session NULL), or one session's. */
int store_runs_each(struct store *store, const char *session, int (*fn)(void *data, const struct run_row *row),
		    void *data);
unsigned store_runs_asked(struct store *store); /* that wait for a person */
/* Those that are pending or running, the oldest first. */
int store_runs_open_each(struct store *store, int (*fn)(void *data, const struct run_row *row), void *data);

/* Who has started something in a session; a person as "uid 1000". Goes with the session. */
int store_starter_put(struct store *store, const struct session_name *name, const char *who);
int store_starter_is(struct store *store, const struct session_name *name, const char *who, bool *ret);
/* In any session of the same user. */
int store_starter_of_user(struct store *store, const struct session_name *name, const char *who, bool *ret);

/*
 * Questions. That one is answered once, by somebody, and that what is over stays so, is kept by triggers in the file.
 */
/* Of *row: all but its id and what became of it. -EPERM: one with that key waits already. */
int store_question_put(struct store *store, const struct question_row *row, uint64_t *ret_id);
int store_question_get(struct store *store, uint64_t id, struct question_row *ret);
/* state, answer, domain, who, reason, answered_us, until_us. -EALREADY: it does not wait any more. */
int store_question_answer(struct store *store, const struct question_row *row);
/* Without an answer: expired or void. -EALREADY likewise. */
int store_question_end(struct store *store, uint64_t id, enum question_state state, uint64_t now_us);
/* It is used, or holds no more; who took it back, or "". */
int store_answer_end(struct store *store, uint64_t id, const char *who, uint64_t now_us);
/* It was used, once, and who was to go on by it had left: it holds again. -EALREADY: it is no such answer, or has come back too often. */
int store_answer_return(struct store *store, uint64_t id);
/* Of an answer for always, which is in the policy: who took it out. -EALREADY: it is no such answer, or that is known. */
int store_grant_revoked(struct store *store, uint64_t id, const char *who);
/* What is ended in between is one transaction: on the disk when commit() returns 0, or none of it is. */
int store_questions_begin(struct store *store);
int store_questions_commit(struct store *store, int r); /* r: not 0 undoes it, and is returned */
/* The newest first; of one session, or (NULL) all; open: those that are not over. */
int store_questions_each(struct store *store, const char *session, bool open,
			 int (*fn)(void *data, const struct question_row *row), void *data);
/* Earlier answers in this session about this host. */
int store_questions_before(struct store *store, const struct question_row *row, unsigned *ret_allowed,
			   unsigned *ret_denied);
