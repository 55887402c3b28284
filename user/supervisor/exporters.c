/* SPDX-License-Identifier: MIT */
#include "supervisor/exporters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exposition.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "link/cursor.h"
#include "link/export_message.h"
#include "supervisor/spawn.h"
#include "wire/url.h"

#define TICK_MS	       100
#define BACKOFF_MS     100 /* before the second start; doubled up to the next */
#define BACKOFF_MAX_MS 5000
#define HEALTHY_MS     10000 /* one that lasted so long has a clean record */
#define MESSAGES       16    /* that are read at a time */

enum kind { KIND_METRICS, KIND_OTLP, KIND_JOURNALD, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = { "metrics", "otlp", "journald" };

struct exporter {
	struct exporters *exporters;
	enum kind kind;
	char *where; /* as the policy has it; NULL: it is not wanted */
	pid_t pid;   /* 0: it is not there */
	int link;
	bool ready;
	uint64_t after; /* the event behind which it begins, unless it has a place already */
	uint64_t start_ns, starts;
	unsigned failures;		   /* one after the other */
	struct export_state state, before; /* of the running one; of those that are over */
};

struct exporters {
	struct exporters_config config;
	char exe[FS_PATH_SIZE], root[FS_PATH_SIZE], dir[FS_PATH_SIZE];
	struct exporter of[KIND_COUNT];
};

static void exporter_drop(struct exporter *e)
{
	if (!e->pid)
		return;
	loop_unwatch(e->exporters->config.loop, e->link);
	close(e->link);
	spawn_end(e->pid); /* it has no children and waits for nothing that cannot be interrupted: it dies at once */
	e->pid = 0;
	e->ready = false;
	e->before.sent += e->state.sent;
	e->before.failures += e->state.failures;
	e->before.rejected += e->state.rejected;
	e->before.gaps += e->state.gaps;
	e->before.acked = e->state.acked ? e->state.acked : e->before.acked;
	e->state = (struct export_state){ 0 };
}

static int call_answer(struct exporter *e)
{
	const struct exporters_config *config = &e->exporters->config;
	_close_ int fd = config->lend(config->data, config->uid);

	return fd < 0 ? fd : link_send(e->link, LINK_EXPORT_CALL, NULL, 0, fd);
}

/* It is a stranger's reader: what it says is numbers, which are shown. */
static int exporter_receive(struct exporter *e)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	enum link_type type;
	size_t len;
	int r = link_receive(e->link, &type, data, &len, NULL);

	if (r < 0)
		return r;
	if (type == LINK_EXPORT_CALL && !len)
		return call_answer(e);
	if (type == LINK_READY && !len) {
		e->ready = true;
		log_info("%s at %s", kind_names[e->kind], e->where);
	} else if (type == LINK_EXPORT_STATE && len == sizeof(e->state)) {
		memcpy(&e->state, data, sizeof(e->state));
		e->failures = 0;
	} else {
		return -EPROTO;
	}
	return 0;
}

static void on_link(void *data, uint32_t events)
{
	struct exporter *e = data;
	int r = 0;

	(void)events;
	for (unsigned i = 0; i < MESSAGES && r == 0; i++)
		r = exporter_receive(e);
	if (r == 0 || r == -EAGAIN)
		return;
	if (!e->failures++) /* once: it is started again and again */
		log_warning("%s at %s: its netpawl-export has ended", kind_names[e->kind], e->where);
	exporter_drop(e);
}

/* Where an event is sent from, and the name that the other side is called by. */
static int target_write(const struct exporter *e, char where[static 128], char path[static 1024])
{
	struct url url;
	char *slash;

	snprintf(where, 128, "%.127s", e->where);
	path[0] = '\0';
	if (e->kind != KIND_OTLP)
		return strlen(e->where) < 128 ? 0 : -ENAMETOOLONG;
	if (url_parse(e->where, &url) < 0 || strlen(url.target) >= 1024)
		return -EINVAL;
	snprintf(where, 128, "%.127s", e->where + strlen("http://"));
	slash = strchr(where, '/');
	if (slash)
		*slash = '\0';
	if (!url.has_port)
		snprintf(where + strlen(where), 128 - strlen(where), ":80");
	/* A receiver's address alone is the base of all that it takes, as OTLP has it. */
	snprintf(path, 1024, "%s", strcmp(url.target, "/") != 0 ? url.target : "/v1/logs");
	return 0;
}

