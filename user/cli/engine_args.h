/* SPDX-License-Identifier: MIT */
/* The command line of a container engine, with what puts the container into a sandbox from its birth. Pure. */
#pragma once

#include <stdbool.h>

struct engine_order {
	bool podman;	     /* else Docker */
	const char *session; /* USER/SESSION */
	const char *parent;  /* for --cgroup-parent */
	const char *trust;   /* a directory of the host with what it has to trust; NULL: none */
	bool keep_bundles;   /* the image's own: it is given anchors and variables alone */
};

/* The place of "run" or "create"; -1: neither is there. */
int engine_verb(int argc, char *const *argv);
/* The option behind the verb that would lead the container out of its sandbox; NULL: there is none. It is looked for up to the end, for
 * only the engine knows which word is the image. */
const char *engine_leads_out(int argc, char *const *argv, int verb);
/* All of argv, and what is added behind the verb; NULL: out of memory. To be freed with engine_args_free(). */
char **engine_args(int argc, char *const *argv, int verb, const struct engine_order *order);
void engine_args_free(char ***args);
