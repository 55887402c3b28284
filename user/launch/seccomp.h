/* SPDX-License-Identifier: MIT */
/*
 * The system call filter of a sandbox. It allows by default: the capabilities that are gone refuse most of what matters, and
 * this closes what needs none (families that no inet hook sees, io_uring, new namespaces) or what would undo the rest. Its
 * rules are in filter/main.c.
 */
#pragma once

/* For this process and what it starts, with no_new_privs. 0 or -errno. */
int filter_load(void);
