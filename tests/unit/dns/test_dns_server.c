/* SPDX-License-Identifier: MIT */
/* The whole server, with a real name server behind it and real sockets in front; the owner is this file. */
#include "../resolver/dns.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dns/socket.c"
#include "resolver/records.c"
#include "dns/dns_server.c"

#include "../policy/make.h"
#include "query_bytes.h"

#define MS 1000000ull

static const struct zone zones[] = {
	{ "mail.example", .txt = "\2hi", .ttl_s = 60 },
	{ "slow.example", .txt = "\2hi", .ttl_s = 60, .quirk = { FINE, SILENT } },
	{ 0 },
};
static const char rules[] = "rules:\n"
			    "- allow: '*.web.example'\n"
			    "- allow: [mail.example, slow.example]\n"
			    "  dns: TXT\n";
static const struct hash_key key = { { 0x0123456789abcdef, 0xfedcba9876543211 } };

struct conn {
	bool deaf;
	unsigned answers;
	uint8_t last[DNS_FRAME_SIZE + DNS_TCP_MAX];
	size_t len;
};

static struct {
	struct dns_server *server;
	struct policy *policy;
	struct np_rung rung;
	struct dns_session session;
	struct dns_sandbox sandbox;
	struct conn conn;
	int sockets[2], origins_fd, client;
	struct np_dns_origin *table;
	struct dns_client origin;
	int wants, wants_refused, counts, reports, answered;
	char wanted[NAME_SIZE];
	enum np_reason reason;
} t;

static struct dns_sandbox *owner_sandbox(void *ctx, const struct dns_client *client)
{
	assert_ptr_equal(ctx, &t);
	return client->cgroup_id == 77 ? &t.sandbox : NULL;
}

static void owner_want(void *ctx, struct dns_session *session, const char *name, bool refused)
{
	(void)ctx;
	assert_ptr_equal(session, &t.session);
	snprintf(t.wanted, sizeof(t.wanted), "%s", name);
	t.wants++;
	t.wants_refused += refused;
}

static void owner_count(void *ctx, struct dns_sandbox *sandbox)
{
	(void)ctx;
	assert_ptr_equal(sandbox, &t.sandbox);
	t.counts++;
}

static void owner_report(void *ctx, struct dns_sandbox *sandbox, const struct dns_judged *judged)
{
	(void)ctx;
	assert_ptr_equal(sandbox, &t.sandbox);
	t.reason = judged->reason;
	t.reports++;
}

static void owner_send(void *ctx, void *connection, const void *data, size_t len)
{
	struct conn *conn = connection;

	(void)ctx;
	memcpy(conn->last, data, len);
	conn->len = len;
	conn->answers++;
}

static bool owner_takes(void *ctx, void *connection)
{
	(void)ctx;
	return !((struct conn *)connection)->deaf;
}

static void owner_answered(void *ctx)
{
	(void)ctx;
	t.answered++;
}

static void tick(void)
{
	dns_server_tick(t.server, loop_now_ns());
}

