/* SPDX-License-Identifier: MIT */
/*
 * Every bound in user space, each with its reason; those of the gate are in include/gate_limits.h. A stranger can make us
 * allocate up to these numbers and no further.
 */
#pragma once

#include "gate_limits.h"

/* -- names ---------------------------------------------------------------- */
#define NP_NAME_MAX	   64	/* one half of USER/SESSION: fits a uuid, a mail local part or a host name label */
#define NP_SESSION_MAX	   129	/* USER/SESSION with its slash */
#define NP_DATASET_MAX	   128	/* name of a dataset */
#define NP_REASON_TEXT_MAX 512	/* free text that explains a raise */
#define NP_DATASETS_MAX	   1024 /* datasets of one session: a list a person still reads */
#define NP_SANDBOX_ID_MAX  160	/* USER.SESSION.xxxxxxxx, below NAME_MAX of a cgroup directory */

/* -- the gate ------------------------------------------------------------- */
#define NP_HOST_PORTS_MAX 256 /* host_loopback entries of a policy */
#define NP_LINGER_MS \
	60000 /* what a sandbox left unsent may leave after its end, if its mode permits: what the kernel gives a FIN */
#define NP_SOCKETS_SHARE    4  /* all sandboxes together: of every so many ephemeral ports one is left to the host */
#define NP_FORWARDS_MAX	    64 /* netpawl forward, at once */
#define NP_FORWARD_SOCKETS  64 /* open connections of each: a browser has six to a server */
#define NP_FORWARD_SILENT_S 30 /* one that is not heard of for so long is over; netpawl forward speaks every 10 s */
#define NP_COPY_BYTES \
	(1ull << 30) /* that netpawl cp takes out of a workspace unless it is told otherwise: a sandbox writes there */
#define NP_COPY_FILES	  100000 /* files and directories, likewise */
#define NP_FORWARD_BUFFER 16384	 /* bytes that netpawl forward has in its hands, each way; the kernel as much again */
#define NP_INBOUND_MAX	  64	 /* inbound: entries of a policy */
#define NP_RECHECK_MS \
	1000 /* after a cut by the lists of sockets, the host's own tables are looked at once, off the path */
#define NP_CUT_AT_ONCE 64   /* sockets that are ended before a raise is acknowledged: while the disk writes. More ... */
#define NP_CUT_TURN    1024 /* ... are left, and ended behind it, so many in one turn of the loop: some milliseconds */
#define NP_DRAIN_US    10000 /* longest wait for bytes already queued below TCP when a session is cut */

/* -- events --------------------------------------------------------------- */
#define NP_JOURNAL_FILES 4 /* files of a journal, the current one included */
#define NP_EVENTS_SESSION \
	(16u              \
	 << 20) /* refusals of one session, and its requests, in SQLite: 40,000 each. netpawld's options say more ... */
#define NP_EVENTS_TOTAL	  (256u << 20) /* ... of all sessions together, */
#define NP_EVENTS_CHANGES (64u << 20)  /* changes of all sessions: 150,000, */
#define NP_EVENTS_JOURNAL (64u << 20)  /* and a journal with its older files */
#define NP_EVENTS_MIN	  (256u << 10) /* or less, but one event of the longest kind must fit */
#define NP_EVENTS_MAX	  (1ull << 40) /* or more, but no more than one can mean */
#define NP_EVENTS_DAYS	  36500	       /* the longest age */
#define NP_REPLAY_BYTES \
	(4u << 20) /* end of the journal that is looked through for events that a crash kept from the history */
#define NP_HISTORY_BATCH 256 /* events per SQLite transaction */
#define NP_HISTORY_EMPTY \
	4096 /* accounts there of sessions without an event, which say what was not kept; of more, the oldest become one */
#define NP_FOLLOWERS_MAX 128 /* open event feeds */
#define NP_FOLLOWERS_RESERVE 32 /* of them, those that only operators get, root among them: others never hold the rest and these */
#define NP_FOLLOWERS_PER_USER \
	64 /* of one user, and as many streams of output and notices: what a feed has unread is in memory */
#define NP_FEED_BYTES	    (512u << 10) /* unread bytes of one feed before it skips, and says how many it skipped */
#define NP_EVENT_STRING_MAX 1024 /* bytes of one string in an event; a longer one is cut, and ends in three dots */
#define NP_EVENT_LINE_MAX \
	(192u << 10)	    /* one event as JSON: ten such strings and four captures, each byte escaped as six */
#define NP_EVENTS_PAGE 1000 /* events in one answer without follow */

