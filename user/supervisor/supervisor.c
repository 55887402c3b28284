/* SPDX-License-Identifier: MIT */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "supervisor/config_blobs.h"
#include "supervisor/spawn.h"
#include "vocab/limits.h"

#define SYNC_MS	       1000  /* a worker that takes longer than this is hung; less a busy machine may make one wait */
#define SETTLE_MS      500   /* who waits for counts waits no longer */
#define POLICY_MS      3000  /* to read a policy of 100,000 rules, on a busy machine */
#define HEALTHY_MS     10000 /* a worker that lived so long starts with a clean record */
#define BACKOFF_MS     100   /* before the first restart; doubled up to the next */
#define BACKOFF_MAX_MS 5000

/* -- one process -------------------------------------------------------------------- */

static void steering_update(struct supervisor *w)
{
	bool steering = supervisor_ready(w) > 0;

	if (steering == w->steering)
		return;
	w->steering = steering;
	if (kernel_inspector_set(w->config.kernel, steering ? &w->sockets : NULL) < 0)
		log_error("the gate does not take the inspector");
}

static unsigned index_of(const struct process *p)
{
	return (unsigned)(p - p->supervisor->processes);
}

static void process_drop(struct process *p)
{
	if (!p->pid)
		return;
	loop_unwatch(p->supervisor->config.loop, p->link);
	close(p->link);
	spawn_end(p->pid);
	p->pid = 0;
	p->ready = false;
	p->unreset = true;
	cas_unrequest(p);
}

static void finish_check(struct supervisor *w)
{
	bool running = !w->finish_ns;

	for (unsigned i = 0; i < w->config.count; i++)
		running |= w->processes[i].pid != 0;
	if (!running)
		w->config.on_finished(w->config.data);
}

static void process_end(struct process *p, const char *why)
{
	if (!p->pid)
		return;
	if (!p->supervisor->finish_ns)
		log_warning("inspector %d ended: %s", (int)p->pid, why);
	else
		log_debug("inspector %d has finished: %s", (int)p->pid, why);
	process_drop(p);
	p->failures++;
	p->start_ns = loop_now_ns();
	steering_update(p->supervisor);
}

void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd)
{
	int r = p->pid ? link_send_patiently(p->link, type, data, len, fd, SYNC_MS) : 0;

	if (r < 0)
		process_end(p, strerror(-r));
}

/* Before all is known nobody is told anything: each is told all of it in one piece, see processes_brief(). */
void send_others(struct supervisor *w, const struct process *but, enum link_type type, const void *data, size_t len,
		 int fd)
{
	if (!w->recovered)
		return;
	for (unsigned i = 0; i < w->config.count; i++)
		if (&w->processes[i] != but)
			process_send(&w->processes[i], type, data, len, fd);
}

void send_all(struct supervisor *w, enum link_type type, const void *data, size_t len, int fd)
{
	send_others(w, NULL, type, data, len, fd);
}

static int message_take(struct process *p, enum link_type type, const char *data, size_t len)
{
	struct supervisor *w = p->supervisor;

	switch (type) {
	case LINK_READY:
		p->ready = true;
		log_debug("inspector %d takes connections, %llu ms after its start", (int)p->pid,
			  (unsigned long long)((loop_now_ns() - p->start_ns) / 1000000));
		steering_update(w);
		cas_request(w);
		return 0;
	case LINK_SYNC:
	case LINK_SETTLE:
		if (len != sizeof(p->synced))
			return -EPROTO;
		memcpy(type == LINK_SYNC ? &p->synced : &p->settled, data, sizeof(p->synced));
		return 0;
	case LINK_CA:
		if (len != sizeof(struct link_ca))
			return -EPROTO;
		ca_learn(p, (const struct link_ca *)(const void *)data);
		return 0;
	case LINK_NAME:
		if (len != sizeof(struct link_name))
			return -EPROTO;
		names_learn(p, (const struct link_name *)(const void *)data);
		return 0;
	case LINK_LEFT:
		if (len != sizeof(struct link_sandbox))
			return -EPROTO;
		left_learn(w, (const struct link_sandbox *)(const void *)data);
		return 0;
	case LINK_DEBUG:
		return debug_learn(p, data, len);
	case LINK_REQUESTS:
		return 0; /* it has woken us: supervisor_receive() comes when whoever reads this is done */
	default:
		return -EPROTO;
	}
}

