/* SPDX-License-Identifier: MIT */
/* The cgroup v2 of a pod of Kubernetes, by the pod's uid. */
#pragma once

#include <stdbool.h>

#include "base/fs.h"

/* Is this the name that kubelet gives to the cgroup of that pod? cgroupfs: podUID; systemd: kubepods-burstable-podUID.slice, and the
 * dashes of the uid are underscores. Pure. */
bool pod_name_is(const char *name, const char *uid);
/* 0; -ENOENT; -ENOTUNIQ: there are several. */
int pod_find(const char *uid, char path[static FS_PATH_SIZE]);
