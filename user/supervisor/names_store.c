/* SPDX-License-Identifier: MIT */
/*
 * Which synthetic address stands for which name, for each session. Kept in a file in the run directory, for the sandboxes
 * outlive this daemon and remember addresses; a reboot forgets both. One line for each that was given out, written before
 * anybody is told: "INDEX NAME". The last line of an index counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "supervisor/supervisor_internal.h"
#include "loop/loop.h"
#include "wire/hostname.h"

#define FILE_MAX (16u << 20) /* each name once is 2 MiB at the most; an index changes hands once an hour */

static uint64_t now_ms(void)
{
	return loop_now_ns() / 1000000;
}

void session_file(const char *session, char name[static NP_LABEL_SIZE])
{
	size_t len = strnlen(session, NP_LABEL_SIZE - 1);

	for (size_t i = 0; i < len; i++)
		name[i] = session[i] == '/' ? ',' : session[i];
	name[len] = '\0';
}

static int names_path(const struct supervisor *w, const struct session_brief *session, char path[static FS_PATH_SIZE])
{
	char name[NP_LABEL_SIZE];

	session_file(session->ca.session, name);
	return fs_path(path, "%s/%s", w->names_dir, name);
}

static bool is_canonical(const char *name)
{
	char again[NAME_SIZE];

	return name_canonical(name, strlen(name), again) == 0 && strcmp(name, again) == 0;
}

/* A last line without its end was never told to anybody. It goes, or the next one would be taken for its end. */
static int names_trim(int fd, const struct buf *text)
{
	const char *end = text->len ? memrchr(text->data, '\n', text->len) : NULL;
	size_t whole = end ? (size_t)(end - text->data) + 1 : 0;

	return whole < text->len && ftruncate(fd, (off_t)whole) < 0 ? -errno : 0;
}

static void names_read(struct session_brief *session, char *text)
{
	char *end;

	for (char *line = text; (end = strchr(line, '\n')); line = end + 1) {
		char *name;
		unsigned long index = strtoul(line, &name, 10);

		*end = '\0';
		if (*name == ' ' && is_canonical(name + 1) && index <= NAMES_ALL)
			names_restore(session->names, (uint32_t)index, name + 1, now_ms());
	}
}

static size_t names_all(const struct session_brief *session)
{
	return names_count(session->names, NAMES_ALLOWED) + names_count(session->names, NAMES_REFUSED);
}

/* Each name once, in a new file that takes the place of the old one. Two commas: no session's. */
static int names_compact(const struct supervisor *w, struct session_brief *session)
{
	_buf_ struct buf text = BUF_INIT(FILE_MAX);
	char path[FS_PATH_SIZE], fresh[FS_PATH_SIZE];
	size_t left = names_all(session);
	_close_ int fd = -1;
	int r = names_path(w, session, path);

	if (r == 0)
		r = fs_path(fresh, "%s,new", path);
	if (r < 0)
		return r;
	for (uint32_t i = 1; left && i <= NAMES_ALL; i++) {
		const char *name = names_find(session->names, i);

		if (name) {
			buf_printf(&text, "%u %s\n", i, name);
			left--;
		}
	}
	fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0	       ? -errno
	    : buf_error(&text) ? buf_error(&text)
			       : fs_write_all(fd, text.data ? text.data : "", text.len);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		return r;
	cleanup_close(&session->names_fd);
	session->names_fd = take_fd(fd);
	session->names_bytes = text.len;
	return 0;
}

int names_open(struct supervisor *w, struct session_brief *session)
{
	_buf_ struct buf text = BUF_INIT(FILE_MAX);
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	int r = names_new(&w->key, &session->names);

	if (r == 0)
		r = names_path(w, session, path);
	if (r == 0) {
		fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		r = fd < 0 ? -errno : fs_read_fd(fd, &text);
	}
	if (r == 0)
		r = names_trim(fd, &text);
	if (r < 0) {
		/* Without a record the next daemon could give an address to another name: none is given out. */
		log_error("names of %s: %s; its names are not resolved", session->ca.session, strerror(-r));
		return session->names ? 0 : r;
	}
	if (text.data)
		names_read(session, text.data);
	session->names_fd = take_fd(fd);
	session->names_bytes = text.len;
	return 0;
}

