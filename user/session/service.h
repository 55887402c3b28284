/* SPDX-License-Identifier: MIT */
/*
 * Sessions and their sandboxes: the verbs behind the API. This is where the
 * promise lives: tighten the kernel and the inspectors, cut what is open, record on disk, acknowledge.
 *
 * Single-threaded. Sessions are read from the store; live sandboxes are in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"
#include "vocab/words.h"
#include "session/deciders.h"
#include "session/gate.h"
#include "session/inspectors.h"
#include "vocab/decision.h"
#include "vocab/level.h"
#include "policy/lifetime.h"
#include "policy/notice_text.h"
#include "vocab/session_name.h"
#include "session/store.h"
#include "vocab/limits.h"

struct service;
struct decision;      /* vocab/decision.h */
struct trail_request; /* trail.h */
struct event;	      /* events/event.h */
struct policy;	      /* policy/policy.h */

/* What became of a sandbox's network since it was made, whoever was restarted. Bytes are those of tunnels and of bodies
 * that the inspector saw: given to origins' connections, and come from there. */
struct sandbox_counts {
	/* HTTP requests and tunnels that the inspector judged, those that are open included, and connections that it refused
	 * before they had one. */
	uint64_t requests;
	uint64_t queries;	 /* that came to the DNS gate */
	uint64_t refused;	 /* requests and queries, and what the gate in the kernel refused */
	uint64_t sent, received; /* bytes */
	bool partial; /* there was more: the files that it is counted in were lost, or are of another version */
};

struct sandbox_info {
	char id[NP_SANDBOX_ID_MAX + 1];
	struct session_name session;
	struct gate_cgroup cgroup;
	enum run_class class; /* of the run it was made for */
	bool adopted;
	bool own_network;    /* it has a network namespace of its own, */
	bool way_out;	     /*   which was made with a way to beyond the host */
	bool kept;	     /* for many runs, one after the other or at once */
	bool parent;	     /* container engines make cgroups in it: see parents.c */
	bool born;	     /* in a parent: it is a container */
	bool temporary;	     /* its session is: it has no workspace */
	bool ever_populated; /* a made sandbox that was populated and is empty again is removed */
	uint64_t created_us;
	uint64_t active_us;  /* a run began, was in progress or ended; a request was judged; or the daemon started */
	struct np_rung rung; /* what the kernel holds */
	struct sandbox_counts counts; /* as of when it was looked up by its id, or with others of its session */
};

/* Which sandboxes have a network namespace of their own; bits (1 << mode) of the mode that they start in. */
struct own_networks {
	unsigned modes;
	unsigned way_out; /* of these, those with a way to beyond the host */
};

struct service_config {
	struct store *store;
	struct gate gate;
	struct inspectors inspectors;
	struct level_modes modes;
	uint64_t (*wall_us)(void); /* CLOCK_REALTIME in microseconds */
	uint64_t (*now_ns)(void);  /* CLOCK_MONOTONIC */
	uint64_t (*boot_us)(void); /* CLOCK_BOOTTIME: nobody sets it, and it goes on while the host sleeps */
	/* May look things up here (a sandbox that is being removed is still found), but must not call a verb. */
	void (*emit)(void *data, struct event *event);
	void *emit_data;
	/* The words of a notice, at most NP_NOTICE_TEXT bytes: the policy knows them. */
	void (*notice_write)(void *data, const struct notice_facts *facts, struct buf *out);
	void *notice_data;
	const char *notices_dir;    /* where sessions with sandboxes have their notices as files; NULL: nowhere */
	const char *containers_dir; /* what containers trust, in a directory for each parent; NULL: nowhere */
	const char *kept_dir;	    /* where kept sandboxes have their directories; NULL: there are none */
	/* What was counted of a sandbox; NULL: nothing. */
	void (*count)(void *data, uint64_t cgroup_id, struct sandbox_counts *ret);
	void *count_data;
	/* The kernel is about to forget a sandbox, and what it counted of it; it has. NULL: nobody cares. */
	void (*before_retire)(void *data, uint64_t cgroup_id);
	void (*on_retired)(void *data, uint64_t cgroup_id);
	/* A cgroup is about to become another sandbox: what was reported of the one that it was is to be told now, as that one's. It may call
	 * service_sandbox_active() and service_request_note(), and look things up. NULL: nobody cares. */
	void (*before_handover)(void *data, uint64_t cgroup_id);
	void *retire_data;
	const struct policy *(*policy)(void *data); /* the live one; NULL: nobody is ever asked */
	void *policy_data;
	struct decider_calls deciders; /* ask NULL: there are none */
	uint64_t idle_us;	       /* after which a kept sandbox goes; 0: never */
	struct lifetime lifetime;
	struct own_networks own_networks;
	/* No sandbox of the session is left: 0, -ENOENT when there is none, -errno. NULL: there are no workspaces. */
	int (*workspace_end)(void *data, const char *session, enum workspace_fate fate);
	bool (*workspace_is)(void *data, const char *session);
	void *workspace_data;
};

