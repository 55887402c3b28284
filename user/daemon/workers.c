/* SPDX-License-Identifier: MIT */
#include "daemon/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "daemon/blobs.h"
#include "daemon/spawn.h"
#include "session/table.h"

#define SYNC_MS	       200   /* a worker that takes longer than this is hung */
#define POLICY_MS      3000  /* to read a policy of 100,000 rules, on a busy machine */
#define CA_RETRY_MS    1000  /* until another worker is asked for an authority */
#define HEALTHY_MS     10000 /* a worker that lived so long starts with a clean record */
#define BACKOFF_MS     100   /* before the first restart; doubled up to the next */
#define BACKOFF_MAX_MS 5000

struct process {
	struct workers *workers;
	pid_t pid; /* 0: none */
	int link;
	bool ready;
	uint32_t synced; /* the last number it answered */
	unsigned failures;
	uint64_t start_ns; /* when it was started, or may be again */
};

/* What every worker must know: told again to one that starts. */
struct known {
	struct table_node node;
	struct link_box box;
};

struct authority {
	struct table_node node;
	unsigned boxes;
	const struct process *asked; /* who is to make it; nobody else is believed */
	uint64_t asked_ns;
	struct link_ca ca; /* len 0: not made yet */
};

struct workers {
	struct workers_config config;
	int listeners[2];
	int settings, roots, policy; /* blobs */
	char exe[FS_PATH_SIZE], root[FS_PATH_SIZE];
	uint64_t seed;
	struct table boxes, authorities;
	uint32_t sync;
	unsigned turn; /* whose turn it is to make an authority */
	uint64_t asked_ns;
	bool live; /* the gate steers */
	struct process processes[NP_WORKERS_MAX];
};

/* -- one process -------------------------------------------------------------------- */

static void live_update(struct workers *w)
{
	bool live = workers_ready(w) > 0;

	if (live == w->live)
		return;
	w->live = live;
	if (kernel_inspector_set(w->config.kernel, live ? w->listeners[0] : -1, live ? w->listeners[1] : -1) < 0)
		log_error("the gate does not take the inspector");
}

static void process_end(struct process *p, const char *why)
{
	struct workers *w = p->workers;

	if (!p->pid)
		return;
	loop_unwatch(w->config.loop, p->link);
	close(p->link);
	spawn_end(p->pid);
	log_warning("inspector %d ended: %s", (int)p->pid, why);
	p->pid = 0;
	p->ready = false;
	p->failures++;
	p->start_ns = loop_now_ns();
	live_update(w);
}

static void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd)
{
	int r = p->pid ? link_send_patiently(p->link, type, data, len, fd, SYNC_MS) : 0;

	if (r < 0)
		process_end(p, strerror(-r));
}

static void tell_all(struct workers *w, enum link_type type, const void *data, size_t len, int fd)
{
	for (unsigned i = 0; i < w->config.count; i++)
		process_send(&w->processes[i], type, data, len, fd);
}

static struct authority *authority_find(struct workers *w, const char *session)
{
	uint64_t hash = hash_text(w->seed, session);

	for (struct table_node *n = table_first(&w->authorities, hash); n; n = table_next(n)) {
		struct authority *a = container_of(n, struct authority, node);

		if (!strcmp(a->ca.session, session))
			return a;
	}
	return NULL;
}

static void authority_learn(struct process *from, const struct link_ca *told)
{
	struct workers *w = from->workers;
	struct authority *a;

	if (told->session[NP_LABEL_SIZE - 1] || !told->len || told->len > LINK_CA_BYTES ||
	    told->pem_len > LINK_CA_BYTES - told->len)
		return;
	a = authority_find(w, told->session);
	if (!a || a->ca.len || a->asked != from)
		return;
	a->ca = *told;
	tell_all(w, LINK_CA, &a->ca, sizeof(a->ca), -1);
}

