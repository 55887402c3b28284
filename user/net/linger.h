/* SPDX-License-Identifier: MIT */
/*
 * How sockets to origins end. What a sandbox has handed over may wait in the kernel's send queue long after its
 * request or tunnel is over, and close() alone would leave it to the kernel to send it: after the sandbox's session
 * was raised, too. So every socket to an origin resets on close from the moment it is made, whoever closes it, the
 * kernel included when the process is killed; and it is held open until its origin has acknowledged everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void reset_on_close(int fd);	 /* a RST instead of what waits in it */
size_t socket_unsent(int fd);	 /* bytes that the peer has not acknowledged; the end of the stream counts as one */
void close_acknowledged(int fd); /* in order if the peer has acknowledged everything, else as the socket is set */