/* Every verb answers 0 or -errno, and on failure says why here: an ERROR reason and details in words. */
struct failure {
	unsigned reason; /* enum np_reason */
	char text[640];	 /* names the place; empty when the reason's sentence says it all */
};

struct escalation {
	struct session_name session;
	struct np_rung rung;
	bool raised;  /* false: the level that stands was as high already */
	bool created; /* it was not on record */
	unsigned cut;
	uint64_t applied_us; /* from the call to the kernel tightened */
};

int service_new(const struct service_config *config, struct service **ret);
void service_free(struct service *service); /* leaves the kernel and the store as they are */

/* After a start: joins what the store knows with what the kernel holds. Kernel stricter than the record (a crash between the
 * steps): the record follows. Record stricter: the kernel follows. Sandboxes whose cgroup is gone are forgotten. A kernel
 * entry below nobody's record is raised to NONE and kept. What nobody has any more goes: empty cgroups of the slice,
 * directories of kept sandboxes, files of notices. A failure does not end the work: it names the first thing that went
 * wrong, the rest was joined, and the service can be used. */
int service_recover(struct service *service, struct failure *ret_failure);

/* So many of the sessions that there can be are reserved for others than the caller of the call in progress. 0 when
 * the call is over: nobody else is bounded by it. */
void service_sessions_reserve(struct service *service, unsigned reserve);
/* Existing: returned, raised to level. temporary: for one run, and forgotten after it, its level too; it has a name of its own
 * kind (-EINVAL), and no other is made under such a name. -EEXIST if there is one that is not temporary. */
int service_session_create(struct service *service, const char *name, enum level level, bool temporary, const char *who,
			   struct session_row *ret, struct failure *ret_failure);
int service_session_show(struct service *service, const char *name, struct session_row *ret,
			 struct failure *ret_failure);
int service_session_end(
	struct service *service, const char *name, const char *who,
	struct failure *ret_failure); /* kills and removes made sandboxes; -EBUSY if an adopted one still runs */

/* lifetime.c: an ended session goes from the record, its workspace with it. What must not be lost is remembered: its level,
 * unless level_too. -EBUSY: it has not ended; -ENOENT: nothing is known of it. */
struct forgotten {
	struct session_name session;
	bool remembered;      /* a level: */
	struct np_rung level; /* what a session of that name starts from */
};
int service_session_forget(struct service *service, const char *name, bool level_too, const char *who,
			   struct forgotten *ret, struct failure *ret_failure);
void service_lifetime_set(struct service *service, const struct lifetime *lifetime);

/* dataset and text may be NULL. Creates the session when it does not exist yet, unless existing: then -ENOENT. NOT_APPLIED:
 * the kernel refused for one sandbox; the others are tightened and the level is recorded. Made sandboxes that could not be
 * tightened are killed. NOT_RECORDED: tightened, but not on disk. After either, the same call again does what is missing. */
int service_escalate(struct service *service, const char *name, enum level level, const char *dataset, const char *text,
		     bool existing, const char *who, struct escalation *ret, struct failure *ret_failure);

/* An inspector has refused a request of this sandbox because the value of this credential was in it. */
void service_leak(struct service *service, uint64_t cgroup_id, const char *session, const char *credential);

/* Says that its processes do not come by `netpawl run`, so that what they bring along is looked at. */
void service_sandbox_place(struct service *service, const struct sandbox_info *sandbox);
int service_sandbox_make(struct service *service, const char *session, const char *who, const struct sandbox_info **ret,
			 struct failure *ret_failure);
