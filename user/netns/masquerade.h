/* SPDX-License-Identifier: MIT */
/*
 * The table "inet netpawl" of nftables, in the caller's network namespace: what comes from the devices npnat* is forwarded and leaves
 * with an address of the host's; what answers it comes back; nothing else goes to them, or from one to another. Other tables of the
 * host hold as well: accepting is no verdict over them.
 */
#pragma once

#include <stdbool.h>

/* There is one, and as it must be: somebody may have flushed the host's rules. 1: it was not, and is now. shut: what comes from the
 * devices opens no connection; those that are open go on. */
int masquerade_ensure(bool shut);
int masquerade_remove(void); /* none is fine */
/* Does a chain of somebody else drop, unless told otherwise, what is forwarded? Its name in words. */
bool masquerade_is_barred(char ret_chain[static 96]);
