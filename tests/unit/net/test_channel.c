/* SPDX-License-Identifier: MIT */
#include "net/channel.c"
#include "net/channel_read.c"
#include "loop/loop.c"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "../tls/certs.h"
#include "vocab/limits.h"

static struct loop *loop;
static struct test_cert root, leaf;
static SSL_CTX *server_ctx, *client_ctx;

/* One end, and all that happened to it. */
struct end {
	struct channel *channel;
	int fd; /* without a channel: the test reads and writes by itself */
	struct buf got;
	bool ready, eof;
	unsigned datas, drains, breaks;
	int error;
	size_t most_backlog;
	/* What it does. */
	size_t (*use)(struct end *end, const char *data, size_t len);
	struct end *forward; /* writes there what it gets, as a relay does */
	struct channel **free_in_ready, **free_in_data, **free_in_eof, **free_in_drained, **free_in_broken;
	bool discard; /* counts only */
	size_t count;
	const char *tail; /* written when it is drained, and then it is finished */
};

static struct end a, b;

static void end_free(struct channel **channel)
{
	if (!channel)
		return;
	channel_free(*channel);
	*channel = NULL;
}

static void on_ready(void *ctx)
{
	struct end *end = ctx;

	end->ready = true;
	end_free(end->free_in_ready);
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct end *end = ctx;
	size_t used = len;

	assert_true(len > 0);
	end->datas++;
	if (end->free_in_data) {
		end_free(end->free_in_data);
		return len;
	}
	if (end->use)
		used = end->use(end, data, len);
	end->count += used;
	if (!end->discard)
		buf_append(&end->got, data, used);
	if (end->forward) {
		struct channel *to = end->forward->channel;

		assert_int_equal(channel_write(to, data, used), 0);
		if (channel_backlog(to) > end->forward->most_backlog)
			end->forward->most_backlog = channel_backlog(to);
		if (channel_backlog(to) > NP_BACKLOG_HIGH)
			channel_pause(end->channel);
	}
	return used;
}

static void on_eof(void *ctx)
{
	struct end *end = ctx;

	assert_false(end->eof);
	end->eof = true;
	if (end->forward)
		channel_finish(end->forward->channel);
	end_free(end->free_in_eof);
}

static struct end *relay_source(struct end *end);

static void on_drained(void *ctx)
{
	struct end *end = ctx;

	end->drains++;
	if (relay_source(end))
		channel_resume(relay_source(end)->channel);
	if (end->tail) {
		assert_int_equal(channel_write(end->channel, end->tail, strlen(end->tail)), 0);
		if (end->drains > 1)
			channel_finish(end->channel);
		end->tail = end->drains > 1 ? NULL : end->tail;
	}
	end_free(end->free_in_drained);
}

static void on_broken(void *ctx, int error)
{
	struct end *end = ctx;

	end->breaks++;
	assert_int_equal(end->breaks, 1);
	end->error = error;
	end_free(end->free_in_broken);
}

static const struct channel_events events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};

static struct end *ends[8];
static size_t n_ends;

static struct end *relay_source(struct end *end)
{
	for (size_t i = 0; i < n_ends; i++)
		if (ends[i]->forward == end && ends[i]->channel)
			return ends[i];
	return NULL;
}

/* -- running ------------------------------------------------------------------- */

static bool (*until)(void);
static unsigned ticks_left;
static bool timed_out;

static void on_tick(void *data)
{
	(void)data;
	if (!until || until()) {
		loop->stopped = true;
	} else if (ticks_left-- == 0) {
		timed_out = true;
		loop->stopped = true;
	}
}

#define TICK_MS 2

static bool run_until(bool (*condition)(void))
{
	until = condition;
	ticks_left = 10000 / TICK_MS;
	timed_out = false;
	loop->stopped = false;
	assert_int_equal(loop_run(loop), 0);
	return !timed_out;
}

static unsigned quiet;
static bool is_quiet(void)
{
	return quiet-- == 0;
}

static void run_ticks(unsigned n)
{
	quiet = n;
	run_until(is_quiet);
}

/* Long enough for everything on loopback to arrive. */
static void settle(void)
{
	run_ticks(10);
}

/* Bytes are there, and it is the channel's turn. */
static void turn(struct channel *channel)
{
	channel_on_event(channel, EPOLLIN);
	loop_cancel(loop, &channel->task);
	channel_pump(channel);
}

static void tcp_pair(int fds[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&addr, &len);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&addr, sizeof(addr)), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	for (int i = 0; i < 2; i++)
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
	close(listener);
}

/* Without TCP's own ideas of when to send: for what must get stuck and go on. */
static void local_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void end_init(struct end *end, int fd, bool channel)
{
	*end = (struct end){ .fd = fd, .got = BUF_INIT(256u << 20) };
	ends[n_ends++] = end;
	if (channel)
		assert_int_equal(channel_new(loop, NULL, fd, &events, end, &end->channel), 0);
}

