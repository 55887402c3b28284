/* SPDX-License-Identifier: MIT */
/*
 * A whole control server on a socket in a directory of its own: the real service, store and event log on a gate that
 * does nothing but say yes. It runs in a thread; the tests are its clients.
 */
#pragma once

/* Waits that a test can sit out. */
#include "vocab/limits.h"
#undef NP_CLIENT_TIMEOUT_S
#define NP_CLIENT_TIMEOUT_S 2
#undef NP_REQUEST_S
#define NP_REQUEST_S 4
#undef NP_HEARTBEAT_S
#define NP_HEARTBEAT_S 1

#include "control/follow.c"
#include "control/server.c"

#include <ftw.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <cmocka.h>

static struct {
	char dir[64], socket[96];
	struct loop *loop;
	struct store *store;
	struct event_log *events;
	struct service *service;
	struct workspaces *workspaces;
	struct server *server;
	struct policy *policy;
	pthread_t thread;
	int stop_fd;
	uint64_t next_cgroup;
	struct gate_cgroup adopted; /* the last one */
	_Atomic bool sandboxed;	    /* what the daemon would say of every peer */
	_Atomic bool populated;	    /* of every cgroup */
	_Atomic unsigned flood;	    /* events to put at the next health call */
} world;

/* -- the gate ------------------------------------------------------------ */

static int gate_make(void *ctx, const char *id, struct gate_cgroup *ret)
{
	(void)ctx;
	*ret = (struct gate_cgroup){ .id = UINT64_C(9007199254740993) + world.next_cgroup++, .depth = 2 };
	snprintf(ret->path, sizeof(ret->path), "/sys/fs/cgroup/netpawl.slice/%s", id);
	return 0;
}

static int gate_inspect(void *ctx, const char *path, pid_t starting, struct gate_cgroup *ret, struct gate_problem *ret_problem)
{
	(void)ctx;
	(void)starting;
	if (strstr(path, "bad")) {
		ret_problem->reason = NP_R_BAD_CGROUP;
		snprintf(ret_problem->text, sizeof(ret_problem->text), "%s is bad", path);
		return -EINVAL;
	}
	if (!strcmp(path, world.adopted.path)) { /* the second look */
		*ret = world.adopted;
		return 0;
	}
	*ret = (struct gate_cgroup){ .id = 500 + world.next_cgroup++, .depth = 2 };
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	world.adopted = *ret;
	return 0;
}

static int gate_look(void *ctx, const struct gate_cgroup *cg, struct gate_problem *ret_problem)
{
	(void)ctx, (void)cg, (void)ret_problem;
	return 0;
}

static int gate_find(void *ctx, const char *path, struct gate_cgroup *ret)
{
	(void)ctx;
	if (strcmp(path, world.adopted.path) != 0)
		return -ENOENT;
	*ret = world.adopted;
	return 0;
}

static int gate_raise(void *ctx, const struct gate_cgroup *cg, const struct np_rung *rung, const char *session,
		      struct np_rung *ret)
{
	(void)ctx, (void)cg, (void)session;
	*ret = *rung;
	return 0;
}

static int gate_cgroup_ok(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx, (void)cg;
	return 0;
}

static int gate_cut(void *ctx, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut)
{
	(void)ctx, (void)ids, (void)why;
	*ret_cut = 3 * (unsigned)n;
	return 0;
}

static bool gate_populated(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx, (void)cg;
	return world.populated;
}

static int gate_retire(void *ctx, uint64_t id)
{
	(void)ctx, (void)id;
	return 0;
}

static int gate_each(void *ctx, int (*fn)(void *data, const struct gate_sandbox *box), void *data)
{
	(void)ctx, (void)fn, (void)data;
	return 0;
}

/* -- the daemon ---------------------------------------------------------- */

static void world_emit(void *data, struct event *event)
{
	event_log_put(data, event);
}

static void world_notice(void *data, const struct notice_facts *facts, struct buf *out)
{
	(void)data;
	notice_write(world.policy, facts, out);
}

static void world_policy(void *data, struct policy_loaded *ret)
{
	(void)data;
	*ret = (struct policy_loaded){ .policy = world.policy };
}

static void world_facts(void *data, struct daemon_facts *ret)
{
	(void)data;
	*ret = (struct daemon_facts){
		.netns = "4026", .run_dir = "/r", .state_dir = "/s", .data_dir = "/d", .pin_dir = "/p", .inspectors = 2
	};
}

