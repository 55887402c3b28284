/* SPDX-License-Identifier: MIT */
/*
 * Inside the session service. Files: service.c (the service, sessions, look-ups), sweep.c (what is due later), session.c (a session
 * in memory), raise.c (the ratchet: kernel, inspectors, cut, record), record.c (its last step), raise_outcome.c (what is told of it), verb.c (a verb's end, and its calls to
 * the inspectors), sandbox.c (one sandbox in memory and its end), ended_sandboxes.c (what is known of them then), sandboxes.c (make, remove), adoption.c, restarted.c (containers that
 * come back), placed.c (processes that others put there), parents.c (cgroups for containers), kept_sandboxes.c (those that stay),
 * runs.c (their times have a header of their own, run_times.h), starters.c, decisions.c (what deciders are asked), forwards.c, recover.c, reload.c (a new policy), notices.c, lifetime.c
 * (what is forgotten). What people are asked has a header of its own, questions_internal.h.
 */
#pragma once

#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/steady_clock.h"
#include "events/event.h"
#include "session/service.h"
#include "base/hash.h"
#include "base/table.h"
#include "session/decisions.h"
#include "vocab/limits.h"

#define SWEEP_BATCH \
	64 /* sandboxes that one sweep looks at: a few system calls each, well below 10 ms in all  \
	    */
#define PARENT_NAME_SIZE (NP_SESSION_MAX + 32) /* netpawl-USER.SESSION.HASH.slice */
#define CUT_BATCH	 1024		       /* sandboxes named in one call of gate.cut */

enum session_status {
	SESSION_NEW,   /* not in the store */
	SESSION_ENDED, /* in the store, ended: using it revives it */
	SESSION_OPEN,
};

TAILQ_HEAD(sandbox_list, sandbox);

/*
 * A session in memory: it has sandboxes, or a raise that could not be recorded, or a verb is at work on it. What stands here is
 * never looser than what the store says, so a new sandbox starts from here.
 */
struct session {
	struct table_node node;
	struct session_name name;
	enum session_status status;
	struct np_rung stands;	 /* holds from now on, recorded or not */
	struct np_rung recorded; /* on disk; for a new session what it starts from */
	uint64_t owed_us;	 /* since when ... */
	struct np_rung owed;	 /* ... this holds, which could not be recorded: session_owed_us() */
	bool dirty;		 /* a new session's level could not be recorded: it must not be forgotten */
	bool temporary;		 /* see struct session_row */
	bool workspace_due;	 /* see struct session_row */
	unsigned pins;		 /* verbs at work: not freed meanwhile */
	struct sandbox_list sandboxes;
	unsigned sandbox_count;
	bool published;		/* the file with its notices has all of them, and as many bytes as ... */
	size_t published_bytes; /* ... these */
};

/* The end of a sandbox, step by step; a step that failed is tried again, those before it are not. */
enum sandbox_stage {
	SANDBOX_RUNS,
	SANDBOX_LINGERS, /* no process lives in it, but connections may that its programs closed: the gate still holds them */
	SANDBOX_RELEASED, /* its cgroup is removed, or gone, or has no programs any more */
	SANDBOX_RETIRED,  /* the kernel has no entry; what is left is our record */
};

