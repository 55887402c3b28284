/* SPDX-License-Identifier: MIT */
#include "control/peer_credentials.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/cleanup.h"

int peer_read(int fd, struct peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	ret->fd = fd;
	ret->pid = cred.pid;
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	snprintf(ret->who, sizeof(ret->who), "uid %u pid %d", cred.uid, cred.pid);
	return 0;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* A pid is only a number: the process that connected may be gone, the connection in other hands, and the number
 * another process's. False when the process that connected is not alive any more; true on kernels that do not
 * tell, where the number is all there is. */
static bool peer_is_alive(int fd)
{
	_close_ int pidfd = -1;
	socklen_t len = sizeof(pidfd);
	struct pollfd ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
		return errno == ENOPROTOOPT;
	ended = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	return poll(&ended, 1, 0) == 0;
}

bool peer_is_outside(const struct peer *peer, const struct server_config *config)
{
	/* A pid that this pid namespace cannot name reads as 0: nobody can say where it is. */
	if (peer->pid <= 0 || config->peer_is_sandboxed(config->data, peer->pid))
		return false;
	/* Afterwards: alive now, it was alive when its number was looked up. */
	return peer_is_alive(peer->fd);
}
