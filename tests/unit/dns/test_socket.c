/* SPDX-License-Identifier: MIT */
/* Real sockets on loopback; the kernel's table is a file in memory that the test writes. Needs root, for SO_MARK. */
#include "dns/socket.c"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "vocab/limits.h"

#ifndef SO_RCVMARK
#define SO_RCVMARK 75
#endif

static struct loop *loop;
static struct dns_socket *port;
static int sockets[2], origins_fd;
static struct np_dns_origin *table;
static struct {
	unsigned count;
	struct dns_client client;
	char data[NP_DNS_BYTES];
	size_t len;
} got;

static void on_ask(void *ctx, const struct dns_client *client, const char *data, size_t len)
{
	(void)ctx;
	got.count++;
	got.client = *client;
	got.len = len;
	memcpy(got.data, data, len);
}

static int udp(bool v6)
{
	union sockaddr_inet name = { 0 };
	const int yes = 1;
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	name.sa.sa_family = v6 ? AF_INET6 : AF_INET;
	if (v6)
		name.v6.sin6_addr = in6addr_loopback;
	else
		name.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, &name.sa, v6 ? sizeof(name.v6) : sizeof(name.v4)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVMARK, &yes, sizeof(yes)), 0);
	return fd;
}

static uint16_t port_of(int fd)
{
	union sockaddr_inet name;
	socklen_t len = sizeof(name);

	assert_int_equal(getsockname(fd, &name.sa, &len), 0);
	return ntohs(name.sa.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port);
}

static int setup(void **state)
{
	struct dns_socket_config config = { .query = on_ask };

	(void)state;
	memset(&got, 0, sizeof(got));
	origins_fd = memfd_create("asks", 0);
	assert_int_equal(ftruncate(origins_fd, ORIGINS_BYTES), 0);
	table = mmap(NULL, ORIGINS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, origins_fd, 0);
	assert_true(table != MAP_FAILED);
	assert_int_equal(loop_new(&loop), 0);
	for (int i = 0; i < 2; i++)
		config.sockets[i] = sockets[i] = udp(i);
	config.loop = loop;
	config.dns_origins = origins_fd;
	assert_int_equal(dns_socket_new(&config, &port), 0);
	return dns_socket_open(port);
}

static int teardown(void **state)
{
	(void)state;
	dns_socket_free(port);
	loop_free(loop);
	munmap(table, ORIGINS_BYTES);
	close(origins_fd);
	for (int i = 0; i < 2; i++)
		close(sockets[i]);
	return 0;
}

static struct np_addr loopback(bool v6)
{
	struct np_addr a = np_addr_v4(htonl(INADDR_LOOPBACK));

	if (v6)
		memcpy(&a, &in6addr_loopback, sizeof(a));
	return a;
}

static struct np_dns_origin *entry(int fd, bool v6, uint32_t number)
{
	struct np_dns_origin *query = &table[NP_DNS_ORIGIN_INDEX(v6, port_of(fd), port->host.netns)];

	*query = (struct np_dns_origin){ .number = number, .generation = 3, .cgroup_id = 77, .source = loopback(v6) };
	return query;
}

static void query(int fd, bool v6, uint32_t mark, const char *data, size_t len)
{
	union sockaddr_inet name = { 0 };
	socklen_t size = sizeof(name);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), 0);
	assert_int_equal(getsockname(sockets[v6], &name.sa, &size), 0);
	assert_int_equal(sendto(fd, data, len, 0, &name.sa, size), (ssize_t)len);
	batches_receive(&port->host, v6);
}

static void a_query_is_the_senders(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		int fd = udp(v6);
		char back[16];

		entry(fd, v6, 8)->server = np_addr_v4(htonl(0x08080808));
		query(fd, v6, 8, "query", 5);
		assert_int_equal(got.count, v6 + 1);
		assert_int_equal(got.client.cgroup_id, 77);
		assert_int_equal(got.client.generation, 3);
		assert_int_equal(got.client.port, port_of(fd));
		assert_int_equal(got.client.v6, v6);
		assert_int_equal(got.client.server.w[3], htonl(0x08080808));
		assert_int_equal(got.len, 5);
		assert_memory_equal(got.data, "query", 5);
		assert_int_equal(dns_socket_reply(port, &got.client, "answer", 6), 0);
		assert_int_equal(recv(fd, back, sizeof(back), 0), 6);
		assert_memory_equal(back, "answer", 6);
		close(fd);
	}
}