/* -- control API ---------------------------------------------------------- */
#define NP_BODY_MAX	   (64u << 10) /* request body: a dataset with its reason is below 1 KiB */
#define NP_POLICY_BODY	   (10u << 20) /* a file of the policy that is saved, NP_POLICY_BYTES, escaped for JSON */
#define NP_USAGE_SANDBOXES 32	       /* of a session that is shown: what they use is read, a few files for each */
#define NP_JSON_DEPTH	   4	       /* no request of ours nests deeper */
#define NP_CLIENTS_MAX	   256	       /* open control connections; a newcomer beyond them ends another's */
#define NP_CLIENTS_RESERVE 64 /* of them, those that only root gets: other users never hold the rest and these */
#define NP_OCI_STATE_MAX \
	(1u << 20) /* what a runtime tells a hook: mostly annotations, which Kubernetes bounds at 256 KiB */
#define NP_CNI_CONFIG_MAX \
	(1u << 20) /* what a runtime tells a CNI plugin: the annotations again, and what the plugins before it made */
#define NP_CNI_TEXT_MAX 511 /* a session, a socket or a cgroup in its configuration */
#define NP_POD_UID_MAX	64  /* Kubernetes: 36 */
#define NP_NEWBORN_MS \
	10000 /* a container that was just born: how long it is looked for its network every NP_NEWBORN_PERIOD_MS, not every second */
#define NP_NEWBORN_PERIOD_MS   5
#define NP_AWAITED_MAX \
	1024 /* attached containers that are stopped, and are sandboxes again when they are started: 4 KiB each, looked for every second */
#define NP_CONTAINERS_DIR      "containers" /* in the run directory: what containers trust, by their parent */
#define NP_ENGINE_OPTIONS      64 /* words of an engine's own options in front of run: they are given to its info, too */
#define NP_CONTAINER_ID_MAX    255 /* of an engine: 64 hexadecimal digits; a file name to runtimes */
#define NP_CLIENTS_PER_PROCESS 128 /* of one process: a platform that waits for a hundred runs, and no hog */
#define NP_CLIENTS_PER_USER    96  /* of one user who is not root: half of what such users have */
#define NP_DESCRIPTORS \
	32768 /* of the daemon, where the hard limit grants them: six for each of NP_NAMESPACES_MAX, and the rest */
#define NP_ENGINE_MS	       15000 /* that a container engine has to say what it knows of a container */
#define NP_NAMESPACES_PER_USER 1024 /* of NP_NAMESPACES_MAX, what one USER of USER/SESSION has: a quarter */
#define NP_NAT_CONNECTIONS \
	8192 /* of the host's one table (nf_conntrack), what a sandbox with network: nat has: 65,536 fit on small hosts */
#define NP_CONNTRACK_SHUT      6 /* eighths of that table in use, by whomever: from there on none of them opens a connection ... */
#define NP_CONNTRACK_REOPEN    5 /* ... until it is emptier than that */
#define NP_DESCRIPTORS_RESERVE \
	512 /* of them, those that no sandbox's own network takes: for every control connection, raises, launched runs */
#define NP_BACKLOG \
	4096 /* connections that wait to be accepted: what Linux allows, for without a place connect() fails */
#define NP_ACCEPT_BATCH	    64 /* accepted before those who are connected get their turn */
#define NP_ROUND_MS	    5 /* of answers that only read, before newcomers and requests that change something go first */
#define NP_CLIENT_TIMEOUT_S 15		/* a client that says nothing for so long is dropped */
#define NP_CLIENT_MEMORY    (32u << 10) /* header memory per connection */
#define NP_LIST_MAX	    10000	/* rows in one list answer */
#define NP_LIST_OTHERS \
	1024 /* sessions of others that a list passes over before everybody else has a turn: some NP_ROUND_MS */
#define NP_LIST_BYTES \
	(64u          \
	 << 20) /* of such a list: a row of a sandbox whose cgroup path is as long as can be has 6 KiB, most have half a KiB */
#define NP_ANSWER_BYTES \
	(16u            \
	 << 20) /* body of one answer: NP_EVENTS_PAGE events of 16 KiB; a page with longer ones is refused, and asked for in smaller ones */
#define NP_BODY_DISCARD (1u << 20) /* body of unknown length read and thrown away, to answer too_large at its end */
#define NP_REQUEST_S	60	   /* one request, first byte to end of answer: ends clients that trickle */
#define NP_WAIT_S	25	   /* longest that wait=1 holds an answer back: well below NP_REQUEST_S */
#define NP_HEARTBEAT_S	15	   /* an empty line to a silent follower, so that a gone one is noticed */