/* a is always a channel; b is one if both. */
static void connect_ends(bool both)
{
	int fds[2];

	tcp_pair(fds);
	end_init(&a, fds[0], true);
	end_init(&b, fds[1], both);
}

static void end_close(struct end *end)
{
	if (end->channel)
		channel_free(end->channel);
	buf_free(&end->got);
}

static SSL *ssl_of(SSL_CTX *ctx, bool server)
{
	SSL *ssl = SSL_new(ctx);

	if (server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

static bool both_ready(void)
{
	return a.ready && b.ready;
}

static void start_tls(void)
{
	assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), NULL, 0), 0);
	assert_int_equal(channel_tls(b.channel, ssl_of(server_ctx, true), NULL, 0), 0);
}

static void connect_tls(void)
{
	connect_ends(true);
	start_tls();
	assert_true(run_until(both_ready));
}

static void connect_maybe_tls(bool tls)
{
	if (tls)
		connect_tls();
	else
		connect_ends(true);
}

static void reset_peer(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static int group_setup(void **state)
{
	(void)state;
	root = test_cert(&(struct test_spec){ .cn = "root", .constraints = "critical,CA:TRUE" }, NULL);
	leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &root);
	server_ctx = test_server(&leaf, NULL, 0, NULL);
	client_ctx = SSL_CTX_new(TLS_client_method());
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	SSL_CTX_free(server_ctx);
	SSL_CTX_free(client_ctx);
	test_cert_free(&root);
	test_cert_free(&leaf);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	n_ends = 0;
	if (loop_new(&loop) < 0)
		return -1;
	return loop_every(loop, TICK_MS, on_tick, NULL);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_ends; i++)
		end_close(ends[i]);
	loop_free(loop);
	return 0;
}

#define BOTH(name)                         \
	static void name##_plain(void **s) \
	{                                  \
		(void)s;                   \
		name(false);               \
	}                                  \
	static void name##_tls(void **s)   \
	{                                  \
		(void)s;                   \
		name(true);                \
	}

/* -- bytes ------------------------------------------------------------------------ */

static void test_hello(bool tls)
{
	connect_maybe_tls(tls);
	assert_int_equal(channel_write(a.channel, "hello", 5), 0);
	assert_int_equal(channel_write(b.channel, "there", 5), 0);
	settle();
	assert_string_equal(b.got.data, "hello");
	assert_string_equal(a.got.data, "there");
	assert_int_equal(channel_backlog(a.channel), 0);
	assert_int_equal(a.channel->ssl != NULL, tls);
	assert_ptr_equal(channel_ssl(a.channel), a.channel->ssl);
}
BOTH(test_hello)

/* A head and its body, written one after the other, are one record and one packet. */
static void test_small_writes_go_together(bool tls)
{
	connect_maybe_tls(tls);
	settle();
	b.datas = 0;
	channel_write(a.channel, "head", 4);
	channel_write(a.channel, "body", 4);
	channel_write(a.channel, "end", 3);
	assert_int_equal(channel_backlog(a.channel), 11);
	settle();
	assert_string_equal(b.got.data, "headbodyend");
	assert_int_equal(b.datas, 1);
	if (tls) { /* read the record's header from the raw socket */
		unsigned char raw[256];
		ssize_t n;

		loop_unwatch(loop, b.channel->fd);
		channel_write(a.channel, "head", 4);
		channel_write(a.channel, "body", 4);
		settle();
		n = recv(b.channel->fd, raw, sizeof(raw), 0);
		assert_int_equal(n, 5 + 8 + 1 + 16); /* header, payload, type, tag */
		assert_int_equal(raw[3] << 8 | raw[4], n - 5);
	}
}
BOTH(test_small_writes_go_together)

static size_t pattern_at;
static void fill_pattern(char *data, size_t len, size_t from)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (char)((from + i) * 2654435761u >> 13);
}

static size_t check_pattern(struct end *end, const char *data, size_t len)
{
	static char wanted[1 << 20];

	fill_pattern(wanted, len, end->count);
	assert_memory_equal(data, wanted, len);
	return len;
}

#define BULK (48u << 20)

static void feed(struct end *from)
{
	static char piece[100000];

	while (pattern_at < BULK && channel_backlog(from->channel) <= NP_BACKLOG_HIGH) {
		size_t n = sizeof(piece) - pattern_at % 777;

		if (n > BULK - pattern_at)
			n = BULK - pattern_at;
		fill_pattern(piece, n, pattern_at);
		assert_int_equal(channel_write(from->channel, piece, n), 0);
		pattern_at += n;
	}
	if (pattern_at == BULK && !from->channel->finishing)
		channel_finish(from->channel);
}

static bool bulk_done(void)
{
	feed(&a);
	return b.eof;
}

