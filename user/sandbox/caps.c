/* SPDX-License-Identifier: MIT */
#include "sandbox/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (UINT64_C(1) << (cap))

/* Enough to unpack archives, change users and serve on port 80 as root is used to. Nothing that reaches
 * the network stack, the kernel, devices, other mount or pid namespaces: not SETPCAP either, for nobody
 * in a sandbox has anything to hand on. */
static const uint64_t caps_kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
				  BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE);

static int caps_reduce_bounding(void)
{
	for (int cap = 0; cap < 64; cap++) {
		int have = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (have < 0) /* EINVAL: one past the last capability that this kernel knows */
			return errno == EINVAL && cap > CAP_SETPCAP ? 0 : -errno;
		if (have && !(caps_kept & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

int caps_reduce(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int err;

	/* The bounding set first: dropping from it needs SETPCAP, which the second step takes away. */
	err = caps_reduce_bounding();
	if (err < 0)
		return err;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(caps_kept >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return -errno;
	return 0;
}
