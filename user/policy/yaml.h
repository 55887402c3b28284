/* SPDX-License-Identifier: MIT */
/*
 * YAML, or the part of it that a policy needs, as a tree: mappings, lists and scalars, each with its place. Refused:
 * anchors, aliases, tags, merge keys, keys that are no scalars or are there twice, a second document, text that is not
 * UTF-8 or holds what nobody sees. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "policy/problem.h"

enum node_kind {
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAP,
};

struct node {
	uint8_t kind;
	char quote;    /* of a scalar: '"' or '\'' when it was written in such; else 0 */
	uint16_t file; /* as given to yaml_read() */
	uint32_t line, column;
	uint32_t len; /* of a scalar: bytes of text; of a list: entries; of a mapping: pairs */
	union {
		const char *text;   /* SCALAR: printable UTF-8, with a NUL behind it */
		struct node *first; /* LIST: its entries. MAP: key, value, key, value, ... */
	};
	struct node *next; /* the neighbour in the list or mapping */
};

/* A value that is not there: "allow:", "allow: ~", "allow: null", and an empty text. */
bool node_is_null(const struct node *node);

/* shown is the file's name in messages. nodes counts up to NP_POLICY_NODES, for all files of a policy. 0, with NULL in
 * ret_root for a file that says nothing, and perhaps errors in problems about keys that are there twice; -EINVAL with an
 * error in problems; -ENOMEM. */
int yaml_read(struct arena *arena, const char *text, size_t len, const char *shown, uint16_t file, size_t *nodes,
	      struct problems *problems, const struct node **ret_root);
