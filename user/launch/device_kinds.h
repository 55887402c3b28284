/* SPDX-License-Identifier: MIT */
/*
 * Devices of the host that the policy gives to sandboxes (sandbox: devices:).
 *
 * By kinds that are known to be fit, and not by kinds that are known not to be: devices that reach the network (tun, macvtap,
 * ppp, modems, RDMA), the host's memory and disks (mem, vfio, sg) or its input come from many drivers, new ones every year, and
 * one that is missing in a list of the unfit would be a way around the gate. A kind is the name that its driver has registered,
 * in /proc/devices and /proc/misc: names of files below /dev say nothing.
 */
#pragma once

#include <stdbool.h>

#include "launch/host.h"
#include "launch/identity.h"

/* null, zero, full, random and urandom. */
bool device_is_harmless(dev_t device);

#define DEVICES_PROBLEM_SIZE 256
/* Adds to the host's devices what a pattern (glob) below /dev stands for: character devices, of a directory those in it. What is
 * not there is no failure: hosts differ. 0; -EACCES with the reason in words when one is of no kind that a sandbox may
 * have; another -errno. */
int devices_look(const char *pattern, struct host *host, char problem[static DEVICES_PROBLEM_SIZE]);

/* Device files mostly open for a group of theirs (kvm, render): the command's user joins it. Never root's. -E2BIG. */
int devices_groups(const struct host *host, struct identity *identity);
