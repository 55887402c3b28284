/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is the TCP connection open in both directions, as far as anybody here has heard? *ret_acked: bytes that the other end's
 * kernel has acknowledged, ever; also of one that is closed. UINT64_MAX when that cannot be told. */
bool socket_progress(int fd, uint64_t *ret_acked);
