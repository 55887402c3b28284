/* SPDX-License-Identifier: MIT */
#include "launch/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* As the kernel has it; sys/quota.h has another of the same name. */
struct quota_block {
	uint64_t hard, soft, space, inodes_hard, inodes_soft, inodes, block_time, inode_time;
	uint32_t valid;
};
#define QUOTA_BLOCKS 1u						      /* hard and soft are valid */
#define QUOTA_SET    ((unsigned)Q_SETQUOTA << SUBCMDSHIFT | PRJQUOTA) /* QCMD() shifts a signed number out of its range */
#define QUOTA_UNIT   1024 /* bytes of a block, whatever the file system's are */

static bool is_unsupported(int error)
{
	return error == ENOTTY || error == EOPNOTSUPP || error == ENOSYS || error == ESRCH || error == EINVAL;
}

int quota_set(const char *dir, uint64_t bytes)
{
	_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct quota_block block = { .hard = bytes / QUOTA_UNIT, .soft = bytes / QUOTA_UNIT, .valid = QUOTA_BLOCKS };
	struct fsxattr attributes;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* The limit first: files that count and are not bounded would be the worse half. */
	if (syscall(SYS_quotactl_fd, fd, QUOTA_SET, st.st_uid, &block) < 0 ||
	    ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return is_unsupported(errno) ? -EOPNOTSUPP : -errno;
	attributes.fsx_projid = st.st_uid;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0)
		return is_unsupported(errno) ? -EOPNOTSUPP : -errno;
	return 0;
}
