/* SPDX-License-Identifier: MIT */
#include "net/linger.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void reset_on_close(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

size_t socket_unsent(int fd)
{
	int queued = 0;

	ioctl(fd, SIOCOUTQ, &queued);
	return queued > 0 ? (size_t)queued : 0;
}

void close_acknowledged(int fd)
{
	const struct linger off = { 0 };

	if (!socket_unsent(fd))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
}