/* -- console -------------------------------------------------------------- */
#define NP_CONSOLE_CONNECTIONS 96 /* of browsers, a thread each: a dozen tabs have six each at most */
#define NP_CONSOLE_STREAMS     48 /* of them, those that follow something: a daemon has NP_FOLLOWERS_PER_USER for one user */
#define NP_CONSOLE_TIMEOUT_S   60 /* a browser that says nothing for so long is dropped; a stream has NP_HEARTBEAT_S */
#define NP_CONSOLE_MEMORY      (64u << 10) /* header memory per connection */
#define NP_CONSOLE_URI	       4096 /* path and query of a request: a session's name and some numbers */
#define NP_CONSOLE_BODY	       NP_POLICY_BODY /* of a request: a policy that is checked, or saved */
#define NP_CONSOLE_OUTLINE     20000 /* values of a policy file that the page shows as a form */
#define NP_CONSOLE_TOKENS      8 /* links that nobody has opened yet */
#define NP_CONSOLE_TOKEN_S     600 /* for so long a link is good */
#define NP_CONSOLE_LOGINS      32 /* browsers that have opened one */

/* -- sessions ------------------------------------------------------------- */
#define NP_SESSIONS_MAX \
	1000000 /* sessions in the store, some 200 bytes each; ended ones make room when it is reached */
#define NP_SESSIONS_RESERVE \
	1000 /* of them, those that only operators get: a platform that fills the record leaves them room to work */
#define NP_SESSIONS_HELD 100000 /* sessions in memory: with a sandbox, or a raise that a broken disk did not take */
#define NP_LEVELS_MAX \
	4000000 /* levels of sessions that went, some 60 bytes each; then no session above the bottom goes any more */
#define NP_SESSIONS_KEPT   50000	      /* ended sessions on record, and ... */
#define NP_SESSIONS_KEEP_S (90ull * 86400)    /* ... how long, unless the policy says otherwise */
#define NP_AGE_MAX_S	   (36500ull * 86400) /* the longest that a policy can name */
#define NP_TEMPORARY_NAME  "temporary-" /* USER/temporary-...: only temporary sessions are called so, and all of them */
#define NP_TEMPORARY_S	   60		/* a temporary session has so long to get its sandbox, or another one */
#define NP_CLOCK_STEADY_S \
	3600 /* the clock has agreed with the one that nobody sets for so long before time makes anything go */
#define NP_ARCHIVE_BYTES       (4ull << 30) /* the archive of one workspace, unless the policy says otherwise */
#define NP_ARCHIVE_S	       3600	    /* tar or rm works on one workspace for so long at most */
#define NP_PLACED_MS	       1000 /* a process that is placed in a sandbox has so long to close what it inherited */
#define NP_PLACED_BORN_MS      10000 /* in a container longer: its runtime may be starting another process */
#define NP_NOTICE_READERS      16   /* readers of one session's notices whose place is kept */
#define NP_NOTICES_PER_SESSION 5    /* levels and modes only rise: three and two steps. Not a bound, its consequence */
#define NP_NOTICE_LINE	       (64u << 10) /* one notice as JSON: its text and names, each byte escaped as six */

/* Descriptors that the table of a process may have room for which is adopted: some 13 ns each, for which all else waits. */
#define NP_OPEN_FILES_MAX 1048576
#define NP_OPEN_LOOKS 6 /* at what the processes of an adopted cgroup hold open, before the gate comes and after it has come */

/* -- why ------------------------------------------------------------------ */
#define NP_WHY_EVENTS	   1000 /* newest refusals that are looked at and merged: NP_EVENTS_PAGE */
#define NP_WHY_MAX	   50	/* merged ones that are told: more is no help to anybody's context */
#define NP_WHY_FILE_EVENTS 100	/* ... for the file in sandboxes, which is written while others wait: a tenth */
#define NP_WHY_FILE_MS	   100	/* one such file at a time, so often: a hundredth of the daemon's time at the most */
#define NP_WHY_STALE	   1024 /* sessions whose files wait to be written */
#define NP_WHY_WHERE	   256	/* bytes of one destination in words */

/* -- runs ----------------------------------------------------------------- */
#define NP_RUN_COMMAND	     (16u << 10) /* a command as JSON: who approves it reads all of it, so a longer one is refused */
#define NP_RUN_OPTIONS	     (8u << 10) /* how it is to be run as JSON, for the same reader */
#define NP_RUN_RESULT	     (8u << 10) /* what became of it as JSON, without its output */
#define NP_RUNS_KEPT	     10000	/* runs that are over and still on record; the oldest go first */
#define NP_RUNS_PENDING	     1000	/* runs that wait */
#define NP_RUNS_PER_USER     500	/* of one user, so that one leaves room for others */
#define NP_RUN_START_S	     60		/* from the approval to the start, and from that until a process is there */
#define NP_LAUNCHES_MAX	     512	/* runs that the API started and whose output is kept; ended ones go first */
#define NP_LAUNCHES_PER_USER 256	/* of one user, that are not over: so that one leaves room for others */
#define NP_LAUNCH_OUTPUT     (2u << 20) /* output of one of them as NDJSON: in memory */
#define NP_LAUNCH_OUTPUT_ALL \
	(256u << 20) /* of all of them; then the oldest goes of who has most, or, if all of it still runs, what comes is thrown away */
