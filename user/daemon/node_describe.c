/* SPDX-License-Identifier: MIT */
/* What the node looks like to the daemon, for whoever asks: it is read when it is asked for, and at no other time. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup_usage.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"
#include "daemon/daemon.h"
#include "vocab/limits.h"

static void disk_put(struct buf *out, const char *name, const char *path)
{
	struct statvfs fs;

	if (!path || statvfs(path, &fs) < 0)
		return;
	json_open_object(out, NULL);
	json_put_text(out, "name", name, SIZE_MAX);
	json_put_text(out, "path", path, FS_PATH_SIZE);
	json_put_number(out, "bytes", (uint64_t)fs.f_blocks * fs.f_frsize);
	json_put_number(out, "free", (uint64_t)fs.f_bavail * fs.f_frsize);
	json_close_object(out);
}

/* Files of the record: events.ndjson and those before it, and the history. */
static void record_put(const struct daemon *d, struct buf *out)
{
	uint64_t journal = 0, history = 0, files = 0;
	char path[FS_PATH_SIZE];
	struct dirent *entry;
	struct stat st;
	DIR *dir = fs_path(path, "%s/events", d->options.state_dir) == 0 ? opendir(path) : NULL;

	while (dir && (entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		files++;
		*(strstr(entry->d_name, ".ndjson") ? &journal : &history) += (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	json_open_object(out, "record");
	json_put_number(out, "files", files);
	json_put_number(out, "journal_bytes", journal);
	json_put_number(out, "history_bytes", history);
	json_close_object(out);
}

static void process_put(struct buf *out, const char *name, int pid)
{
	uint64_t memory, cpu_us;

	process_usage_read(pid, &memory, &cpu_us);
	json_open_object(out, NULL);
	json_put_text(out, "program", name, SIZE_MAX);
	json_put_number(out, "pid", (uint64_t)pid);
	json_put_number(out, "memory", memory);
	json_put_number(out, "cpu_us", cpu_us);
	json_close_object(out);
}

static void processes_put(struct daemon *d, struct buf *out)
{
	int pids[2 * NP_WORKERS_MAX];
	unsigned n = cgroup_pids(kernel_inspector_cgroup(d->kernel), pids, ARRAY_SIZE(pids));

	json_open_array(out, "processes");
	process_put(out, "netpawld", getpid());
	for (unsigned i = 0; i < n; i++) {
		_free_ char *comm = NULL;
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/comm", pids[i]);
		if (fs_read_at(AT_FDCWD, path, 64, &comm) < 0)
			continue; /* it has ended */
		comm[strcspn(comm, "\n")] = '\0';
		process_put(out, comm, pids[i]);
	}
	json_close_array(out);
}

void node_describe(void *data, struct buf *out)
{
	struct daemon *d = data;
	struct daemon_facts known;
	struct utsname host;

	daemon_facts_read(d, &known);
	if (uname(&host) == 0) {
		json_put_text(out, "kernel", host.release, sizeof(host.release));
		json_put_text(out, "machine", host.machine, sizeof(host.machine));
	}
	json_open_array(out, "disks");
	disk_put(out, "state", known.state_dir);
	disk_put(out, "run", known.run_dir);
	disk_put(out, "data", known.data_dir);
	json_close_array(out);
	record_put(d, out);
	processes_put(d, out);
	kernel_node(d->kernel, out);
}