static void test_bulk(bool tls)
{
	connect_maybe_tls(tls);
	pattern_at = 0;
	b.use = check_pattern;
	b.discard = true;
	assert_true(run_until(bulk_done));
	assert_int_equal(b.count, BULK);
	settle();
	assert_int_equal(channel_backlog(a.channel), 0);
	assert_null(a.channel->out.first);
	assert_null(b.channel->rest.data);
}
BOTH(test_bulk)

/* a -> (b | c) -> d, where d reads only now and then: what waits in the middle is bounded, both ways. */
static struct end c, d;
static unsigned reads;

static bool slow_reader(void)
{
	if (++reads % 2)
		channel_resume(d.channel);
	feed(&a);
	assert_true(channel_backlog(c.channel) <= NP_BACKLOG_HIGH + READ_BYTES + 4096);
	return d.eof;
}

static size_t use_and_pause(struct end *end, const char *data, size_t len)
{
	check_pattern(end, data, len);
	channel_pause(end->channel);
	return len;
}

static void test_slow_reader(bool tls)
{
	int fds[2];

	connect_maybe_tls(tls);
	local_pair(fds);
	end_init(&c, fds[0], true);
	end_init(&d, fds[1], true);
	pattern_at = BULK - (6u << 20); /* not all of it: this one is slow */
	d.count = pattern_at;
	d.use = use_and_pause;
	b.discard = d.discard = true;
	b.forward = &c;
	assert_true(run_until(slow_reader));
	assert_int_equal(d.count, BULK);
	assert_true(c.drains > 2); /* it did get stuck */
	assert_in_range(c.most_backlog, NP_BACKLOG_HIGH, NP_BACKLOG_HIGH + READ_BYTES + 4096);
}
BOTH(test_slow_reader)

/* -- the ends ------------------------------------------------------------------------ */

static void test_half_close(bool tls)
{
	connect_maybe_tls(tls);
	channel_write(a.channel, "question", 8);
	channel_finish(a.channel);
	assert_int_equal(channel_write(a.channel, "x", 1), -EPIPE);
	settle();
	assert_string_equal(b.got.data, "question");
	assert_true(b.eof);
	assert_int_equal(a.drains, 1);
	assert_false(a.eof);
	/* The other direction is as it was. */
	channel_write(b.channel, "ans", 3);
	settle();
	channel_write(b.channel, "wer", 3);
	channel_finish(b.channel);
	settle();
	assert_string_equal(a.got.data, "answer");
	assert_true(a.eof);
	assert_int_equal(a.breaks + b.breaks, 0);
	assert_int_equal(b.drains, 1);
}
BOTH(test_half_close)

static void test_finish_before_ready(void **state)
{
	(void)state;
	connect_ends(true);
	start_tls();
	channel_write(a.channel, "early", 5);
	channel_finish(a.channel);
	assert_int_equal(channel_backlog(a.channel), 5);
	settle();
	assert_true(both_ready());
	assert_string_equal(b.got.data, "early");
	assert_true(b.eof);
	assert_int_equal(a.drains, 1);
}

/* Much of it: then it is more than one record. */
static void test_write_before_ready(void **state)
{
	static char piece[50000];

	(void)state;
	connect_ends(true);
	start_tls();
	fill_pattern(piece, sizeof(piece), 0);
	channel_write(a.channel, piece, 20000);
	channel_write(a.channel, piece + 20000, 30000);
	settle();
	assert_int_equal(b.got.len, sizeof(piece));
	assert_memory_equal(b.got.data, piece, sizeof(piece));
}

/* Someone on the way can end a TCP connection; what TLS did not end is cut. */
static void test_truncated(void **state)
{
	(void)state;
	connect_tls();
	channel_write(b.channel, "part", 4);
	settle();
	shutdown(b.channel->fd, SHUT_WR);
	settle();
	assert_string_equal(a.got.data, "part");
	assert_false(a.eof);
	assert_int_equal(a.error, -ECONNABORTED);
	assert_string_equal(channel_problem(a.channel), "the connection ended without TLS saying so");
}

static void test_truncated_handshake(void **state)
{
	(void)state;
	connect_ends(false);
	assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), NULL, 0), 0);
	settle();
	close(b.fd);
	settle();
	assert_int_equal(a.error, -ECONNRESET);
	assert_string_equal(channel_problem(a.channel), "the connection ended during the TLS handshake");
}

static void test_reset(bool tls)
{
	connect_maybe_tls(tls);
	reset_peer(dup(b.channel->fd));
	loop_unwatch(loop, b.channel->fd);
	shutdown(b.channel->fd, SHUT_RD);
	channel_free(b.channel);
	b.channel = NULL;
	settle();
	if (!tls && a.eof) /* the other side closed in an orderly way */
		return;
	assert_int_equal(a.breaks, 1);
	assert_int_equal(a.error, -ECONNRESET);
	assert_int_equal(channel_write(a.channel, "x", 1), -ECONNRESET);
}
BOTH(test_reset)

