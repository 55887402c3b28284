/* SPDX-License-Identifier: MIT */
/* Containers that were just born are looked at often, for a while: so that the inspectors listen in a container's network namespace
 * before its command runs. */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "vocab/limits.h"

void newborns_look(struct daemon *d)
{
	const struct itimerspec soon = { .it_value.tv_nsec = NP_NEWBORN_PERIOD_MS * 1000000l };

	if (service_newborns_look(d->service))
		timerfd_settime(d->newborns_fd, 0, &soon, NULL);
}

static void on_newborns(void *data, uint32_t events)
{
	struct daemon *d = data;
	uint64_t expired;

	(void)events;
	if (read(d->newborns_fd, &expired, sizeof(expired)) == sizeof(expired) && d->service)
		newborns_look(d);
}

int newborns_start(struct daemon *d)
{
	d->newborns_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (d->newborns_fd < 0)
		return -errno;
	return loop_watch(d->loop, d->newborns_fd, EPOLLIN, on_newborns, d);
}