/* The session's parent for containers, of engines that leave cgroups to systemd or of others; one is made when there is none. */
int service_sandbox_parent(struct service *service, const char *session, bool systemd, const char *who,
			   const struct sandbox_info **ret, struct failure *ret_failure);
/* Looks whether containers that were just born have a network namespace by now, for the inspectors to listen in. True: look again
 * soon, they have not. */
bool service_newborns_look(struct service *service);
/* The session's kept sandbox; one is made when there is none. */
int service_sandbox_keep(struct service *service, const char *session, const char *who, const struct sandbox_info **ret,
			 bool *ret_made, struct failure *ret_failure);
/* Its directory: see user/vocab/kept_files.h. */
int service_kept_path(const struct service *service, const struct sandbox_info *sandbox,
		      char path[static FS_PATH_SIZE]);
void service_idle_set(struct service *service, uint64_t idle_us);
void service_own_network_set(struct service *service,
			     const struct own_networks *networks); /* from the next sandbox on */
/* The network namespace of a sandbox, for who starts its first process. fresh: nobody is in it yet, and it gets one of its own
 * if its mode is one that has. sandbox->own_network tells whether *ret is set. */
int service_sandbox_netns(struct service *service, const struct sandbox_info *sandbox, bool fresh,
			  struct sandbox_netns *ret, struct failure *ret_failure);
struct adoption {
	const char *cgroup; /* its path */
	pid_t starting; /* the process that a runtime is about to make a container's first of, and whose unix sockets of its
			     * runtime's do not count; 0: none */
	const char
		*netns; /* a file that leads to the network namespace that its processes will live in, if none is there
			     * yet; NULL: they tell */
};
/* One that was born in the session's parent is a sandbox already; so is one that the session has adopted before, and the answer is
 * the same then, with nothing cut. */
int service_sandbox_adopt(struct service *service, const char *session, const struct adoption *adoption,
			  const char *who, const struct sandbox_info **ret, unsigned *ret_cut,
			  struct failure *ret_failure);
int service_sandbox_remove(struct service *service, const char *id, const char *who, struct failure *ret_failure);
/* A removed sandbox whose processes are still dying is found by its cgroup only, for their last events. */
const struct sandbox_info *service_sandbox_by_id(struct service *service, const char *id);
/* What was counted of a sandbox that was removed: of the last NP_ENDED_KEPT. -ENOENT. */
int service_sandbox_ended(struct service *service, const char *id, struct sandbox_counts *ret);
const struct sandbox_info *service_sandbox_by_cgroup(struct service *service, uint64_t cgroup_id);
/* All sandboxes (session is NULL), or one session's; stops at a negative answer and returns it. fn must not call a verb. */
int service_sandboxes_each(struct service *service, const char *session,
			   int (*fn)(void *data, const struct sandbox_info *sandbox), void *data);

/* A request of it was judged: it is not idle. An unknown cgroup is fine. */
void service_sandbox_active(struct service *service, uint64_t cgroup_id);

size_t service_sandboxes_count(const struct service *service);

/* Call about every second: finishes removals that had to wait, and looks at a few sandboxes in turn, as
 * service_sandbox_changed() does. What it costs does not grow with the number of sandboxes. */
void service_sweep(struct service *service);
/* Call when the cgroup.events file of a sandbox changed: removes a made sandbox that emptied, forgets an
 * adopted one whose cgroup is gone. An unknown cgroup is fine. */
void service_sandbox_changed(struct service *service, uint64_t cgroup_id);

/* The policy changes. First, before its rules hold: sessions whose level means a stricter mode are raised; none is
 * lowered, whatever modes says. Then, when they hold: what is open and now forbidden is cut. A failure names the first
 * thing that went wrong; the rest was done, and the sweep goes on trying. Both add to *effect. */
struct policy_effect {
	unsigned raised; /* sessions */
	unsigned cut;	 /* connections */
};
int service_policy_raise(struct service *service, const struct level_modes *modes, const char *who,
			 struct policy_effect *effect, struct failure *ret_failure);
int service_policy_cut(struct service *service, struct policy_effect *effect, struct failure *ret_failure);

