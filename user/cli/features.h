/* SPDX-License-Identifier: MIT */
/* The "features" array of the health answer: what this kernel has, and what that means for the promise. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct feature {
	const char *name, *means; /* borrowed from the JSON; "?" when it has none */
	bool present;
};

/* Item i of "features" in object; false past the end. */
bool feature_get(const json_t *object, size_t i, struct feature *ret);
/* How many are not present. */
size_t features_missing(const json_t *object);

/* What its processes may have that leads past the gate, as words with commas between them; empty: nothing, or it cannot be told. */
void container_risks(const char *path, char *ret, size_t size);
void doctor_containers(void); /* prints those that run here, and what they have */
void container_warn(
	const char *path); /* of one that was adopted: on stderr, what it has that leads past the gate; else nothing */
