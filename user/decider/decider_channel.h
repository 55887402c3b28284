/* SPDX-License-Identifier: MIT */
/*
 * One channel between the daemon and a decider, from its first byte to its last: whatever is wrong with it ends the process, and
 * the daemon makes another.
 */
#pragma once

/* Returns when the channel is over, with why, for the log. The descriptors are those of link/decide_message.h. */
const char *channel_serve(const char *name);