/* Where the sandboxes of a session find its notices, seen from the host: there from the first sandbox to the end of the
 * session. -ENOENT when there are no such files. */
int service_notices_path(const struct service *service, const char *session, char path[static FS_PATH_SIZE]);

/* The same for what `why` says of it, in the file beside: of a session that has had a sandbox. */
void service_why_put(struct service *service, const struct session_name *name, const struct buf *text);

/*
 * Runs: a command, and what it may do on the network. It is asked for, perhaps approved, then a sandbox is made for it
 * (which starts it, once), and whoever runs it tells how it ended.
 */
struct run_request {
	const char *session;
	enum run_class class;
	const char *command; /* a JSON array of texts */
	const char *options; /* a JSON object */
	bool launched;	     /* the daemon's launcher will start it */
	uint64_t expires_us; /* it waits no longer than that */
};
/* Creates the session. */
int service_run_request(struct service *service, const struct run_request *asked, const char *who, struct run_row *ret,
			struct failure *ret_failure);
int service_run_show(struct service *service, uint64_t id, struct run_row *ret, struct failure *ret_failure);
int service_run_decide(struct service *service, uint64_t id, bool approved, const char *reason, const char *who,
		       struct run_row *ret, struct failure *ret_failure);
/* A pending one is not to be started any more, approved or not. Nobody decides here, so it is anybody's who may end it: the daemon's, of
 * its launcher, of whoever asked for it or cancels it, and four_eyes says nothing about it. */
int service_run_withdraw(struct service *service, uint64_t id, const char *reason, const char *who, struct run_row *ret,
			 struct failure *ret_failure);
/* Makes its sandbox, or keep: it runs in the session's kept one, which is there. session must be the run's. */
int service_run_start(struct service *service, uint64_t id, const char *session, bool keep, const char *who,
		      const struct sandbox_info **ret, struct failure *ret_failure);
/* result is a JSON object. */
int service_run_end(struct service *service, uint64_t id, enum run_state state, const char *result, const char *who,
		    struct run_row *ret, struct failure *ret_failure);

/* A run that goes on: all that it has started is killed, and it is over. result as above. */
int service_run_cancel(struct service *service, uint64_t id, const char *result, const char *who, struct run_row *ret,
		       struct failure *ret_failure);

/* At the start: what waited for a launcher of the daemon before this one is rejected. */
void service_runs_recover(struct service *service);

/*
 * Questions (questions.c): an inspector holds something that a rule asks about, and asks. The answer is recorded before
 * anything goes on, and what it lets pass is what the record says: nothing passes unanswered, whoever is killed.
 */
struct question_ask {
	uint64_t cgroup_id;
	struct np_rung rung; /* the sandbox's and the policy's, by which it is asked */
	const char *policy;  /* hash */
	uint64_t rule;	     /* asked_rule() */
	const char *place;   /* of that */
	const char *host;
	uint16_t port;
	bool write, tls;
	const char *method, *url; /* see struct question_row */
	uint64_t body;
	unsigned decider;    /* 1 and up: that decider of the policy is asked; 0: a person is */
	const char *headers; /* "name: value" a line */
	size_t headers_len;
	const char *preview; /* the first bytes of its body, if the rule captures */
	size_t preview_len;
	pid_t pid; /* that connected; 0: not known */
};
/* Shares the question that waits, meets an answer that holds, or makes a question. The inspector is told. */
void service_question_ask(struct service *service, const struct question_ask *ask,
			  const struct question_waiter *waiter);
/* How its body begins: its decider needs that (REPLY_BODY). whole: there is no more of it. */
void service_question_body(struct service *service, const struct question_waiter *waiter, const char *bytes, size_t len,
			   bool whole);
/* It waits no longer. If it was told in the same moment that it is allowed, once: it has not gone on, and the next that is the same may. */
void service_question_leave(struct service *service, const struct question_waiter *waiter);
void service_question_taken(struct service *service, const struct question_waiter *waiter); /* or has gone on by that */
/* What a request like this would meet, if it came now: session, rule, host, port, write, tls, method and url count. Looking changes nothing. */
struct question_met {
	bool asked; /* there is a question that it would join, or whose answer it would meet: */
	struct question_row question;
	bool decided; /* an answer of the decider's is remembered: */
	struct decision decision;
	uint64_t left_s; /* so long */
};
void service_question_look(struct service *service, const struct question_row *row, bool decider,
			   struct question_met *ret);