/* A client that goes away while it waits (paused, say for a person's answer) is noticed. */
static void test_reset_while_paused(void **state)
{
	(void)state;
	connect_ends(false);
	channel_pause(a.channel);
	settle();
	reset_peer(b.fd);
	settle();
	assert_int_equal(a.error, -ECONNRESET);
}

/* But not before what it said is read. */
static void test_reset_behind_data(void **state)
{
	(void)state;
	connect_ends(false);
	channel_pause(a.channel);
	assert_int_equal(send(b.fd, "last words", 10, 0), 10);
	settle();
	reset_peer(b.fd);
	settle();
	assert_int_equal(a.breaks, 0);
	channel_resume(a.channel);
	settle();
	assert_string_equal(a.got.data, "last words");
	assert_int_equal(a.error, -ECONNRESET);
}

/* An origin that answers early and goes: its answer is read although nothing can be sent any more. */
static void test_answer_before_write_error(void **state)
{
	char piece[1000] = { 0 };

	(void)state;
	connect_ends(false);
	channel_write(a.channel, piece, sizeof(piece));
	settle();
	loop_unwatch(loop, a.channel->fd); /* the test decides when the loop hears of it */
	assert_int_equal(send(b.fd, "413", 3, 0), 3);
	close(b.fd); /* with unread bytes: a reset */
	usleep(10000);
	channel_write(a.channel, piece, sizeof(piece));
	settle();
	assert_string_equal(a.got.data, "413");
	assert_int_equal(a.breaks, 1);
	assert_true(a.error == -ECONNRESET || a.error == -EPIPE);
}

/* -- the owner ------------------------------------------------------------------------ */

static void test_pause(bool tls)
{
	connect_maybe_tls(tls);
	channel_pause(b.channel);
	channel_write(a.channel, "one", 3);
	channel_finish(a.channel);
	settle();
	assert_int_equal(b.datas, 0);
	assert_false(b.eof);
	channel_resume(b.channel);
	assert_int_equal(b.datas, 0); /* from the loop only */
	settle();
	assert_string_equal(b.got.data, "one");
	assert_true(b.eof);
}
BOTH(test_pause)

static size_t use_line(struct end *end, const char *data, size_t len)
{
	const char *newline = memchr(data, '\n', len);

	(void)end;
	return newline ? (size_t)(newline - data) + 1 : 0;
}

/* Uses one line at a time, as a server does with pipelined requests. */
static void test_partial_use(bool tls)
{
	connect_maybe_tls(tls);
	b.use = use_line;
	channel_write(a.channel, "one\ntwo\nthree\nfo", 16);
	settle();
	assert_string_equal(b.got.data, "one\n");
	assert_int_equal(b.datas, 1);
	channel_write(a.channel, "ur\n", 3);
	settle();
	assert_string_equal(b.got.data, "one\n");
	channel_resume(b.channel);
	settle();
	assert_string_equal(b.got.data, "one\ntwo\n");
	channel_resume(b.channel);
	settle();
	assert_string_equal(b.got.data, "one\ntwo\nthree\n");
	channel_resume(b.channel); /* "fo": none used, so the same again when it resumes */
	settle();
	assert_int_equal(b.datas, 4);
	channel_resume(b.channel);
	settle();
	assert_int_equal(b.datas, 5);
	b.use = NULL;
	channel_finish(a.channel);
	channel_resume(b.channel);
	settle();
	assert_string_equal(b.got.data, "one\ntwo\nthree\nfour\n");
	assert_true(b.eof);
	assert_null(b.channel->rest.data);
}
BOTH(test_partial_use)

static size_t use_line_want_more(struct end *end, const char *data, size_t len)
{
	channel_resume(end->channel);
	return use_line(end, data, len);
}

/* Needs a whole line and asks for more until it has one: the same bytes twice at most, and none forgotten. */
static void test_wants_more(bool tls)
{
	connect_maybe_tls(tls);
	b.use = use_line_want_more;
	for (int i = 0; i < 9; i++) {
		channel_write(a.channel, "123456789" + i, 1);
		settle();
	}
	assert_int_equal(b.datas, 18);
	channel_write(a.channel, "\nx\ny", 4);
	settle();
	assert_string_equal(b.got.data, "123456789\nx\n");
	assert_int_equal(b.datas, 22); /* one for each line, and two for "y" */
	channel_finish(a.channel);
	settle();
	assert_true(b.eof); /* there will be no more */
	assert_int_equal(b.datas, 22);
}
BOTH(test_wants_more)

/* Cannot take the bytes, and then, still in the same call, learns that it can. */
static bool settled;