void names_close(struct supervisor *w, struct session_brief *session, bool forget)
{
	char path[FS_PATH_SIZE];

	if (forget && names_path(w, session, path) == 0)
		unlink(path);
	cleanup_close(&session->names_fd);
	names_free(session->names);
}

/* The name is in the table already. */
static int names_keep(const struct supervisor *w, struct session_brief *session, uint32_t index, const char *name)
{
	char line[16 + NAME_SIZE];
	int len = snprintf(line, sizeof(line), "%u %s\n", index, name);

	if (session->names_fd < 0)
		return -EBADF;
	if (session->names_bytes > FILE_MAX / 2)
		return names_compact(w, session);
	session->names_bytes += (size_t)len;
	/* One write, so that a line is there or is not. */
	return fs_write_all(session->names_fd, line, (size_t)len);
}

void names_learn(struct process *from, const struct link_name *message)
{
	struct supervisor *w = from->supervisor;
	struct link_name answer = *message;
	const enum names_kind kind = message->refused ? NAMES_REFUSED : NAMES_ALLOWED;
	struct session_brief *session;
	bool fresh;
	int r;

	answer.index = 0;
	if (message->session[NP_LABEL_SIZE - 1] || message->name[sizeof(message->name) - 1] ||
	    !is_canonical(message->name))
		return;
	session = session_brief_find(w, message->session);
	if (!session)
		return;
	fresh = !names_index(session->names, kind, message->name);
	if (session->names_fd < 0 || names_get(session->names, kind, message->name, now_ms(), &answer.index) < 0)
		answer.index = 0;
	if (answer.index && fresh && (r = names_keep(w, session, answer.index, message->name)) < 0) {
		log_error("names of %s: %s; no more of its names are resolved", message->session, strerror(-r));
		cleanup_close(&session->names_fd);
		session->names_fd = -1;
		answer.index = 0;
	}
	/* The one that asked last: it answers its client, who may connect to another before we have told that one. */
	if (answer.index && fresh)
		send_others(w, from, LINK_NAME, &answer, sizeof(answer), -1);
	process_send(from, LINK_NAME, &answer, sizeof(answer), -1);
}

/* Sandboxes choose how many names there are, and a worker must start all the same: what has no room is left out. Its
 * address is refused until the name is looked up again. */
void names_batch(const struct session_brief *session, struct buf *out)
{
	size_t left = names_all(session);

	for (uint32_t i = 1; left && i <= NAMES_ALL; i++) {
		const char *name = names_find(session->names, i);
		struct link_name message = { .index = i };

		if (!name)
			continue;
		if (out->max - out->len < sizeof(struct link_message) + sizeof(message))
			return;
		memcpy(message.session, session->ca.session, sizeof(message.session));
		memcpy(message.name, name, strlen(name) + 1);
		batch_add(out, LINK_NAME, &message, sizeof(message));
		left--;
	}
}

void names_send(struct supervisor *w, const struct session_brief *session)
{
	_buf_ struct buf out = BUF_INIT(LINK_BATCH_MAX);
	_close_ int fd = -1;
	int r;

	if (!names_all(session))
		return;
	names_batch(session, &out);
	r = buf_error(&out) ? buf_error(&out) : link_blob(out.data, out.len, &fd);
	if (r < 0)
		log_error("names of %s: %s; they have to be looked up again", session->ca.session, strerror(-r));
	else
		send_all(w, LINK_BATCH, NULL, 0, fd);
}

void files_sweep(int from, struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data,
		 void (*drop)(int dir, const char *name))
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir() closes it */
	_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char session[NAME_MAX + 1];
		char *comma;

		snprintf(session, sizeof(session), "%s", entry->d_name);
		comma = strchr(session, ',');
		if (entry->d_name[0] == '.' || !comma)
			continue;
		*comma = '/';
		/* Another comma: a new file that never took the place of the old one. */
		if (!w || strchr(comma, ',') || (!session_brief_find(w, session) && !is_used(data, session)))
			drop(dirfd(dir), entry->d_name);
	}
}

static void names_drop(int dir, const char *name)
{
	unlinkat(dir, name, 0);
}

void names_sweep(struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data)
{
	_close_ int dir = open(w->names_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	files_sweep(dir, w, is_used, data, names_drop);
}
