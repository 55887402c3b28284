/* SPDX-License-Identifier: MIT */
#include "init/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_drop_bounding(void)
{
	for (int cap = 0; cap < 64; cap++) {
		int have = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (have < 0) /* EINVAL: one past the last capability that this kernel knows */
			return errno == EINVAL && cap > CAP_SETPCAP ? 0 : -errno;
		if (have && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

int caps_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}
