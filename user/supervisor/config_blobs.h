/* SPDX-License-Identifier: MIT */
/* Files of the host that the inspector needs and cannot read, as files in memory. */
#pragma once

/* LINK_SETTINGS; resolvers NULL: those of /etc/resolv.conf. */
int blob_settings(const char *resolvers, int *ret_fd);
/* LINK_ROOTS. One that cannot be read, or is empty, is warned of: then no origin is trusted. */
int blob_roots(const char *file, int *ret_fd);
