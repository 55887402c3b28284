/* SPDX-License-Identifier: MIT */
/*
 * A loop with a small DNS server on it, UDP and TCP on one loopback port, and a clock that can be put forward. The zones
 * say what it answers, and how badly.
 */
#pragma once

/* Waits that a test can sit out, and a memory that it can fill. */
#include "vocab/limits.h"
#undef NP_RESOLVE_MS
#define NP_RESOLVE_MS 700
#undef NP_CONNECT_MS
#define NP_CONNECT_MS 1200
#undef NP_EYEBALL_MS
#define NP_EYEBALL_MS 200
#undef NP_NAMES_MAX
#define NP_NAMES_MAX 30
#undef NP_NAMES_PER_OWNER
#define NP_NAMES_PER_OWNER 10

#include "loop/loop.c"

static uint64_t clock_skew_ns;
static uint64_t clock_skewed_ns(void)
{
	return loop_now_ns() + clock_skew_ns;
}
#define loop_now_ns clock_skewed_ns

#include "wire/dns_answer.c"
#include "resolver/hosts.c"
#include "resolver/nameservers.c"
#include "resolver/shares.c"
#include "resolver/resolver.c"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <cmocka.h>

enum quirk {
	FINE,
	MISSING,
	FAILING,
	REFUSING,
	SILENT,
	TRUNCATED,	 /* over UDP */
	TRUNCATED_TWICE, /* ... and over TCP it hangs up */
	NO_EDNS,	 /* FORMERR when asked with it */
	WRONG_ID,	 /* a lie with another id, then the truth */
	WRONG_QUESTION,	 /* a lie about another name, then the truth */
	WRONG_ANSWER,	 /* addresses of another name */
	GARBAGE,	 /* packets that mean nothing, then the truth */
	GARBLED,	 /* records that end in the middle */
	HUGE,		 /* as many addresses as TCP carries */
	CIRCLE,		 /* an alias of itself */
	NOT_QUITE,	 /* no answer but a question */
};

struct zone {
	const char *name;
	const char *cname; /* the next name of a chain, whose addresses are in the same answer */
	const char *text[FAMILY_COUNT];
	const char *txt; /* the only record that is no address; quirks are those of IPv4 */
	uint32_t ttl_s;
	enum quirk quirk[FAMILY_COUNT];
};

struct dns_conn {
	struct dns_conn *next;
	int fd;
	size_t len;
	uint8_t data[1024];
};

static struct {
	struct loop *loop;
	const struct zone *zones; /* ends with a name of NULL */
	int udp, tcp;
	struct dns_conn *conns;
	char servers[64]; /* for the resolver */
	int wanted[FAMILY_COUNT], over_tcp, with_edns;
	uint16_t ids[256];
	size_t n_ids;
	int fds_before;
	void (*tick)(void);
	const int *wait_count;
	int wait_for;
	uint64_t wait_until;
} dns;

static int fds_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* -- messages ------------------------------------------------------------------ */

struct dns_question {
	uint16_t id;
	char name[256];
	enum family family;
	bool txt, edns;
	size_t len; /* of header and question */
};

static struct dns_question dns_question_read(const uint8_t *data, size_t len)
{
	struct dns_question q = { .id = (uint16_t)(data[0] << 8 | data[1]), .edns = data[11] == 1 };
	size_t at = 12, out = 0;

	assert_true(len >= 17 && data[5] == 1);
	while (data[at]) {
		assert_true(at + 1 + data[at] < len);
		if (out)
			q.name[out++] = '.';
		memcpy(q.name + out, data + at + 1, data[at]);
		out += data[at];
		at += 1 + data[at];
	}
	assert_true(data[at + 2] == ns_t_a || data[at + 2] == ns_t_aaaa || data[at + 2] == ns_t_txt);
	q.family = data[at + 2] == ns_t_aaaa ? FAMILY_V6 : FAMILY_V4;
	q.txt = data[at + 2] == ns_t_txt;
	q.len = at + 5;
	assert_int_equal(len, q.len + (q.edns ? 11 : 0));
	return q;
}

struct dns_reply {
	size_t len;
	uint8_t data[65536];
};