void service_question_lost(struct service *service, unsigned inspector); /* nor does anything of that inspector */

/* A request of it is over: deciders are told of the last ones. */
void service_request_note(struct service *service, const struct trail_request *request);
/* What the session is for; NULL stays as it is. context: JSON. */
int service_context_put(struct service *service, const char *name, const char *purpose, const char *context,
			struct failure *ret_failure);
/* A decider has answered, or will not. Not to be called inside of a verb. */
void service_decision(struct service *service, const struct decision *decision);

struct question_given {
	enum question_answer answer;
	uint64_t for_ms;    /* how long it holds; 0: as long as the session is at its level, or until it is used */
	const char *reason; /* or "" */
	const char *policy; /* what the person was shown; NULL: that does not matter */
	bool has_generation;
	uint64_t generation;
};
int service_question_answer(struct service *service, uint64_t id, const struct question_given *given, const char *who,
			    struct question_row *ret, struct failure *ret_failure);
/* Takes back an answer that holds, and cuts what it opened. NOT_RECORDED: done, but another daemon may not know it. */
int service_question_revoke(struct service *service, uint64_t id, const char *reason, const char *who,
			    struct question_row *ret, struct failure *ret_failure);
/* The policy has lost the grant that an answer for always became. NOT_RECORDED: by whom is not on record. */
int service_grant_revoked(struct service *service, struct question_row *row, const char *who,
			  struct failure *ret_failure);
int service_question_show(struct service *service, uint64_t id, struct question_row *ret, struct failure *ret_failure);
unsigned service_question_waiting(struct service *service,
				  const struct question_row *row); /* how many wait for it now */
unsigned service_questions_pending(const struct service *service);
struct question_counts {
	unsigned pending, waiting;		/* questions now, and requests and connections that wait for them */
	unsigned answers;			/* that hold */
	uint64_t asked, ended[QUESTION_STATES]; /* since the daemon started; by the state that they came to */
};
void service_questions_count(const struct service *service, struct question_counts *ret);
/* Those in memory, of a session or (NULL) of all: what waits for an answer, and answers that hold. waiting: for it. */
void service_questions_each(const struct service *service, const char *session,
			    void (*fn)(void *data, const struct question_row *row, unsigned waiting), void *data);
/* At the start, when the sessions are known: those that wait, and answers that hold, come back. */
int service_questions_recover(struct service *service, struct failure *ret_failure);

/* Forwards (forwards.c): a host's socket, named by its cookie, may call a listener of a sandbox. Borrowed rows live until
 * the next verb. */
struct forward_row {
	uint64_t id;
	struct session_name session;
	char sandbox[NP_SANDBOX_ID_MAX + 1];
	unsigned port;
	char address[ADDR_TEXT_SIZE]; /* at which to call the listener */
	struct sandbox_netns netns;   /* from where; an empty path: from the host */
	char who[48];
};
/* sandbox NULL: the one that listens there. */
int service_forward_open(struct service *service, const char *session, const char *sandbox, unsigned port,
			 const char *who, const struct forward_row **ret, struct failure *ret_failure);
/* cookie 0: only to be heard of. *ret: with the address at which the sandbox listens now. A forward that is over: the
 * failure names what ended it. */
int service_forward_socket(struct service *service, uint64_t id, uint64_t cookie, const struct forward_row **ret,
			   struct failure *ret_failure);
int service_forward_socket_gone(struct service *service, uint64_t id, uint64_t cookie, struct failure *ret_failure);
int service_forward_close(struct service *service, uint64_t id, const char *who, struct failure *ret_failure);
/* Of one session, or (NULL) all. */
int service_forwards_each(struct service *service, const char *session,
			  int (*fn)(void *data, const struct forward_row *forward), void *data);

/* What the kernel holds of a sandbox, for whoever looks for a fault: info->rung is what it is taken to hold. */
int service_kernel_rung(struct service *service, uint64_t cgroup_id, struct np_rung *ret);
struct store *service_store(struct service *service);
