/* SPDX-License-Identifier: MIT */
/*
 * Placeholders: what a sandbox holds in a secret's place. Each is a function of the host's placeholder key, the session and
 * the credential, so that daemon and workers make the same without telling each other, and it stays what it is for as long as
 * the key does. It is worth nothing outside of its session. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"

#define PLACEHOLDER_KEY_SIZE 32

struct placeholder_key {
	uint8_t bytes[PLACEHOLDER_KEY_SIZE];
};

/* Writes it, with a NUL, and returns its length. like is one that placeholder_shape_problem() has nothing against. */
size_t placeholder_make(const struct placeholder_key *key, const char *session, const char *credential,
			const char *like, char ret[static NP_PLACEHOLDER_MAX + 1]);
