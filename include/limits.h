/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every bound in netpawl, with its reason. A stranger can make us allocate up
 * to these numbers and no further. Read by both compilers: plain numbers only.
 */

/* gcc's own <limits.h> looks for the C library's by name and may find this file first: pass it on. */
#if !defined(__BPF__) && __has_include_next(<limits.h>)
#include_next <limits.h>
#endif

#ifndef NP_LIMITS_H
#define NP_LIMITS_H

/* -- names ---------------------------------------------------------------- */
#define NP_NAME_MAX 64	   /* one half of USER/SESSION: fits a uuid, a mail local part or a host name label */
#define NP_SESSION_MAX 129 /* USER/SESSION with its slash */
#define NP_LABEL_SIZE 136  /* the same with its NUL, padded to 8: what bpftool shows in np_boxes */
#define NP_DATASET_MAX 128 /* name of a dataset */
#define NP_REASON_TEXT_MAX 512 /* free text that explains a raise */
#define NP_DATASETS_MAX 1024   /* datasets of one session: a list a person still reads */
#define NP_SANDBOX_ID_MAX 160  /* USER.SESSION.xxxxxxxx, below NAME_MAX of a cgroup directory */

/* -- the gate ------------------------------------------------------------- */
#define NP_BOXES_MAX 65536	/* sandboxes alive at once: entries of np_boxes, about 300 bytes each when used */
#define NP_DEPTH_MAX 32		/* cgroup depth of a sandbox: the walk in the kernel is bounded by it */
#define NP_HOST_ADDRS_MAX 4096	/* addresses of the host's own devices */
#define NP_HOST_PORTS_MAX 256	/* host_loopback entries of a policy */
#define NP_LISTED_PORTS_MAX 1024 /* host_loopback and inspect_ports in the gate, of two policies during a reload */
#define NP_ERR_PLACES_MAX 512	/* distinct (place, errno) pairs counted by np_errors */
#define NP_CUT_FLOWS_MAX 65536	/* own-loopback flows remembered during one cut; beyond it they are cut too */
#define NP_UNIX_CHAIN_MAX 64	/* sockets looked at in one bucket of the unix socket table */
#define NP_UNIX_BUCKETS 512	/* UNIX_HASH_SIZE * 2: the kernel's unix socket table */
#define NP_DRAIN_US 10000	/* longest wait for bytes already queued below TCP when a session is cut */

/* -- events --------------------------------------------------------------- */
#define NP_RING_BYTES (1u << 20)   /* kernel ring: 8,000 events, forty times one sandbox's burst */
#define NP_EVENT_BURST 200	   /* events one sandbox may send at once ... */
#define NP_EVENT_RATE 50	   /* ... and per second after that; the rest is counted, not sent */
#define NP_JOURNAL_BYTES (16u << 20) /* one journal file before it is rotated */
#define NP_JOURNAL_FILES 4	   /* journal files kept, the current one included */
#define NP_HISTORY_ROWS 200000	   /* events kept in SQLite for queries; the oldest go first */
#define NP_HISTORY_BATCH 256	   /* events per SQLite transaction */
#define NP_FOLLOWERS_MAX 32	   /* open event feeds */
#define NP_FEED_BYTES (256u << 10) /* unread bytes of one feed before it skips, and says how many it skipped */
#define NP_EVENT_STRING_MAX 1024   /* bytes of one string in an event; a longer one is cut, and ends in three dots */
#define NP_EVENT_LINE_MAX (64u << 10) /* one event as JSON: ten such strings, each byte escaped as six, and the rest */
#define NP_EVENTS_PAGE 1000	   /* events in one answer without follow */

/* -- control API ---------------------------------------------------------- */
#define NP_BODY_MAX (64u << 10) /* request body: a dataset with its reason is below 1 KiB */
#define NP_JSON_DEPTH 4		/* no request of ours nests deeper */
#define NP_CLIENTS_MAX 256	/* open control connections */
#define NP_CLIENT_TIMEOUT_S 15	/* a client that says nothing for so long is dropped */
#define NP_CLIENT_MEMORY (32u << 10) /* header memory per connection */
#define NP_LIST_MAX 10000	/* rows in one list answer */
#define NP_ANSWER_BYTES (16u << 20) /* body of one answer: NP_EVENTS_PAGE events of the longest kind */
#define NP_BODY_DISCARD (1u << 20)  /* body of unknown length read and thrown away, to answer too_large at its end */
#define NP_REQUEST_S 60		/* one request, first byte to end of answer: ends clients that trickle */
#define NP_HEARTBEAT_S 15	/* an empty line to a silent follower, so that a gone one is noticed */

/* -- sessions ------------------------------------------------------------- */
#define NP_SESSIONS_MAX 100000 /* sessions in the store; ended ones count, for they keep their level */
#define NP_BOXES_PER_SESSION 1024 /* sandboxes one session may have at once */

/* -- policy file ---------------------------------------------------------- */
#define NP_POLICY_BYTES (8u << 20)    /* all files of a policy together: 100,000 rules are about 4 MiB */
#define NP_POLICY_MEMORY (256u << 20) /* what a policy may take once it is read */
#define NP_POLICY_FILES 64	      /* files of one policy, the first one included */
#define NP_POLICY_DEPTH 8	      /* YAML nesting; the language needs five levels */
#define NP_POLICY_NODES 2000000	      /* YAML scalars, lists and mappings */
#define NP_POLICY_SCALAR 4096	      /* bytes of one YAML scalar */
#define NP_POLICY_RULES 200000	      /* rules of one policy */
#define NP_POLICY_PATTERNS 400000     /* destinations of all rules together, lists unfolded */
#define NP_POLICY_PROBLEMS 64	      /* errors, and warnings, that are told; more are only counted */
#define NP_POLICY_DECIDERS 64	      /* programs that answer decide rules */
#define NP_RULE_WORDS 256	      /* methods, paths or headers of one rule */
#define NP_INSPECT_PORTS_MAX 16	      /* inspect_ports */
#define NP_PATH_MAX 4096	      /* normalised path that rules with paths still look at */
#define NP_GLOB_MAX 512		      /* one path glob: with NP_PATH_MAX it bounds what a match can cost */
#define NP_NETS_MAX 65536	      /* address ranges in the gate, of two policies during a reload */
#define NP_NET_PORTS_MAX 262144	      /* port entries of these, likewise */
#define NP_CASE_BYTES (1u << 20)      /* one .case file: 20,000 lines of 50 bytes */
#define NP_CASE_LINES 20000	      /* lines of it, and so cases */
#define NP_CASE_LINE 16384	      /* bytes of one line: a path of NP_PATH_MAX, every byte escaped, and the rest */
#define NP_CASE_MEMORY (64u << 20)    /* what such a file may take once it is read */

#endif