static void dns_put(struct dns_reply *m, const void *data, size_t len)
{
	assert_true(m->len + len <= sizeof(m->data));
	memcpy(m->data + m->len, data, len);
	m->len += len;
}

static void dns_put_name(struct dns_reply *m, const char *name)
{
	while (*name) {
		uint8_t n = (uint8_t)strcspn(name, ".");

		dns_put(m, &n, 1);
		dns_put(m, name, n);
		name += n;
		name += *name == '.';
	}
	dns_put(m, "", 1);
}

/* owner NULL: the name of the question. */
static void dns_put_record(struct dns_reply *m, const char *owner, unsigned type, uint32_t ttl_s, const void *data,
			   size_t len)
{
	uint8_t fixed[] = { 0,
			    (uint8_t)type,
			    0,
			    1,
			    (uint8_t)(ttl_s >> 24),
			    (uint8_t)(ttl_s >> 16),
			    (uint8_t)(ttl_s >> 8),
			    (uint8_t)ttl_s,
			    (uint8_t)(len >> 8),
			    (uint8_t)len };

	if (owner)
		dns_put_name(m, owner);
	else
		dns_put(m, "\xc0\x0c", 2);
	dns_put(m, fixed, sizeof(fixed));
	dns_put(m, data, len);
	m->data[7]++;
	m->data[6] += !m->data[7];
}

static void dns_put_cname(struct dns_reply *m, const char *owner, uint32_t ttl_s, const char *target)
{
	struct dns_reply *name = calloc(1, sizeof(*name));

	assert_non_null(name);
	dns_put_name(name, target);
	dns_put_record(m, owner, ns_t_cname, ttl_s, name->data, name->len);
	free(name);
}

/* The addresses of a text like "127.0.0.1 127.0.0.2". */
static void dns_put_addresses(struct dns_reply *m, const char *owner, enum family family, uint32_t ttl_s,
			      const char *text)
{
	while (text && *text) {
		size_t len = strcspn(text, " ");
		struct np_addr addr;

		assert_int_equal(addr_parse(text, len, &addr), 0);
		if (family == FAMILY_V4)
			dns_put_record(m, owner, ns_t_a, ttl_s, addr.b + 12, 4);
		else
			dns_put_record(m, owner, ns_t_aaaa, ttl_s, addr.b, 16);
		text += len + strspn(text + len, " ");
	}
}

static const struct zone *dns_zone(const char *name)
{
	static const struct zone none = { .quirk = { MISSING, MISSING } };
	const struct zone *zone = dns.zones;

	while (zone->name && strcmp(zone->name, name) != 0)
		zone++;
	return zone->name ? zone : &none;
}

static void dns_start(struct dns_reply *m, const uint8_t *query, const struct dns_question *q, unsigned rcode)
{
	m->len = 0;
	dns_put(m, query, q->len);
	m->data[2] |= 0x80;
	m->data[3] = (uint8_t)(0x80 | rcode);
	memset(m->data + 6, 0, 6);
}

static void dns_truth(struct dns_reply *m, const uint8_t *query, const struct dns_question *q)
{
	const struct zone *zone = dns_zone(q->name);
	const char *owner = NULL;

	dns_start(m, query, q, ns_r_noerror);
	for (unsigned i = 0; zone->cname && i < 40; i++) {
		dns_put_cname(m, owner, zone->ttl_s, zone->cname);
		owner = zone->cname;
		zone = dns_zone(zone->cname);
	}
	if (!q->txt)
		dns_put_addresses(m, owner, q->family, zone->ttl_s, zone->text[q->family]);
	else if (zone->txt)
		dns_put_record(m, owner, ns_t_txt, zone->ttl_s, zone->txt, strlen(zone->txt));
}

static void dns_lie(struct dns_reply *m, const uint8_t *query, const struct dns_question *q)
{
	dns_start(m, query, q, ns_r_noerror);
	dns_put_addresses(m, NULL, q->family, 300, q->family == FAMILY_V4 ? "192.0.2.66" : "2001:db8::66");
}

static void dns_make_huge(struct dns_reply *m, enum family family)
{
	while (m->len + 28 < 65500)
		dns_put_addresses(m, NULL, family, 60, family == FAMILY_V4 ? "127.0.0.1" : "::1");
}

