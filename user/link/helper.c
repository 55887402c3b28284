/* SPDX-License-Identifier: MIT */
#include "link/helper.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "link/link.h"

uid_t helper_begin(const char *name, int argc, int n, char **argv)
{
	char *end = NULL;
	unsigned long uid = argc == n ? strtoul(argv[1], &end, 10) : 0;

	log_setup(name, LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	if (uid && !*end)
		return (uid_t)uid;
	fprintf(stderr, "%s is started by netpawld\n", name);
	return 0;
}

int privileges_give_up(uid_t uid, const char *root, unsigned files)
{
	struct rlimit none = { 0, 0 }, most = { files, files };
	char byte;

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
	if (recv(LINK_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) /* netpawld had died before PR_SET_PDEATHSIG */
		raise(SIGKILL);
	return 0;
}
