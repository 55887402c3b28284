/* SPDX-License-Identifier: MIT */
/* Between the files that read cases. */
#pragma once

#include "policy/case.h"

#define BLANKS " \t\r"
#define ARROW  "->"

struct case_reading {
	const char *name;
	struct problems *problems;
	struct case_file *file;
	struct case_item *items;
	char *policy; /* the inline one: as long as the file, so that its lines keep their numbers */
	size_t policy_len;
	bool in_policy; /* indented lines belong to it */
	bool has_policy;
	struct np_rung rung; /* without a mode: the policy gives it to the level */
	const char *session; /* NULL: none is named */
	/* The line at hand, in words. */
	uint32_t number;
	char *line, *word, *next;
};

/* The next word of the line, now the current one; NULL at its end. */
char *case_word_take(struct case_reading *r);
bool case_word_comes(const struct case_reading *r, const char *word);

/* What comes behind the arrow. */
int case_expected_read(struct case_reading *r, struct case_item *item, const char **ret_problem);
