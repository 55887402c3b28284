/* SPDX-License-Identifier: MIT */
/* Names that are mistaken for others. No part of a decision. Pure. */
#pragma once

#include <stdbool.h>

/*
 * Could a person take the host, or the end of it that has as many labels, for the name? By a slip or two, by letters that look the
 * same in many typefaces, those of other scripts (xn--) among them, or because it begins with the name. Both are canonical. The
 * name itself, and what is below it, are not mistaken for it.
 */
bool name_looks_alike(const char *host, const char *name);
