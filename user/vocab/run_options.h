/* SPDX-License-Identifier: MIT */
/*
 * Every option of a run, once: the command line and its help, the API, the policy, the record of runs, kept sandboxes and the
 * plan read this table, and a test compares the documents and the Python client with it. A new limit is one line here, and
 * its enforcement.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"

enum run_kind {
	RUN_TEXT,
	RUN_TEXTS, /* may come more than once */
	RUN_FLAG,
	RUN_SIZE, /* bytes */
	RUN_CPUS, /* thousandths of a CPU */
	RUN_COUNT,
	RUN_TIME, /* milliseconds */
};

/* Where it may be written; bits. */
enum run_place {
	RUN_CLI = 1,	/* netpawl run */
	RUN_RECORD = 2, /* "options" of a run on record: whoever approves the run sees it */
	RUN_LAUNCH = 4, /* "launch" of the API */
};

/* clang-format off */

/* name, kind, places, its value in the help, what it is for */
#define RUN_WORDS(X)                                                                                                       \
	X(session, TEXT, RUN_CLI, "U/S",                                                                                   \
	  "the session; made when missing, and it stays, as does its workspace. Without it a\n"                            \
	  "new one is made and forgotten afterwards, with a workspace in memory")                                              \
	X(level, TEXT, RUN_CLI | RUN_RECORD, "LEVEL", "raise the session to this level before the start")                  \
	X(purpose, TEXT, RUN_CLI | RUN_RECORD | RUN_LAUNCH, "TEXT",                                                        \
	  "what the session is for from now on: deciders are told")                                                       \
	X(class, TEXT, RUN_CLI, "CLASS",                                                                                   \
	  "what it may do on the network, whatever the session may: none; read_only (GET, HEAD and\n"                      \
	  "OPTIONS through the inspector); write (what the session may, once `netpawl approve`\n"                          \
	  "let it: until then it waits)")                                                                                  \
	X(keep, FLAG, RUN_CLI | RUN_RECORD | RUN_LAUNCH, NULL,                                                             \
	  "run it in the session's kept sandbox, which is made by the first such run and stays\n"                          \
	  "with all that runs in it, until nobody used it for a while (sandbox: idle: in the\n"                            \
	  "policy; 1h) or `netpawl remove` ends it. Limits may be left out later; what else it\n"                          \
	  "was made with must be the same. --timeout and --output-limit are each run's own")                               \
	X(user, TEXT, RUN_CLI | RUN_RECORD, "USER",                                                                        \
	  "run as this user: a name; the UID of a user that this host knows, with its groups; or\n"                        \
	  "UID:GID for any other, as in 1234:1234")                                                                        \
	X(bind, TEXTS, RUN_CLI | RUN_RECORD | RUN_LAUNCH, "S:D[:ro]",                                                      \
	  "show the host's S at D; only what the policy's sandbox: section permits")                                       \
	X(chdir, TEXT, RUN_CLI | RUN_RECORD | RUN_LAUNCH, "DIR",                                                           \
	  "where to start (else the directory netpawl was started in, when the sandbox\n"                                  \
	  "sees it; else /workspace)")                                                                                     \
	X(cwd, TEXT, RUN_RECORD, "DIR", "the directory netpawl was started in")                                            \
	X(env, TEXTS, RUN_CLI | RUN_RECORD | RUN_LAUNCH, "NAME[=VALUE]",                                                   \
	  "give it this variable: the caller's, or that value. Without it the command gets PATH,\n"                        \
	  "HOME, LANG, TERM, TZ and what netpawl sets, and nothing else of the caller's")                                  \
	X(env_file, TEXT, RUN_CLI, "FILE",                                                                                 \
	  "the same, of a file with lines NAME=VALUE, or with a NUL behind each as in\n"                                  \
	  "/proc/PID/environ")                                                                                             \
	X(env_all, FLAG, RUN_CLI | RUN_RECORD, NULL,                                                                       \
	  "give it the caller's whole environment: keys and tokens, too")                                                  \
	X(input, FLAG, RUN_RECORD | RUN_LAUNCH, NULL, "it has input, which comes by the API; else it has none")            \
	X(terminal, TEXT, RUN_RECORD | RUN_LAUNCH, "COLUMNSxROWS", "a terminal of this size is its input and output")      \
	X(attach, FLAG, RUN_RECORD | RUN_LAUNCH, NULL,                                                                     \
	  "its output is for one reader, whole and as bytes, and waits for that reader; without one it ends")               \
	X(isolation, TEXT, RUN_CLI | RUN_RECORD, "none",                                                                   \
	  "take only the network away. For those who bring their own isolation")                                           \
	X(best_effort, FLAG, RUN_CLI | RUN_RECORD, NULL, "go on when a limit cannot be set here, and say so")              \
	X(dry_run, FLAG, RUN_CLI, NULL, "print the plan as JSON, and do nothing")

