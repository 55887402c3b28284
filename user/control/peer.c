/* SPDX-License-Identifier: MIT */
#include "control/peer.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int peer_read(int fd, struct peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	ret->pid = cred.pid;
	ret->uid = cred.uid;
	snprintf(ret->who, sizeof(ret->who), "uid %u pid %d", cred.uid, cred.pid);
	return 0;
}

bool peer_is_outside(const struct peer *peer, const struct server_config *config)
{
	/* A pid that this pid namespace cannot name reads as 0: nobody can say where it is. */
	return peer->pid > 0 && !config->peer_is_sandboxed(config->data, peer->pid);
}