static int cursor_file(const struct exporter *e)
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s/%s", e->exporters->dir, kind_names[e->kind]);
	_close_ int fd = r < 0 ? r : open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct cursor cursor;

	if (r < 0 || fd < 0)
		return r < 0 ? r : -errno;
	/* A new one: its first place is on the disk before anything is said to have begun. */
	if (lseek(fd, 0, SEEK_END) == 0) {
		cursor = (struct cursor){ .fd = fd };
		r = cursor_put(&cursor, e->after);
	}
	return r < 0 ? r : take_fd(fd);
}

static int exporter_spawn(struct exporter *e)
{
	const struct exporters *all = e->exporters;
	char uid[16], where[128], path[1024];
	const char *argv[] = { all->exe, uid, all->root, kind_names[e->kind], where, path, NULL };
	_close_ int cursor = e->kind == KIND_METRICS ? open("/dev/null", O_RDWR | O_CLOEXEC) : cursor_file(e);
	int pair[2] = { -1, -1 }, r = cursor < 0 ? cursor : target_write(e, where, path);

	if (r == 0)
		r = spawn_pair(pair);
	if (r < 0)
		return r;
	snprintf(uid, sizeof(uid), "%u", all->config.uid);
	r = spawn_into(NULL, argv, (const int[]){ pair[1], cursor }, EXPORT_FD_END - LINK_FD, &e->pid);
	close(pair[1]);
	e->link = pair[0];
	if (r < 0) {
		e->pid = 0;
		close(e->link);
		return r;
	}
	r = loop_watch(all->config.loop, e->link, EPOLLIN, on_link, e);
	if (r < 0) {
		close(e->link);
		spawn_end(e->pid);
		e->pid = 0;
	}
	return r;
}

