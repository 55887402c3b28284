/* SPDX-License-Identifier: MIT */
/* What the path of a cgroup tells of a container. Pure: engines name cgroups by the container's id, each in its own way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_SIZE 65 /* 64 hexadecimal digits, and a NUL */

struct container {
	const char *engine; /* docker, podman, containerd, cri-o; NULL: the path does not tell */
	char id[CONTAINER_ID_SIZE];
	size_t len; /* of the path, up to the container's own cgroup */
};

/* The innermost container on the way to a cgroup. False: there is none. */
bool container_of_path(const char *path, struct container *ret);
