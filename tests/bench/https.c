/* SPDX-License-Identifier: MIT */
/*
 * A client of HTTPS/1.1 with many connections, on one thread.
 *
 *   https ADDRESS PORT NAME CA-FILE ["connect"]      with "connect": ADDRESS is a proxy that is asked for NAME:443
 *
 * Commands, and what they answer; times are in ns, FAILED counts requests:
 *   open N PATH                     N connections, one request on each, all at once: DONE FAILED WALL CPU
 *   load MS                         requests on those that are open: DONE FAILED WALL CPU P50 P99
 *   hold N PATH                     N connections more, whose answer nobody waits for: SENT FAILED WALL CPU
 *   close                           closes them all: 0 0
 *   fresh MS PARALLEL RESUME PATH   a connection for each request: DONE FAILED WALL CPU RESUMED
 *   bulk PATH                       one large answer on a connection of its own: BYTES FAILED WALL CPU
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench.h"

#define CONNS_MAX 4096
#define SAMPLES	  (1u << 20)
#define HEAD_MAX  8192

enum state { CONNECTING, ASKING, HANDSHAKE, SEND, HEAD, BODY, IDLE, BROKEN };

struct conn {
	int fd;
	SSL *ssl;
	enum state state;
	char head[HEAD_MAX];
	size_t have;
	uint64_t left, got, start_ns;
};

static SSL_CTX *ctx;
static SSL_SESSION *session; /* the last that a server gave */
static struct sockaddr_in server = { .sin_family = AF_INET };
static const char *name;
static bool by_proxy, resume;
static int epoll_fd;
static struct conn *conns[CONNS_MAX];
static unsigned n_conns;
static char request[1024];
static size_t request_len;
static char scratch[64 << 10];
static uint32_t *samples;
static unsigned n_samples;

static int on_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(session);
	session = s;
	return 1;
}

static void request_set(const char *path)
{
	request_len = (size_t)snprintf(request, sizeof(request),
				       "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\n\r\n",
				       path, name);
}

static struct conn *conn_new(void)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };

	if (!c)
		err(1, "malloc");
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	c->ssl = SSL_new(ctx);
	if (c->fd < 0 || !c->ssl)
		err(1, "socket");
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_tlsext_host_name(c->ssl, name);
	SSL_set1_host(c->ssl, name);
	SSL_set_connect_state(c->ssl);
	if (resume && session)
		SSL_set_session(c->ssl, session);
	if (connect(c->fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno != EINPROGRESS)
		c->state = BROKEN;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
		err(1, "epoll_ctl");
	c->start_ns = clock_ns(CLOCK_MONOTONIC);
	return c;
}

static void conn_free(struct conn *c)
{
	if (c->state != BROKEN && SSL_is_init_finished(c->ssl))
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	close(c->fd);
	free(c);
}

/* False: wait for the socket. */
static bool tls_goes_on(struct conn *c, int r)
{
	int e = SSL_get_error(c->ssl, r);

	if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
		return false;
	if (getenv("BENCH_VERBOSE"))
		ERR_print_errors_fp(stderr);
	c->state = BROKEN;
	return false;
}

/* "CONNECT name:443", and its answer. */
static bool ask_proxy(struct conn *c)
{
	ssize_t n;

	if (c->have == 0) {
		int len = snprintf(c->head, HEAD_MAX, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", name, name);

		n = send(c->fd, c->head, (size_t)len, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n != len)
			c->state = BROKEN;
		c->have = 1;
		return n == len;
	}
	n = recv(c->fd, c->head, HEAD_MAX - 1, 0); /* it comes in one piece */
	if (n < 0 && errno == EAGAIN)
		return false;
	c->have = 0;
	c->state = n > 12 && !memcmp(c->head + 8, " 200", 4) ? HANDSHAKE : BROKEN;
	return c->state == HANDSHAKE;
}

static bool head_read(struct conn *c, size_t n)
{
	const char *end, *length;

	c->have += n;
	c->head[c->have] = '\0';
	end = strstr(c->head, "\r\n\r\n");
	if (!end) {
		if (c->have == HEAD_MAX - 1)
			c->state = BROKEN;
		return c->state != BROKEN;
	}
	length = strcasestr(c->head, "\r\ncontent-length:");
	if (memcmp(c->head + 8, " 200", 4) != 0 || !length || length > end) {
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr, "%s\n", c->head);
		c->state = BROKEN;
		return false;
	}
	c->left = strtoull(length + 17, NULL, 10);
	c->got = c->have - (size_t)(end + 4 - c->head);
	c->left -= c->got;
	c->state = c->left ? BODY : IDLE;
	return true;
}

