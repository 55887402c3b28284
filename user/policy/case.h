/* SPDX-License-Identifier: MIT */
/*
 * .case files: what a policy is expected to say, one attempt a line, for people who do not program.
 *
 *   policy: coding-agent.yaml                          or an indented policy on the lines below "policy:"
 *   at CONFIDENTIAL
 *   GET https://api.github.com/repos/a/b -> allow
 *   connect db.example:5432              -> deny not_in_policy
 *   at CONFIDENTIAL class read_only                    of a run that may only read
 *   at CONFIDENTIAL session alice/build                of this session, for rules with sessions:
 *
 * netpawl-policy(5) describes them. Pure: whoever calls reads the files.
 */
#pragma once

#include "policy/decide.h"

struct case_item {
	uint32_t line;
	const char *text;   /* the attempt as it is written */
	struct facts facts; /* all but the mode: the policy gives it to the level */

	/* What is expected. */
	enum action action;
	int reason;		/* enum np_reason; -1: any */
	const char *by;		/* of decide: the decider; NULL: any */
	const char *file;	/* of the rule; NULL: the policy's first */
	uint32_t at;		/* line of the rule; 0: any rule, or none */
	const char *credential; /* that goes with it; "": none does; NULL: any, or none */
};

struct case_file {
	struct arena *arena; /* all memory below is in it */
	const char *path;    /* policy: FILE, as written, relative to the case file; or NULL */
	const char *text;    /* the policy that stands in the case file itself; or NULL */
	size_t len;	     /* Each of its lines has the number that it has in the case file. */
	const struct case_item *items;
	size_t n_items;
};

/* 0; -errno with at least one error in problems, which the caller clears. name is how messages call the file. */
int case_file_parse(const char *name, const char *text, size_t len, struct case_file **ret, struct problems *problems);
void case_file_free(struct case_file *file); /* NULL is fine */

static inline void case_file_free_cleanup(struct case_file **file)
{
	case_file_free(*file);
}
#define _case_file_ __attribute__((__cleanup__(case_file_free_cleanup)))

/* What came of a case. */
struct case_outcome {
	bool holds;
	struct facts facts; /* with the mode */
	struct verdict verdict;
};
struct case_outcome case_run(const struct policy *policy, const struct case_item *item);

/* "deny not_in_policy", "allow line 14": what was expected; and what came, with its reason and rule always. */
#define CASE_TEXT_SIZE 1024
void case_expected_format(const struct case_item *item, char text[static CASE_TEXT_SIZE]);
void case_actual_format(const struct policy *policy, const struct case_outcome *outcome,
			char text[static CASE_TEXT_SIZE]);
