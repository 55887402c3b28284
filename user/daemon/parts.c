/* SPDX-License-Identifier: MIT */
/*
 * What everything stands on: the gate, the directories, the store, the record of events, inspectors. All of it can be taken away under a
 * running daemon, and nobody tells. What is gone is put back, or said: in the log, by an event, and by the health's status.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sql.h"
#include "daemon/daemon.h"

#define ROOM_MIN (1u << 20) /* bytes that the state directory must have left: a raise takes some kilobytes */

static void part_miss(struct parts *parts, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void part_miss(struct parts *parts, const char *fmt, ...)
{
	va_list ap;

	if (parts->n == PARTS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(parts->missing[parts->n++], sizeof(parts->missing[0]), fmt, ap);
	va_end(ap);
}

/* The name must lead to what we have locked: a directory that was made again is another. */
static void directory_look(struct parts *parts, const char *what, const char *dir, int lock)
{
	char path[FS_PATH_SIZE];
	struct stat named = { 0 }, held = { 0 };
	int r = fs_path(path, "%s/lock", dir);

	if (r == 0 && (stat(path, &named) < 0 || fstat(lock, &held) < 0))
		r = -errno;
	if (r == 0 && (named.st_ino != held.st_ino || named.st_dev != held.st_dev))
		r = -ESTALE;
	if (r < 0)
		part_miss(parts, "%s %.300s was removed, or is another: start netpawld again", what, dir);
}

static void socket_look(struct parts *parts, const char *dir)
{
	char path[FS_PATH_SIZE];

	if (fs_path(path, "%s/control.sock", dir) == 0 && access(path, F_OK) < 0)
		part_miss(parts, "%.300s: %s: start netpawld again", path, strerror(errno));
}

static void disk_look(struct parts *parts, const char *dir)
{
	struct statvfs fs;

	if (statvfs(dir, &fs) < 0)
		return; /* directory_look() has said it */
	if (fs.f_flag & ST_RDONLY)
		part_miss(parts, "the state directory %.300s is read-only", dir);
	else if ((uint64_t)fs.f_bfree * fs.f_frsize < ROOM_MIN || (fs.f_files && !fs.f_ffree))
		part_miss(parts, "the state directory %.300s is full", dir);
}

static void records_look(struct parts *parts, struct daemon *d)
{
	struct event_log_stats stats;
	int r = store_check(d->store);

	event_log_stats(d->events, &stats);
	if (r < 0)
		part_miss(parts, "the record of sessions: %s", sql_strerror(r));
	if (stats.journal_error)
		part_miss(parts, "the journal of events: %s", strerror(-stats.journal_error));
	if (stats.history_error)
		part_miss(parts, "the record of events: %s", sql_strerror(stats.history_error));
}

static void ways_out_look(struct parts *parts, struct daemon *d)
{
	static const char mended[] = "the nft table inet netpawl of sandboxes' ways out was gone, or not whole";
	bool shut = false;
	int r = d->supervisor ? supervisor_way_out_check(d->supervisor, &shut) : 0;

	if (r < 0)
		part_miss(parts, "the nft table inet netpawl is gone: sandboxes with network: nat reach nobody");
	else if (shut)
		part_miss(parts,
			  "the host's table of connections (net.netfilter.nf_conntrack_max) is nearly full: sandboxes "
			  "with network: nat open no new ones");
	if (r > 0)
		event_emit(d, &(struct event){ .reason = NP_R_MENDED, .who = "daemon", .text = mended });
}

static void networks_look(struct parts *parts, struct daemon *d)
{
	unsigned n = d->supervisor ? supervisor_networks_check(d->supervisor) : 0;

	if (n)
		part_miss(
			parts,
			"%u networks of sandboxes' own: inspectors do not listen there, what they must see is refused",
			n);
}

static void inspectors_look(struct parts *parts, struct daemon *d)
{
	const char *why = d->supervisor ? supervisor_unready(d->supervisor) : NULL;

	if (why)
		part_miss(parts,
			  "no inspector is ready: what they must see is refused. The last start of one failed: %s; "
			  "netpawld's log says more",
			  why);
}

static bool is_among(const struct parts *parts, const char *text)
{
	for (unsigned i = 0; i < parts->n; i++)
		if (!strcmp(parts->missing[i], text))
			return true;
	return false;
}

/* What changed since the last look, to the log and as events. */
static void parts_report(struct daemon *d, const struct parts *now)
{
	for (unsigned i = 0; i < now->n; i++) {
		if (is_among(&d->parts, now->missing[i]))
			continue;
		log_error("degraded: %s", now->missing[i]);
		event_emit(d, &(struct event){ .reason = NP_R_DEGRADED, .who = "daemon", .text = now->missing[i] });
	}
	for (unsigned i = 0; i < d->parts.n; i++) {
		if (is_among(now, d->parts.missing[i]))
			continue;
		log_info("no longer degraded: %s", d->parts.missing[i]);
		event_emit(d, &(struct event){ .reason = NP_R_MENDED, .who = "daemon", .text = d->parts.missing[i] });
	}
}

void parts_check(struct daemon *d)
{
	struct parts now = { 0 };
	char text[512] = "";

	if (kernel_check(d->kernel, text) < 0)
		part_miss(&now, "%s", text);
	if (kernel_mended(d->kernel, text))
		event_emit(d, &(struct event){ .reason = NP_R_MENDED, .who = "daemon", .text = text });
	directory_look(&now, "the run directory", d->options.run_dir, d->run_lock);
	socket_look(&now, d->options.run_dir);
	directory_look(&now, "the state directory", d->options.state_dir, d->state_lock);
	disk_look(&now, d->options.state_dir);
	records_look(&now, d);
	ways_out_look(&now, d);
	networks_look(&now, d);
	inspectors_look(&now, d);
	parts_report(d, &now);
	d->parts = now;
}

void parts_describe(const struct parts *parts, struct buf *out)
{
	if (!parts->n)
		return;
	json_open_array(out, "degraded");
	for (unsigned i = 0; i < parts->n; i++)
		json_put_text(out, NULL, parts->missing[i], sizeof(parts->missing[i]));
	json_close_array(out);
}