/* Of the next worker in turn, if the last one that was asked has not answered for a while. */
static void authority_ask(struct workers *w, struct authority *a)
{
	uint64_t now = loop_now_ns();

	if (a->ca.len || (a->asked && now - a->asked_ns < CA_RETRY_MS * 1000000ull))
		return;
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[w->turn++ % w->config.count];

		if (!p->ready)
			continue;
		a->asked = p;
		a->asked_ns = now;
		process_send(p, LINK_MAKE_CA, &a->ca, sizeof(a->ca), -1);
		return;
	}
}

static void authorities_ask(struct workers *w)
{
	for (size_t i = 0; i < w->authorities.size; i++)
		for (struct table_node *n = w->authorities.buckets[i]; n; n = n->next)
			authority_ask(w, container_of(n, struct authority, node));
}

static int message_take(struct process *p, enum link_type type, const char *data, size_t len)
{
	struct workers *w = p->workers;

	switch (type) {
	case LINK_READY:
		p->ready = true;
		live_update(w);
		authorities_ask(w);
		return 0;
	case LINK_SYNC:
		if (len != sizeof(p->synced))
			return -EPROTO;
		memcpy(&p->synced, data, sizeof(p->synced));
		return 0;
	case LINK_CA:
		if (len != sizeof(struct link_ca))
			return -EPROTO;
		authority_learn(p, (const struct link_ca *)(const void *)data);
		return 0;
	case LINK_REQUEST:
		if (len != sizeof(struct link_request))
			return -EPROTO;
		w->config.on_request(w->config.data, (const struct link_request *)(const void *)data);
		return 0;
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

static void on_link(void *data, uint32_t events)
{
	(void)events;
	process_read(data, 256);
}

static void batch_add(struct buf *out, enum link_type type, const void *data, size_t len)
{
	struct link_message message = { .type = type, .len = (uint32_t)len };

	buf_append(out, &message, sizeof(message));
	buf_append(out, data, len);
}

/* Every sandbox and every authority, for a worker that starts: too much for a socket that nobody reads yet. */
static int batch_make(struct workers *w, int *ret_fd)
{
	_buf_ struct buf out = BUF_INIT(LINK_BATCH_MAX);
	int r;

	for (size_t i = 0; i < w->boxes.size; i++)
		for (struct table_node *n = w->boxes.buckets[i]; n; n = n->next)
			batch_add(&out, LINK_BOX, &container_of(n, struct known, node)->box, sizeof(struct link_box));
	for (size_t i = 0; i < w->authorities.size; i++)
		for (struct table_node *n = w->authorities.buckets[i]; n; n = n->next) {
			const struct authority *a = container_of(n, struct authority, node);

			if (a->ca.len)
				batch_add(&out, LINK_CA, &a->ca, sizeof(a->ca));
		}
	r = buf_error(&out) ? buf_error(&out) : link_blob(out.data ? out.data : "", out.len, ret_fd);
	if (out.data)
		explicit_bzero(out.data, out.len);
	return r;
}

static void process_brief(struct process *p)
{
	struct workers *w = p->workers;
	int fd = -1;

	process_send(p, LINK_SETTINGS, NULL, 0, w->settings);
	process_send(p, LINK_ROOTS, NULL, 0, w->roots);
	process_send(p, LINK_POLICY, NULL, 0, w->policy);
	if (batch_make(w, &fd) < 0) {
		process_end(p, "it could not be told what there is");
		return;
	}
	process_send(p, LINK_BATCH, NULL, 0, fd);
	close(fd);
}

static int process_start(struct process *p)
{
	struct workers *w = p->workers;
	char uid[16];
	const char *argv[] = { w->exe, uid, w->root, NULL };
	int pair[2], r;

	snprintf(uid, sizeof(uid), "%u", w->config.uid);
	p->start_ns = loop_now_ns();
	r = spawn_pair(pair);
	if (r < 0)
		return r;
	r = spawn_into(kernel_inspector_cgroup(w->config.kernel), argv,
		       (const int[]){ pair[1], w->listeners[0], w->listeners[w->listeners[1] >= 0] }, 3, &p->pid);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	p->link = pair[0];
	p->synced = w->sync;
	r = loop_watch(w->config.loop, p->link, EPOLLIN, on_link, p);
	if (r == 0)
		process_brief(p);
	return r;
}

static void on_tick(void *data)
{
	struct workers *w = data;
	uint64_t now = loop_now_ns();

	if (now - w->asked_ns > CA_RETRY_MS * 1000000ull) {
		w->asked_ns = now;
		authorities_ask(w);
	}
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];
		uint64_t wait = p->failures ? BACKOFF_MS : 0;
		int r;

		if (p->ready && now - p->start_ns > HEALTHY_MS * 1000000ull)
			p->failures = 0;

		for (unsigned k = 1; k < p->failures && wait < BACKOFF_MAX_MS; k++)
			wait *= 2;
		if (p->pid || now - p->start_ns < wait * 1000000)
			continue;
		r = process_start(p);
		if (r < 0) {
			log_error("%s: %s", w->exe, strerror(-r));
			p->failures++;
		}
	}
}