static int udp(void)
{
	const struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static int setup(void **state)
{
	struct dns_server_config config = { .ctx = &t,
					    .sandbox = owner_sandbox,
					    .want = owner_want,
					    .count = owner_count,
					    .report = owner_report,
					    .send = owner_send,
					    .takes = owner_takes,
					    .answered = owner_answered };
	struct sockaddr_in name;
	socklen_t len = sizeof(name), netns_len = sizeof(t.origin.netns);

	(void)state;
	memset(&t, 0, sizeof(t));
	dns_new(zones);
	t.policy = policy_of(rules);
	t.rung = (struct np_rung){ .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL };
	t.origins_fd = memfd_create("origins", MFD_CLOEXEC);
	assert_int_equal(ftruncate(t.origins_fd, ORIGINS_BYTES), 0);
	t.table = mmap(NULL, ORIGINS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t.origins_fd, 0);
	assert_true(t.table != MAP_FAILED);
	config.loop = dns.loop;
	config.sockets[0] = config.sockets[1] = t.sockets[0] = udp();
	config.dns_origins = t.origins_fd;
	config.now_ns = loop_now_ns();
	assert_int_equal(dns_server_new(&config, &t.server), 0);
	assert_int_equal(dns_session_init(&t.session, &key), 0);
	t.sandbox = (struct dns_sandbox){ .session = &t.session, .rung = &t.rung };

	t.client = udp();
	assert_int_equal(getsockname(t.client, (struct sockaddr *)&name, &len), 0);
	t.origin = (struct dns_client){
		.cgroup_id = 77, .number = 8, .addr = np_addr_v4(htonl(INADDR_LOOPBACK)), .port = ntohs(name.sin_port)
	};
	assert_int_equal(getsockopt(t.client, SOL_SOCKET, SO_NETNS_COOKIE, &t.origin.netns, &netns_len), 0);
	t.table[NP_DNS_ORIGIN_INDEX(false, t.origin.port, t.origin.netns)].number = 8;

	/* Without a policy and somebody to ask it does not open. */
	assert_int_equal(dns_server_open(t.server), -EPROTO);
	dns_server_policy(t.server, t.policy);
	assert_int_equal(dns_server_open(t.server), -EPROTO);
	assert_int_equal(dns_server_resolvers(t.server, dns.servers), 0);
	dns.tick = tick;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dns_server_forget(t.server, &t.sandbox, NULL);
	dns_server_free(t.server);
	dns_session_free(&t.session);
	policy_free(t.policy);
	munmap(t.table, ORIGINS_BYTES);
	close(t.origins_fd);
	close(t.sockets[0]);
	close(t.client);
	dns_free();
	return 0;
}

static void ask_udp(const char *name, unsigned type)
{
	uint8_t data[300];

	on_datagram(t.server, &t.origin, (const char *)data, query_bytes(data, name, type, false));
}

static size_t framed(uint8_t *out, const char *name, unsigned type)
{
	size_t len = query_bytes(out + DNS_FRAME_SIZE, name, type, false);

	dns_frame_write(out, len);
	return DNS_FRAME_SIZE + len;
}

static ssize_t ask_tcp(const char *name, unsigned type)
{
	uint8_t data[300];

	return dns_server_feed(t.server, &t.sandbox, &t.conn, (const char *)data, framed(data, name, type));
}

/* What came back over UDP: its rcode, and how many answers are in it; -1: nothing came. */
static int answer_udp(unsigned *ret_answers)
{
	uint8_t data[DNS_UDP_MAX];
	ssize_t len = recv(t.client, data, sizeof(data), MSG_DONTWAIT);

	if (len < 12)
		return -1;
	*ret_answers = data[7];
	return data[3] & 0xf;
}

static void expect_udp(int rcode, unsigned answers)
{
	unsigned n = 0;

	assert_int_equal(answer_udp(&n), rcode);
	if (rcode >= 0)
		assert_int_equal(n, answers);
}

static void expect_tcp(unsigned count, unsigned rcode, unsigned answers)
{
	assert_int_equal(t.conn.answers, count);
	assert_int_equal(t.conn.last[0] * 256 + t.conn.last[1], t.conn.len - DNS_FRAME_SIZE);
	assert_int_equal(t.conn.last[DNS_FRAME_SIZE + 3] & 0xf, rcode);
	assert_int_equal(t.conn.last[DNS_FRAME_SIZE + 7], answers);
}

static void a_name_waits_for_its_index(void **state)
{
	(void)state;
	ask_udp("a.web.example", ns_t_a);
	assert_true(ask_tcp("a.web.example", ns_t_aaaa) > 12);
	ask_udp("b.web.example", ns_t_a);
	expect_udp(-1, 0);
	assert_int_equal(t.conn.answers, 0);
	assert_int_equal(t.wants, 3);
	assert_int_equal(t.counts, 3);
	assert_int_equal(t.reports, 0);
	assert_int_equal(t.sandbox.n_queries, 3);

	/* All who asked for it, and nobody else. */
	dns_server_named(t.server, &t.session, 5, "a.web.example");
	expect_udp(ns_r_noerror, 1);
	expect_udp(-1, 0);
	expect_tcp(1, ns_r_noerror, 1);
	assert_int_equal(t.sandbox.n_queries, 1);
	assert_int_equal(t.reason, NP_R_RULE_ALLOWS);

	ask_udp("a.web.example", ns_t_a); /* it is known now */
	expect_udp(ns_r_noerror, 1);
	dns_server_named(t.server, &t.session, 0, "b.web.example");
	expect_udp(ns_r_servfail, 0);
	assert_int_equal(t.reason, NP_R_TOO_MANY_NAMES);
	assert_int_equal(t.sandbox.n_queries, 0);
}

static void an_address_leads_back_to_its_name(void **state)
{
	const struct np_addr known = np_synth_v4(5), unknown = np_synth_v6(6);

	(void)state;
	dns_server_named(t.server, &t.session, 5, "a.web.example");
	assert_string_equal(dns_server_reverse(t.server, &t.session, &known), "a.web.example");
	assert_null(dns_server_reverse(t.server, &t.session, &unknown));
	/* Who gives indexes out hears of it once in a while. */
	assert_int_equal(t.wants, 0);
	dns_server_tick(t.server, loop_now_ns() + REPORT_WAIT_MS * MS);
	dns_server_reverse(t.server, &t.session, &known);
	dns_server_reverse(t.server, &t.session, &known);
	assert_int_equal(t.wants, 1);
	assert_string_equal(t.wanted, "a.web.example");
}

static void what_is_refused_does_not_wait(void **state)
{
	(void)state;
	ask_udp("other.example", ns_t_a);
	expect_udp(ns_r_nxdomain, 0);
	assert_int_equal(t.reason, NP_R_NOT_IN_POLICY);
	t.rung.mode = NP_NONE; /* as the sandbox is now, not as it was when it was made */
	ask_udp("a.web.example", ns_t_a);
	expect_udp(ns_r_nxdomain, 0);
	assert_int_equal(t.wants, 0);
	assert_int_equal(dns.wanted[FAMILY_V4], 0);
}

static void nobodys_query_is_dropped(void **state)
{
	(void)state;
	t.origin.cgroup_id = 78;
	ask_udp("a.web.example", ns_t_a);
	t.origin.cgroup_id = 77;
	on_datagram(t.server, &t.origin, "nonsense", 8);
	expect_udp(-1, 0);
	assert_int_equal(t.counts + t.wants + t.reports, 0);
}

static void waiting_is_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NP_QUERIES_PER_SANDBOX; i++)
		ask_udp("a.web.example", ns_t_a);
	expect_udp(-1, 0);
	ask_udp("b.web.example", ns_t_a);
	expect_udp(ns_r_servfail, 0);
	assert_int_equal(t.reason, NP_R_TOO_MANY_QUERIES);
	/* Whom nobody gives an index goes without an answer: the client asks again. */
	dns_server_tick(t.server, loop_now_ns() + (NP_QUERY_MS + 1) * MS);
	assert_int_equal(t.sandbox.n_queries, 0);
	expect_udp(-1, 0);
}