/* What is sent; false for silence. */
static bool dns_answer(struct dns_reply *m, const uint8_t *query, size_t len, bool tcp,
		       void (*send_more)(void *to, const struct dns_reply *m), void *to)
{
	struct dns_question q = dns_question_read(query, len);

	dns.wanted[q.family]++;
	dns.over_tcp += tcp;
	dns.with_edns += q.edns;
	if (dns.n_ids < ARRAY_SIZE(dns.ids))
		dns.ids[dns.n_ids++] = q.id;
	dns_truth(m, query, &q);
	switch (dns_zone(q.name)->quirk[q.family]) {
	case FINE:
		break;
	case MISSING:
		dns_start(m, query, &q, ns_r_nxdomain);
		break;
	case FAILING:
		dns_start(m, query, &q, ns_r_servfail);
		break;
	case REFUSING:
		dns_start(m, query, &q, ns_r_refused);
		break;
	case SILENT:
		return false;
	case TRUNCATED_TWICE:
		if (tcp)
			return false;
		/* fall through */
	case TRUNCATED:
		if (!tcp) {
			dns_start(m, query, &q, ns_r_noerror);
			m->data[2] |= 0x02;
		}
		break;
	case NO_EDNS:
		if (q.edns)
			dns_start(m, query, &q, ns_r_formerr);
		break;
	case WRONG_ID:
		dns_lie(m, query, &q);
		m->data[1] ^= 1;
		send_more(to, m);
		dns_truth(m, query, &q);
		break;
	case WRONG_QUESTION:
		dns_lie(m, query, &q);
		m->data[13] ^= 1;
		send_more(to, m);
		dns_truth(m, query, &q);
		break;
	case WRONG_ANSWER:
		dns_start(m, query, &q, ns_r_noerror);
		dns_put_addresses(m, "other.test", q.family, 300, "127.0.0.1");
		break;
	case GARBAGE:
		for (m->len = 0; m->len < 40; m->len++) {
			m->data[m->len] = (uint8_t)(m->len * 37 + 1);
			send_more(to, m);
		}
		dns_truth(m, query, &q);
		break;
	case GARBLED:
		m->len -= 3;
		break;
	case HUGE:
		dns_start(m, query, &q, ns_r_noerror);
		if (tcp)
			dns_make_huge(m, q.family);
		else
			m->data[2] |= 0x02;
		break;
	case CIRCLE:
		dns_start(m, query, &q, ns_r_noerror);
		dns_put_cname(m, NULL, 60, "a.test");
		dns_put_cname(m, "a.test", 60, "b.test");
		dns_put_cname(m, "b.test", 60, "a.test");
		break;
	case NOT_QUITE:
		m->data[2] &= 0x7f;
		break;
	}
	return true;
}

/* -- sockets ------------------------------------------------------------------- */

static void dns_udp_send(void *to, const struct dns_reply *m)
{
	sendto(dns.udp, m->data, m->len, 0, to, sizeof(struct sockaddr_in));
}

static void dns_udp_event(void *data, uint32_t events)
{
	static struct dns_reply m;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t query[1024];
	ssize_t n = recvfrom(dns.udp, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);

	(void)data, (void)events;
	assert_true(n > 0);
	if (dns_answer(&m, query, (size_t)n, false, dns_udp_send, &from))
		dns_udp_send(&from, &m);
}

static void dns_tcp_send(void *to, const struct dns_reply *m)
{
	uint8_t head[2] = { (uint8_t)(m->len >> 8), (uint8_t)m->len };
	const struct dns_conn *conn = to;

	assert_int_equal(send(conn->fd, head, 2, MSG_NOSIGNAL | MSG_MORE), 2);
	assert_int_equal(send(conn->fd, m->data, m->len, MSG_NOSIGNAL), m->len);
}

static void dns_conn_free(struct dns_conn *conn)
{
	struct dns_conn **p = &dns.conns;

	while (*p != conn)
		p = &(*p)->next;
	*p = conn->next;
	loop_unwatch(dns.loop, conn->fd);
	close(conn->fd);
	free(conn);
}

