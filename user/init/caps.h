/* SPDX-License-Identifier: MIT */
/* Capabilities: none is left. */
#pragma once

/* Empties the bounding set, so that no exec gives a capability back, not to root either. Needs CAP_SETPCAP. */
int caps_drop_bounding(void);
/* Empties the permitted, effective, inheritable and ambient sets. */
int caps_drop(void);
