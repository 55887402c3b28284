/* SPDX-License-Identifier: MIT */
#include "init/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* As in linux/landlock.h of 6.12; the headers we build with may be older. */
struct scope_ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};
#define SCOPE_ABSTRACT_UNIX_SOCKET (1u << 0)
#define SCOPE_SIGNAL		   (1u << 1)
#define SCOPE_ABI		   6 /* the first Landlock that has scopes */
#define RULESET_VERSION		   (1u << 0)

int scope_close(void)
{
	const struct scope_ruleset ruleset = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL };
	_close_ int fd = -1;
	long abi;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
	if (abi < SCOPE_ABI) /* not built in, not enabled or too old */
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 1;
}
