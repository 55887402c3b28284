/* SPDX-License-Identifier: MIT */
/* What a container engine's own command line says of a container: docker and podman, the ones that name and image come from. */
#ifndef NP_CLI_ENGINE_H
#define NP_CLI_ENGINE_H

#include "containers/container_path.h"

struct engine_container {
	char id[CONTAINER_ID_SIZE];
	char name[256], image[512]; /* empty: not known */
};

/* name: its name or id. -ENOENT: there is no such engine, or it knows of none; -errno. */
int engine_inspect(const char *engine, const char *name, struct engine_container *ret);

#endif
