/* SPDX-License-Identifier: MIT */
/*
 * Files of the policy that are written here: by answers "always" (grants.c), and by whoever saves one. What is saved is read first, with
 * the whole policy; then it is on the disk under another name, then under its own, then the policy is reloaded. A crash in between
 * leaves the file as it was, or one that the next start reads and tells of (save_note.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/fs.h"
#include "daemon/daemon.h"
#include "policy/editors.h"
#include "policy/snapshot.h"
#include "policy/tables.h"
#include "policy/text_hash.h"
#include "vocab/limits.h"

static int save_fail(struct failure *ret, int r, unsigned reason, const char *file, const char *text)
{
	*ret = (struct failure){ .reason = reason };
	snprintf(ret->text, sizeof(ret->text), "%.200s: %.400s", file, text);
	return r;
}

const char *policy_file_strerror(int r)
{
	return r == -ELOOP ? "it is a link: write the file that it leads to" : strerror(-r);
}

/* Of the file whose place is taken. A link has an owner and a mode too, 0777, but not those of the file that it leads to. */
static int file_before(int dir, const char *name, struct stat *ret)
{
	if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? 0 : S_ISLNK(ret->st_mode) ? -ELOOP : -ENXIO;
}

int policy_file_put(int dir, const char *name, const struct buf *text)
{
	_close_ int fd = -1;
	char new[FS_PATH_SIZE];
	struct stat st = { .st_mode = 0644 };
	int r = fs_path(new, "%s.new", name), before = r < 0 ? r : file_before(dir, name, &st);

	if (before < 0 && (before != -ENOENT || !text->len))
		return before;
	if (!text->len)
		return unlinkat(dir, name, 0) < 0 || fsync(dir) < 0 ? -errno : 0;
	if (unlinkat(dir, new, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* The owner first: chown() takes bits of the mode away. Who may write a policy decides what may be reached: its owner alone. */
	if ((before == 0 && fchown(fd, st.st_uid, st.st_gid) < 0) || fchmod(fd, st.st_mode & 0755) < 0)
		r = -errno;
	if (r == 0)
		r = fs_write_all(fd, text->data, text->len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, new, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, new, 0);
	return r < 0 ? r : fsync(dir) < 0 ? -errno : 0;
}

int policy_file_get(int dir, const char *name, struct buf *out)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? fs_read_fd(fd, out) : -ENXIO;
}

int policy_dir_open(const char *file)
{
	const char *slash = strrchr(file, '/');
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%.*s", slash ? (int)(slash - file + 1) : 1, slash ? file : "."), fd;

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct named {
	const char *name;
	bool found;
};

static int name_look(void *ctx, const char *name, const char *text, size_t len)
{
	struct named *named = ctx;

	(void)text;
	(void)len;
	named->found |= !strcmp(name, named->name);
	return 0;
}

/* Files that rules are read from. Certificates that the policy names are not among them: editors must not choose
 * which CAs origins are verified with. */
static bool policy_has(const struct loaded_policy *loaded, const char *name)
{
	struct named named = { .name = name };
	const char *shown, *first;
	size_t len;

	if (snapshot_each(loaded->record.data, loaded->record.len, &shown, &first, name_look, &named) < 0 ||
	    !named.found)
		return false;
	len = strlen(shown);
	for (size_t i = 0; i < loaded->policy->n_files; i++)
		if (!strncmp(loaded->policy->files[i], shown, len) && !strcmp(loaded->policy->files[i] + len, name))
			return true;
	return false;
}

/* The directory that the file is in, by no link; *ret_name is its name there. */
static int directory_of(const char *policy, const char *name, const char **ret_name)
{
	_close_ int top = policy_dir_open(policy);
	const char *slash = strrchr(name, '/');
	char below[FS_PATH_SIZE];
	int r;

	*ret_name = slash ? slash + 1 : name;
	if (top < 0)
		return top;
	if (!slash)
		return take_fd(top);
	r = fs_path(below, "%.*s", (int)(slash - name), name);
	return r < 0 ? r : fs_open_unlinked(top, below, O_RDONLY | O_DIRECTORY);
}

/* Is it still what whoever saves has seen? */
static int text_is_seen(int dir, const char *name, const struct policy_save *save, struct buf *old,
			struct failure *ret_failure)
{
	char hash[TEXT_HASH_SIZE];
	int r = policy_file_get(dir, name, old);

	if (r < 0)
		return save_fail(ret_failure, r, NP_R_FILE_CHANGED, save->file, policy_file_strerror(r));
	text_hash(old->data, old->len, hash);
	if (strcmp(hash, save->old) != 0)
		return save_fail(ret_failure, -ESTALE, NP_R_FILE_CHANGED, save->file,
				 "it was written since it was shown: take over what is there, reload, save again");
	return 0;
}

/* Reads the policy as it would be. What is on the disk and not live would come with it: whoever saves has not seen that. */
static int policy_would_be(const struct loaded_policy *loaded, const struct policy_save *save, struct policy **ret_then,
			   struct failure *ret_failure)
{
	_policy_ struct policy *now = NULL, *then = NULL;
	_problems_ struct problems problems = { 0 }, of_now = { 0 };
	struct gate_tables tables;
	char line[PROBLEM_LINE_SIZE];
	int r = policy_load_file(loaded->file, &now, &of_now);

	if (r < 0 || strcmp(now->hash, loaded->policy->hash) != 0)
		return save_fail(ret_failure, r < 0 ? r : -ESTALE, NP_R_FILE_CHANGED, loaded->file,
				 "the files are not those of the live policy: reload it first");
	r = policy_load_with(loaded->file, save->file, save->text, &then, &problems);
	if (r < 0) {
		problems_first(&problems, line);
		return save_fail(ret_failure, r, NP_R_BAD_POLICY, save->file, line);
	}
	r = gate_tables_make(then, &tables);
	if (r < 0)
		return save_fail(ret_failure, r, NP_R_BAD_POLICY, save->file,
				 r == -E2BIG ? "its address rules make more entries than the gate's tables hold"
					     : strerror(-r));
	gate_tables_free(&tables);
	*ret_then = take_ptr(then);
	return 0;
}

static int save_check(const struct loaded_policy *loaded, const struct policy_save *save, const struct buf *old,
		      struct failure *ret_failure)
{
	_policy_ struct policy *then = NULL;
	const char *key = "this", *named;
	int r = policy_would_be(loaded, save, &then, ret_failure);

	if (r < 0 || save->operator)
		return r;
	r = editor_change_check(old->data, old->len, save->text, strlen(save->text), &key);
	named = r == 0 ? editor_lists_check(loaded->policy, then) : NULL;
	if (r == 0 && !named)
		return 0;
	*ret_failure = (struct failure){ .reason = NP_R_NO_ROLE };
	snprintf(ret_failure->text, sizeof(ret_failure->text), "%.200s: only operators change %s\"%s\"", save->file,
		 named ? "lists that lead somewhere else in " : "", named ? named : key);
	return -EACCES;
}

/* It is not live, and must not become so by the next reload. What somebody else has written since stays. */
static int put_back(int dir, const char *name, const struct buf *written, const struct buf *old)
{
	_buf_ struct buf now = BUF_INIT(NP_POLICY_BYTES);
	int r = policy_file_get(dir, name, &now);

	if (r < 0)
		return r;
	return now.len == written->len && !memcmp(now.data, written->data, now.len) ? policy_file_put(dir, name, old)
										    : -ESTALE;
}

/* The reload said no, and why. Where the file cannot become what it was, that is said, too: it is not what is live. */
static void save_take_back(struct daemon *d, const struct policy_save *save, const char *who, int r,
			   struct failure *failure)
{
	char why[sizeof(failure->text)];

	if (r == 0)
		return;
	snprintf(why, sizeof(why),
		 "%.300s; and %.100s could not be put back (%s): what is in it now is not live, and the "
		 "next reload tries it",
		 failure->text, save->file, r == -ESTALE ? "somebody has written it since" : strerror(-r));
	memcpy(failure->text, why, sizeof(why));
	event_emit(d, &(struct event){ .reason = NP_R_POLICY_REFUSED, .who = who, .text = failure->text });
}

/* Into the file, and live. What a crash leaves after each step: the note, and the file as it was; the note, and the file as it is to be,
 * which the next start reads and tells of. */
static int save_write(struct daemon *d, const struct policy_save *save, const char *who, int dir, const char *name,
		      const struct buf *old, struct policy_saved *ret, struct failure *ret_failure)
{
	const struct policy *before = d->policy.policy;
	_buf_ struct buf text = BUF_INIT(NP_POLICY_BYTES);
	int r;

	buf_puts(&text, save->text);
	text_hash(text.data, text.len, ret->hash);
	r = buf_error(&text) ? buf_error(&text) : save_note_put(d, save, who, ret->hash);
	failpoint("save_noted");
	if (r == 0)
		r = policy_file_put(dir, name, &text);
	failpoint("save_written");
	if (r < 0)
		return save_fail(ret_failure, r, NP_R_NOT_RECORDED, save->file, policy_file_strerror(r));
	r = policy_reload_by(d, who, &ret->reloaded, ret_failure);
	if (r < 0 && d->policy.policy == before) {
		save_take_back(d, save, who, put_back(dir, name, &text, old), ret_failure);
		return r;
	}
	failpoint("save_live");
	saved_send(d, save->file, save->old, ret->hash, who);
	failpoint("save_told");
	return r;
}

int policy_save_by(void *data, const struct policy_save *save, const char *who, struct policy_saved *ret,
		   struct failure *ret_failure)
{
	struct daemon *d = data;
	_buf_ struct buf old = BUF_INIT(NP_POLICY_BYTES), again = BUF_INIT(NP_POLICY_BYTES);
	_close_ int dir = -1;
	const char *name;
	int r;

	if (!d->policy.file || !policy_has(&d->policy, save->file))
		return save_fail(ret_failure, -ENOENT, NP_R_NO_SUCH_FILE, save->file,
				 "the live policy has no rules from it");
	dir = directory_of(d->policy.file, save->file, &name);
	if (dir < 0)
		return save_fail(ret_failure, dir, NP_R_FILE_CHANGED, save->file,
				 dir == -ELOOP ? "a link leads there" : strerror(-dir));
	r = text_is_seen(dir, name, save, &old, ret_failure);
	if (r == 0)
		r = save_check(&d->policy, save, &old, ret_failure);
	if (r == 0) /* reading may have taken a while */
		r = text_is_seen(dir, name, save, &again, ret_failure);
	if (r < 0)
		return r;
	r = save_write(d, save, who, dir, name, &old, ret, ret_failure);
	save_note_drop(d);
	return r;
}