struct sandbox {
	struct sandbox_info pub; /* first: a pointer to it is a pointer to the sandbox */
	struct session *session;
	struct table_node by_id, by_cgroup;
	TAILQ_ENTRY(sandbox) of_all, of_session, of_care;
	enum sandbox_stage stage;
	bool registered; /* the kernel has an entry: pub.rung is its */
	bool stale;	 /* known from before a restart: it is raised again whatever the tables say */
	bool recovered;	 /* likewise: whether it was ever populated is not known */
	bool recorded;	 /* in the store */
	bool announced;	 /* an event told of it, so one tells of its end */
	bool unfinished; /* an adoption that failed half-way: the same call again finishes it */
	bool gone;	 /* its cgroup was found to be gone, rather than removed by us */
	bool dying;	 /* its end has begun and waits for something: hidden from the API */
	bool unsent;	 /* the kernel holds pub.rung, the inspectors were not sent it yet */
	bool ending;	 /* the inspectors know that its processes are killed */
	bool uncut;	 /* tightened, but what was open is not cut yet */
	bool left;	 /* over, and the inspectors have ended what they had of it, though its cgroup lives on */
	bool looked;	 /* the sweep has just looked for orphans, and has: */
	bool has_orphans;
	uint64_t made_us;    /* when pub.created_us was, by boot_us() */
	uint64_t active_ns;  /* when pub.active_us was: a clock that is set ends nobody early */
	uint64_t linger_ns;  /* until when a sandbox that is over waits for them */
	bool care;	     /* on the list of those that the sweep must not forget */
	bool idle;	     /* a kept one that is removed because nobody used it: told once */
	pid_t starting;	     /* an adopted one's: see service_sandbox_adopt() */
	bool placed;	     /* made, and its processes do not come by `netpawl run`: see placed.c; or again */
	bool again;	     /* an adopted container that was started again: restarted.c */
	bool settled;	     /* those that were there at first have been looked at */
	uint64_t entered_ns; /* when the first of them was found there */
};

/* A forward. */
struct forward {
	struct forward_row pub;
	LIST_ENTRY(forward) next;
	uint64_t cgroup_id;
	uint64_t seen_ns; /* when its owner last spoke */
	uint64_t cookies[NP_FORWARD_SOCKETS];
	size_t n_cookies;
};

LIST_HEAD(forward_list, forward);

/* What ended a forward, for whoever still asks. */
struct forward_end {
	uint64_t id;
	char cause[160];
};

/* What is left of a sandbox that was removed. */
struct ended_sandbox {
	char id[NP_SANDBOX_ID_MAX + 1];
	struct sandbox_counts counts;
};

/* A question in memory: it waits, or its answer holds. */
struct question_held {
	TAILQ_ENTRY(question_held) next;
	struct question_waiter waiter;
	bool shown; /* it is what the question shows: an answer for once is for such a one */
};
TAILQ_HEAD(question_held_list, question_held);

struct question_end {
	enum question_state state; /* of one that was pending */
	uint64_t us;
	char who[QUESTION_WHO_SIZE];
};

struct question {
	struct table_node node; /* by its key */
	TAILQ_ENTRY(question) of_all;
	struct question_row row;
	struct question_held_list held; /* by inspectors; the one that has waited longest is first */
	unsigned n_held;
	uint64_t due_us;	 /* when its time, or its answer's, is over, by boot_us(); 0: never */
	struct question_end end; /* of one that is over, and is only here because the record does not know it yet */
	bool timed;		 /* the person has said for how long; after a restart that is taken for granted */
	/* No request meets it any more: it stays until the request that it was given to has taken it, or (timed) until its
	 * time is over, for what was opened by it. */
	bool used;
};
TAILQ_HEAD(question_list, question);

TAILQ_HEAD(awaited_list, awaited);

struct service {
	struct service_config config;
	struct table questions_by_key;
	struct question_list questions;	 /* in the order they came */
	struct question_list unrecorded; /* that are over, and the record does not know it yet */
	struct decisions decisions;
	struct question_counts question_counts;	   /* what of it is counted as it happens */
	unsigned n_held[NP_WORKERS_MAX];	   /* by each inspector */
	struct ended_sandbox ended[NP_ENDED_KEPT]; /* a ring */
	size_t ended_next;			   /* the oldest, or one that was never used */
	struct forward_list forwards;
	size_t forward_count;
	uint64_t forward_first, forward_last;		  /* numbers that this daemon has given; 0: none */
	struct forward_end forward_ends[NP_FORWARDS_MAX]; /* the last ones, by their numbers */
	struct hash_key key;
	struct table sessions, sandboxes_by_id, sandboxes_by_cgroup;
	struct sandbox_list all;  /* in the order they came */
	struct sandbox_list care; /* dying, behind or uncut */
	size_t care_count;
	struct sandbox *cursor;	     /* the next that the sweep looks at; NULL: from the start */
	size_t hidden;		     /* how many are dying */
	struct awaited_list awaited; /* restarted.c */
	size_t awaited_count;
	uint64_t newborns_ns;	    /* until then containers that were born may be without a network */
	size_t own_networks;	    /* how many have one */
	unsigned verbs;		    /* at work, one in the other */
	unsigned reserve;	    /* sessions that there can be, but not for the present caller */
	bool reports;		    /* inspectors were spoken to meanwhile, so there may be reports */
	bool whole;		    /* nobody need look whether the gate is: recover_whole() does, for all */
	struct steady_clock clock;  /* the wall's */
	struct run_time *run_times; /* see run_times.c; by the numbers of their runs */
	size_t n_run_times, size_run_times;
};

