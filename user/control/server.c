/* SPDX-License-Identifier: MIT */
#include "control/server_internal.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "control/call.h"
#include "vocab/limits.h"

#define TICK_MS	 1000
#define RUNS_MAX 16	 /* rounds of MHD before other parts of the daemon get their turn ... */
#define PAUSE_NS 1000000 /* ... for so long. MHD can spin on a request that will never be whole */
#define SOON_NS	 1
#define ROUND_NS (NP_ROUND_MS * UINT64_C(1000000))

static void server_kick_in(struct server *server, long ns)
{
	const struct itimerspec spec = { .it_value.tv_nsec = ns };

	timerfd_settime(server->kick_fd, 0, &spec, NULL);
}

static void server_kick(void *data)
{
	server_kick_in(data, SOON_NS);
}

/* MHD watches its connections edge-triggered and keeps to itself what it has not read to the end yet. So its
 * epoll descriptor may be quiet while it has work: a timeout of zero says so. */
void server_run(struct server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	server->round_ns = loop_now_ns();
	server->round_read = false;
	for (unsigned i = 0; i < RUNS_MAX; i++) {
		MHD_run(server->daemon);
		if (MHD_get_timeout(server->daemon, &wait_ms) != MHD_YES || wait_ms > 0)
			return;
		if (loop_now_ns() - server->round_ns > ROUND_NS) {
			server_kick(server);
			return;
		}
	}
	server_kick_in(server, PAUSE_NS);
}

/* A request that only reads, late in a round, waits for the next one: lists may take milliseconds each, and nobody
 * must be able to put an escalation off by asking for many of them. One is answered in each round. */
static bool server_defers(struct server *server, const char *method)
{
	bool first = !server->round_read;

	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return false;
	server->round_read = true;
	return !first && loop_now_ns() - server->round_ns > ROUND_NS;
}

static void deferred_resume(struct server *server)
{
	for (struct client *c = server->clients.first; c; c = c->next)
		if (c->deferred)
			MHD_resume_connection(take_ptr(c->deferred));
}

static void on_ready(void *data, uint32_t events)
{
	(void)events;
	server_run(data);
}

static void on_kick(void *data, uint32_t events)
{
	struct server *server = data;
	uint64_t ticks;

	(void)events;
	if (read(server->kick_fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	deferred_resume(server);
	server_run(server);
}

/* Each is asked again, and waits again if nothing changed for it. */
static void waits_end(struct server *server)
{
	for (struct client *c = server->clients.first; c; c = c->next) {
		if (!c->waits)
			continue;
		MHD_resume_connection(take_ptr(c->waits));
		server_kick(server);
	}
}

static void on_tick(void *data)
{
	struct server *server = data;
	uint64_t now = loop_now_ns();

	/* MHD's own timeout ends silent connections. This ends those that send, or read, a byte every few seconds. */
	for (struct client *c = server->clients.first; c; c = c->next)
		if (!c->streams && now - c->since_ns > NP_REQUEST_S * UINT64_C(1000000000))
			shutdown(c->fd, SHUT_RDWR);
	follow_tick(&server->follows, now);
	waits_end(server);
	output_wake(&server->outputs); /* those who went away are noticed so */
	admit_tick(&server->admit);
	server_accepts(server, true);
	server_run(server);
}

static void on_why(void *data)
{
	struct server *server = data;

	why_files_tick(&server->why, &server->config);
}

static void on_connection(void *data, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *server = data;
	struct client *c = *socket_context;

	(void)connection;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*socket_context = take_ptr(server->joining);
	else if (c)
		clients_remove(&server->clients, c);
}

static struct client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Called with the headers, then with each part of the body, then once more at the end. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *body, size_t *body_len, void **request_context)
{
	struct client *client = client_of(connection);
	struct exchange *ex = *request_context;
	struct server *server = data;
	enum exchange_outcome outcome;
	enum MHD_Result result;

	(void)version;
	if (!client || !client->process)
		return MHD_NO; /* it has to leave */
	if (!ex) {
		if (exchange_new(&ex) < 0)
			return MHD_NO;
		*request_context = ex;
		return exchange_begin(ex, connection, method, url, &server->config);
	}
	if (*body_len > 0) {
		size_t len = *body_len;

		*body_len = 0;
		return exchange_take(ex, body, len);
	}
	client->state = CLIENT_WAITS;
	if (server_defers(server, method)) {
		client->deferred = connection;
		MHD_suspend_connection(connection);
		server_kick(server);
		return MHD_YES;
	}
	result = exchange_finish(ex, connection, method, url, &server->config, &server->follows, &server->outputs,
				 &outcome);
	client->streams = outcome == EXCHANGE_STREAMS;
	client->waits = outcome == EXCHANGE_WAITS ? connection : NULL;
	client->deferred = outcome == EXCHANGE_GOES_ON ? connection : NULL;
	if (client->deferred)
		server_kick(server);
	else if (!client->waits)
		client->state = CLIENT_ANSWERED;
	if (strcmp(method, "POST") == 0)
		waits_end(server);
	return result;
}

static void on_completed(void *data, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode why)
{
	struct client *client = client_of(connection);

	(void)data;
	(void)why;
	exchange_free(*request_context);
	*request_context = NULL;
	if (!client)
		return;
	client->state = CLIENT_SILENT;
	client->since_ns = loop_now_ns();
}

/* Decoding is done by url_decode(), which knows what to refuse: MHD's turns %00 into the end of the text. */
static size_t on_unescape(void *data, struct MHD_Connection *connection, char *text)
{
	(void)data;
	(void)connection;
	return strlen(text);
}

static int server_start(struct server *server)
{
	const union MHD_DaemonInfo *info;
	int fd = listen_unix(server->path, NP_BACKLOG, &server->file);

	if (fd < 0)
		return fd;
	admit_init(&server->admit, fd);
	/* MHD's limit is never met: clients.h has ours, and those who have to leave are gone after a run or, streams,
	 * after a tick. */
	/* clang-format off */
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, server,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)NP_CLIENTS_MAX * 2,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)NP_CLIENT_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)NP_CLIENT_MEMORY,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
		MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, server,
		MHD_OPTION_END);
	/* clang-format on */
	if (!server->daemon)
		return -EIO;
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EIO;
	server->epoll_fd = info->epoll_fd;
	return 0;
}

