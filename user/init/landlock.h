/* SPDX-License-Identifier: MIT */
/* A Landlock domain: from here on no abstract unix socket and no signal reaches anybody outside of it. */
#pragma once

/* Needs no_new_privs. Children inherit it. 1: closed; 0: this kernel has no such scopes (Landlock ABI
 * below 6), and the gate's own unix hooks are the only lock; -errno when it has them and refuses. */
int scope_close(void);
