/* SPDX-License-Identifier: MIT */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "supervisor/config_blobs.h"
#include "vocab/limits.h"

#define SETTLE_MS      500   /* who waits for counts waits no longer */
#define POLICY_MS      3000  /* to read a policy of 100,000 rules, on a busy machine */
#define HEALTHY_MS     10000 /* a worker that lived so long starts with a clean record */
#define BACKOFF_MS     100   /* before the first restart; doubled up to the next */
#define BACKOFF_MAX_MS 5000
#define READY_MESSAGES 64

static int sockets_make(struct supervisor *w)
{
	w->sockets_of = kernel_inspector_cgroup_id(w->config.kernel);
	return netns_listen_here(kernel_inspector_cgroup(w->config.kernel), &w->sockets);
}

/* Their cgroup was removed and made again: the gate takes only sockets of the new one. */
static void sockets_renew(struct supervisor *w)
{
	if (w->sockets_of == kernel_inspector_cgroup_id(w->config.kernel))
		return;
	supervisor_stop(w);
	inspector_sockets_close(&w->sockets);
	namespaces_unlisten(w);
	namespaces_listen(w);
	if (sockets_make(w) < 0)
		w->sockets_of = 0; /* the next tick tries again */
}

static void on_tick(void *data)
{
	struct supervisor *w = data;
	uint64_t now = loop_now_ns();

	sockets_renew(w);
	cas_request(w);
	supervisor_receive_some(w);
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
			readiness_fail(&w->readiness, strerror(-r));
			p->failures++;
		}
	}
	finish_check(w);
}

unsigned supervisor_ready(const struct supervisor *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->config.count; i++)
		n += w->processes[i].ready;
	return n;
}

const char *supervisor_unready(struct supervisor *w)
{
	return w->config.count && !w->finish_ns ? readiness_problem(&w->readiness, loop_now_ns()) : NULL;
}

static bool is_starting(const struct process *p)
{
	return p->pid && !p->ready;
}

static bool is_behind(const struct process *p)
{
	return p->pid && p->ready && p->synced != p->supervisor->sync;
}

/* Reads what they say for as long as they wait, and no longer than that. What is there when the time is over is read all the
 * same: the time may have gone by with another of them, or it was this process that had to wait for a CPU. */
static void receive_all(struct supervisor *w, bool (*waits)(const struct process *p), unsigned ms, const char *else_end)
{
	uint64_t deadline = loop_now_ns() + ms * 1000000ull;

	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		for (bool over = false; waits(p) && !over;) {
			struct pollfd fd = { .fd = p->link, .events = POLLIN };
			uint64_t now = loop_now_ns();

			over = now >= deadline;
			if (poll(&fd, 1, over ? 0 : (int)((deadline - now) / 1000000) + 1) > 0)
				process_read(p, 64);
		}
		if (else_end && waits(p))
			process_end(p, else_end);
	}
}

void supervisor_await(struct supervisor *w, unsigned ms)
{
	receive_all(w, is_starting, ms, NULL);
}

/* One that was starting when it was last heard may have said since that it is ready, and take connections: who waits for all that take
 * connections has to look. One that has not said so by now has accepted nothing, and will have done what it was sent by now before it does:
 * it says so as soon as it listens, and then reads all that there is (worker_drain()). */
static void ready_look(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		/* It has nothing else to say before: behind so many messages nobody looks for that one. */
		if (is_starting(p) && process_read(p, READY_MESSAGES) && is_starting(p))
			process_end(p, "it says too much before it takes connections");
	}
}

/* Sends the next number to all that take connections: they send it back when they have done what they were sent before it. */
static void number_send(struct supervisor *w, enum link_type type, uint32_t *number)
{
	ready_look(w);
	++*number;
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].ready)
			process_send(&w->processes[i], type, number, sizeof(*number), -1);
}

void supervisor_sync_begin(struct supervisor *w)
{
	number_send(w, LINK_SYNC, &w->sync);
	w->sync_asked = true;
}

static void sync_within(struct supervisor *w, unsigned ms)
{
	if (!w->sync_asked)
		supervisor_sync_begin(w);
	w->sync_asked = false;
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
	number_send(w, LINK_SETTLE, &w->settle);
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

int supervisor_policy(struct supervisor *w, const struct buf *policy, const struct link_proxy_logins *logins)
{
	int fd, r = link_blob(policy->data, policy->len, &fd);

	if (r < 0)
		return r;
	close(w->policy);
	w->policy = fd;
	w->proxy_logins = *logins;
	send_all(w, LINK_PROXY_LOGINS, &w->proxy_logins, sizeof(w->proxy_logins), -1);
	secrets_send_all(w); /* of the policy that comes: it finds them there */
	send_all(w, LINK_POLICY, NULL, 0, w->policy);
	sync_within(w, POLICY_MS);
	return 0;
}

/* -- start --------------------------------------------------------------------------------- */

static bool cgroup_is_there(void *data, uint64_t cgroup_id)
{
	return kernel_cgroup_is_there(data, cgroup_id);
}

int supervisor_new(const struct supervisor_config *config, const struct buf *policy,
		   const struct link_proxy_logins *logins, struct supervisor **ret)
{
	struct supervisor *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->config = *config;
	w->proxy_logins = *logins;
	w->sockets = NO_INSPECTOR_SOCKETS;
	w->settings = w->roots = w->policy = w->cas_dir = -1;
	w->receive = (struct loop_task){ .fn = supervisor_receive_some, .data = w };
	TAILQ_INIT(&w->cas_wanted);
	TAILQ_INIT(&w->cas_requested);
	TAILQ_INIT(&w->asks);
	TAILQ_INIT(&w->leaks);
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
	if (r == 0) {
		namespaces_listen(w);
		ways_out_find(&w->ways_out, cgroup_is_there, config->kernel);
	}
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

void supervisor_way_out(struct supervisor *w, bool wanted)
{
	ways_out_want(&w->ways_out, wanted);
}

int supervisor_way_out_check(struct supervisor *w, bool *ret_shut)
{
	int r = ways_out_check(&w->ways_out);

	*ret_shut = w->ways_out.shut;
	return r;
}

const char *supervisor_way_out_problem(const struct supervisor *w)
{
	return w->ways_out.wanted ? w->ways_out.problem : NULL;
}

void supervisor_free(struct supervisor *w)
{
	if (!w)
		return;
	loop_cancel(w->config.loop, &w->receive);
	kernel_inspector_set(w->config.kernel, NULL, NULL);
	for (unsigned i = 0; i < w->config.count; i++)
		process_drop(&w->processes[i]);
	briefing_clear(w);
	debug_clear(w);
	asks_clear(w);
	leaks_clear(w);
	ledgers_free(w->ledgers);
	inspector_sockets_close(&w->sockets);
	namespaces_unlisten(w);
	if (w->ways_out.wanted)
		ways_out_want(&w->ways_out, false);
	cleanup_close(&w->cas_dir);
	cleanup_close(&w->settings);
	cleanup_close(&w->roots);
	cleanup_close(&w->policy);
	explicit_bzero(&w->proxy_logins, sizeof(w->proxy_logins));
	free(w);
}
