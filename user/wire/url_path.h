/* SPDX-License-Identifier: MIT */
/* Paths of requests, in the one form that rules are matched against. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "vocab/limits.h"

/* target is the request target: path, perhaps "?query" (dropped). The normal form: starts with a slash;
 * percent escapes of printable ASCII are decoded, the others are in upper case.
 *
 * -EINVAL when two servers could read it as two paths: does not start with a slash; an empty segment inside ("//");
 * an escaped slash, backslash, NUL or control byte; a raw backslash, space, '#', control or non-ASCII byte; a broken
 * escape; an escaped percent sign that would be an escape again (%252e); escapes that are not UTF-8; dot segments
 * ("." and "..", escaped or not); a semicolon, escaped or not. -E2BIG when longer than NP_PATH_MAX. */
int path_normalise(const char *target, size_t len, char ret[static NP_PATH_MAX + 1]);

/* "*" is any run of bytes without a slash, "**" any run; everything else is itself. */
bool path_matches(const char *glob, const char *path);

/* Brings a glob of a policy into the form that normalised paths have; "*" stays. 0, or -EINVAL with a reason in words. */
int glob_normalise(const char *text, size_t len, char ret[static NP_GLOB_MAX + 1], const char **ret_problem);