static size_t use_when_settled(struct end *end, const char *data, size_t len)
{
	size_t used = settled; /* then one byte at a time */

	(void)data;
	(void)len;
	settled = true;
	channel_resume(end->channel);
	return used;
}

static void test_settled_in_data(void **state)
{
	(void)state;
	connect_ends(true);
	settled = false;
	b.use = use_when_settled;
	channel_write(a.channel, "xyz", 3);
	settle();
	assert_string_equal(b.got.data, "xyz");
	assert_int_equal(b.datas, 4);
}

static void test_wants_too_much(void **state)
{
	static char piece[NP_BACKLOG_HIGH + 1000];

	(void)state;
	connect_ends(true);
	b.use = use_line_want_more;
	memset(piece, 'x', sizeof(piece));
	channel_write(a.channel, piece, sizeof(piece));
	settle();
	assert_int_equal(b.error, -EMSGSIZE);
	assert_true(b.channel->rest.size <= NP_BACKLOG_HIGH);
}

/* Thousands of lines in one segment, one at a time: what is left is not moved for each. */
static size_t use_line_soon(struct end *end, const char *data, size_t len)
{
	channel_resume(end->channel);
	return use_line(end, data, len);
}

static bool all_lines(void)
{
	return b.count == 200000;
}

static void test_many_pipelined(void **state)
{
	static char piece[200000];

	(void)state;
	connect_ends(true);
	memset(piece, '\n', sizeof(piece));
	b.use = use_line_soon;
	channel_write(a.channel, piece, sizeof(piece));
	assert_true(run_until(all_lines));
}

/* The same, beside others: one of them, and then someone else's turn. */
static void test_pipelined_turns(void **state)
{
	int fds[2];

	(void)state;
	local_pair(fds);
	end_init(&a, fds[0], true);
	end_init(&b, fds[1], false);
	a.use = use_line_soon;
	assert_int_equal(send(b.fd, "1\n2\n3\n4\n5\nand half", 18, 0), 18);
	turn(a.channel);
	assert_string_equal(a.got.data, "1\n2\n"); /* what was read, and once what was left of it */
	assert_non_null(a.channel->task.waits_in);
	channel_pump(a.channel);
	assert_string_equal(a.got.data, "1\n2\n3\n");
	settle();
	assert_string_equal(a.got.data, "1\n2\n3\n4\n5\n");
	assert_int_equal(send(b.fd, " a line\n", 8, 0), 8);
	settle();
	assert_string_equal(a.got.data, "1\n2\n3\n4\n5\nand half a line\n");
	close(b.fd);
	settle();
	assert_true(a.eof);
}

static void test_new_owner(void **state)
{
	struct end other = { .got = BUF_INIT(1000) };

	(void)state;
	connect_ends(true);
	channel_write(a.channel, "one", 3);
	settle();
	channel_set_owner(b.channel, &events, &other);
	channel_write(a.channel, "two", 3);
	settle();
	assert_string_equal(b.got.data, "one");
	assert_string_equal(other.got.data, "two");
	buf_free(&other.got);
}

static bool a_drained(void)
{
	return a.drains > 0;
}

/* Nobody looks at the backlog: there is an end to it. */
static void test_backlog_ends(bool tls)
{
	static char piece[60000];
	size_t n = 0;
	int r = 0;

	connect_maybe_tls(tls);
	channel_pause(b.channel);
	while (r == 0 && n < 1000) {
		r = channel_write(a.channel, piece, sizeof(piece));
		n++;
	}
	assert_int_equal(r, -ENOBUFS);
	assert_in_range(channel_backlog(a.channel), BACKLOG_MAX - sizeof(piece), BACKLOG_MAX + 10000);
	assert_int_equal(a.breaks, 0);
	b.discard = true;
	channel_resume(b.channel);
	assert_true(run_until(a_drained));
	settle();
	assert_int_equal(b.count, (n - 1) * sizeof(piece));
	assert_int_equal(a.drains, 1);
}
BOTH(test_backlog_ends)

/* The end of a body that waited for room: nothing comes after it that would send it along. */
static void test_write_in_drained(bool tls)
{
	static char piece[60000];
	size_t n = 0;

	connect_maybe_tls(tls);
	a.tail = "tail";
	b.discard = true;
	for (size_t round = 1; round <= 2; round++) {
		channel_pause(b.channel);
		while (channel_backlog(a.channel) <= NP_BACKLOG_HIGH) {
			assert_int_equal(channel_write(a.channel, piece, sizeof(piece)), 0);
			n += sizeof(piece);
			run_ticks(0);
		}
		channel_resume(b.channel);
		settle();
		n += 4;
		assert_int_equal(b.count, n);
	}
	assert_int_equal(a.drains, 3); /* the last: when it was finished */
	assert_true(b.eof);
}
BOTH(test_write_in_drained)