/* -- what they are told ----------------------------------------------------------------- */

unsigned workers_ready(const struct workers *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->config.count; i++)
		n += w->processes[i].ready;
	return n;
}

static struct known *known_find(struct workers *w, uint64_t cgroup_id)
{
	uint64_t hash = hash_number(w->seed, cgroup_id);

	for (struct table_node *n = table_first(&w->boxes, hash); n; n = table_next(n)) {
		struct known *known = container_of(n, struct known, node);

		if (known->box.cgroup_id == cgroup_id)
			return known;
	}
	return NULL;
}

static struct known *known_new(struct workers *w, uint64_t cgroup_id, const char *session)
{
	struct known *known = calloc(1, sizeof(*known));
	struct authority *a = authority_find(w, session);

	if (!a && table_reserve(&w->authorities) == 0 && (a = calloc(1, sizeof(*a)))) {
		memcpy(a->ca.session, session, strnlen(session, sizeof(a->ca.session) - 1));
		table_add(&w->authorities, &a->node, hash_text(w->seed, a->ca.session));
	}
	if (!known || !a || table_reserve(&w->boxes) < 0) {
		free(known);
		return NULL;
	}
	a->boxes++;
	known->box.cgroup_id = cgroup_id;
	memcpy(known->box.session, a->ca.session, sizeof(known->box.session));
	table_add(&w->boxes, &known->node, hash_number(w->seed, cgroup_id));
	authority_ask(w, a);
	return known;
}

void workers_box(struct workers *w, uint64_t cgroup_id, const char *session, const struct rung *rung)
{
	struct known *known = known_find(w, cgroup_id);

	if (!known)
		known = known_new(w, cgroup_id, session);
	if (!known)
		return; /* the inspector resets what it does not know */
	known->box.level = rung->level;
	known->box.mode = rung->mode;
	known->box.generation = rung->generation;
	known->box.reads_only = rung->reads_only;
	tell_all(w, LINK_BOX, &known->box, sizeof(known->box), -1);
}

void workers_gone(struct workers *w, uint64_t cgroup_id)
{
	struct known *known = known_find(w, cgroup_id);
	struct authority *a = known ? authority_find(w, known->box.session) : NULL;

	if (!known)
		return;
	tell_all(w, LINK_GONE, &known->box, sizeof(known->box), -1);
	table_remove(&w->boxes, &known->node);
	free(known);
	if (a && --a->boxes == 0) {
		table_remove(&w->authorities, &a->node);
		explicit_bzero(a, sizeof(*a));
		free(a);
	}
}

void workers_await(struct workers *w, unsigned ms)
{
	uint64_t deadline = loop_now_ns() + ms * 1000000ull, now;

	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		while (p->pid && !p->ready && (now = loop_now_ns()) < deadline) {
			struct pollfd fd = { .fd = p->link, .events = POLLIN };

			if (poll(&fd, 1, (int)((deadline - now) / 1000000) + 1) > 0)
				process_read(p, 64);
		}
	}
}