static void what_is_nobodys_is_dropped(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		int fd = udp(v6);
		struct np_dns_origin *ours = entry(fd, v6, 8);

		query(fd, v6, 0, "q", 1); /* somebody of the host: no mark */
		query(fd, v6, 6, "q", 1); /* of an entry that was overwritten */
		query(fd, v6, 10, "q", 1);
		ours->number = 9; /* being written */
		query(fd, v6, 9, "q", 1);
		query(fd, v6, 8, "q", 1);
		ours->number = 0; /* never written */
		query(fd, v6, 0, "q", 1);
		ours->number = 8;
		ours->source.b[15] ^= 1; /* of another address */
		query(fd, v6, 8, "q", 1);
		ours->source.b[15] ^= 1;
		assert_int_equal(got.count, 0);
		query(fd, v6, 8, "q", 1);
		assert_int_equal(got.count, 1);
		got.count = 0;
		close(fd);
	}
}

static void an_answer_does_not_go_to_the_next_owner_of_the_port(void **state)
{
	int fd = udp(false);
	char back[16];

	(void)state;
	entry(fd, false, 8);
	query(fd, false, 8, "q", 1);
	entry(fd, false, 10);
	assert_int_equal(dns_socket_reply(port, &got.client, "answer", 6), -ESTALE);
	assert_int_equal(recv(fd, back, sizeof(back), 0), -1);
	close(fd);
}

static void long_and_empty_datagrams(void **state)
{
	static char data[NP_DNS_BYTES + 1];
	int fd = udp(false);

	(void)state;
	entry(fd, false, 8);
	query(fd, false, 8, data, sizeof(data));
	assert_int_equal(got.count, 0);
	query(fd, false, 8, data, NP_DNS_BYTES);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.len, NP_DNS_BYTES);
	query(fd, false, 8, data, 0);
	assert_int_equal(got.count, 2);
	assert_int_equal(got.len, 0);
	close(fd);
}

static void batches_are_bounded_and_nothing_is_left_behind(void **state)
{
	const unsigned n = NP_DNS_BATCH * BATCHES_MAX + 5;
	union sockaddr_inet name = { 0 };
	socklen_t size = sizeof(name);
	uint32_t mark = 8;
	int fd = udp(false);

	(void)state;
	entry(fd, false, mark);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), 0);
	assert_int_equal(getsockname(sockets[0], &name.sa, &size), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(sendto(fd, "q", 1, 0, &name.sa, size), 1);
	batches_receive(&port->host, false);
	assert_int_equal(got.count, NP_DNS_BATCH * BATCHES_MAX);
	batches_receive(&port->host, false);
	assert_int_equal(got.count, n);
	close(fd);
}

/* -- the kernel writes while we read --------------------------------------------------- */

static bool stop;

/* As np_query_sign() does it: all fields tell the same number. */
static void *writer(void *data)
{
	struct np_dns_origin *query = data;

	for (uint32_t n = 2; !__atomic_load_n(&stop, __ATOMIC_RELAXED); n = n + 2 ? n + 2 : 2) {
		__atomic_store_n(&query->number, n - 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		*(volatile __u64 *)&query->cgroup_id = n;
		*(volatile __u32 *)&query->generation = n;
		__atomic_store_n(&query->number, n, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void torn_reads_are_noticed(void **state)
{
	struct np_dns_origin *query = &table[NP_DNS_ORIGIN_INDEX(false, 5, 0)];
	unsigned whole = 0;
	pthread_t thread;

	(void)state;
	stop = false;
	query->source = loopback(false);
	assert_int_equal(pthread_create(&thread, NULL, writer, query), 0);
	for (unsigned i = 0; i < 20000000 && whole < 1000; i++) {
		struct dns_client client = { .addr = loopback(false), .port = 5 };
		uint32_t mark = __atomic_load_n(&query->number, __ATOMIC_RELAXED);

		if (!client_find(table, mark, &client))
			continue;
		whole++;
		assert_int_equal(client.cgroup_id, mark);
		assert_int_equal(client.generation, mark);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(whole > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_query_is_the_senders, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_nobodys_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(an_answer_does_not_go_to_the_next_owner_of_the_port, setup, teardown),
		cmocka_unit_test_setup_teardown(long_and_empty_datagrams, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_are_bounded_and_nothing_is_left_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(torn_reads_are_noticed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