/* Freed in a callback: nothing is called after it, and ASan watches. */
static void test_free_in_callbacks(bool tls)
{
	struct {
		struct channel ***where;
		struct end *who;
	} cases[] = {
		{ &b.free_in_data, &b }, { &b.free_in_eof, &b }, { &a.free_in_drained, &a }, { &b.free_in_drained, &b }
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		connect_maybe_tls(tls);
		*cases[i].where = &cases[i].who->channel;
		channel_write(a.channel, "x", 1);
		channel_finish(a.channel);
		channel_finish(b.channel);
		settle();
		assert_null(cases[i].who->channel);
		end_close(&a);
		end_close(&b);
		n_ends -= 2;
	}
	/* The other one, which is the next in this round or not. */
	connect_maybe_tls(tls);
	a.free_in_data = &b.channel;
	b.free_in_data = &a.channel;
	channel_write(a.channel, "x", 1);
	channel_write(b.channel, "x", 1);
	settle();
	assert_true(!a.channel != !b.channel);
}
BOTH(test_free_in_callbacks)

static void test_free_in_ready_and_broken(void **state)
{
	(void)state;
	connect_ends(true);
	start_tls();
	a.free_in_ready = &a.channel;
	b.free_in_broken = &b.channel;
	settle();
	assert_null(a.channel);
	assert_null(b.channel);
}

/* Writing inside of callbacks, to the channel itself. */
static size_t use_and_answer(struct end *end, const char *data, size_t len)
{
	(void)data;
	channel_write(end->channel, "pong", 4);
	channel_finish(end->channel);
	return len;
}

static void test_answer_in_data(bool tls)
{
	connect_maybe_tls(tls);
	b.use = use_and_answer;
	channel_write(a.channel, "ping", 4);
	settle();
	assert_string_equal(a.got.data, "pong");
	assert_true(a.eof);
}
BOTH(test_answer_in_data)

/* One that has much to say does not keep the loop to itself. */
static void test_budget(void **state)
{
	static char piece[3 << 20];
	int fds[2], size = 4 << 20;

	(void)state;
	local_pair(fds);
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	end_init(&a, fds[0], true);
	end_init(&b, fds[1], false);
	assert_true(send(b.fd, piece, sizeof(piece), 0) > READ_BUDGET * 2);
	a.discard = true;
	turn(a.channel);
	assert_int_equal(a.count, READ_BUDGET);
	assert_non_null(a.channel->task.waits_in); /* it comes back by itself: the edge is gone */
	channel_pump(a.channel);
	assert_int_equal(a.count, 2 * READ_BUDGET);
	close(b.fd);
	settle();
	assert_true(a.eof);
}

/* -- TLS from the middle of a stream ------------------------------------------------------ */

static bool use_first; /* hand the bytes over as used, or leave them unused */

static size_t become_tls(struct end *end, const char *data, size_t len)
{
	end->use = NULL;
	if (use_first) {
		assert_int_equal(channel_tls(end->channel, ssl_of(server_ctx, true), data, len), 0);
		return len;
	}
	assert_int_equal(channel_tls(end->channel, ssl_of(server_ctx, true), NULL, 0), 0);
	return 0;
}

static size_t refuse_once(struct end *end, const char *data, size_t len)
{
	(void)data;
	(void)len;
	end->use = NULL;
	return 0;
}

/* hello_parse() has looked at the first bytes. */
static void test_prefix(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		connect_ends(true);
		use_first = i == 0;
		b.use = i == 2 ? refuse_once : become_tls;
		b.discard = true;
		assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), NULL, 0), 0);
		if (i == 2) { /* later, and with nothing used: the channel has the bytes */
			settle();
			assert_int_equal(channel_tls(b.channel, ssl_of(server_ctx, true), NULL, 0), 0);
		}
		assert_true(run_until(both_ready));
		b.discard = false;
		channel_write(a.channel, "hello", 5);
		settle();
		assert_string_equal(b.got.data, "hello");
		assert_null(b.channel->first.data);
		end_close(&a);
		end_close(&b);
		n_ends -= 2;
	}
}

/* In two halves, the first of which was used already. */
static size_t keep_ten(struct end *end, const char *data, size_t len)
{
	(void)data;
	end->use = NULL;
	assert_true(len > 10);
	return 10;
}

static void test_prefix_and_rest(void **state)
{
	char first[10];

	(void)state;
	connect_ends(true);
	b.use = keep_ten;
	assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), NULL, 0), 0);
	settle();
	assert_int_equal(b.got.len, 10);
	memcpy(first, b.got.data, 10);
	assert_int_equal(channel_tls(b.channel, ssl_of(server_ctx, true), first, 10), 0);
	assert_true(run_until(both_ready));
}

