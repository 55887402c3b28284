/* SPDX-License-Identifier: MIT */
#include "base/privileges.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int privileges_give_up(uid_t uid, const char *root, unsigned files)
{
	struct rlimit none = { 0, 0 }, most = { files, files };

	setrlimit(RLIMIT_NOFILE, &most); /* while root; what is not granted shows as refused connections */
	setrlimit(RLIMIT_CORE, &none);	 /* it holds keys, and what sandboxes send */
	if (chroot(root) < 0 || chdir("/") < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	setrlimit(RLIMIT_NPROC, &none);
	/* After the change of user, which clears them. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}