/* At most so many at once: a worker that floods us has to wait like everybody. */
static void process_read(struct process *p, unsigned most)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));

	for (unsigned i = 0; p->pid && i < most; i++) {
		enum link_type type;
		size_t len;
		int r = link_receive(p->link, &type, data, &len, NULL);

		if (r == 0)
			r = message_take(p, type, data, len);
		if (r == -EAGAIN)
			return;
		if (r < 0)
			process_end(p, r == -EPIPE ? "it is gone" : strerror(-r));
	}
}

void supervisor_receive(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		if (p->pid && ledgers_drain(w->ledgers, i) < 0)
			process_end(p, "its ledger is nonsense");
		if (p->unreset)
			ledgers_reset(w->ledgers, i); /* what it left */
		p->unreset = false;
	}
	briefing_leave(w);
}

static void on_link(void *data, uint32_t events)
{
	struct process *p = data;

	(void)events;
	process_read(p, 256);
	supervisor_receive(p->supervisor);
	finish_check(p->supervisor);
}

static void process_brief(struct process *p)
{
	int fd = -1;

	if (batch_make(p->supervisor, false, &fd) < 0) {
		process_end(p, "it could not be told what there is");
		return;
	}
	process_send(p, LINK_BATCH, NULL, 0, fd);
	if (p->pid)
		log_debug("inspector %d was briefed, %lld bytes of sandboxes, CAs and names", (int)p->pid,
			  (long long)lseek(fd, 0, SEEK_END));
	close(fd);
}

void processes_brief(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].pid)
			process_brief(&w->processes[i]);
}

static int process_start(struct process *p)
{
	struct supervisor *w = p->supervisor;
	const struct inspector_sockets *s = &w->sockets;
	bool has6 = s->tcp[1] >= 0;
	int fds[LINK_FD_END - LINK_FD];
	char uid[16];
	const char *argv[] = { w->exe, uid, w->root, NULL };
	int pair[2], r;

	snprintf(uid, sizeof(uid), "%u", w->config.uid);
	p->start_ns = loop_now_ns();
	r = spawn_pair(pair);
	if (r < 0)
		return r;
	fds[LINK_FD - LINK_FD] = pair[1];
	fds[LINK_FD_TCP4 - LINK_FD] = s->tcp[0];
	fds[LINK_FD_TCP6 - LINK_FD] = s->tcp[has6];
	fds[LINK_FD_DNS4 - LINK_FD] = s->dns[0];
	fds[LINK_FD_DNS6 - LINK_FD] = s->dns[has6];
	fds[LINK_FD_DNS_ORIGINS - LINK_FD] = kernel_dns_origins_fd(w->config.kernel);
	r = spawn_into(kernel_inspector_cgroup(w->config.kernel), argv, fds, ARRAY_SIZE(fds), &p->pid);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	p->link = pair[0];
	p->synced = w->sync;
	p->settled = w->settle;
	r = loop_watch(w->config.loop, p->link, EPOLLIN, on_link, p);
	if (r < 0) { /* nobody would hear it: the next tick tries another */
		process_drop(p);
		return r;
	}
	log_debug("inspector %d was started", (int)p->pid);
	process_send(p, LINK_LEDGER, NULL, 0, ledgers_fd(w->ledgers, index_of(p)));
	process_send(p, LINK_SETTINGS, NULL, 0, w->settings);
	process_send(p, LINK_ROOTS, NULL, 0, w->roots);
	process_send(p, LINK_POLICY, NULL, 0, w->policy);
	if (w->recovered)
		process_brief(p);
	return 0;
}