/* Fills *ret (unless NULL) and returns err. fmt NULL: the reason's own sentence says it all. */
int service_fail(struct failure *ret, unsigned reason, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int service_name_read(const char *text, struct session_name *ret, struct failure *ret_failure);

/* Fills in the time, the session and the sandbox (each may be NULL) and emits. */
void service_emit(struct service *service, struct event *event, const struct session *session,
		  const struct sandbox *sandbox);
/* A change of a sandbox. */
void sandbox_event(struct service *service, unsigned reason, const struct sandbox *sandbox, const char *who,
		   const unsigned *cut);

/* -- verb.c ---------------------------------------------------------------- */
/*
 * Each verb that may speak to the inspectors has, as its first variable, _verb_ struct service *verb = verb_begin(service).
 * When the outermost one is over, the reports that arrived meanwhile are handled: never inside, where a session or a
 * sandbox may be half-way between two states. A crash before that loses none: they are in the ledgers' files, and the next
 * daemon handles them.
 */
struct service *verb_begin(struct service *service);
void verb_end(struct service **verb);
#define _verb_ cleanup(verb_end)

/* The calls of struct inspectors, for verbs. */
void inspectors_tighten(struct service *service, uint64_t cgroup_id, const char *sandbox, const char *session,
			const struct np_rung *rung);
void inspectors_sync_begin(struct service *service);
unsigned inspectors_sync(struct service *service);
void inspectors_ending(struct service *service, uint64_t cgroup_id, bool is);
void inspectors_leave(struct service *service, uint64_t cgroup_id);
/* Which of these sandboxes, whose programs are gone, still have unsent bytes: in the kernel (orphaned sockets), or
 * in an inspector? 0 or -errno. */
int orphans_find(struct service *service, const uint64_t *cgroup_ids, size_t n, bool *ret_has);
/* Has the kernel and then the inspectors forget a cgroup that is gone or detached. As gate.retire() answers. */
int cgroup_retire(struct service *service, uint64_t cgroup_id);

/* -- session.c -------------------------------------------------------------- */
struct session *session_find(struct service *service, const char *name);
/* All that are in memory. fn loads none, so the table keeps its shape, and none goes but the one at hand. */
void sessions_each(struct service *service, void (*fn)(struct service *service, struct session *session, void *data),
		   void *data);
/* From memory, or from the store, or new with that level (SESSION_NEW: nothing is written yet).
 * Pinned: session_unpin() it. -E2BIG when it would be one session too many. */
int session_load(struct service *service, const struct session_name *name, enum level level, struct session **ret,
		 struct failure *ret_failure);
/* The same by its name, which is checked; a new one is PUBLIC. */
int session_open(struct service *service, const char *name, struct session **ret, struct failure *ret_failure);
/* -ENOENT, and what is known all the same: the level of one that was forgotten. ret_remembered (or NULL): there is one. */
int session_missing(struct service *service, const char *name, bool *ret_remembered, struct failure *ret_failure);
void session_unpin(struct service *service, struct session *session);
void session_release(struct service *service, struct session *session); /* frees it when nothing needs it any more */
/* Takes the maximum of what stands and of what the kernel says. True when that changed something. */
bool session_absorb(struct session *session, const struct sandbox *sandbox);

/* -- raise.c --------------------------------------------------------------- */
struct raise_request {
	enum level level;
	const char *dataset; /* may be NULL, checked */
	const char *text;
	const char *who;
	uint64_t start_ns;
	bool settles; /* what stands already: where nothing is behind it, nobody is told of a raise */
};
/* The whole ratchet for a session: kernel, inspectors, cut, record; creates or revives it in the store. Emits
 * what happened, but nothing when nothing did. */
int session_raise(struct service *service, struct session *session, const struct raise_request *request,
		  struct escalation *ret, struct failure *ret_failure);
/* The same for what stands already: the session exists on disk afterwards, and its sandboxes are as tight. */
int session_settle(struct service *service, struct session *session, const char *who, struct failure *ret_failure);
/* Steps 1 and 2: tightens every sandbox that is behind what stands, in the kernel and then in the
 * inspectors. On failure the others are tightened all the same and *ret_failure names the first. May
 * remove sandboxes: those made that the kernel would not tighten. */
int session_apply(struct service *service, struct session *session, struct failure *ret_failure);
/* Waits for the inspectors, then cuts, where something is uncut. *ret_cut counts what both have ended. */
int session_cut(struct service *service, struct session *session, unsigned *ret_cut, struct failure *ret_failure);

/* -- record.c -------------------------------------------------------------- */
/* What goes on disk of a raise. */
struct record {
	bool has_dataset, has_notice;
	struct dataset_row dataset;
	struct notice_row notice; /* its words are in text */
	struct buf text;
};
struct written {
	bool created; /* it was not open on record */
	bool notice;  /* there is a new one, that session_publish_new() has to see to */
};
/* A notice is due if the mode is a new one; a dataset if the request (may be NULL) has one. */
void record_make(struct service *service, const struct session *session, const struct raise_request *request,
		 struct record *ret);
void record_free(struct record *record);
/* A raise in steps, as store_raise_begin() has them: when record_begin() is true store_raise_write(), store_raise_wait() and record_check()
 * are to be called, and the answers of the last two go to record_end(). False: record_write() does all. line gets the notice as the file with the session's notices will
 * have it; nothing, if that is not known yet. */
bool record_begin(struct service *service, const struct session *session, const struct record *record);
int record_check(struct service *service, const struct session *session, struct record *record, struct buf *line);
int record_end(struct service *service, struct session *session, const struct record *record, int written, int checked,
	       struct written *ret);
/* Is every program of the gate in its place? Puts back what is gone, or fails. */
int service_whole(struct service *service, struct failure *ret_failure);
/* Writes what stands. line as above. -E2BIG: written, but without the dataset. */
int record_write(struct service *service, struct session *session, struct record *record, struct written *ret,
		 struct buf *line);
/* Since when what stands could not be recorded; 0: it could, or it has risen further since. */
uint64_t session_owed_us(const struct session *session);
/* All of it, without a request; publishes the notice. */
int session_record(struct service *service, struct session *session);
/* The same, with an event that tells of the rise: nobody asks for it now. who: whose verb brought it to light; a rise that could not be recorded
 * when it was made is nobody's any more, and its event says since when it holds. */
int session_record_rise(struct service *service, struct session *session, const char *who);

/* -- lifetime.c ------------------------------------------------------------ */
/* Does with the workspace of an ended session what the policy says, if that is due and nobody lives there any more. */
void session_workspace_end(struct service *service, struct session *session);
/* The same for a session that comes back: at once, whatever still dies in it. It was killed, and keeps the files that it had, which move away; only
 * what is made from now on is in the new ones. 0, or -errno: the session has the old ones, and nobody may be let in. */
int session_workspace_renew(struct service *service, struct session *session);
bool sessions_make_room(struct service *service); /* forgets the oldest that have ended; true: there is room now */
void lifetime_sweep(struct service *service);

/* -- restarted.c ----------------------------------------------------------- */
void restarted_await(struct service *service, const struct sandbox *sandbox); /* its cgroup is gone */
bool restarted_is_awaited(const struct service *service, const char *id);
int restarted_recover(struct service *service, const struct sandbox_row *row); /* of a predecessor */
void restarted_forget(struct service *service, const char *session);
/* places: their directories may have been removed, and are watched anew. True: look again in a moment. */
bool restarted_look(struct service *service, bool places);
void restarted_free(struct service *service);

/* -- placed.c -------------------------------------------------------------- */
/* Looks at the first processes of a placed sandbox, once. True: the sandbox ends, and may be freed. */
bool placed_check(struct service *service, struct sandbox *sandbox);
/* Looks at those of each placed sandbox that was tightened and is not cut yet; ends what the gate cannot govern. */
void placed_raise(struct service *service, struct session *session);

/* -- notices.c ------------------------------------------------------------------ */
/* The notice that is due when what stands is recorded; false when none is. text is where its words go. */
bool session_notice(struct service *service, const struct session *session, const struct raise_request *request,
		    struct notice_row *ret, struct buf *text);
/* Sees to the file with the session's notices. It is a convenience: a failure is told in an event and stops nothing. */
void session_publish(struct service *service, struct session *session);
/* The same when this line is all that is new: who waits for an acknowledgement does not wait for a look at the others. */
void session_publish_new(struct service *service, struct session *session, const struct buf *line);
void session_unpublish(struct service *service, const struct session *session);
void notices_recover(struct service *service); /* removes those of sessions that have ended */

/* -- own_network.c --------------------------------------------------------- */
bool own_network_is(struct service *service, uint64_t cgroup_id, struct sandbox_netns *ret);
void own_network_note(struct service *service, struct sandbox *sandbox); /* sets pub.own_network */
/* The network namespace of an adopted sandbox, if it has one of its own; netns: a file that leads to the one it will
 * have, or NULL. */
int own_network_join(struct service *service, struct sandbox *sandbox, const char *netns, struct failure *ret_failure);

/* -- adoption.c ------------------------------------------------------------ */
/* Adopts a container that its runtime may be starting: it is confined first and looked at then. The same again goes on with one that the
 * look found something in. */
int adopt_again(struct service *service, const char *session, const struct gate_cgroup *cgroup,
		struct failure *ret_failure);

/* -- sandboxes.c ----------------------------------------------------------- */
int sandbox_id_choose(struct service *service, const struct session_name *name, char id[static NP_SANDBOX_ID_MAX + 1]);
/* A session that is ready for one more sandbox: on disk, no looser than it should be, and pinned. */
int session_enter(struct service *service, const char *name, const char *who, struct session **ret,
		  struct failure *ret_failure);
int sandbox_record(struct service *service, struct sandbox *sandbox); /* its row, once */
/* What the session's sandboxes say may be stricter than its record: a cgroup that the kernel knew already. */
int session_follow(struct service *service, struct session *session, const char *who, struct failure *ret_failure);
enum sandbox_kind { SANDBOX_PLAIN, SANDBOX_KEPT, SANDBOX_PARENT, SANDBOX_BORN };
struct sandbox_order {
	enum sandbox_kind kind;
	enum run_class class;
	bool systemd;	    /* of a parent */
	const char *cgroup; /* of a container: it is there already */
};
int sandbox_make(struct service *service, const char *session, const struct sandbox_order *order, const char *who,
		 const struct sandbox_info **ret, struct failure *ret_failure);

/* -- parents.c ------------------------------------------------------------- */
/* The name of its cgroup, below the slice. */
void parent_name(const struct session_name *name, bool systemd, char ret[static PARENT_NAME_SIZE]);
bool parent_is(const struct session_name *name, const char *path);    /* is that its parent's cgroup? */
bool parent_holds(const struct session_name *name, const char *path); /* or one right below it? */
void parent_forget(struct service *service, const char *id);	      /* its directory */
/* A container's sandbox, with its network; false: it was not born in a parent. *ret_error: what came of it. */
bool born_find(struct service *service, const char *session, const char *path, const struct sandbox_info **ret,
	       int *ret_error, struct failure *ret_failure);
void born_look(struct service *service, struct sandbox *sandbox);  /* has it a network by now? May free it */
void parent_look(struct service *service, struct sandbox *parent); /* for containers that came */

/* -- kept_sandboxes.c --------------------------------------------------------------- */
struct sandbox *kept_find(struct service *service, const char *session); /* NULL: it has none */
int kept_make(struct service *service, const struct sandbox *sandbox);	 /* its directory; 0 or -errno */
bool kept_is(const struct service *service, const char *id);		 /* has one */
/* Removes the directory, and the cgroups that are listed there. Gone already is fine. 0 or -errno: to be called
 * again. */
int kept_forget(struct service *service, const char *id);
bool kept_in_use(struct service *service, const struct sandbox *sandbox); /* a run is in progress */
/* Notes that the sandbox is used, or ends it when it was idle for long enough. The sandbox may be freed. */
void kept_check(struct service *service, struct sandbox *sandbox);
void kept_recover(struct service *service); /* removes directories of sandboxes that are not */

/* -- runs.c ---------------------------------------------------------------- */
/* Ends runs whose time is over, and those whose sandbox is gone. */
void runs_sweep(struct service *service);
void runs_session_ended(struct service *service, const char *session); /* what waits is rejected */

/* -- starters.c -------------------------------------------------------------- */
int starter_note(struct service *service, const struct session_name *name, const char *who,
		 struct failure *ret_failure); /* who starts something there */
/* -EACCES: the policy wants four eyes, and who has. */
int starter_check(struct service *service, const struct session_name *name, bool of_user, const char *who,
		  struct failure *ret_failure);

/* -- forwards.c ------------------------------------------------------------ */
void forwards_sweep(struct service *service); /* ends those whose owner or sandbox is gone */
void forwards_free(struct service *service);

/* -- ended_sandboxes.c ----------------------------------------------------------- */
/* Nothing of it is open any more, and what it was counted in is about to go. */
void ended_note(struct service *service, struct sandbox *sandbox);

/* -- sandbox.c ----------------------------------------------------------------- */
/* Links a new sandbox; -ENOMEM. Bounds are the caller's. */
int sandbox_new(struct service *service, struct session *session, const char *id, const struct gate_cgroup *cgroup,
		bool adopted, struct sandbox **ret);
void sandbox_drop(struct service *service, struct sandbox *sandbox); /* from memory only */
/* Has pub.counts as of now. */
void sandbox_count(struct service *service, struct sandbox *sandbox);
struct sandbox *sandbox_by_cgroup(struct service *service, uint64_t cgroup_id);
struct sandbox *sandbox_by_id(struct service *service, const char *id);
uint64_t sandbox_age_us(const struct service *service,
			const struct sandbox *sandbox);	      /* whatever is done to the clock */
struct np_rung sandbox_target(const struct sandbox *sandbox); /* what its session and its class ask for: the stricter */
bool sandbox_is_behind(const struct sandbox *sandbox);	      /* has to be raised */
bool sandbox_is_held(const struct sandbox *sandbox);	      /* the gate confines it, or what is left of it */
bool sandbox_is_loose(const struct sandbox *sandbox);	      /* has more of a network than its session allows */
void sandbox_touch(struct service *service, struct sandbox *sandbox); /* it is used */
void sandbox_care(struct service *service, struct sandbox *sandbox); /* puts it on the list when it needs to be there */
bool sandbox_is_gone(struct service *service, const struct sandbox *sandbox); /* its cgroup does not exist any more */
/*
 * Ends a sandbox: its cgroup (a made one is killed and removed), what its programs left unsent, the gate of an adopted one
 * (detached), the kernel's entry, the record, the memory. 0: done, or only bookkeeping is left, which the sweep does. -EBUSY: a
 * made one was killed but is not empty yet, and the sweep goes on with it; or processes run in an adopted one, which stays as
 * it was. Other failures: nothing has changed. After 0 the sandbox may be freed, and its session with it unless that is pinned.
 * gone: its cgroup does not exist any more.
 */
int sandbox_end(struct service *service, struct sandbox *sandbox, bool gone, const char *who);
/* Has the inspectors end what they have of one that is over, while its cgroup lives on: a raise of its session will not reach it. Once. */
void sandbox_leave(struct service *service, struct sandbox *sandbox);
/* Ends it now or, when that does not work, hides it and leaves it to the sweep. The sandbox may be freed. */
void sandbox_abandon(struct service *service, struct sandbox *sandbox);
/* Looks for orphans of all that linger at once: such a look costs by the host's sockets, not by the sandboxes. */
void sandboxes_look(struct service *service);
/* Ends it if it emptied or is gone. The sandbox may be freed. */
void sandbox_check(struct service *service, struct sandbox *sandbox);