#define NP_LAUNCH_OUTPUT_USER (64u << 20) /* of one user's: a quarter, then the user's oldest goes. One quarter is root's alone */
#define NP_LAUNCH_UNREAD (256u << 10) /* of one that is attached: then the command waits until it is read */
#define NP_LAUNCH_INPUT	 (256u << 10) /* input that a command has not read: four requests */
#define NP_TERMINAL_MAX	 4096	      /* columns and rows of a terminal */
#define NP_ENDED_KEPT \
	1024 /* removed sandboxes whose counts are still known, about 200 bytes each: whoever ran a command there asks at once */
#define NP_RUN_LOST_S 10 /* from the end of its sandbox until a run counts as failed: who runs it tells more */

/* -- questions ------------------------------------------------------------ */
#define NP_QUESTIONS_PER_SESSION \
	32 /* that wait: more are not read by anybody, and none of them keeps out another session's */
#define NP_QUESTIONS_PENDING   1024  /* of all sessions */
#define NP_ANSWERS_PER_SESSION 256   /* that hold: a person gave each of them */
#define NP_QUESTIONS_KEPT      10000 /* that are over and still on record; the oldest go first */
#define NP_QUESTION_URL	       2048  /* bytes of a URL that are shown; what is cut ends in three dots */
#define NP_QUESTION_METHOD     32    /* bytes of a method, cut in the same way */
#define NP_ANSWER_RETURNS      8     /* of an answer for once from clients that had left: each goes to the disk */
#define NP_QUESTION_HEADERS    1024  /* likewise, of a request's headers */
#define NP_WHY_QUESTIONS       5     /* of a session, the newest, that `netpawl why` tells of */
#define NP_QUESTION_VALUE      128   /* of the value of each of these */
#define NP_QUESTION_PREVIEW    256   /* of a body, if the rule captures: what a person looks at */
#define NP_PREVIEW_MS	       1000  /* that these are waited for before anybody is asked */
#define NP_PROGRAM_SIZE	       256   /* likewise of the path of the program that asks */
#define NP_APPROVAL_HOLD_MS    12000 /* that a client waits by default: below the 15 s of pip, the least patient of common clients */
#define NP_GRANT_MAX_MS \
	(30u * 24 * 3600 * 1000) /* the longest that an answer may be given for: milliseconds of 30 days in 32 bits */
#define NP_POLICY_GRANTS 1024	 /* looked through for each request that a rule asks about: microseconds */
#define NP_ASKS_AGAIN \
	8 /* times that one request is asked about anew, because the level or the policy changed meanwhile */
#define NP_WARNING_PATTERNS 4096 /* destinations of a policy that a name is compared with, for people: a millisecond */
#define NP_RETRY_AFTER_S    10	 /* what a refused client is told to wait before it tries again */

#define NP_JOURNAL_SOCKET "/run/systemd/journal/socket"

/* What netpawl-export sends on. Its queue is the record itself, which is bounded. */
#define NP_EXPORT_BATCH		     256 /* events in one message to a receiver: all that is in its memory */
#define NP_EXPORT_STRING	     8192 /* bytes of one of their texts; more is cut */
#define NP_EXPORT_BYTES		     (16u << 20) /* of one message */
#define NP_EXPORT_POLL_MS	     500 /* between two looks for new events */
#define NP_EXPORT_MS		     10000 /* that a receiver has for a message, from connect() to the end of its answer */
#define NP_EXPORT_ANSWER	     65536 /* bytes of that answer that are read */
#define NP_EXPORT_BACKOFF_MS	     1000 /* after a failure; doubled with each one up to the next */
#define NP_EXPORT_BACKOFF_MAX_MS     60000
#define NP_EXPORT_REFUSED_MS	     100 /* after an event that the receiver does not want: it may want none */
#define NP_EXPORT_RETRY_AFTER_MAX_MS 300000 /* that a receiver may ask for */
#define NP_METRICS_CONNECTIONS	     16 /* of who reads metrics at metrics: listen: */
#define NP_METRICS_TIMEOUT_S	     10

/* -- who watches and answers questions --------------------------------------- */
#define NP_NOTIFY_QUEUE 64	/* questions that are to be told of (approval: notify); more are counted, and not told */
#define NP_NOTIFY_PER_SESSION 8 /* of one session, so that none keeps others' out */
#define NP_NOTIFY_AT_ONCE 4	/* processes or connections that tell of them */
#define NP_NOTIFY_GAP_MS 200	/* from one to the next: five a second */
#define NP_NOTIFY_MS 10000	/* that one of them has */
#define NP_INBOX_BEHIND 4096 /* changes that a follower has not been told of: then it is told of all that waits */
#define NP_INBOX_PIECE (64u << 10) /* bytes of them that are made at a time; one has up to 150 KiB */