static int sockets_make(struct supervisor *w)
{
	w->sockets_of = kernel_inspector_cgroup_id(w->config.kernel);
	return spawn_sockets(kernel_inspector_cgroup(w->config.kernel), &w->sockets);
}

static void sockets_close(struct supervisor *w)
{
	for (size_t i = 0; i < 2; i++) {
		cleanup_close(&w->sockets.tcp[i]);
		cleanup_close(&w->sockets.dns[i]);
	}
	w->sockets = (struct inspector_sockets){ .tcp = { -1, -1 }, .dns = { -1, -1 } };
}

/* Their cgroup was removed and made again: the gate takes only sockets of the new one. */
static void sockets_renew(struct supervisor *w)
{
	if (w->sockets_of == kernel_inspector_cgroup_id(w->config.kernel))
		return;
	supervisor_stop(w);
	sockets_close(w);
	if (sockets_make(w) < 0)
		w->sockets_of = 0; /* the next tick tries again */
}

static void on_tick(void *data)
{
	struct supervisor *w = data;
	uint64_t now = loop_now_ns();

	sockets_renew(w);
	cas_request(w);
	supervisor_receive(w);
	debug_tick(w);
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];
		uint64_t wait = p->failures ? BACKOFF_MS : 0;
		int r;

		cas_catch_up(p);
		if (p->ready && now - p->start_ns > HEALTHY_MS * 1000000ull)
			p->failures = 0;
		if (w->finish_ns && now > w->finish_ns)
			process_end(p, "it did not finish in time");

		for (unsigned k = 1; k < p->failures && wait < BACKOFF_MAX_MS; k++)
			wait *= 2;
		if (p->pid || p->unreset || w->finish_ns || w->sockets.tcp[0] < 0 || now - p->start_ns < wait * 1000000)
			continue;
		r = process_start(p);
		if (r < 0) {
			log_error("%s: %s", w->exe, strerror(-r));
			p->failures++;
		}
	}
	finish_check(w);
}

/* -- what they are told ----------------------------------------------------------------- */

unsigned supervisor_ready(const struct supervisor *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->config.count; i++)
		n += w->processes[i].ready;
	return n;
}

static bool is_starting(const struct process *p)
{
	return p->pid && !p->ready;
}

static bool is_behind(const struct process *p)
{
	return p->pid && p->ready && p->synced != p->supervisor->sync;
}

/* Reads what they say for as long as they wait, and no longer than that. */
static void receive_all(struct supervisor *w, bool (*waits)(const struct process *p), unsigned ms, const char *else_end)
{
	uint64_t deadline = loop_now_ns() + ms * 1000000ull;

	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		while (waits(p)) {
			struct pollfd fd = { .fd = p->link, .events = POLLIN };
			uint64_t now = loop_now_ns();

			if (now < deadline && poll(&fd, 1, (int)((deadline - now) / 1000000) + 1) >= 0)
				process_read(p, 64);
			else if (else_end)
				process_end(p, else_end);
			else
				break;
		}
	}
}

void supervisor_await(struct supervisor *w, unsigned ms)
{
	receive_all(w, is_starting, ms, NULL);
}

static void sync_within(struct supervisor *w, unsigned ms)
{
	w->sync++;
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].ready)
			process_send(&w->processes[i], LINK_SYNC, &w->sync, sizeof(w->sync), -1);
	receive_all(w, is_behind, ms, "it does not answer");
}

void supervisor_sync(struct supervisor *w)
{
	sync_within(w, SYNC_MS);
}

static bool is_unsettled(const struct process *p)
{
	return p->pid && p->ready && p->settled != p->supervisor->settle;
}