static void records_come_from_the_resolvers(void **state)
{
	(void)state;
	ask_udp("mail.example", ns_t_txt);
	ask_tcp("mail.example", ns_t_txt);
	assert_int_equal(t.sandbox.n_queries, 2);
	run_until(&t.answered, 1);
	expect_udp(ns_r_noerror, 1);
	expect_tcp(1, ns_r_noerror, 1);
	ask_udp("mail.example", ns_t_txt); /* remembered */
	expect_udp(ns_r_noerror, 1);
	assert_int_equal(t.reason, NP_R_RULE_ALLOWS);
	assert_int_equal(dns.wanted[FAMILY_V4], 1);
}

static void records_that_do_not_come(void **state)
{
	(void)state;
	ask_udp("slow.example", ns_t_txt);
	dns_server_tick(t.server, loop_now_ns() + (NP_QUERY_MS + 1) * MS);
	expect_udp(ns_r_servfail, 0);
	assert_int_equal(t.sandbox.n_queries, 0);
}

static void a_rise_answers_what_waits(void **state)
{
	(void)state;
	ask_udp("slow.example", ns_t_txt);
	dns_server_rejudge(t.server, &t.sandbox);
	expect_udp(-1, 0);
	assert_true(records_are_wanted(t.server, "slow.example", ns_t_txt));
	t.rung.mode = NP_NONE;
	dns_server_rejudge(t.server, &t.sandbox);
	expect_udp(ns_r_nxdomain, 0);
	assert_false(records_are_wanted(t.server, "slow.example", ns_t_txt));
	dns_server_cancel_unwanted(t.server);
	assert_true(TAILQ_EMPTY(&t.server->queries));
}

static void who_is_gone_is_forgotten(void **state)
{
	(void)state;
	ask_tcp("a.web.example", ns_t_a);
	ask_udp("a.web.example", ns_t_a);
	dns_server_forget(t.server, NULL, &t.conn);
	assert_int_equal(t.sandbox.n_queries, 1);
	dns_server_named(t.server, &t.session, 1, "a.web.example");
	assert_int_equal(t.conn.answers, 0);
	expect_udp(ns_r_noerror, 1);
	ask_udp("b.web.example", ns_t_a);
	dns_server_forget(t.server, &t.sandbox, NULL);
	assert_int_equal(t.sandbox.n_queries, 0);
	assert_true(TAILQ_EMPTY(&t.session.queries));
}

