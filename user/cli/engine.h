/* SPDX-License-Identifier: MIT */
/* What a container engine's own command line says of a container: docker and podman, the ones that name and image come from. */
#pragma once

#include <stdbool.h>

#include "containers/container_path.h"

struct engine_container {
	char id[CONTAINER_ID_SIZE];
	char name[256], image[512]; /* empty: not known */
};

struct engine_setup {
	char driver[64]; /* who makes its cgroups: cgroupfs or systemd */
	bool v2;	 /* it limits containers by cgroup v2 */
};

/* -ENOENT: there is no such engine; -EIO: it does not answer. */
int engine_info(const char *engine, struct engine_setup *ret);
/* name: its name or id. -ENOENT: there is no such engine, or it knows of none; -errno. */
int engine_inspect(const char *engine, const char *name, struct engine_container *ret);