/* -- deciders ------------------------------------------------------------- */
#define NP_DECIDER_FRAME	(64u << 10) /* bytes of a line that a decider sends: an answer has a few hundred */
#define NP_DECIDER_UNREAD	(1u << 20)  /* bytes that it has not read: then it is taken to be dead */
#define NP_DECIDER_HELLO_MS	10000	    /* from its start to its hello: an interpreter starts on a busy machine */
#define NP_DECIDER_OPEN		512	    /* requests that wait for one decider; more are refused at once */
#define NP_DECIDER_UNANSWERED	4096  /* those that nobody waits for any more included: then it is taken to be dead */
#define NP_DECIDER_FAILURES	5     /* in a row: then it is left alone ... */
#define NP_DECIDER_PAUSE_MS	10000 /* ... for so long */
#define NP_DECIDER_LOG_LINES	20    /* of its stderr, a second */
#define NP_DECISION_WORDS	240   /* bytes of its words to an agent, with the NUL: they fit a refusal */
#define NP_DECISION_TTL_S	300   /* that an answer is remembered, if it does not say */
#define NP_DECISION_TTL_MAX_S	86400
#define NP_DECISIONS_REMEMBERED 4096 /* of all sessions; the oldest go first, and are asked for again */
#define NP_TRAILS		1024 /* sessions whose last requests are known to deciders: the busy ones, 20 KiB each */
#define NP_TRAIL_REQUESTS	8    /* of each */
#define NP_TRAIL_HOSTS		64   /* of each that bytes are counted for */
#define NP_DECIDE_DATASETS	32   /* of a session that a decider is told by name; the rest are counted */
#define NP_PURPOSE_MAX		1024 /* bytes of what a session is for: a sentence or a few */
#define NP_CONTEXT_MAX \
	(16u << 10) /* of what its platform adds as JSON: the last messages; it is in each line that a decider gets */
#define NP_DECIDE_HEADERS (8u << 10) /* bytes of a request's headers that a decider sees */
#define NP_DECIDE_BODY	  4096	     /* bytes of its body that one may ask for */

/* -- sandboxes made by netpawl run ------------------------------------------ */
#define NP_RUN_TEXTS 256 /* words of one option that may come more than once: variables of a run (--env) */
#define NP_BINDS_MAX 32	 /* --bind options of one run, and entries of binds: in the policy */
#define NP_DEVICES_MAX \
	64 /* of one sandbox, and entries of devices: in the policy: a machine has eight graphics cards, with four files each */
#define NP_ENV_FILE \
	(1u << 20) /* --env-file: half of what Linux passes on to a program by default, and more than anybody writes */
#define NP_UIDS		   (1u << 20) /* users that sandboxes run as: one for each workspace, and for each sandbox without one */
#define NP_UID_FIRST	   2100000000u /* the first of them: above what containers, systemd and SSSD use, below 2^31 */
#define NP_LIMIT_BYTES_MIN (1u << 20)  /* --memory and --disk: below it not even a shell starts */
#define NP_LIMIT_PIDS	   4194304     /* --pids: what the kernel has numbers for */
#define NP_LIMIT_CPUS	   4096	       /* --cpus */
#define NP_LIMIT_CPUS_MIN  10	       /* likewise, in thousandths: a quota of 1 ms, the least that the kernel takes */
#define NP_BUNDLE_BYTES	   (8u << 20)  /* the system's bundle of certificates: Debian's is 220 KiB */
#define NP_OUTPUT_KEPT	   (1u << 20)  /* bytes of standard output, and of standard error, that --json shows */
#define NP_OUTPUT_MAX	   (64u << 20) /* the same with --output-limit, whatever that says: it is in memory */
#define NP_ORPHANS_S	   10 /* between looks for groups of limits that nobody removed: each walks the v1 hierarchies */
#define NP_KEPT_RUNS	   64 /* commands that run in a kept sandbox at once */
#define NP_KEPT_READY_MS \
	10000 /* from an order to a kept sandbox until its command starts; later, the sandbox is dead */
#define NP_KEPT_IDLE_MS 3600000 /* a kept sandbox that nobody uses for so long goes, unless the policy says otherwise */
#define NP_KEPT_TRIES	8	/* kept sandboxes that one run finds dead before it gives up */
#define NP_KEPT_NOTE	(256u << 10) /* what a kept sandbox was made with: NP_BINDS_MAX paths at the most */
#define NP_PLAN_MEMORY	(16u << 20)  /* a plan: the environment and the arguments are at most a quarter of it */