/* Of one session; the others wait for theirs. */
static int world_ca(void *data, const char *session, struct buf *out)
{
	(void)data;
	if (strcmp(session, "trusted/one") != 0)
		return -EAGAIN;
	buf_puts(out, "PEM\n");
	return 0;
}

static bool world_sandboxed(void *data, pid_t pid)
{
	(void)data;
	return world.sandboxed || pid != getpid();
}

/* Runs in the server's thread, so it is where a test makes events happen. */
static void world_health(void *data, struct buf *out)
{
	(void)data;
	for (unsigned n = atomic_exchange(&world.flood, 0); n > 0; n--) {
		struct event event = { .wall_us = loop_wall_us(),
				       .reason = NP_R_MODE_NONE,
				       .session = "flood/flood",
				       .address = "192.0.2.1",
				       .port = n & 0xffff };

		if (n % 100 == 0)
			event.reason = NP_R_METADATA;
		event_log_put(world.events, &event);
	}
	json_open_array(out, "extra");
	json_put_number(out, NULL, 1);
	json_put_number(out, NULL, 2);
	json_close_array(out);
}

static void world_stop(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
}

static void *world_thread(void *data)
{
	if (loop_run(data) < 0)
		abort();
	return NULL;
}

static const char *world_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", world.dir, name);
	return path;
}

static int gate_orphans(void *ctx, const uint64_t *ids, size_t n, bool *ret_has)
{
	(void)ctx, (void)ids;
	memset(ret_has, 0, n * sizeof(*ret_has));
	return 0;
}

/* No inspector runs here. */
static void nobody_tightened(void *ctx, uint64_t id, const char *sandbox, const char *session,
			     const struct np_rung *rung)
{
	(void)ctx, (void)id, (void)sandbox, (void)session, (void)rung;
}

static void nobody_asked(void *ctx)
{
	(void)ctx;
}

static unsigned nobody_synced(void *ctx)
{
	(void)ctx;
	return 0;
}

static void nobody_ending(void *ctx, uint64_t id, bool is)
{
	(void)ctx, (void)id, (void)is;
}

static void nobody_left(void *ctx, const uint64_t *ids, size_t n, bool *has)
{
	(void)ctx, (void)ids, (void)n, (void)has;
}

static void nobody_forgot(void *ctx, uint64_t id)
{
	(void)ctx, (void)id;
}

static void nobody_reports(void *ctx)
{
	(void)ctx;
}

static inline uint64_t world_run(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return 0; /* nobody here is a launcher */
}

