/* SPDX-License-Identifier: MIT */
/* The files of ledgers and of their index: made, mapped, and given memory before it is written to. */
#include "supervisor/ledgers_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"

#define INDEX_VERSION 2u
#define CHUNK	      256 /* slots whose memory is reserved at a time: a full file system is no SIGBUS later */

/* Opens or makes a file of that size; *ret_fresh: there is nothing in it. */
static int file_open(const char *dir, const char *name, size_t size, size_t reserve, bool make, int *ret,
		     bool *ret_fresh)
{
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	struct stat st;
	int r = fs_path(path, "%s/%s", dir, name);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_fresh = st.st_size != (off_t)size;
	if (*ret_fresh && (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)size) < 0))
		return -errno;
	r = posix_fallocate(fd, 0, (off_t)reserve);
	if (r)
		return -r;
	*ret = take_fd(fd);
	return 0;
}

int ledger_open(struct ledgers *l, unsigned i)
{
	char name[16];
	struct ledger *ledger = NULL;
	bool fresh = true;
	int r;

	snprintf(name, sizeof(name), "%u", i);
	r = file_open(l->config.dir, name, sizeof(*ledger), offsetof(struct ledger, slots), i < l->config.count,
		      &l->fds[i], &fresh);
	if (r == -ENOENT && i >= l->config.count)
		return 0;
	if (r == 0)
		r = ledger_map(l->fds[i], &ledger);
	if (r < 0 || !ledger)
		return r;
	if (l->fresh || ledger->version != LEDGER_VERSION || ledger->report_size != sizeof(struct link_request)) {
		/* Of another build, or new. Its old bytes go, so that its counts begin at 0. */
		if (!fresh && ledger->version) {
			log_warning("%s/%u was left by another version: its last reports are lost", l->config.dir, i);
			l->wiped = true;
		}
		if (!fresh && (ftruncate(l->fds[i], 0) < 0 || ftruncate(l->fds[i], sizeof(*ledger)) < 0 ||
			       posix_fallocate(l->fds[i], 0, offsetof(struct ledger, slots)) != 0))
			r = -ENOSPC;
		l->index->read[i] = l->index->seq[i] = 0;
		if (r == 0) {
			ledger->version = LEDGER_VERSION;
			ledger->report_size = sizeof(struct link_request);
		}
	}
	l->ledgers[i] = ledger;
	return r;
}

int index_open(struct ledgers *l)
{
	bool fresh;
	void *p;
	int r = file_open(l->config.dir, "index", sizeof(struct index), offsetof(struct index, entries), true,
			  &l->index_fd, &fresh);

	if (r < 0)
		return r;
	p = mmap(NULL, sizeof(struct index), PROT_READ | PROT_WRITE, MAP_SHARED, l->index_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	l->index = p;
	if (l->index->version == INDEX_VERSION && l->index->entry_size == sizeof(struct ledger_entry))
		return 0;
	l->fresh = true;
	if (ftruncate(l->index_fd, 0) < 0 || ftruncate(l->index_fd, sizeof(struct index)) < 0)
		return -errno;
	r = -posix_fallocate(l->index_fd, 0, offsetof(struct index, entries));
	if (r == 0) {
		l->index->version = INDEX_VERSION;
		l->index->entry_size = sizeof(struct ledger_entry);
	}
	return r;
}

int chunk_reserve(struct ledgers *l)
{
	uint32_t from = l->reserved;
	int r;

	if (from >= NP_SANDBOXES_MAX)
		return -ENOSPC;
	r = posix_fallocate(l->index_fd, (off_t)offsetof(struct index, entries[from]),
			    CHUNK * sizeof(struct ledger_entry));
	for (unsigned i = 0; r == 0 && i < NP_WORKERS_MAX; i++)
		if (l->ledgers[i])
			r = posix_fallocate(l->fds[i], (off_t)offsetof(struct ledger, slots[from]),
					    CHUNK * sizeof(struct ledger_slot));
	if (r)
		return -r;
	l->reserved += CHUNK;
	if (l->index->reserved < l->reserved)
		l->index->reserved = l->reserved;
	return 0;
}