/* -- policy file ---------------------------------------------------------- */
#define NP_POLICY_BYTES	     (8u << 20)	  /* all files of a policy together: 100,000 rules are about 4 MiB */
#define NP_POLICY_MEMORY     (256u << 20) /* what a policy may take once it is read */
#define NP_POLICY_FILES	     64		  /* files of one policy, the first one included */
#define NP_POLICY_DEPTH	     8		  /* YAML nesting; the language needs five levels */
#define NP_POLICY_NODES	     2000000	  /* YAML scalars, lists and mappings */
#define NP_POLICY_SCALAR     4096	  /* bytes of one YAML scalar */
#define NP_POLICY_RULES	     200000	  /* rules of one policy */
#define NP_POLICY_PATTERNS   400000	  /* destinations of all rules together, lists unfolded */
#define NP_POLICY_PROBLEMS   64		  /* errors, and warnings, that are told; more are only counted */
#define NP_ACCESS_CALLERS    64		  /* users and groups of access: */
#define NP_POLICY_DECIDERS   64		  /* programs that answer decide rules */
#define NP_PROXIES_MAX	     16		  /* entries of upstream_proxy: */
#define NP_PROXY_PATTERNS    1024     /* their destinations, lists unfolded: a connection is held against one by one */
#define NP_PROXY_LOGIN_SIZE  512      /* user:password of an upstream proxy, and a NUL */
#define NP_CREDENTIALS_MAX   256      /* credentials of one policy */
#define NP_CREDENTIAL_SLOTS  8	      /* places of a request that one may stand in */
#define NP_CREDENTIAL_HOSTS  256      /* its hosts, lists unfolded: a request is held against them one by one */
#define NP_LOCKED_BYTES	     (64u << 20) /* memory that an inspector may lock: values, and what is made of them to search for them */
#define NP_SECRET_TTL_MIN_MS 1000     /* a command is run again so often at the most */
#define NP_SECRET_COMMAND_MS 10000    /* that a command has to print a value */
#define NP_SECRET_MIN	     8	      /* bytes of a value: a shorter one would be found in text that has nothing to do with it */
#define NP_SIGNED_BODY	     (192u << 10) /* bytes of a body that a request waits for whose hash is signed: less than clients may send unasked */
#define NP_CARRIED_MAX	     8	      /* credentials in one request */
#define NP_SECRET_MAX	     8192     /* bytes of a value: tokens of identity providers have up to 4 KiB */
#define NP_PLACEHOLDER_MAX   4096     /* bytes of a placeholder */
#define NP_TOKEN_MAX	     4096     /* bytes of a token that an origin issues: browsers keep no longer cookie */
#define NP_TOKEN_NAMES	     32	      /* members of JSON, or cookies, that one credential captures */
#define NP_TOKEN_WATCHED_MIN 16	      /* bytes of one that is searched for: origins say words ("anonymous"), too, where tokens stand */
#define NP_TOKENS_WATCHED    32	      /* tokens of one session that an inspector has seen last, and searches for */
#define NP_TOKENS_ALL	     512      /* of all its sessions, 60 KB each with what finds it */
#define NP_TOKENS_ISSUED     64	      /* tokens of one response */
#define NP_ISSUED_DEPTH	     128      /* of JSON that tokens are looked for in */
#define NP_RULE_WORDS	     256      /* methods, paths or headers of one rule */
#define NP_INSPECT_PORTS_MAX 16	      /* inspect_ports */
#define NP_PATH_MAX	     4096     /* normalised path that rules with paths still look at */
#define NP_GLOB_MAX	     512      /* one path glob: with NP_PATH_MAX it bounds what a match can cost */
#define NP_NETS_WORK	     4000000  /* steps to compile them: ranges times the rules around each */
#define NP_COVER_WORK	     20000000 /* words compared in search of rules that never match; then the search ends */
#define NP_NOTICE_TEMPLATE   2048     /* bytes of a text in notices: */
#define NP_NOTICE_TEXT	     8192     /* what it becomes: NP_REACH_ITEMS destinations and a page of words */
#define NP_REACH_ITEMS	     24	      /* destinations that are named when a session's reach is told; more are counted */
#define NP_CASE_BYTES	     (1u << 20) /* one .case file: 20,000 lines of 50 bytes */
#define NP_CASE_LINES	     20000	/* lines of it, and so cases */
#define NP_CASE_LINE	     16384	/* bytes of one line: a path of NP_PATH_MAX, every byte escaped, and the rest */
#define NP_PROJECT_FILE	     (1u << 20) /* a file of a project that policy suggest reads */
#define NP_PROJECT_MEMORY    (64u << 20) /* what such a file may take once it is read */
#define NP_PROJECT_HOSTS     256	 /* hosts that are suggested: more is read by nobody */
#define NP_CASE_MEMORY	     (64u << 20) /* what such a file may take once it is read */