static void queries_over_tcp(void **state)
{
	uint8_t data[40 * 64];
	const char *bytes = (const char *)data;
	size_t len = 0, each;

	(void)state;
	dns_server_named(t.server, &t.session, 1, "a.web.example");
	while (len + 64 < sizeof(data))
		len += framed(data + len, "a.web.example", ns_t_a);
	each = framed((uint8_t[64]){ 0 }, "a.web.example", ns_t_a);
	assert_true(len / each > QUERIES_TURN);
	/* Half of one is left for later; a turn has so many; and who does not read gets none. */
	assert_int_equal(dns_server_feed(t.server, &t.sandbox, &t.conn, bytes, each + 5), each);
	assert_int_equal(dns_server_feed(t.server, &t.sandbox, &t.conn, bytes, 1), 0);
	assert_int_equal(t.conn.answers, 1);
	assert_int_equal(dns_server_feed(t.server, &t.sandbox, &t.conn, bytes, len), QUERIES_TURN * each);
	assert_int_equal(t.conn.answers, 1 + QUERIES_TURN);
	t.conn.deaf = true;
	assert_int_equal(dns_server_feed(t.server, &t.sandbox, &t.conn, bytes, len), 0);
	t.conn.deaf = false;
	assert_int_equal(dns_server_feed(t.server, &t.sandbox, &t.conn, "\377\377", 2), -EPROTO);
	assert_int_equal(t.conn.answers, 1 + QUERIES_TURN);
}

/* dns: refused: synthetic */
static void a_refused_name_with_an_address(void **state)
{
	struct policy *synthetic =
		policy_of("dns: {refused: synthetic}\nrules:\n- deny: no.example\n- allow: '*.web.example'\n");
	const struct np_addr addr = np_synth_v4(NP_NAMES_PER_SESSION + 1);

	(void)state;
	dns_server_policy(t.server, synthetic);
	ask_udp("no.example", ns_t_a);
	ask_udp("other.example", ns_t_a);
	expect_udp(-1, 0);
	assert_int_equal(t.wants_refused, 2);
	dns_server_named(t.server, &t.session, NP_NAMES_PER_SESSION + 1, "no.example");
	expect_udp(ns_r_noerror, 1);
	assert_int_equal(t.reason, NP_R_RULE_DENIES);
	assert_string_equal(dns_server_reverse(t.server, &t.session, &addr), "no.example");
	/* No index is left: it does not resolve, for the reason that it has. */
	dns_server_named(t.server, &t.session, 0, "other.example");
	expect_udp(ns_r_nxdomain, 0);
	assert_int_equal(t.reason, NP_R_NOT_IN_POLICY);
	/* Nobody answers: nor then. */
	ask_udp("third.example", ns_t_a);
	dns_server_tick(t.server, loop_now_ns() + (NP_QUERY_MS + 1) * MS);
	expect_udp(ns_r_nxdomain, 0);
	/* Too many wait: those that are allowed are told so, the others are refused. */
	for (unsigned i = 0; i < NP_QUERIES_PER_SANDBOX; i++)
		ask_udp("third.example", ns_t_a);
	expect_udp(-1, 0);
	ask_udp("fourth.example", ns_t_a);
	expect_udp(ns_r_nxdomain, 0);
	ask_udp("a.web.example", ns_t_a);
	expect_udp(ns_r_servfail, 0);
	assert_int_equal(t.reports, 5);
	assert_int_equal(dns.wanted[FAMILY_V4], 0); /* nothing of it left */
	dns_server_policy(t.server, t.policy);
	policy_free(synthetic);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_name_waits_for_its_index),
		TEST(an_address_leads_back_to_its_name),
		TEST(what_is_refused_does_not_wait),
		TEST(nobodys_query_is_dropped),
		TEST(waiting_is_bounded),
		TEST(records_come_from_the_resolvers),
		TEST(records_that_do_not_come),
		TEST(a_rise_answers_what_waits),
		TEST(who_is_gone_is_forgotten),
		TEST(queries_over_tcp),
		TEST(a_refused_name_with_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
