/* SPDX-License-Identifier: MIT */
#include "base/descriptors.h"

#include <sys/resource.h>

static rlim_t inherited, raised; /* soft limits; 0: as they are */

static void soft_limit_set(rlim_t to)
{
	struct rlimit limit;

	if (to && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = to;
		setrlimit(RLIMIT_NOFILE, &limit); /* never above the hard one, so it is granted */
	}
}

void descriptors_raise(unsigned wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	inherited = limit.rlim_cur;
	raised = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	soft_limit_set(raised);
}

void descriptors_lower(void)
{
	soft_limit_set(inherited);
}

void descriptors_raise_again(void)
{
	soft_limit_set(raised);
}

bool descriptors_left(int fd, unsigned more)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd + 1 + more <= limit.rlim_cur;
}
