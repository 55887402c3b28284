/* SPDX-License-Identifier: MIT */
/*
 * CAs outlive a daemon, for the programs of a sandbox read once whom they trust, when they start. Each is kept in a file of
 * the run directory for as long as its session has a sandbox, and only if that directory is in memory: its keys touch no
 * disk. What is found there is no more than a proposal: an inspector takes it apart, and makes a new CA if it is not whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "supervisor/supervisor_internal.h"

/* It is read by later builds: who changes it changes the last byte of the magic, too. */
struct ca_file {
	char magic[8];
	uint64_t mark; /* of all that follows: a file that was damaged is none */
	char session[NP_LABEL_SIZE];
	uint32_t len;
	char data[LINK_CA_BYTES]; /* ca_export(); the file ends with it */
};
#define CA_FILE_HEAD offsetof(struct ca_file, data)
static const char ca_file_magic[8] = "NPCAF\0\0\1";

static uint64_t ca_file_mark(const struct ca_file *file)
{
	return hash_mark(file->session, CA_FILE_HEAD - offsetof(struct ca_file, session) + file->len);
}

int cas_open(struct supervisor *w, const char *path)
{
	_close_ int dir = -1;
	int r = fs_mkdir_all(path, 0700);

	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fchmod(dir, 0700) < 0)
		return -errno;
	w->cas_dir = take_fd(dir);
	w->cas_kept = fs_is_in_memory(w->cas_dir);
	if (!w->cas_kept) {
		cas_wipe(w->cas_dir, NULL, NULL, NULL);
		log_warning("%s is not in memory (tmpfs): the CAs of sessions are not kept, and programs that run in "
			    "PROXIED when netpawld ends have to be started again for TLS",
			    path);
	}
	return 0;
}

/* Root's own file and nobody else's, with one name, and not a byte too many. */
static bool ca_file_read(const struct supervisor *w, const char *name, struct ca_file *ret)
{
	_close_ int fd = openat(w->cas_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 ||
	    st.st_mode & 077 || st.st_size <= (off_t)CA_FILE_HEAD || st.st_size > (off_t)sizeof(*ret))
		return false;
	memset(ret, 0, sizeof(*ret));
	return read(fd, ret, sizeof(*ret)) == st.st_size && !memcmp(ret->magic, ca_file_magic, sizeof(ret->magic)) &&
	       ret->len == (uint64_t)st.st_size - CA_FILE_HEAD && ret->mark == ca_file_mark(ret);
}

bool ca_kept(const struct supervisor *w, const char *session, struct link_ca *ret)
{
	char name[NP_LABEL_SIZE];
	struct ca_file file;
	bool good;

	if (!w->cas_kept)
		return false;
	session_file(session, name);
	good = ca_file_read(w, name, &file) && !strncmp(file.session, session, sizeof(file.session));
	if (good) {
		ret->len = file.len;
		memcpy(ret->data, file.data, file.len);
	} else if (faccessat(w->cas_dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		log_warning("the kept CA of %s is damaged, or not its own: it gets a new one", session);
	}
	explicit_bzero(&file, sizeof(file));
	return good;
}

/* Its pages go back to the kernel as they are. */
static void ca_file_wipe(int dir, const char *name)
{
	static const char zeroes[sizeof(struct ca_file)];
	_close_ int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		for (off_t at = 0; at < st.st_size && at < (1 << 20);) {
			ssize_t n = pwrite(fd, zeroes, sizeof(zeroes), at);

			if (n <= 0)
				break;
			at += n;
		}
	unlinkat(dir, name, 0);
}

/* Beside it, then over it: a crash leaves the one or the other, or half of one that no session is called like. */
static int ca_file_write(const struct supervisor *w, const char *name, const struct ca_file *file)
{
	char fresh[NP_LABEL_SIZE + 8];
	_close_ int fd = -1;
	int r;

	snprintf(fresh, sizeof(fresh), "%s,new", name);
	ca_file_wipe(w->cas_dir, fresh);
	fd = openat(w->cas_dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fs_write_all(fd, file, CA_FILE_HEAD + file->len);
	if (r == 0)
		ca_file_wipe(w->cas_dir, name);
	if (r == 0 && renameat(w->cas_dir, fresh, w->cas_dir, name) < 0)
		r = -errno;
	if (r < 0)
		ca_file_wipe(w->cas_dir, fresh);
	return r;
}

void ca_keep(const struct supervisor *w, const struct link_ca *ca)
{
	struct ca_file file = { .len = ca->len };
	struct link_ca old = { 0 };
	char name[NP_LABEL_SIZE];
	int r;

	if (!w->cas_kept || ca->len > sizeof(file.data))
		return;
	session_file(ca->session, name);
	if (!ca_kept(w, ca->session, &old) || old.len != ca->len || memcmp(old.data, ca->data, ca->len) != 0) {
		memcpy(file.magic, ca_file_magic, sizeof(file.magic));
		memcpy(file.session, ca->session, sizeof(file.session));
		memcpy(file.data, ca->data, ca->len);
		file.mark = ca_file_mark(&file);
		r = ca_file_write(w, name, &file);
		if (r < 0)
			log_error("the CA of %s is not kept: %s. When netpawld ends it is lost", ca->session,
				  strerror(-r));
	}
	explicit_bzero(&old, sizeof(old));
	explicit_bzero(&file, sizeof(file));
}

void ca_forget(const struct supervisor *w, const char *session)
{
	char name[NP_LABEL_SIZE];

	session_file(session, name);
	ca_file_wipe(w->cas_dir, name);
}

void cas_wipe(int dir, struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data)
{
	files_sweep(dir, w, is_used, data, ca_file_wipe);
}

void supervisor_cas_wipe(const char *path)
{
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir >= 0)
		cas_wipe(dir, NULL, NULL, NULL);
}
