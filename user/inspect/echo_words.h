/* SPDX-License-Identifier: MIT */
/* What takes the place of values in what comes back to a sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "secrets/scrub.h"
#include "vocab/limits.h"

struct carried;
struct client;
struct exchange;
struct secret_set;

struct echo_words {
	const struct client *client;
	const struct carried *carried; /* with the request; NULL: nothing */
	struct secret_set *set; /* values as they were when the request went; a reference. NULL: there are none */
	char placeholder[NP_PLACEHOLDER_MAX + 1];
	const char *refused; /* the credential that was found, and says refuse */
};

/* For a scrubber of words->set (struct scrub_words); ctx is words. */
bool echo_words_find(void *ctx, uint32_t secret, struct scrub_word *ret);

/* -- stage_echo.c: what its response is searched for; NULL: it is not. */
struct secret_set *echo_set(const struct exchange *exchange);