/* -- inspector ------------------------------------------------------------ */
#define NP_HEAD_FIELDS	128	    /* fields of one head or of its trailers: what nginx and browsers get by with */
#define NP_HEAD_BYTES	(64u << 10) /* bytes of one head */
#define NP_HELLO_BYTES	(64u << 10) /* a ClientHello with its records, however many: nginx takes 55 kB */
#define NP_METHOD_BYTES 32	    /* a method: the longest that is registered has 17 */
#define NP_CHUNK_EXTENSIONS \
	(16u << 10) /* bytes of chunk extensions in one body beyond those of its chunks: dropped, and Go's bound */
#define NP_LEAVES_MAX	      1024	 /* leaf certificates kept for one session */
#define NP_TICKETS_MAX	      256	 /* upstream TLS sessions kept for one session, for resumption */
#define NP_NAMES_MAX	      4096	 /* host names whose addresses one worker remembers */
#define NP_NAMES_PER_OWNER    256	 /* of these that one session has looked up at a time */
#define NP_ADDRS_PER_NAME     16	 /* addresses of one name that are tried */
#define NP_NAME_TTL_MAX_S     300	 /* longest that an address is remembered, whatever its TTL says */
#define NP_NAME_TTL_MIN_S     1		 /* shortest: a TTL of 0 would ask for each connection of a page */
#define NP_NAME_FAILED_S      2		 /* how long a failure is remembered */
#define NP_HOSTS_BYTES	      (1u << 20) /* text of the hosts file: 40,000 lines */
#define NP_CNAMES_MAX	      16    /* aliases on the way from a name to its addresses: resolvers give up there, too */
#define NP_ALIASES_BYTES      1024  /* text of these names: four of the longest, a dozen of those that there are */
#define NP_RESOLVE_MS	      4000  /* an answer from the resolvers */
#define NP_CONNECT_MS	      5000  /* a connection to an origin, all its addresses together */
#define NP_PROXY_MS	      15000 /* an upstream proxy's answer to CONNECT: it looks the name up and connects, too */
#define NP_PROXY_ANSWER_BYTES (16u << 10) /* of that answer, informational ones included: real ones have some hundred */
#define NP_EYEBALL_MS	      200	  /* head start of one address over the next (RFC 8305) */
#define NP_EYEBALLS_MAX	      4		  /* addresses of one host that are tried at once */
#define NP_LAGGARD_MS	      50    /* wait for IPv6 addresses when IPv4 ones are there (RFC 8305, resolution delay) */
#define NP_HANDSHAKE_MS	      10000 /* a TLS handshake, either leg */
#define NP_HEAD_MS	      15000 /* a client's first byte to the end of its request's head */
#define NP_IDLE_MS \
	60000 /* a connection without an exchange: of clients (DNS over TCP, too) and of origins (the pool); of tunnels: TCP's keep-alive */
#define NP_STALL_MS	  300000 /* an exchange in which no byte moves: long polls and slow models included */
#define NP_TIMEOUT_MIN_MS 1000	 /* the shortest that a rule may set (timeouts): clocks are looked at every 50 ms ... */
#define NP_TIMEOUT_MAX_MS 86400000 /* ... and the longest: what nobody cares for ends within a day ... */
#define NP_CONNECT_MAX_MS 60000	   /* ... or, for a connection, within the minute that curl and browsers wait at most */
#define NP_BACKLOG_HIGH	  (256u << 10) /* unsent bytes of one leg at which the other is no longer read ... */
#define NP_BACKLOG_LOW	  (64u << 10)  /* ... until they are fewer than these */
#define NP_BACKLOG_TIGHT  (16u << 10)  /* at which, when the sandbox holds much already: one TLS record */
#define NP_H2_STREAMS	  100	       /* concurrent streams of one client connection */
#define NP_H2_WINDOW	  (256u << 10) /* flow control window of one stream */
#define NP_H2_CONNECTION  (1u << 20)   /* of one connection: 80 Mbit/s at 100 ms, or four streams that stall */
#define NP_H2_NOISE	  10000 /* frames that move nothing, less those that do, before a connection is a flood */
#define NP_RETRIES	  3	/* times that a request which an origin did nothing with is sent again */
#define NP_WITHHELD_BYTES \
	(256u             \
	 << 10) /* of a body that one stage may keep back until it has seen more: what is searched for in it is shorter by far */
