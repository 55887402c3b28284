/* SPDX-License-Identifier: MIT */
/* Inspector processes: started, sent to, received from, ended. */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "supervisor/spawn.h"

#define SLICE_BYTES (16u << 10) /* some twenty reports, a tenth of a millisecond's */

static void steering_update(struct supervisor *w)
{
	bool steering = supervisor_ready(w) > 0;

	if (steering == w->steering)
		return;
	w->steering = steering;
	if (kernel_inspector_set(w->config.kernel, NULL, steering ? &w->sockets : NULL) < 0)
		log_error("the gate does not take the inspector");
	namespaces_steer(w);
}

static unsigned index_of(const struct process *p)
{
	return (unsigned)(p - p->supervisor->processes);
}

void process_drop(struct process *p)
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

void finish_check(struct supervisor *w)
{
	bool running = !w->finish_ns;

	for (unsigned i = 0; i < w->config.count; i++)
		running |= w->processes[i].pid != 0;
	if (!running)
		w->config.on_finished(w->config.data);
}

void process_end(struct process *p, const char *why)
{
	struct supervisor *w = p->supervisor;
	bool was_ready = p->ready;

	if (!p->pid)
		return;
	if (!w->finish_ns)
		log_warning("inspector %d ended: %s", (int)p->pid, why);
	else
		log_debug("inspector %d has finished: %s", (int)p->pid, why);
	process_drop(p);
	p->failures++;
	p->start_ns = loop_now_ns();
	steering_update(w);
	if (w->recovered && !supervisor_ready(w))
		readiness_lose(&w->readiness, p->start_ns);
	if (!was_ready)
		readiness_fail(&w->readiness, why);
}

void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd)
{
	int r;

	p->supervisor->sync_asked = false; /* its answer would not cover this message */
	r = p->pid ? link_send_patiently(p->link, type, data, len, fd, SYNC_MS) : 0;
	if (r < 0)
		process_end(p, strerror(-r));
}

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
		readiness_gain(&w->readiness);
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
	case LINK_ASK:
		return asks_learn(p, data, len);
	case LINK_LEAK:
		return leaks_learn(p, data, len);
	case LINK_REQUESTS:
		return 0; /* it has woken us: supervisor_receive() comes when whoever reads this is done */
	default:
		return -EPROTO;
	}
}

/* A worker that floods us has to wait like everybody. */
bool process_read(struct process *p, unsigned most)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));

	for (unsigned i = 0; p->pid && i < most; i++) {
		enum link_type type;
		size_t len;
		int r = link_receive(p->link, &type, data, &len, NULL);

		if (r == 0)
			r = message_take(p, type, data, len);
		if (r == -EAGAIN)
			return false;
		if (r < 0)
			process_end(p, r == -EPIPE ? "it is gone" : strerror(-r));
	}
	return p->pid;
}

/* Takes reports of one, up to so many bytes; of one that is gone all that it left. */
static void process_reports_take(struct process *p, uint64_t most)
{
	struct supervisor *w = p->supervisor;
	const unsigned index = (unsigned)(p - w->processes);

	if (p->pid && ledgers_drain(w->ledgers, index, most) < 0)
		process_end(p, "its ledger is nonsense");
	if (p->unreset)
		ledgers_reset(w->ledgers, index);
}

void supervisor_report(struct supervisor *w)
{
	for (unsigned i = 0; i < w->config.count; i++)
		process_reports_take(&w->processes[i], NP_LEDGER_RING); /* what one held for answers waits */
	briefing_leave(w);
}

/* Takes reports of each, up to so many bytes, and what they ask. True: there are more reports. */
static bool reports_take(struct supervisor *w, uint64_t most)
{
	bool more = false;

	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		process_reports_take(p, most);
		if (p->unreset)
			asks_lose(p);
		p->unreset = false;
		more |= p->pid && ledgers_unread(w->ledgers, i);
	}
	asks_receive(w);
	leaks_receive(w);
	return more;
}

void supervisor_receive(struct supervisor *w)
{
	reports_take(w, NP_LEDGER_RING);
	briefing_leave(w);
}

void supervisor_receive_some(void *data)
{
	struct supervisor *w = data;
	bool more = reports_take(w, SLICE_BYTES);

	if (more)
		loop_later(w->config.loop, &w->receive);
	/* Once around a ring, what was in it before is handled, however fast others come. */
	if (more && ++w->slices < NP_LEDGER_RING / SLICE_BYTES)
		return;
	w->slices = 0;
	briefing_leave(w);
}

static void on_link(void *data, uint32_t events)
{
	struct process *p = data;

	(void)events;
	process_read(p, 256);
	supervisor_receive_some(p->supervisor);
	finish_check(p->supervisor);
}

static void process_brief(struct process *p)
{
	int fd = -1;

	if (batch_make(p->supervisor, false, &fd) < 0) {
		process_end(p, "it could not be told what there is");
		return;
	}
	secrets_send(p);
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

int process_start(struct process *p)
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
	process_send(p, LINK_PROXY_LOGINS, &w->proxy_logins, sizeof(w->proxy_logins), -1);
	process_send(p, LINK_POLICY, NULL, 0, w->policy);
	namespaces_send(p);
	if (w->recovered)
		process_brief(p);
	return 0;
}