void supervisor_settle(struct supervisor *w)
{
	w->settle++;
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].ready)
			process_send(&w->processes[i], LINK_SETTLE, &w->settle, sizeof(w->settle), -1);
	receive_all(w, is_unsettled, SETTLE_MS, NULL);
	supervisor_receive(w);
}

unsigned supervisor_cut(struct supervisor *w)
{
	uint64_t now = ledgers_cut(w->ledgers), before = w->cut;

	w->cut = now;
	return now > before && now - before < NP_WORKERS_MAX * NP_CONNS_MAX ? (unsigned)(now - before) : 0;
}

bool supervisor_keeps_cas(const struct supervisor *w)
{
	return w->cas_kept;
}

struct ledgers *supervisor_ledgers(struct supervisor *w)
{
	return w->ledgers;
}

void supervisor_finish(struct supervisor *w)
{
	if (w->finish_ns)
		return;
	w->finish_ns = loop_now_ns() + (NP_DRAIN_MS + SYNC_MS) * 1000000ull;
	send_all(w, LINK_STOP, NULL, 0, -1);
	finish_check(w);
}

void supervisor_stop(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++)
		process_end(&w->processes[i], "stopped");
}

int supervisor_policy(struct supervisor *w, const struct buf *policy)
{
	int fd, r = link_blob(policy->data, policy->len, &fd);

	if (r < 0)
		return r;
	close(w->policy);
	w->policy = fd;
	send_all(w, LINK_POLICY, NULL, 0, w->policy);
	sync_within(w, POLICY_MS);
	return 0;
}

/* -- start --------------------------------------------------------------------------------- */

int supervisor_new(const struct supervisor_config *config, const struct buf *policy, struct supervisor **ret)
{
	struct supervisor *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->config = *config;
	w->sockets = (struct inspector_sockets){ .tcp = { -1, -1 }, .dns = { -1, -1 } };
	w->settings = w->roots = w->policy = w->cas_dir = -1;
	TAILQ_INIT(&w->cas_wanted);
	TAILQ_INIT(&w->cas_requested);
	for (unsigned i = 0; i < config->count; i++)
		w->processes[i] = (struct process){ .supervisor = w, .link = -1 };
	w->config.ledgers.count = config->count;
	w->config.ledgers.data = config->data;
	r = fs_beside(w->exe, "netpawl-inspect");
	if (r == 0)
		r = hash_key_make(&w->key);
	if (r == 0)
		r = fs_path(w->root, "%s", config->root);
	if (r == 0)
		r = fs_path(w->names_dir, "%s", config->names);
	if (r == 0)
		r = fs_mkdir_all(w->names_dir, 0700);
	if (r == 0)
		r = cas_open(w, config->cas);
	if (r == 0)
		r = fs_mkdir_all(w->root, 0555);
	if (r == 0)
		r = ledgers_new(&w->config.ledgers, &w->ledgers);
	if (r == 0)
		w->cut = ledgers_cut(w->ledgers);
	if (r == 0)
		r = sockets_make(w);
	if (r == 0)
		r = blob_settings(config->resolvers, &w->settings);
	if (r == 0)
		r = blob_roots(config->roots, &w->roots);
	if (r == 0)
		r = link_blob(policy->data, policy->len, &w->policy);
	if (r == 0)
		r = loop_every(config->loop, 50, on_tick, w);
	if (r < 0) {
		supervisor_free(w);
		return r;
	}
	on_tick(w);
	*ret = w;
	return 0;
}

void supervisor_free(struct supervisor *w)
{
	if (!w)
		return;
	kernel_inspector_set(w->config.kernel, NULL);
	for (unsigned i = 0; i < w->config.count; i++)
		process_drop(&w->processes[i]);
	briefing_clear(w);
	debug_clear(w);
	ledgers_free(w->ledgers);
	sockets_close(w);
	cleanup_close(&w->cas_dir);
	cleanup_close(&w->settings);
	cleanup_close(&w->roots);
	cleanup_close(&w->policy);
	free(w);
}
