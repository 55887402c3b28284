/* SPDX-License-Identifier: MIT */
/*
 * Carries out the steps of a plan: the file system of a sandbox. In the process that is to become the sandbox, as root of its
 * user namespace, in mount, process and IPC namespaces of its own.
 */
#pragma once

#include "launch/plan.h"

#define ROOT_PROBLEM_SIZE 390
/*
 * Afterwards "/" is what the plan says, nothing else can be reached by a name, and the plan's directory is the current one.
 * 0, or with the reason in words: -EAGAIN when the host's mounts may have changed since the plan was made, and another plan
 * may do; -EINVAL.
 */
int root_build(const struct plan *plan, char problem[static ROOT_PROBLEM_SIZE]);
