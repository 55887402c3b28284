/* SPDX-License-Identifier: MIT */
/*
 * The system call filter of a sandbox. It allows by default: the capabilities
 * that are gone refuse most of what matters, and this closes what needs none
 * (families that no inet hook sees, io_uring, new namespaces) or what would
 * undo the rest.
 */
#ifndef NP_LAUNCH_SECCOMP_H
#define NP_LAUNCH_SECCOMP_H

struct filter;

/* Builds it, changes nothing yet. 0 or -errno. */
int filter_new(struct filter **ret);
/* For this process and what it starts, with no_new_privs. 0 or -errno. */
int filter_load(const struct filter *filter);
void filter_free(struct filter *filter); /* NULL is fine */
static inline void filter_freep(struct filter **filter)
{
	filter_free(*filter);
}

#endif
