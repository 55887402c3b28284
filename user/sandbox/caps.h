/* SPDX-License-Identifier: MIT */
/* What is left of root inside a sandbox: the capabilities that act on files and on the sandbox's own processes. */
#ifndef NP_SANDBOX_CAPS_H
#define NP_SANDBOX_CAPS_H

/* Shrinks the bounding, permitted and effective sets of the caller to that; empties the inheritable and
 * ambient sets. A capability that the caller did not have stays missing. Needs CAP_SETPCAP. 0 or -errno. */
int caps_reduce(void);

#endif