static void exporter_start(struct exporter *e)
{
	uint64_t now = loop_now_ns(), wait = e->failures ? BACKOFF_MS : 0;
	int r;

	if (!e->where || e->pid) {
		if (e->ready && now - e->start_ns > HEALTHY_MS * UINT64_C(1000000))
			e->failures = 0;
		return;
	}
	for (unsigned i = 1; i < e->failures && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	if (e->starts && now - e->start_ns < wait * 1000000)
		return;
	e->start_ns = now;
	e->starts++;
	r = exporter_spawn(e);
	if (r < 0 && !e->failures++)
		log_warning("%s at %s: %s", kind_names[e->kind], e->where, strerror(-r));
}

static void on_tick(void *data)
{
	struct exporters *exporters = data;

	for (unsigned i = 0; i < KIND_COUNT; i++)
		exporter_start(&exporters->of[i]);
}

void exporters_policy(struct exporters *exporters, const struct policy *policy, uint64_t after)
{
	const struct exports *exports = &policy->exports;
	const char *const journal = exports->no_journald ? NULL : exporters->config.journal;
	const char *const wanted[KIND_COUNT] = { exports->metrics, exports->otlp,
						 exports->journald ? exports->journald : journal };

	for (unsigned i = 0; i < KIND_COUNT; i++) {
		struct exporter *e = &exporters->of[i];

		if ((!e->where && !wanted[i]) || (e->where && wanted[i] && !strcmp(e->where, wanted[i])))
			continue;
		exporter_drop(e);
		free(e->where);
		e->where = wanted[i] ? strdup(wanted[i]) : NULL;
		e->failures = 0;
		e->after = after;
		if (wanted[i] && !e->where)
			log_error("%s at %s cannot be started: out of memory", kind_names[i], wanted[i]);
		e->starts = 0; /* at once */
		exporter_start(e);
	}
}

int exporters_new(const struct exporters_config *config, struct exporters **ret)
{
	_free_ struct exporters *exporters = calloc(1, sizeof(*exporters));
	int r;

	if (!exporters)
		return -ENOMEM;
	exporters->config = *config;
	for (unsigned i = 0; i < KIND_COUNT; i++)
		exporters->of[i] = (struct exporter){ .exporters = exporters, .kind = i, .link = -1 };
	r = fs_beside(exporters->exe, "netpawl-export");
	if (r == 0)
		r = fs_path(exporters->root, "%s", config->root);
	if (r == 0)
		r = fs_path(exporters->dir, "%s", config->dir);
	if (r == 0)
		r = fs_mkdir_all(exporters->dir, 0700);
	if (r == 0)
		r = loop_every(config->loop, TICK_MS, on_tick, exporters);
	if (r < 0)
		return r;
	*ret = take_ptr(exporters);
	return 0;
}

void exporters_free(struct exporters *exporters)
{
	for (unsigned i = 0; exporters && i < KIND_COUNT; i++) {
		exporter_drop(&exporters->of[i]);
		free(exporters->of[i].where);
	}
	free(exporters);
}

void exporters_describe(const struct exporters *exporters, struct buf *out)
{
	json_open_array(out, "exports");
	for (unsigned i = 0; i < KIND_COUNT; i++) {
		const struct exporter *e = &exporters->of[i];

		if (!e->where)
			continue;
		json_open_object(out, NULL);
		json_put_text(out, "export", kind_names[i], SIZE_MAX);
		json_put_text(out, "to", e->where, SIZE_MAX);
		json_put_bool(out, "ready", e->ready);
		json_put_number(out, "starts", e->starts);
		if (i != KIND_METRICS) {
			json_put_number(out, "acked", e->state.acked ? e->state.acked : e->before.acked);
			json_put_number(out, "sent", e->before.sent + e->state.sent);
			json_put_number(out, "failures", e->before.failures + e->state.failures);
			json_put_number(out, "rejected", e->before.rejected + e->state.rejected);
			json_put_number(out, "gaps", e->before.gaps + e->state.gaps);
		}
		json_close_object(out);
	}
	json_close_array(out);
}

static void family_put(const struct exporters *exporters, struct buf *out, const char *name, const char *help,
		       size_t at)
{
	metric_family(out, name, METRIC_COUNTER, help);
	for (unsigned i = KIND_OTLP; i < KIND_COUNT; i++) {
		const struct exporter *e = &exporters->of[i];
		uint64_t before, now;

		memcpy(&before, (const char *)&e->before + at, sizeof(before));
		memcpy(&now, (const char *)&e->state + at, sizeof(now));
		if (e->where)
			metric_put(out, name, before + now, "export", kind_names[i], NULL);
	}
}

void exporters_metrics(const struct exporters *exporters, struct buf *out)
{
	metric_family(out, "netpawl_export_up", METRIC_GAUGE, "1: the exporter runs that the policy asks for.");
	for (unsigned i = 0; i < KIND_COUNT; i++)
		if (exporters->of[i].where)
			metric_put(out, "netpawl_export_up", exporters->of[i].ready, "export", kind_names[i], NULL);
	family_put(exporters, out, "netpawl_exported_events_total", "Events that a receiver has taken.",
		   offsetof(struct export_state, sent));
	family_put(exporters, out, "netpawl_export_failures_total", "Attempts to hand events over that failed.",
		   offsetof(struct export_state, failures));
	family_put(exporters, out, "netpawl_export_rejected_total", "Events that a receiver does not want.",
		   offsetof(struct export_state, rejected));
	family_put(exporters, out, "netpawl_export_missed_total",
		   "Events that the record had no more when they could have been handed over.",
		   offsetof(struct export_state, gaps));
}
