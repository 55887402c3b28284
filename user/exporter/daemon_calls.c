/* SPDX-License-Identifier: MIT */
#include "exporter/daemon_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/cleanup.h"

#define PATIENCE_MS 10000

/* A connection of its own for each call. */
static int connection_ask(int *ret)
{
	static char ignored[LINK_BYTES_MAX];
	struct pollfd link = { .fd = LINK_FD, .events = POLLIN };
	enum link_type type;
	size_t len;
	int r = link_send_patiently(LINK_FD, LINK_EXPORT_CALL, NULL, 0, -1, PATIENCE_MS);

	if (r < 0)
		return r;
	if (poll(&link, 1, PATIENCE_MS) <= 0)
		return -ETIMEDOUT;
	r = link_receive(LINK_FD, &type, ignored, &len, ret);
	return r < 0 ? r : type == LINK_EXPORT_CALL && *ret >= 0 ? 0 : -EPROTO;
}

int daemon_get(const char *path, const char *accept, struct client_answer *ret)
{
	_close_ int fd = -1;
	int r = connection_ask(&fd);

	if (r == 0 && fcntl(fd, F_SETFL, 0) < 0) /* it blocks here, with a bound */
		r = -errno;
	return r < 0 ? r : client_get_by(fd, path, accept, ret);
}

void daemon_ready(void)
{
	link_send(LINK_FD, LINK_READY, NULL, 0, -1);
}

void daemon_report(const struct export_state *state)
{
	link_send(LINK_FD, LINK_EXPORT_STATE, state, sizeof(*state), -1);
}

bool daemon_wait(int ms)
{
	struct pollfd link = { .fd = LINK_FD };

	return poll(&link, 1, ms) == 0 || !(link.revents & (POLLHUP | POLLERR));
}
