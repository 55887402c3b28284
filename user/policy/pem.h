/* SPDX-License-Identifier: MIT */
/* Certificates as PEM, for the inspector. Here only their form is looked at, so that a file that holds none, or a key, is told of where
 * it is named; what they say is OpenSSL's business. */
#pragma once

#include <stddef.h>

/* What is wrong with it, in words; NULL: nothing. */
const char *pem_problem(const char *text, size_t len);
