/* SPDX-License-Identifier: MIT */
#include "session/notice_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "vocab/words.h"
#include "vocab/limits.h"

#define NOTICE_FILE_NEW NOTICE_FILE ".new"
#define WHY_FILE_NEW	WHY_FILE ".new"
/* A reader in a sandbox of root may hold a lease on it: then the file is replaced, so that nobody waits for the
 * lease. */
#define NOTICE_OPEN   (O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define NOTICES_BYTES (2u * NP_NOTICES_PER_SESSION * NP_NOTICE_LINE) /* of a file that is worth comparing */

static void put_member(struct buf *out, const char *key, const char *value, size_t max)
{
	if (*value)
		json_put_text(out, key, value, max);
}

void notice_to_json(const char *session, const struct notice_row *row, struct buf *out)
{
	char time[TIME_TEXT_SIZE];

	time_format(row->made_us, time);
	json_open_object(out, NULL);
	json_put_number(out, "notice", row->number);
	json_put_text(out, "time", time, sizeof(time));
	json_put_text(out, "session", session, NP_SESSION_MAX);
	json_put_text(out, "level", level_name(row->rung.level), NP_NAME_MAX);
	json_put_text(out, "mode", mode_name(row->rung.mode), NP_NAME_MAX);
	put_member(out, "dataset", row->dataset, NP_DATASET_MAX);
	put_member(out, "reason", row->reason, NP_REASON_TEXT_MAX);
	put_member(out, "text", row->text, NP_NOTICE_TEXT);
	json_close_object(out);
	buf_puts(out, "\n");
}

struct writer {
	const char *session;
	struct buf *out;
};

static int notice_add(void *data, const struct notice_row *row)
{
	const struct writer *writer = data;

	notice_to_json(writer->session, row, writer->out);
	return buf_error(writer->out);
}

int notices_to_json(struct store *store, const char *session, uint32_t after, struct buf *out)
{
	return store_notices_each(store, session, after, notice_add, &(struct writer){ session, out });
}

int notice_file_path(const char *dir, const char *session, char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/%s/%s", dir, session, NOTICE_FILE);
}

/* A directory below one that is ours. Its mode is set, whatever the umask: users in sandboxes read what is in it. */
static int dir_enter(int at, const char *name, bool make)
{
	int fd;

	if (make && mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (make && fchmod(fd, 0755) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* DIR itself is closed to others: dataset names are nobody's business. */
static int user_enter(const char *dir, const struct session_name *name, bool make, int *ret_dir)
{
	char user[NP_NAME_MAX + 1];
	int r = make ? fs_mkdir_all(dir, 0700) : 0;

	if (r < 0)
		return r;
	*ret_dir = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_dir < 0)
		return -errno;
	snprintf(user, sizeof(user), "%.*s", (int)name->user_len, name->text);
	return dir_enter(*ret_dir, user, make);
}

static const char *session_part(const struct session_name *name)
{
	return name->text + name->user_len + 1;
}

/* True when the file begins like text; then *ret_have is how much of it is there. */
static bool file_is_start(int fd, const struct buf *text, size_t *ret_have)
{
	_buf_ struct buf have = BUF_INIT(NOTICES_BYTES);

	if (fs_read_fd(fd, &have) < 0 || have.len > text->len ||
	    (have.len && memcmp(have.data, text->data, have.len) != 0))
		return false;
	*ret_have = have.len;
	return true;
}

static int file_replace(int dir, const char *file, const char *fresh, const struct buf *text)
{
	_close_ int fd = -1;
	int r;

	if (unlinkat(dir, fresh, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	r = text->len ? fs_write_all(fd, text->data, text->len) : 0;
	if (r < 0)
		return r;
	return renameat(dir, fresh, dir, file) < 0 ? -errno : 0;
}

static int file_renew(const char *dir, const struct session_name *name, bool make, const struct buf *text)
{
	_close_ int root = -1, user = user_enter(dir, name, make, &root);
	_close_ int folder = user < 0 ? user : dir_enter(user, session_part(name), make);

	return folder < 0 ? folder : file_replace(folder, NOTICE_FILE, NOTICE_FILE_NEW, text);
}

int notice_file_put(const char *dir, const struct session_name *name, bool make, const struct buf *text)
{
	char path[FS_PATH_SIZE];
	int r = notice_file_path(dir, name->text, path);
	_close_ int fd = r < 0 ? r : open(path, NOTICE_OPEN); /* nobody else can write to the directories on the way */
	size_t have = 0;

	if (fd < 0 || !file_is_start(fd, text, &have))
		return file_renew(dir, name, make, text);
	return have < text->len ? fs_write_all(fd, text->data + have, text->len - have) : 0;
}

int notice_file_append(const char *dir, const struct session_name *name, size_t have, const struct buf *line)
{
	char path[FS_PATH_SIZE];
	int r = notice_file_path(dir, name->text, path);
	_close_ int fd = r < 0 ? r : open(path, NOTICE_OPEN);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != have)
		return -ESTALE;
	return fs_write_all(fd, line->data, line->len);
}

int why_file_put(const char *dir, const struct session_name *name, const struct buf *text)
{
	_close_ int root = -1, user = user_enter(dir, name, false, &root);
	_close_ int folder = user < 0 ? user : dir_enter(user, session_part(name), false);

	return folder < 0 ? folder : file_replace(folder, WHY_FILE, WHY_FILE_NEW, text);
}

int notice_file_remove(const char *dir, const struct session_name *name)
{
	_close_ int root = -1, user = user_enter(dir, name, false, &root);
	_close_ int folder = user < 0 ? user : dir_enter(user, session_part(name), false);
	char user_name[NP_NAME_MAX + 1];

	if (folder < 0)
		return folder == -ENOENT ? 0 : folder;
	unlinkat(folder, NOTICE_FILE_NEW, 0);
	unlinkat(folder, WHY_FILE_NEW, 0);
	unlinkat(folder, WHY_FILE, 0);
	if (unlinkat(folder, NOTICE_FILE, 0) < 0 && errno != ENOENT)
		return -errno;
	if (unlinkat(user, session_part(name), AT_REMOVEDIR) < 0)
		return -errno;
	snprintf(user_name, sizeof(user_name), "%.*s", (int)name->user_len, name->text);
	unlinkat(root, user_name, AT_REMOVEDIR); /* stays while the user has other sessions */
	return 0;
}

static void user_each(int root, const char *user, void (*fn)(void *data, const struct session_name *name), void *data)
{
	int fd = openat(root, user, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char text[2 * NAME_MAX + 2];
		struct session_name name;
		const char *problem;

		snprintf(text, sizeof(text), "%s/%s", user, entry->d_name);
		if (session_name_parse(text, &name, &problem) == 0)
			fn(data, &name);
	}
}

void notice_files_each(const char *path, void (*fn)(void *data, const struct session_name *name), void *data)
{
	_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			user_each(dirfd(dir), entry->d_name, fn, data);
}
