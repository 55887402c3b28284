/* SPDX-License-Identifier: MIT */
/* The files of a policy: the first one, and those that include: names. For load.c. */
#pragma once

#include <limits.h>
#include <nettle/sha2.h>

#include "policy/read.h"
#include "vocab/limits.h"

struct loading {
	struct reader reader;
	const struct policy_source *source;
	const char *shown;
	struct sha256_ctx hash;
	size_t bytes, nodes; /* of all files so far */
	bool optional;	     /* the file that is read need not be there */
	/* The files as their rules count: included ones before those that include them. */
	unsigned order[NP_POLICY_FILES];
	unsigned n_order;
};

/* True when the file may be read: it is not there yet, and there are not too many. at: who names it. */
bool file_is_welcome(struct loading *loading, const char *name, const struct node *at);
/* Reads the file and what it includes. at is NULL for the first file, whose failure is returned; what is wrong with an
 * included one is told at its entry. */
int file_load(struct loading *loading, const char *name, const struct node *at);

/* entry, as file says it below key, relative to the directory of the first file. -EINVAL when it leads out, and that is
 * told. */
int path_resolve(struct reader *reader, const struct file *file, const struct node *key, const struct node *entry,
		 char name[static PATH_MAX]);
/* The text of a file that counts as part of the policy; the caller frees it. 0 with NULL when there is none, and that is
 * told at the entry; at is NULL for the first file, whose failure is returned. */
int text_load(struct loading *loading, const char *name, const struct node *at, char **ret_text, size_t *ret_len);

/* Counts the bytes, and puts name, length and bytes into the hash: no other set of files gives the same sequence. */
int file_count(struct loading *l, const char *name, const struct node *at, const char *text, size_t len);

/* extra_roots.c: the certificates that extra_roots: names. */
int roots_load(struct loading *loading, const struct file *first);

/* Why a policy_source gives no text, in words. */
const char *source_words(int error);