#define NP_SECRET_NEEDLES  (4 * NP_CREDENTIALS_MAX * 9) /* texts that one search looks for: nine forms of each value, and of a key's token */
#define NP_LEAKS_WAITING   4096 /* secrets that were about to leave, by session and credential, that wait for a verb to end */
#define NP_CODINGS	   2	/* content codings of one message, one upon the other: a third is for nobody's good */
#define NP_ZSTD_WINDOW_LOG 23	/* 8 MiB: what RFC 9659 lets a server ask for; each decoder may hold as much */
#define NP_DECODED_RATIO   1100 /* bytes that may come of one when it is decoded: gzip has 1032 at most ... */
#define NP_DECODED_FREE	   (16u << 20) /* ... but for the first: pages of zeros are smaller still with br and zstd */
#define NP_HELD_PER_SANDBOX \
	512 /* requests and connections of one sandbox that wait for an answer: half of its exchanges, so that the others go on */
#define NP_HELD_MAX	    8192   /* of all sandboxes of one worker: half of its connections */
#define NP_HOLD_MAX_MS	    600000 /* the longest that one is held, whoever wants more: no client waits for so long */
#define NP_RESEND_BYTES	    (64u << 10) /* of its body that are kept for that, until something of the response comes */
#define NP_POOL_PER_HOST    128		/* kept upstream connections to one host, of one session */
#define NP_POOL_PER_SESSION 512		/* kept upstream connections of one session */
#define NP_POOL_HOSTS	    64		/* of which a session remembers that they speak HTTP/1.1 */
#define NP_CAPTURE_MAX	    4096	/* bytes of a body that a rule may want in an event; of all headers likewise */
#define NP_REQUEST_BURST    5000	/* requests of one sandbox that one worker tells of at once ... */
#define NP_REQUEST_RATE	    500		/* ... and per second after that; the rest is counted, not told */
#define NP_LEDGER_RING \
	(2u << 20)	 /* reports of one worker that netpawld has not taken: some 2000, a fifth of a second's */
#define NP_DRAIN_MS 2000 /* what is open when netpawld stops may go on for so long; then it is broken off */
#define NP_MEMORY_PER_SANDBOX \
	(48u << 20) /* what one worker holds for one sandbox: at most half of it unread bytes, the rest is ... */
#define NP_EXCHANGE_BYTES \
	(48u << 10) /* ... for open requests, 1,024 of them: each has about 36 KiB with both legs and TLS */
#define NP_MEMORY_ALL (512u << 20) /* what one worker holds for all sandboxes, likewise */
#define NP_REFUSED_BODY \
	(64u << 20)		/* body of a refused request that is read and forgotten, so that its client reads why */
#define NP_INTERIM_MAX	     32 /* informational responses before the final one */
#define NP_CONNS_PER_SANDBOX 1024	 /* open connections of one sandbox to one worker */
#define NP_CONNS_MAX	     16384	 /* open client connections of one worker */
#define NP_DNS_ROOM	     (16u << 20) /* unread datagrams of the DNS gate: the bursts of ten sandboxes */
#define NP_DNS_BYTES	     4096	 /* one query over UDP: EDNS asks for no more (RFC 6891) */
#define NP_DNS_BATCH	     32		 /* queries that are received at once */
#define NP_WORKERS_MAX	     64		 /* inspector processes */
#define NP_DEBUG_MS	     1000 /* what an inspector has shown of itself by then is what there is to see; one message each */
#define NP_DEBUG_SANDBOXES \
	1000 /* sandboxes in one answer of /v1/debug: each asks the kernel and looks through every page */

/* -- DNS gate ------------------------------------------------------------- */
#define NP_DNS_QUERY_MAX       4096 /* one query over TCP: a name, a type and options, with room for padding (RFC 8467) */
#define NP_DNS_WORDS_MAX       160 /* words of an extended error: beside the longest question they still fit 512 bytes */
#define NP_DNS_TTL_S	       30  /* how long a client may remember a synthetic address; it stands for much longer */
#define NP_QUERIES_PER_SANDBOX 1000 /* queries of one sandbox that wait for an address or for records: NP_QUERY_BURST */
#define NP_QUERY_MS	       2000 /* ... and how long: clients ask again after that */
#define NP_RECORDS_MAX	       256  /* names and types of records (dns: in a rule) that one worker remembers */
#define NP_RECORDS_BYTES       16384 /* records of one of them: the longest answers (TXT of large companies) have a third */
#define NP_DNS_NEGATIVE_S      5 /* how long a client may remember that a name or type is not there: a policy can change */
#define NP_NAMES_PER_SESSION   8192 /* names of one session that have a synthetic address at a time */
#define NP_REFUSED_NAMES \
	256 /* names of one session that no rule allows and that have one (dns: refused: synthetic); others do not resolve */
#define NP_REFUSED_REST_MS \
	300000 /* ... and how long such an address is not given to another: ten times the answers' TTL */
#define NP_NAME_REST_MS \
	3600000 /* how long such an address is not given to another name after it was last asked for
				    * or used: sixty times the answers' TTL, for clients that keep them longer */
