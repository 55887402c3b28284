/* SPDX-License-Identifier: MIT */
/*
 * The note of a save that is under way: who saves which file of the policy. It is on disk before the file is, and
 * removed when the event is recorded. If the daemon dies in between, the next one finds it, looks at which text is in
 * use, and records the event.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "policy/snapshot.h"
#include "policy/text_hash.h"

#define NOTE "policy-save" /* in the state directory: a line each */
enum note_line { NOTE_FILE, NOTE_WHO, NOTE_OLD, NOTE_NEW, NOTE_AFTER, NOTE_LINES };

static int state_open(const struct daemon *d)
{
	int fd = open(d->options.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int save_note_put(const struct daemon *d, const struct policy_save *save, const char *who, const char *hash)
{
	_close_ int dir = state_open(d);
	_buf_ struct buf text = BUF_INIT(8192);

	buf_printf(&text, "%s\n%s\n%s\n%s\n%llu\n", save->file, who, save->old, hash,
		   (unsigned long long)event_log_last_seq(d->events));
	if (dir < 0 || buf_error(&text))
		return dir < 0 ? dir : buf_error(&text);
	return policy_file_put(dir, NOTE, &text);
}

void save_note_drop(const struct daemon *d)
{
	_close_ int dir = state_open(d);
	int r = dir < 0 ? dir : policy_file_put(dir, NOTE, &(struct buf){ 0 });

	if (r < 0 && r != -ENOENT)
		log_warning("%s/" NOTE ": %s", d->options.state_dir, strerror(-r));
}

void saved_send(struct daemon *d, const char *file, const char *old, const char *new, const char *who)
{
	char text[512];

	snprintf(text, sizeof(text), "%.200s: sha256 %s became %s", file, old, new);
	event_emit(d,
		   &(struct event){
			   .reason = NP_R_POLICY_SAVED, .who = who, .policy = d->policy.policy->hash, .text = text });
}

struct used_file {
	const char *name;
	char hash[TEXT_HASH_SIZE]; /* "": the live policy has none of that name */
};

static int file_look(void *ctx, const char *name, const char *text, size_t len)
{
	struct used_file *file = ctx;

	if (!strcmp(name, file->name))
		text_hash(text, len, file->hash);
	return 0;
}

/* The last thing that was done may have been to tell. An earlier save of the same text is another. */
static bool was_sent(struct daemon *d, const char *new, const char *after)
{
	_buf_ struct buf last = BUF_INIT(NP_EVENT_LINE_MAX * 2);
	char words[TEXT_HASH_SIZE + 16];

	snprintf(words, sizeof(words), "became %s", new);
	return event_log_query(d->events, NULL, "policy_saved", strtoull(after, NULL, 10), 1, &last) == 0 &&
	       last.data && strstr(last.data, words);
}

void save_note_recover(struct daemon *d)
{
	_close_ int dir = state_open(d);
	_free_ char *text = NULL;
	char *line[NOTE_LINES] = { 0 }, *save = NULL, who[160];
	struct used_file used = { 0 };
	const char *shown, *first;

	if (dir < 0 || fs_read_at(dir, NOTE, 8192, &text) < 0)
		return;
	for (unsigned i = 0; i < NOTE_LINES; i++)
		line[i] = strtok_r(i ? NULL : text, "\n", &save);
	used.name = line[NOTE_FILE];
	if (line[NOTE_AFTER] &&
	    snapshot_each(d->policy.record.data, d->policy.record.len, &shown, &first, file_look, &used) == 0 &&
	    !strcmp(used.hash, line[NOTE_NEW]) && !was_sent(d, line[NOTE_NEW], line[NOTE_AFTER])) {
		snprintf(who, sizeof(who), "%.100s, before this start", line[NOTE_WHO]);
		saved_send(d, line[NOTE_FILE], line[NOTE_OLD], line[NOTE_NEW], who);
	}
	save_note_drop(d);
}