static bool is_behind(const struct workers *w, const struct process *p)
{
	return p->pid && p->ready && p->synced != w->sync;
}

static void sync_within(struct workers *w, unsigned ms)
{
	uint64_t deadline = loop_now_ns() + ms * 1000000ull;

	w->sync++;
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].ready)
			process_send(&w->processes[i], LINK_SYNC, &w->sync, sizeof(w->sync), -1);
	for (unsigned i = 0; i < w->config.count; i++) {
		struct process *p = &w->processes[i];

		while (is_behind(w, p)) {
			struct pollfd fd = { .fd = p->link, .events = POLLIN };
			uint64_t now = loop_now_ns();

			if (now >= deadline || poll(&fd, 1, (int)((deadline - now) / 1000000) + 1) < 0)
				process_end(p, "it does not answer");
			else
				process_read(p, 64);
		}
	}
}

void workers_sync(struct workers *w)
{
	sync_within(w, SYNC_MS);
}

void workers_stop(struct workers *w)
{
	for (unsigned i = 0; i < w->config.count; i++)
		process_end(&w->processes[i], "stopped");
}

int workers_policy(struct workers *w, const struct buf *policy)
{
	int fd, r = link_blob(policy->data, policy->len, &fd);

	if (r < 0)
		return r;
	close(w->policy);
	w->policy = fd;
	tell_all(w, LINK_POLICY, NULL, 0, w->policy);
	sync_within(w, POLICY_MS);
	return 0;
}

int workers_ca(struct workers *w, const char *session, struct buf *out)
{
	const struct authority *a = authority_find(w, session);

	if (!a)
		return -ENOENT;
	if (!a->ca.len)
		workers_sync(w); /* it was asked for when the sandbox came */
	if (!a->ca.len)
		return -EAGAIN;
	buf_append(out, a->ca.data + a->ca.len, a->ca.pem_len);
	return buf_error(out);
}

/* -- start --------------------------------------------------------------------------------- */

int workers_new(const struct workers_config *config, const struct buf *policy, struct workers **ret)
{
	struct workers *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->config = *config;
	w->listeners[0] = w->listeners[1] = w->settings = w->roots = w->policy = -1;
	w->seed = loop_now_ns(); /* session names are an operator's */
	for (unsigned i = 0; i < config->count; i++)
		w->processes[i] = (struct process){ .workers = w, .link = -1 };
	r = fs_beside(w->exe, "netpawl-inspect");
	if (r == 0)
		r = fs_path(w->root, "%s", config->root);
	if (r == 0)
		r = fs_mkdir_all(w->root, 0555);
	if (r == 0)
		r = spawn_listeners(kernel_inspector_cgroup(config->kernel), w->listeners);
	if (r == 0)
		r = blob_settings(config->resolvers, &w->settings);
	if (r == 0)
		r = blob_roots(config->roots, &w->roots);
	if (r == 0)
		r = link_blob(policy->data, policy->len, &w->policy);
	if (r == 0)
		r = loop_every(config->loop, 50, on_tick, w);
	if (r < 0) {
		workers_free(w);
		return r;
	}
	on_tick(w);
	*ret = w;
	return 0;
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].pid) {
			loop_unwatch(w->config.loop, w->processes[i].link);
			close(w->processes[i].link);
			spawn_end(w->processes[i].pid);
		}
	kernel_inspector_set(w->config.kernel, -1, -1);
	for (size_t i = 0; i < w->boxes.size; i++)
		while (w->boxes.buckets[i])
			workers_gone(w, container_of(w->boxes.buckets[i], struct known, node)->box.cgroup_id);
	table_clear(&w->boxes);
	table_clear(&w->authorities);
	for (size_t i = 0; i < 2; i++)
		cleanup_close(&w->listeners[i]);
	cleanup_close(&w->settings);
	cleanup_close(&w->roots);
	cleanup_close(&w->policy);
	free(w);
}
