/* SPDX-License-Identifier: MIT */
#include "session/workspaces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "session/workspaces_internal.h"
#include "vocab/limits.h"

#define UID_NOTE "trusted.netpawl.uid" /* extended attribute of a cgroup */
#define NO_UID	 0u

/* -- users --------------------------------------------------------------------------- */

static bool uid_is_ours(unsigned uid)
{
	return uid >= NP_UID_FIRST && uid - NP_UID_FIRST < NP_UIDS;
}

void uid_mark(struct workspaces *workspaces, unsigned uid, bool taken)
{
	unsigned i = uid - NP_UID_FIRST;

	if (!uid_is_ours(uid))
		return;
	if (taken)
		workspaces->taken[i / 8] |= (uint8_t)(1u << i % 8);
	else
		workspaces->taken[i / 8] &= (uint8_t) ~(1u << i % 8);
}

/* The one that was free for longest, as far as that is known: its files and keys are most surely gone. */
static unsigned uid_take(struct workspaces *workspaces)
{
	for (unsigned i = 0; i < NP_UIDS; i++) {
		unsigned n = (workspaces->next + i) % NP_UIDS;

		if (workspaces->taken[n / 8] & 1u << n % 8)
			continue;
		workspaces->next = (n + 1) % NP_UIDS;
		uid_mark(workspaces, NP_UID_FIRST + n, true);
		return NP_UID_FIRST + n;
	}
	return NO_UID;
}

/* -- directories ------------------------------------------------------------------------ */

int directory_open(int dir, const char *name)
{
	return fs_open_unlinked(dir, name, O_RDONLY | O_DIRECTORY);
}

int directory_make(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return directory_open(dir, name);
}

const char *session_of(const struct session_name *name)
{
	return name->text + name->user_len + 1;
}

void user_of(const struct session_name *name, char user[static NP_NAME_MAX + 1])
{
	snprintf(user, NP_NAME_MAX + 1, "%.*s", (int)name->user_len, name->text);
}