static void dns_conn_event(void *data, uint32_t events)
{
	static struct dns_reply m;
	struct dns_conn *conn = data;
	ssize_t n = recv(conn->fd, conn->data + conn->len, sizeof(conn->data) - conn->len, 0);

	(void)events;
	if (n <= 0) {
		dns_conn_free(conn);
		return;
	}
	conn->len += (size_t)n;
	while (conn->len > 2 && conn->len >= 2u + (conn->data[0] << 8 | conn->data[1])) {
		size_t len = (size_t)(conn->data[0] << 8 | conn->data[1]);

		if (!dns_answer(&m, conn->data + 2, len, true, dns_tcp_send, conn)) {
			dns_conn_free(conn);
			return;
		}
		dns_tcp_send(conn, &m);
		conn->len -= 2 + len;
		memmove(conn->data, conn->data + 2 + len, conn->len);
	}
}

static void dns_tcp_event(void *data, uint32_t events)
{
	struct dns_conn *conn = calloc(1, sizeof(*conn));
	const int size = 1 << 20;

	(void)data, (void)events;
	assert_non_null(conn);
	conn->fd = accept4(dns.tcp, NULL, NULL, SOCK_CLOEXEC);
	assert_true(conn->fd >= 0);
	setsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	conn->next = dns.conns;
	dns.conns = conn;
	assert_int_equal(loop_watch(dns.loop, conn->fd, EPOLLIN, dns_conn_event, conn), 0);
}

static void dns_tick(void *data)
{
	(void)data;
	if (dns.tick)
		dns.tick();
	if (*dns.wait_count >= dns.wait_for || loop_now_ns() - clock_skew_ns > dns.wait_until)
		loop_stop(dns.loop);
}

/* Lets the loop run until the count is there; a test that waits for longer fails. */
static void run_until(const int *count, int wanted)
{
	dns.wait_count = count;
	dns.wait_for = wanted;
	dns.wait_until = loop_now_ns() - clock_skew_ns + 5000 * NS_PER_MS;
	dns.loop->stopped = false;
	assert_int_equal(loop_run(dns.loop), 0);
	if (*count < wanted)
		fail_msg("waited for %d, and it is %d", wanted, *count);
}

static inline void run_for(unsigned ms)
{
	static const int never;

	dns.wait_count = &never;
	dns.wait_for = 1;
	dns.wait_until = loop_now_ns() - clock_skew_ns + ms * NS_PER_MS;
	dns.loop->stopped = false;
	assert_int_equal(loop_run(dns.loop), 0);
}

static void dns_bind(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	/* The port of one may be taken for the other. */
	for (int i = 0; i < 20; i++) {
		dns.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		dns.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		addr.sin_port = 0;
		assert_int_equal(bind(dns.udp, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(getsockname(dns.udp, (struct sockaddr *)&addr, &len), 0);
		if (bind(dns.tcp, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(dns.tcp, 16) == 0)
			break;
		close(dns.udp);
		close(dns.tcp);
	}
	snprintf(dns.servers, sizeof(dns.servers), "127.0.0.1:%u", ntohs(addr.sin_port));
}

static void dns_new(const struct zone *zones)
{
	memset(&dns, 0, sizeof(dns));
	clock_skew_ns = 0;
	dns.fds_before = fds_open();
	dns.zones = zones;
	assert_int_equal(loop_new(&dns.loop), 0);
	dns_bind();
	assert_int_equal(loop_watch(dns.loop, dns.udp, EPOLLIN, dns_udp_event, NULL), 0);
	assert_int_equal(loop_watch(dns.loop, dns.tcp, EPOLLIN, dns_tcp_event, NULL), 0);
	assert_int_equal(loop_every(dns.loop, 10, dns_tick, NULL), 0);
}

static void dns_free(void)
{
	while (dns.conns)
		dns_conn_free(dns.conns);
	loop_unwatch(dns.loop, dns.udp);
	loop_unwatch(dns.loop, dns.tcp);
	close(dns.udp);
	close(dns.tcp);
	loop_free(dns.loop);
	assert_int_equal(fds_open(), dns.fds_before);
}