static void test_tls_refused(void **state)
{
	static const char huge[NP_BACKLOG_HIGH + 1];

	(void)state;
	connect_ends(true);
	assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), huge, sizeof(huge)), -EMSGSIZE);
	assert_null(channel_ssl(a.channel));
	start_tls();
	assert_true(run_until(both_ready));
	assert_int_equal(channel_tls(a.channel, ssl_of(client_ctx, false), NULL, 0), -EINVAL);
	channel_write(a.channel, "x", 1);
	settle();
	assert_string_equal(b.got.data, "x");
}

static void test_garbage(void **state)
{
	static const struct {
		const char *bytes, *problem;
		size_t len;
		bool server;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "http request", 18, true },
		{ "SSH-2.0-x\r\n", "wrong version number", 11, true },
		{ "HTTP/1.1 400 Bad Request\r\n\r\n", "wrong version number", 28, false },
		{ "\x16\x03\x01\xff\xff\x01", "packet length too long", 6, true },
		{ "\x16\x03\x01\x00\x04\x05\x00\x00\x00", "unexpected message", 9, true },
		{ "\x15\x03\x03\x00\x02\x02\x28", "sslv3 alert handshake failure", 7, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		connect_ends(false);
		assert_int_equal(send(b.fd, cases[i].bytes, cases[i].len, 0), cases[i].len);
		assert_int_equal(channel_tls(a.channel,
					     ssl_of(cases[i].server ? server_ctx : client_ctx, cases[i].server), NULL,
					     0),
				 0);
		settle();
		assert_false(a.ready);
		assert_int_equal(a.error, -EPROTO);
		assert_string_equal(channel_problem(a.channel), cases[i].problem);
		assert_int_equal(channel_write(a.channel, "x", 1), -EPROTO);
		close(b.fd);
		end_close(&a);
		end_close(&b);
		n_ends -= 2;
	}
}

/* A record that was changed on the way: what came before it counts, and the peer is told. */
static void test_bad_record(void **state)
{
	char bad[40] = "\x17\x03\x03\x00\x23";

	(void)state;
	connect_tls();
	channel_pause(a.channel); /* both are read at once */
	channel_write(b.channel, "good", 4);
	settle();
	channel_resume(a.channel);
	assert_int_equal(send(b.channel->fd, bad, sizeof(bad), 0), sizeof(bad));
	settle();
	assert_string_equal(a.got.data, "good");
	assert_int_equal(a.error, -EPROTO);
	assert_string_equal(channel_problem(a.channel), "decryption failed or bad record mac");
	assert_int_equal(b.error, -EPROTO);
	assert_string_equal(channel_problem(b.channel), "sslv3 alert bad record mac");
}

static void test_untrusted(void **state)
{
	SSL *ssl;

	(void)state;
	connect_ends(true);
	ssl = ssl_of(client_ctx, false);
	SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	assert_int_equal(channel_tls(a.channel, ssl, NULL, 0), 0);
	assert_int_equal(channel_tls(b.channel, ssl_of(server_ctx, true), NULL, 0), 0);
	settle();
	assert_int_equal(a.error, -EPROTO);
	assert_string_equal(channel_problem(a.channel), "unable to get local issuer certificate");
	assert_int_equal(b.error, -EPROTO);
	assert_string_equal(channel_problem(b.channel), "tlsv1 alert unknown ca");
}

/* What a peer has to say, one byte at a time, each with a wake-up of its own. */
static void trickle(SSL *peer, int fd)
{
	char bytes[8192];
	ssize_t n;

	for (int still = 0; still < 2; still++) {
		int len = BIO_read(SSL_get_wbio(peer), bytes, sizeof(bytes));

		for (int i = 0; i < len; i++, still = 0) {
			assert_int_equal(send(fd, bytes + i, 1, 0), 1);
			turn(a.channel);
		}
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n > 0) {
			BIO_write(SSL_get_rbio(peer), bytes, (int)n);
			still = 0;
		}
		if (!SSL_is_init_finished(peer))
			SSL_do_handshake(peer);
	}
}

static void trickle_with(int version)
{
	SSL *peer = ssl_of(client_ctx, false);
	char bytes[64];
	int fds[2];

	SSL_set_max_proto_version(peer, version);
	local_pair(fds);
	end_init(&a, fds[0], true);
	SSL_set_bio(peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	assert_int_equal(channel_tls(a.channel, ssl_of(server_ctx, true), NULL, 0), 0);
	SSL_do_handshake(peer);
	trickle(peer, fds[1]);
	assert_true(a.ready);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(SSL_write(peer, "abcd", 4), 4);
		if (version == TLS1_3_VERSION)
			SSL_key_update(peer, SSL_KEY_UPDATE_REQUESTED);
		trickle(peer, fds[1]);
		channel_write(a.channel, "efgh", 4);
		channel_pump(a.channel);
		trickle(peer, fds[1]);
		assert_int_equal(SSL_read(peer, bytes, sizeof(bytes)), 4);
		assert_memory_equal(bytes, "efgh", 4);
	}
	assert_string_equal(a.got.data, "abcdabcdabcd");
	SSL_free(peer);
	close(fds[1]);
}

