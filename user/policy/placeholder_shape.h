/* SPDX-License-Identifier: MIT */
/*
 * The shape of a placeholder, as like: writes it. "{N}" is N letters and digits that nobody can guess, "{N:hex}" and
 * "{N:digits}" are the same from fewer characters; everything else stands for itself. "jwt" is a JSON Web Token. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PLACEHOLDER_JWT "jwt"

/* A part of one: some text, or (alphabet not NULL) len characters of that alphabet. */
struct shape_part {
	const char *text;
	const char *alphabet;
	size_t len;
};

/* The part at *at, which moves behind it. 1; 0 at the end; -EINVAL: it is no shape. */
int shape_next(const char **at, struct shape_part *ret);

/* NULL, or a sentence that says why it cannot be used. A good one has 128 bits that are random, fits NP_PLACEHOLDER_MAX, and
 * is written the same in a URL, in a form and in JSON, so that it is found wherever a client puts it. */
const char *placeholder_shape_problem(const char *like);