/* Goes on until it must wait, or the answer is there. */
static void conn_step(struct conn *c)
{
	size_t n;
	int r, error;

	ERR_clear_error();
	for (;;) {
		switch (c->state) {
		case CONNECTING:
			if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) }) < 0 || error)
				c->state = BROKEN;
			else
				c->state = by_proxy ? ASKING : HANDSHAKE;
			break;
		case ASKING:
			if (!ask_proxy(c))
				return;
			break;
		case HANDSHAKE:
			r = SSL_do_handshake(c->ssl);
			if (r != 1 && !tls_goes_on(c, r))
				return;
			c->state = SEND;
			break;
		case SEND:
			r = SSL_write_ex(c->ssl, request, request_len, &n);
			if (!r && !tls_goes_on(c, r))
				return;
			c->have = 0;
			c->state = HEAD;
			break;
		case HEAD:
			r = SSL_read_ex(c->ssl, c->head + c->have, HEAD_MAX - 1 - c->have, &n);
			if ((!r && !tls_goes_on(c, r)) || !head_read(c, n))
				return;
			break;
		case BODY:
			r = SSL_read_ex(c->ssl, scratch, sizeof(scratch), &n);
			if (!r && !tls_goes_on(c, r))
				return;
			c->got += n;
			c->left -= n < c->left ? n : c->left;
			if (!c->left)
				c->state = IDLE;
			break;
		case IDLE:
		case BROKEN:
			return;
		}
	}
}

/* Waits for something to happen; the connections that it happened to. */
static int wait_some(struct epoll_event *events, int n, int ms)
{
	int r = epoll_wait(epoll_fd, events, n, ms);

	if (r < 0 && errno != EINTR)
		err(1, "epoll_wait");
	for (int i = 0; i < r; i++)
		conn_step(events[i].data.ptr);
	return r < 0 ? 0 : r;
}

static void tell(struct span *s, uint64_t done, uint64_t failed)
{
	printf("%llu %llu %llu %llu", (unsigned long long)done, (unsigned long long)failed, (unsigned long long)s->wall,
	       (unsigned long long)s->cpu);
}

static void tell_end(void)
{
	putchar('\n');
	fflush(stdout);
}

/* until: the state that all of them are waited for. */
static void open_many(unsigned n, enum state until)
{
	struct epoll_event events[256];
	struct span s = { 0 };
	unsigned first = n_conns, done = 0, failed = 0;
	uint64_t give_up = clock_ns(CLOCK_MONOTONIC) + 20000000000u;

	if (n_conns + n > CONNS_MAX)
		errx(2, "too many");
	span_open(&s);
	for (unsigned i = 0; i < n; i++)
		conns[n_conns++] = conn_new();
	while (done + failed < n && clock_ns(CLOCK_MONOTONIC) < give_up) {
		wait_some(events, 256, 100);
		done = failed = 0;
		for (unsigned i = first; i < n_conns; i++) {
			done += conns[i]->state == until;
			failed += conns[i]->state == BROKEN;
		}
	}
	span_close(&s);
	tell(&s, done, n - done);
	tell_end();
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void load(unsigned ms)
{
	struct epoll_event events[256];
	struct span s = { 0 };
	uint64_t now, end, done = 0, failed = 0;
	unsigned waiting = 0;

	n_samples = 0;
	span_open(&s);
	now = clock_ns(CLOCK_MONOTONIC);
	end = now + ms * 1000000ull;
	for (unsigned i = 0; i < n_conns; i++) {
		if (conns[i]->state != IDLE)
			continue;
		waiting++;
		conns[i]->state = SEND;
		conns[i]->start_ns = now;
	}
	for (unsigned i = 0; i < n_conns; i++)
		if (conns[i]->state == SEND)
			conn_step(conns[i]);
	while (waiting && now < end + 5000000000u) {
		int n = wait_some(events, 256, 1000);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			/* An answer may be there before the next wait: then there is no event for it. */
			while (c->start_ns && (c->state == IDLE || c->state == BROKEN)) {
				now = clock_ns(CLOCK_MONOTONIC);
				if (c->state == IDLE && n_samples < SAMPLES)
					samples[n_samples++] = (uint32_t)(now - c->start_ns);
				done += c->state == IDLE;
				failed += c->state == BROKEN;
				if (c->state == BROKEN || now >= end) {
					c->start_ns = 0;
					waiting--;
					break;
				}
				c->start_ns = now;
				c->state = SEND;
				conn_step(c);
			}
		}
		now = clock_ns(CLOCK_MONOTONIC);
	}
	span_close(&s);
	qsort(samples, n_samples, sizeof(*samples), compare);
	tell(&s, done, failed + waiting);
	printf(" %u %u", n_samples ? samples[n_samples / 2] : 0, n_samples ? samples[n_samples * 99ull / 100] : 0);
	tell_end();
}