static void test_trickle_13(void **state)
{
	(void)state;
	trickle_with(TLS1_3_VERSION);
}

static void test_trickle_12(void **state)
{
	(void)state;
	trickle_with(TLS1_2_VERSION);
}

#ifndef __SANITIZE_ADDRESS__
static size_t memory_used(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* A connection that waits, both its legs: what NP_CONNS_MAX of them take is a matter of this. */
static void test_idle_memory(void **state)
{
	enum { PAIRS = 50 };
	static struct end legs[PAIRS][2];
	size_t before, after;

	(void)state;
	before = memory_used();
	for (int i = 0; i < PAIRS; i++) {
		n_ends = 0;
		connect_tls(); /* a, b */
		channel_write(a.channel, "ping", 4);
		run_ticks(2);
		SSL_key_update(channel_ssl(b.channel), SSL_KEY_UPDATE_NOT_REQUESTED); /* leaves a buffer, if it can */
		channel_write(b.channel, "pong", 4);
		run_ticks(2);
		assert_string_equal(a.got.data, "pong");
		buf_free(&a.got);
		buf_free(&b.got);
		legs[i][0] = a;
		legs[i][1] = b;
	}
	n_ends = 0;
	after = memory_used();
	print_message("%zu bytes for both legs of an idle connection\n", (after - before) / PAIRS);
	assert_true((after - before) / PAIRS < 40 << 10);
	for (int i = 0; i < PAIRS; i++)
		for (int j = 0; j < 2; j++)
			channel_free(legs[i][j].channel);
}
#endif

/* A peer that asks for new keys over and over and never reads the answers. */
static void test_key_update_flood(void **state)
{
	SSL *peer = ssl_of(client_ctx, false);
	int fds[2], r;
	size_t sent = 0;

	(void)state;
	local_pair(fds);
	end_init(&a, fds[0], true);
	SSL_set_fd(peer, fds[1]);
	assert_int_equal(channel_tls(a.channel, ssl_of(server_ctx, true), NULL, 0), 0);
	while ((r = SSL_do_handshake(peer)) != 1) {
		assert_int_equal(SSL_get_error(peer, r), SSL_ERROR_WANT_READ);
		settle();
	}
	for (int stuck = 0; stuck < 3 && sent < 200000;) {
		SSL_key_update(peer, SSL_KEY_UPDATE_REQUESTED);
		r = SSL_do_handshake(peer);
		sent++;
		if (r == 1)
			continue;
		run_ticks(stuck ? 10 : 0);
		stuck = SSL_do_handshake(peer) == 1 ? 0 : stuck + 1;
	}
	assert_true(sent < 200000); /* it was made to wait */
	assert_in_range(channel_backlog(a.channel), 2 * NP_BACKLOG_HIGH, 2 * NP_BACKLOG_HIGH + 4096);
	assert_int_equal(a.breaks, 0);
	SSL_free(peer);
	close(fds[1]);
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_BOTH(name) TEST(name##_plain), TEST(name##_tls)
	const struct CMUnitTest tests[] = {
		TEST_BOTH(test_hello),
		TEST_BOTH(test_small_writes_go_together),
		TEST_BOTH(test_bulk),
		TEST_BOTH(test_slow_reader),
		TEST_BOTH(test_half_close),
		TEST(test_finish_before_ready),
		TEST(test_write_before_ready),
		TEST(test_truncated),
		TEST(test_truncated_handshake),
		TEST_BOTH(test_reset),
		TEST(test_reset_while_paused),
		TEST(test_reset_behind_data),
		TEST(test_answer_before_write_error),
		TEST_BOTH(test_pause),
		TEST_BOTH(test_partial_use),
		TEST_BOTH(test_wants_more),
		TEST(test_settled_in_data),
		TEST(test_wants_too_much),
		TEST(test_many_pipelined),
		TEST(test_pipelined_turns),
		TEST(test_new_owner),
		TEST_BOTH(test_backlog_ends),
		TEST_BOTH(test_write_in_drained),
		TEST_BOTH(test_free_in_callbacks),
		TEST(test_free_in_ready_and_broken),
		TEST_BOTH(test_answer_in_data),
		TEST(test_budget),
		TEST(test_prefix),
		TEST(test_prefix_and_rest),
		TEST(test_tls_refused),
		TEST(test_garbage),
		TEST(test_bad_record),
		TEST(test_untrusted),
		TEST(test_trickle_13),
		TEST(test_trickle_12),
		TEST(test_key_update_flood),
#ifndef __SANITIZE_ADDRESS__
		TEST(test_idle_memory),
#endif
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
