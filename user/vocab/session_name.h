/* SPDX-License-Identifier: MIT */
/*
 * Names that strangers choose. USER and SESSION become directory names and map labels, so they are [A-Za-z0-9._-], for USER
 * also @ and + (it may be an e-mail address), 1 to NP_NAME_MAX bytes, and start with a letter or a digit (which rules out ".",
 * ".." and options). A dataset's name and a reason are free UTF-8 text, not empty, without control characters (C0, DEL, C1) and
 * without those that change the direction of writing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "vocab/limits.h"

struct session_name {
	char text[NP_SESSION_MAX + 1]; /* "USER/SESSION" */
	size_t user_len;
};

/* Each returns 0 or -EINVAL and then a sentence in *ret_problem that names the place. */
int session_name_parse(const char *text, struct session_name *ret, const char **ret_problem);
/* Reserved for temporary sessions (NP_TEMPORARY_NAME). */
bool session_name_is_temporary(const struct session_name *name);
bool session_name_same_user(const struct session_name *a, const struct session_name *b);
/* Who reads notices: a name as each half of a session's. */
int reader_name_check(const char *text, const char **ret_problem);
/* max counts bytes. */
int text_check(const char *text, size_t max, const char **ret_problem);
