/* SPDX-License-Identifier: MIT */
/* Which program a process of a sandbox is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "kernel/cgroup.h"

static int is_it(void *data, uint64_t id)
{
	return *(const uint64_t *)data == id;
}

/*
 * The folder stays the same process's, whoever gets its number. That its file can be read through it at the end says that it was
 * there all the time: so the number was its own when the cgroup was looked at.
 */
int cgroup_process(const char *mount, uint64_t id, pid_t pid, struct gate_process *ret)
{
	char path[64], file[FS_PATH_SIZE];
	_close_ int proc = -1;
	_free_ char *name = NULL;
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	proc = pid > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (proc < 0 || cgroup_each_above(mount, pid, is_it, &id) != 1)
		return -ESRCH;
	n = readlinkat(proc, "exe", file, sizeof(file) - 1);
	r = fs_read_at(proc, "comm", 64, &name);
	if (n < 0 || r < 0 || !name)
		return -ESRCH;
	file[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	text_ascii(ret->name, sizeof(ret->name), name);
	text_ascii(ret->file, sizeof(ret->file), file);
	return 0;
}
