/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes that stay for the next run of their session. A directory in the run directory marks a sandbox as kept. It
 * is made before the sandbox and removed after it: so a restarted daemon knows, and a crash leaves at worst a directory
 * without a sandbox. A launcher that runs something in the sandbox holds a lock on a file in the directory; the lock
 * ends with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "vocab/kept_files.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

static int kept_path(const struct service *service, const char *id, char path[static FS_PATH_SIZE])
{
	return service->config.kept_dir ? fs_path(path, "%s/%s", service->config.kept_dir, id) : -ENOENT;
}

int service_kept_path(const struct service *service, const struct sandbox_info *sandbox, char path[static FS_PATH_SIZE])
{
	return kept_path(service, sandbox->id, path);
}

/* The directory; -ENOENT. */
static int kept_open(const struct service *service, const char *id)
{
	char path[FS_PATH_SIZE];
	int fd, r = kept_path(service, id, path);

	if (r)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool kept_is(const struct service *service, const char *id)
{
	_close_ int dir = kept_open(service, id);

	return dir >= 0;
}

int kept_make(struct service *service, const struct sandbox *sandbox)
{
	_close_ int dir = -1, file = -1;
	char path[FS_PATH_SIZE];
	int r = kept_path(service, sandbox->pub.id, path);

	if (!r)
		r = fs_mkdir_all(path, 0700);
	dir = r ? r : kept_open(service, sandbox->pub.id);
	if (dir < 0)
		return dir;
	file = openat(dir, NP_KEPT_MADE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return file < 0 ? -errno : 0;
}

/* Groups of ours only, whatever is written there. */
static int group_remove(const char *path, const char *id)
{
	const char *name = strrchr(path, '/');
	size_t len = strlen(path), id_len = strlen(id);

	if (!name || strncmp(name, "/netpawl.", 9) != 0 || len <= id_len || strcmp(path + len - id_len, id) != 0)
		return 0;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int groups_remove(int dir, const char *id)
{
	_free_ char *text = NULL;
	int result = 0, r = fs_read_at(dir, NP_KEPT_MADE, NP_KEPT_NOTE, &text);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, NP_KEPT_GROUP, strlen(NP_KEPT_GROUP))) {
			r = group_remove(line + strlen(NP_KEPT_GROUP), id);
			result = result ? result : r;
		}
	return result;
}

int kept_forget(struct service *service, const char *id)
{
	_close_ int dir = kept_open(service, id);
	char path[FS_PATH_SIZE];
	int r = dir < 0 ? dir : groups_remove(dir, id);

	if (r)
		return r == -ENOENT ? 0 : r;
	/* The note last: until then another try finds what else has to go. */
	if ((unlinkat(dir, NP_KEPT_SOCKET, 0) < 0 && errno != ENOENT) ||
	    (unlinkat(dir, NP_KEPT_MADE, 0) < 0 && errno != ENOENT))
		return -errno;
	r = kept_path(service, id, path);
	return !r && rmdir(path) < 0 && errno != ENOENT ? -errno : r;
}

/* The lock, which nobody else has now; -EWOULDBLOCK when a run is in progress. */
static int kept_lock(struct service *service, const struct sandbox *sandbox)
{
	_close_ int dir = kept_open(service, sandbox->pub.id);
	_close_ int file = dir < 0 ? dir : openat(dir, NP_KEPT_MADE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return dir;
	if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return take_fd(file);
}

bool kept_in_use(struct service *service, const struct sandbox *sandbox)
{
	_close_ int lock = kept_lock(service, sandbox);

	return lock == -EWOULDBLOCK;
}

void kept_check(struct service *service, struct sandbox *sandbox)
{
	/* The lock is held until the sandbox is removed: a run that comes meanwhile waits for it, finds the sandbox
	 * gone, and starts over. */
	_close_ int lock = kept_lock(service, sandbox);
	const uint64_t idle_us = service->config.idle_us;

	if (lock == -EWOULDBLOCK)
		sandbox_touch(service, sandbox);
	if (lock == -EWOULDBLOCK || !idle_us || (service->config.now_ns() - sandbox->active_ns) / 1000 < idle_us)
		return;
	if (!sandbox->idle)
		sandbox_event(service, NP_R_SANDBOX_IDLE, sandbox, "daemon", NULL);
	sandbox->idle = true;
	sandbox_end(service, sandbox, false, "daemon");
}

struct sandbox *kept_find(struct service *service, const char *name)
{
	const struct session *session = session_find(service, name);
	struct sandbox *sandbox = session ? TAILQ_FIRST(&session->sandboxes) : NULL;

	while (sandbox && (!sandbox->pub.kept || sandbox->dying))
		sandbox = TAILQ_NEXT(sandbox, of_session);
	return sandbox;
}

int service_sandbox_keep(struct service *service, const char *session, const char *who, const struct sandbox_info **ret,
			 bool *ret_made, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct session_name name;
	struct sandbox *sandbox;
	int r = service_name_read(session, &name, ret_failure);

	if (r)
		return r;
	sandbox = kept_find(service, name.text);
	*ret_made = !sandbox;
	if (!sandbox) {
		r = sandbox_make(service, name.text, &(struct sandbox_order){ .kind = SANDBOX_KEPT }, who, ret,
				 ret_failure);
	} else {
		sandbox_touch(service, sandbox);
		*ret = &sandbox->pub;
	}
	return r ? r : starter_note(service, &name, who, ret_failure);
}

void service_idle_set(struct service *service, uint64_t idle_us)
{
	service->config.idle_us = idle_us;
}

/* A directory that cannot be removed stays: it does no harm, and the others go. */
void kept_recover(struct service *service)
{
	_closedir_ DIR *dir = service->config.kept_dir ? opendir(service->config.kept_dir) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !sandbox_by_id(service, entry->d_name))
			kept_forget(service, entry->d_name);
}