static int world_new(void **state)
{
	struct service_config service = {
		.inspectors = { .tighten = nobody_tightened,
				.sync_begin = nobody_asked,
				.sync = nobody_synced,
				.ending = nobody_ending,
				.left = nobody_left,
				.forget = nobody_forgot,
				.receive = nobody_reports },
		.gate = { .cgroup_make = gate_make,
			  .cgroup_inspect = gate_inspect,
			  .cgroup_look = gate_look,
			  .cgroup_find = gate_find,
			  .raise = gate_raise,
			  .attach = gate_cgroup_ok,
			  .cut = gate_cut,
			  .orphans = gate_orphans,
			  .cgroup_remove = gate_cgroup_ok,
			  .cgroup_populated = gate_populated,
			  .detach = gate_cgroup_ok,
			  .retire = gate_retire,
			  .each = gate_each },
		.wall_us = loop_wall_us,
		.now_ns = loop_now_ns,
		.boot_us = loop_boot_us,
		.emit = world_emit,
		.notice_write = world_notice,
	};
	struct server_config config = { .peer_is_sandboxed = world_sandboxed,
					.health = world_health,
					.facts = world_facts,
					.session_ca = world_ca,
					.policy_loaded = world_policy,
					.launcher = { .run = world_run } };

	(void)state;
	memset(&world, 0, sizeof(world));
	strcpy(world.dir, "/tmp/netpawl-control-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	snprintf(world.socket, sizeof(world.socket), "%s/control.sock", world.dir);
	assert_int_equal(loop_new(&world.loop), 0);
	assert_int_equal(policy_default(&world.policy), 0);
	assert_int_equal(store_open(world_path("sessions.db"), &world.store), 0);
	assert_int_equal(event_log_open(world.dir, &KEEP_DEFAULTS, &world.events), 0);
	service.store = world.store;
	service.modes = level_modes_default;
	service.emit_data = world.events;
	assert_int_equal(service_new(&service, &world.service), 0);
	config.loop = world.loop;
	assert_int_equal(workspaces_open(&(struct workspaces_config){ .data_dir = world_path("data"),
								      .wall_us = loop_wall_us,
								      .now_ns = loop_now_ns },
					 &world.workspaces),
			 0);
	config.service = world.service;
	config.workspaces = world.workspaces;
	config.events = world.events;
	config.socket_path = world.socket;
	assert_int_equal(server_new(&config, &world.server), 0);
	world.stop_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	assert_true(world.stop_fd >= 0);
	assert_int_equal(loop_watch(world.loop, world.stop_fd, EPOLLIN, world_stop, world.loop), 0);
	return pthread_create(&world.thread, NULL, world_thread, world.loop);
}

static int world_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int world_free(void **state)
{
	const struct itimerspec now = { .it_value.tv_nsec = 1 };

	(void)state;
	timerfd_settime(world.stop_fd, 0, &now, NULL);
	pthread_join(world.thread, NULL);
	server_free(world.server);
	assert_int_equal(access(world.socket, F_OK), -1); /* it takes its socket along */
	service_free(world.service);
	workspaces_free(world.workspaces);
	event_log_close(world.events);
	store_close(world.store);
	policy_free(world.policy);
	loop_free(world.loop);
	close(world.stop_fd);
	return nftw(world.dir, world_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* -- a client ------------------------------------------------------------ */

static int dial(void)
{
	const struct timeval patience = { .tv_sec = 120 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(addr.sun_path, world.socket);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Sends what the server takes; it may hang up before the end. */
static size_t send_some(int fd, const void *data, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		ssize_t n = send(fd, (const char *)data + sent, len - sent, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	return sent;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send_some(fd, text, strlen(text)), strlen(text));
}

static char received[4 << 20];
static size_t received_len;

/* Reads until the text is there (NULL: until the end). False when the end came first. */
static bool receive_until(int fd, const char *text)
{
	uint64_t give_up = loop_now_ns() + UINT64_C(120000000000); /* against hangs: heartbeats alone are no answer */

	received_len = 0;
	received[0] = '\0';
	for (;;) {
		ssize_t n = recv(fd, received + received_len, sizeof(received) - 1 - received_len, 0);

		if (n <= 0) {
			if (n < 0 && errno == EAGAIN)
				fail_msg("the server did not answer in time");
			return !text;
		}
		received_len += (size_t)n;
		received[received_len] = '\0';
		if (text && memmem(received, received_len, text, strlen(text)))
			return true;
		if (loop_now_ns() > give_up)
			fail_msg("no %s in: %.4000s", text ? text : "end", received);
	}
}

static int status_of(const char *response)
{
	int status = 0;

	return sscanf(response, "HTTP/1.1 %d ", &status) == 1 ? status : -1;
}

static const char *body_of(const char *response)
{
	const char *end = strstr(response, "\r\n\r\n");

	return end ? end + 4 : "";
}

static int finish(int fd)
{
	receive_until(fd, NULL);
	close(fd);
	return status_of(received);
}

/* One request on a connection of its own; the response is in received. */
static int ask_n(const char *method, const char *path, const void *body, size_t len)
{
	char head[4096];
	int fd = dial();

	snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		 method, path, len);
	send_text(fd, head);
	send_some(fd, body, len);
	return finish(fd);
}

static inline int ask(const char *method, const char *path, const char *body)
{
	return ask_n(method, path, body, body ? strlen(body) : 0);
}

static inline void expect_in(const char *text)
{
	if (!strstr(received, text))
		fail_msg("no %s in: %s", text, received);
}

/* The refusal must be the JSON that the API promises, with this token, and name the place. */
static inline void expect_error(const char *token, const char *place)
{
	json_t *json = json_loads(body_of(received), 0, NULL);

	if (!json)
		fail_msg("no JSON: %s", received);
	assert_string_equal(json_string_value(json_object_get(json, "error")), token);
	assert_non_null(json_string_value(json_object_get(json, "message")));
	if (place) {
		const char *detail = json_string_value(json_object_get(json, "detail"));

		if (!detail || !strstr(detail, place))
			fail_msg("\"%s\" does not say \"%s\"", detail ? detail : "", place);
	}
	json_decref(json);
}

static inline void still_serves(void)
{
	assert_int_equal(ask("GET", "/v1/health", NULL), 200);
}