static int server_watch(struct server *server)
{
	struct loop *loop = server->config.loop;
	int r;

	server->kick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (server->kick_fd < 0)
		return -errno;
	r = loop_watch(loop, server->kick_fd, EPOLLIN, on_kick, server);
	if (r < 0)
		return r;
	r = loop_watch(loop, server->epoll_fd, EPOLLIN, on_ready, server);
	if (r < 0)
		return r;
	r = loop_watch(loop, server->admit.fd, EPOLLIN, on_newcomers, server);
	if (r < 0)
		return r;
	server->accepts = true;
	r = loop_every(loop, NP_WHY_FILE_MS, on_why, server);
	return r < 0 ? r : loop_every(loop, TICK_MS, on_tick, server);
}

static void cleanup_server(struct server **server)
{
	server_free(*server);
}

int server_new(const struct server_config *config, struct server **ret)
{
	cleanup(cleanup_server) struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->config = *config;
	server->config.access = &server->access;
	server->epoll_fd = -1;
	server->kick_fd = -1;
	admit_init(&server->admit, -1);
	server->follows = (struct follow_set){
		.config = &server->config,
		.kick = server_kick,
		.data = server,
	};
	server->outputs = (struct output_set){ .config = &server->config, .kick = server_kick, .data = server };
	server->path = strdup(config->socket_path);
	if (!server->path)
		return -ENOMEM;
	server->config.socket_path = server->path;
	r = server_start(server);
	if (r < 0)
		return r;
	access_renew(&server->access, &server->config); /* until here it was root's and its group's */
	r = server_watch(server);
	if (r < 0)
		return r;
	*ret = take_ptr(server);
	return 0;
}

/* The loop must not run any more: its timers cannot be taken back. */
void server_free(struct server *server)
{
	if (!server)
		return;
	if (server->file.ino)
		listen_remove(server->path, &server->file);
	if (server->epoll_fd >= 0)
		loop_unwatch(server->config.loop, server->epoll_fd);
	follow_end_all(&server->follows); /* MHD does not stop with suspended connections */
	output_end_all(&server->outputs);
	waits_end(server);
	deferred_resume(server);
	server_accepts(server, false);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	if (server->kick_fd >= 0) {
		loop_unwatch(server->config.loop, server->kick_fd);
		close(server->kick_fd);
	}
	admit_free(&server->admit);
	free(server->path);
	free(server);
}

void server_refused(struct server *server, const char *session)
{
	why_files_mark(&server->why, session);
}

void server_changed(struct server *server)
{
	waits_end(server);
}

void server_output(struct server *server)
{
	output_wake(&server->outputs);
}

/* The peers of open streams may have lost their role: all streams end, and those that still may come again. */
void server_policy(struct server *server)
{
	if (!access_renew(&server->access, &server->config))
		return;
	follow_end_all(&server->follows);
	output_end_all(&server->outputs);
}