static void fresh(unsigned ms, unsigned parallel)
{
	struct epoll_event events[256];
	struct span s = { 0 };
	uint64_t now, end, done = 0, failed = 0, resumed = 0;
	unsigned open = parallel;

	span_open(&s);
	now = clock_ns(CLOCK_MONOTONIC);
	end = now + ms * 1000000ull;
	for (unsigned i = 0; i < parallel; i++)
		conn_new();
	while (open && now < end + 5000000000u) {
		int n = wait_some(events, 256, 1000);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (c->state != IDLE && c->state != BROKEN)
				continue;
			done += c->state == IDLE;
			failed += c->state == BROKEN;
			resumed += c->state == IDLE && SSL_session_reused(c->ssl);
			conn_free(c);
			if (now < end && failed < 1000)
				conn_new();
			else
				open--;
		}
		now = clock_ns(CLOCK_MONOTONIC);
	}
	span_close(&s);
	tell(&s, done, failed + open);
	printf(" %llu", (unsigned long long)resumed);
	tell_end();
}

/* The clock starts when the connection is up and the first request, a small one, was answered. */
static void bulk(const char *path)
{
	struct epoll_event event;
	struct span s = { 0 };
	struct conn *c = conn_new();
	uint64_t give_up = clock_ns(CLOCK_MONOTONIC) + 60000000000u;

	while (c->state != IDLE && c->state != BROKEN && clock_ns(CLOCK_MONOTONIC) < give_up)
		wait_some(&event, 1, 1000);
	request_set(path);
	span_open(&s);
	if (c->state == IDLE) {
		c->state = SEND;
		conn_step(c);
	}
	while (c->state != IDLE && c->state != BROKEN && clock_ns(CLOCK_MONOTONIC) < give_up)
		wait_some(&event, 1, 1000);
	span_close(&s);
	tell(&s, c->got, c->state != IDLE);
	tell_end();
	conn_free(c);
}

int main(int argc, char **argv)
{
	char line[256], path[128];
	unsigned n, parallel, with;

	if (argc < 5)
		errx(2, "usage: https ADDRESS PORT NAME CA-FILE [connect]");
	signal(SIGPIPE, SIG_IGN);
	inet_pton(AF_INET, argv[1], &server.sin_addr);
	server.sin_port = htons((uint16_t)atoi(argv[2]));
	name = argv[3];
	by_proxy = argc > 5;
	ctx = SSL_CTX_new(TLS_client_method());
	samples = malloc(SAMPLES * sizeof(*samples));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!ctx || !samples || epoll_fd < 0)
		errx(1, "cannot start");
	if (SSL_CTX_load_verify_locations(ctx, argv[4], NULL) != 1)
		errx(1, "%s: no certificates", argv[4]);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, 64 << 10);
	SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x08http/1.1", 9);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		resume = false;
		if (sscanf(line, "open %u %127s", &n, path) == 2) {
			request_set(path);
			open_many(n, IDLE);
		} else if (sscanf(line, "hold %u %127s", &n, path) == 2) {
			request_set(path);
			open_many(n, HEAD);
		} else if (sscanf(line, "load %u", &n) == 1) {
			load(n);
		} else if (sscanf(line, "fresh %u %u %u %127s", &n, &parallel, &with, path) == 4) {
			resume = with;
			request_set(path);
			fresh(n, parallel);
		} else if (sscanf(line, "bulk %127s", path) == 1) {
			request_set("/1k");
			bulk(path);
		} else if (!strcmp(line, "close\n")) {
			while (n_conns)
				conn_free(conns[--n_conns]);
			puts("0 0");
			fflush(stdout);
		} else {
			errx(2, "not a command: %s", line);
		}
	}
	return 0;
}