static int user_scan(struct workspaces *workspaces, const char *user)
{
	int fd = directory_open(workspaces->dir, user);
	_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;

	if (!dir) {
		cleanup_close(&fd);
		return fd == -ENOTDIR || fd == -ELOOP ? 0 : fd < 0 ? fd : -errno;
	}
	while ((entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			uid_mark(workspaces, st.st_uid, true);
	return 0;
}

static int workspaces_scan(struct workspaces *workspaces)
{
	int fd = directory_open(workspaces->dir, ".");
	_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return fd < 0 ? fd : -errno;
	while (r == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = user_scan(workspaces, entry->d_name);
	return r;
}

int workspaces_open(const struct workspaces_config *config, struct workspaces **ret)
{
	struct workspaces *workspaces = calloc(1, sizeof(*workspaces));
	int r = workspaces ? fs_mkdir_all(config->data_dir, 0700) : -ENOMEM;

	if (r < 0) {
		free(workspaces);
		return r;
	}
	workspaces->config = *config;
	workspaces->ended = workspaces->archives = -1;
	workspaces->path = strdup(config->data_dir);
	workspaces->dir = open(config->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = !workspaces->path ? -ENOMEM : workspaces->dir < 0 ? -errno : 0;
	if (r == 0 && getrandom(&workspaces->next, sizeof(workspaces->next), 0) < 0)
		r = -errno;
	workspaces->next %= NP_UIDS;
	if (r == 0)
		r = workspaces_scan(workspaces);
	if (r == 0)
		r = ended_open(workspaces);
	if (r < 0) {
		workspaces_free(workspaces);
		return r;
	}
	*ret = workspaces;
	return 0;
}

void workspaces_free(struct workspaces *workspaces)
{
	if (!workspaces)
		return;
	ended_close(workspaces);
	cleanup_close(&workspaces->dir);
	free(workspaces->alone);
	free(workspaces->path);
	free(workspaces);
}

/* A directory that is root's was made a moment ago, perhaps before a crash. World-writable: only this session's
 * sandboxes ever see it, and `--user` may give them any user. */
static int workspace_settle(struct workspaces *workspaces, int fd, unsigned *ret_uid)
{
	struct stat st;
	unsigned uid;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (uid_is_ours(st.st_uid)) {
		*ret_uid = st.st_uid;
		return 0;
	}
	if (st.st_uid != 0)
		return -EEXIST;
	uid = uid_take(workspaces);
	if (uid == NO_UID)
		return -ENOSPC;
	/* The owner last: it says that the rest is done. */
	if (fchmod(fd, 0777) < 0 || fchown(fd, uid, uid) < 0) {
		int r = -errno;

		uid_mark(workspaces, uid, false);
		return r;
	}
	*ret_uid = uid;
	return 0;
}

static int workspace_path(const struct workspaces *workspaces, const struct session_name *session,
			  char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/%s", workspaces->path, session->text);
}

int workspaces_enter(struct workspaces *workspaces, const struct session_name *session, struct workspace *ret)
{
	_close_ int dir = -1, fd = -1;
	char user[NP_NAME_MAX + 1];
	int r;

	user_of(session, user);
	dir = directory_make(workspaces->dir, user);
	fd = dir < 0 ? dir : directory_make(dir, session_of(session));
	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV ? -EEXIST : fd;
	r = workspace_settle(workspaces, fd, &ret->uid);
	return r < 0 ? r : workspace_path(workspaces, session, ret->path);
}

int workspaces_find(struct workspaces *workspaces, const struct session_name *session, char path[static FS_PATH_SIZE])
{
	_close_ int dir = -1, fd = -1;
	char user[NP_NAME_MAX + 1];

	user_of(session, user);
	dir = directory_open(workspaces->dir, user);
	fd = dir < 0 ? dir : directory_open(dir, session_of(session));
	return fd < 0 ? fd : workspace_path(workspaces, session, path);
}

/* -- sandboxes without a workspace --------------------------------------------------------- */

static int alone_add(struct workspaces *workspaces, uint64_t cgroup_id, unsigned uid)
{
	if (ARRAY_RESERVE(workspaces->alone, workspaces->size, workspaces->n_alone + 1) < 0)
		return -ENOMEM;
	workspaces->alone[workspaces->n_alone++] = (struct alone){ cgroup_id, uid };
	return 0;
}

int workspaces_enter_alone(struct workspaces *workspaces, uint64_t cgroup_id, const char *cgroup, struct workspace *ret)
{
	unsigned uid = uid_take(workspaces);
	char text[16];
	int r;

	if (uid == NO_UID)
		return -ENOSPC;
	snprintf(text, sizeof(text), "%u", uid);
	r = setxattr(cgroup, UID_NOTE, text, strlen(text), 0) < 0 ? -errno : alone_add(workspaces, cgroup_id, uid);
	if (r < 0) {
		uid_mark(workspaces, uid, false);
		return r;
	}
	ret->uid = uid;
	ret->path[0] = '\0';
	return 0;
}

void workspaces_leave(struct workspaces *workspaces, uint64_t cgroup_id)
{
	for (size_t i = 0; i < workspaces->n_alone; i++) {
		if (workspaces->alone[i].cgroup_id != cgroup_id)
			continue;
		uid_mark(workspaces, workspaces->alone[i].uid, false);
		workspaces->alone[i] = workspaces->alone[--workspaces->n_alone];
		return;
	}
}

int workspaces_recover(struct workspaces *workspaces, uint64_t cgroup_id, const char *cgroup)
{
	char text[16];
	ssize_t n = getxattr(cgroup, UID_NOTE, text, sizeof(text) - 1);
	unsigned uid;

	if (n <= 0)
		return 0; /* it has a workspace, or was adopted */
	text[n] = '\0';
	uid = (unsigned)strtoul(text, NULL, 10);
	if (!uid_is_ours(uid))
		return 0;
	uid_mark(workspaces, uid, true);
	return alone_add(workspaces, cgroup_id, uid);
}
