/* SPDX-License-Identifier: MIT */
#include "inspect/route.c"

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

static struct worker worker;

static struct np_addr addr_of(const char *text)
{
	struct np_addr addr;

	assert_int_equal(addr_parse(text, strlen(text), &addr), 0);
	return addr;
}

static void own_add4(int fd, const char *alias, const char *text)
{
	struct ifreq request = { 0 };
	struct sockaddr_in *sin = (struct sockaddr_in *)&request.ifr_addr;

	strcpy(request.ifr_name, alias);
	sin->sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, text, &sin->sin_addr), 1);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
}

static void own_add6(const char *text)
{
	struct in6_ifreq request = { .ifr6_prefixlen = 128, .ifr6_ifindex = 1 };
	struct sockaddr_in6 own = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET6, text, &request.ifr6_addr), 1);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	own.sin6_addr = request.ifr6_addr;
	for (int i = 0; bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0; i++) { /* it is tentative at first */
		assert_true(i < 5000);
		usleep(1000);
	}
	close(fd);
}

/* A network with addresses of its own, which is gone with the process. */
static int network_make(void **state)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	own_add4(fd, "lo:1", "192.0.2.1");
	own_add4(fd, "lo:2", "198.51.100.1");
	own_add6("2001:db8::1");
	own_add6("2001:db8::2");
	close(fd);
	route_probes_open(worker.probes);
	return 0;
}

/* Each by itself, whatever was asked before it. */
static void test_own_addresses(void **state)
{
	static const struct {
		const char *addr;
		bool own;
	} asked[] = {
		{ "192.0.2.1", true },	  { "198.51.100.1", true }, { "192.0.2.1", true },    { "203.0.113.1", false },
		{ "198.51.100.1", true }, { "2001:db8::1", true },  { "2001:db8::2", true },  { "2001:db8::9", false },
		{ "2001:db8::1", true },  { "192.0.2.7", false },   { "198.51.100.1", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct np_addr addr = addr_of(asked[i].addr);

		if (addr_is_own(&worker, &addr) != asked[i].own)
			fail_msg("%s is %s", asked[i].addr, asked[i].own ? "not known to be own" : "taken for own");
	}
}

/* Without a socket nobody can tell, and it is refused. */
static void test_no_socket(void **state)
{
	struct np_addr addr = addr_of("203.0.113.1");
	struct worker other = { .probes = { STDIN_FILENO, -1 } };

	(void)state;
	assert_true(addr_is_own(&other, &addr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_addresses),
		cmocka_unit_test(test_no_socket),
	};

	return cmocka_run_group_tests(tests, network_make, NULL);
}