/* They may be written everywhere, in the policy's sandbox: section, too: there they hold without an option, which can only be
 * stricter. GET /v1/launch and a plan have them by the same names, as texts that an option takes. least, most: in its unit
 * (CPUS: the least in thousandths, the most whole ones).
 *
 * name, kind, least, most, of the whole sandbox (or each run's own), its value in the help, what it is for, what is
 * wrong with any other text */
#define RUN_LIMITS(X)                                                                                                      \
	X(memory, SIZE, NP_LIMIT_BYTES_MIN, INT64_MAX, true, "SIZE", "memory of a sandbox",                                \
	  "not a size like 512MiB")                                                                                        \
	X(cpus, CPUS, NP_LIMIT_CPUS_MIN, NP_LIMIT_CPUS, true, "N", "CPUs of a sandbox, as in 1.5",                         \
	  "not a number like 1.5 (0.01 is the least)")                                                                     \
	X(pids, COUNT, 1, NP_LIMIT_PIDS, true, "N", "processes of a sandbox", "not a number of processes")                 \
	X(timeout, TIME, 1, INT64_MAX, false, "TIME",                                                                      \
	  "how long a run may take: 90s, 5m, 1h; then it is killed, and the exit code is 124",                             \
	  "not a time like 90s, 5m or 1h")                                                                                 \
	X(output_limit, SIZE, 1, INT64_MAX, false, "SIZE",                                                                 \
	  "bytes of standard output and error together; the rest is thrown away", "not a size like 1MiB")                  \
	X(disk, SIZE, NP_LIMIT_BYTES_MIN, INT64_MAX, true, "SIZE",                                                         \
	  "of /tmp and every other file system in memory, and of the workspace", "not a size like 512MiB")

/* The words of an option that may come more than once. */
struct run_texts { size_t n; const char *items[NP_RUN_TEXTS]; };

/* The words that were given; NULL and false: none. */
#define RUN_MEMBER_TEXT(name) const char *name;
#define RUN_MEMBER_FLAG(name) bool name;
#define RUN_MEMBER_TEXTS(name) struct run_texts name;
#define RUN_WORD_MEMBER(name, kind, ...) RUN_MEMBER_##kind(name)
#define RUN_LIMIT_WORD(name, ...) const char *name;
struct run_options {
	RUN_WORDS(RUN_WORD_MEMBER)
	RUN_LIMITS(RUN_LIMIT_WORD)
};

/* How much a run may take, in the unit of its kind. 0 is no limit. */
#define RUN_LIMIT_MEMBER(name, ...) uint64_t name;
struct limits {
	RUN_LIMITS(RUN_LIMIT_MEMBER)
	bool best_effort; /* a limit that cannot be set is reported, and no error */
};

#define RUN_COUNT_ONE(...) +1
enum { RUN_N_LIMITS = RUN_LIMITS(RUN_COUNT_ONE), RUN_N_OPTIONS = RUN_WORDS(RUN_COUNT_ONE) + RUN_N_LIMITS };

/* clang-format on */

struct run_option {
	const char *name; /* output_limit; on the command line --output-limit */
	enum run_kind kind;
	unsigned places;
	const char *value, *about;
	size_t word; /* in struct run_options */

	/* Of a limit. */
	size_t limit; /* in struct limits */
	uint64_t least, most;
	bool of_sandbox;
	const char *wrong; /* NULL: it is no limit */
};

extern const struct run_option run_options[RUN_N_OPTIONS];
extern const struct run_option *const run_limits; /* the last RUN_N_LIMITS of them */

/* NULL: there is none of that name in these places. */
const struct run_option *run_option_find(const char *name, unsigned places);
/* As the command line has it: output-limit. */
#define RUN_DASHED_SIZE 24
const char *run_option_dashed(const struct run_option *option, char text[static RUN_DASHED_SIZE]);
/* Of RUN_TEXT and the limits. */
const char **run_option_word(const struct run_option *option, struct run_options *options);
struct run_texts *run_option_texts(const struct run_option *option, struct run_options *options);
bool *run_option_flag(const struct run_option *option, struct run_options *options);
uint64_t *run_limit_of(const struct run_option *limit, struct limits *limits);

/* What a limit is written as; NULL, or what is wrong. */
const char *limit_parse(const char *name, const char *text, uint64_t *ret);
/* The reverse, in the largest unit that says it: "64MiB", "1.5", "5m". */
#define LIMIT_TEXT_SIZE 24
const char *limit_format(const struct run_option *limit, uint64_t value, char text[static LIMIT_TEXT_SIZE]);

/* 80x24. */
bool terminal_parse(const char *text, unsigned *ret_columns, unsigned *ret_rows);
/* A word of --env. has_caller: NAME alone is one of the caller's. NULL, or what is wrong. */
const char *env_check(const char *word, bool has_caller);
