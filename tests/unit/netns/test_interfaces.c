/* SPDX-License-Identifier: MIT */
/* Beside what the C library says of the same namespace: one of our own, so that nobody changes it meanwhile. */
#include "netns/interfaces.c"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/socket.h>

static int fresh_namespace(void **state)
{
	(void)state;
	return unshare(CLONE_NEWNET) == 0 ? 0 : unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

/* A veth pair, and as many addresses on loopback as do not fit into one message of the kernel. */
static void many_make(unsigned addresses)
{
	_close_ int fd = rtnl_open();
	const struct ifinfomsg any = { 0 };
	const struct ifinfomsg up = { .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct rtnl_request rq;
	struct rtattr *info;

	rtnl_begin(&rq, RTM_NEWLINK, 0, &up, sizeof(up));
	assert_int_equal(rtnl_send(fd, &rq), 0);
	rtnl_begin(&rq, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &any, sizeof(any));
	rtnl_put(&rq, IFLA_IFNAME, "exactly15bytes_", 16);
	info = rtnl_nest(&rq, IFLA_LINKINFO);
	rtnl_put(&rq, IFLA_INFO_KIND, "veth", 4);
	rtnl_nest_end(&rq, info);
	assert_int_equal(rtnl_send(fd, &rq), 0);
	for (unsigned i = 0; i < addresses; i++) {
		const struct ifaddrmsg on = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = 1 };
		const unsigned char addr[] = { 10, 1, (unsigned char)(i >> 8), (unsigned char)i };
		const unsigned char all[] = { 10, 1, (unsigned char)(i >> 8), 255 };

		rtnl_begin(&rq, RTM_NEWADDR, NLM_F_CREATE, &on, sizeof(on));
		rtnl_put(&rq, IFA_LOCAL, addr, sizeof(addr));
		rtnl_put(&rq, IFA_ADDRESS, addr, sizeof(addr));
		rtnl_put(&rq, IFA_BROADCAST, all, sizeof(all));
		assert_int_equal(rtnl_send(fd, &rq), 0);
	}
}

static void devices_are_all_there(void **state)
{
	struct if_nameindex *theirs;
	struct interface *ours;
	size_t n, i = 0;

	(void)state;
	many_make(0);
	theirs = if_nameindex();
	assert_int_equal(interfaces_list(&ours, &n), 0);
	assert_int_equal(n, 3);
	for (; theirs[i].if_index; i++) {
		assert_int_equal(ours[i].index, theirs[i].if_index);
		assert_string_equal(ours[i].name, theirs[i].if_name);
	}
	assert_int_equal(i, n);
	if_freenameindex(theirs);
	free(ours);
}

/* Of a pair: -1 while both ends are here; then the number of where the other one has gone, by which that namespace is known. */
static void the_other_end_may_be_elsewhere(void **state)
{
	_close_ int fd = -1, here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), elsewhere = -1;
	struct ifinfomsg far = { 0 };
	struct interface *ours;
	struct rtnl_request rq;
	size_t n;

	(void)state;
	many_make(0);
	assert_int_equal(interfaces_list(&ours, &n), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ours[i].peer_netns, -1);
	far.ifi_index = (int)ours[1].index;
	free(ours);

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	elsewhere = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	assert_int_equal(interfaces_netns_number(elsewhere), -1);
	fd = rtnl_open();
	rtnl_begin(&rq, RTM_NEWLINK, 0, &far, sizeof(far));
	rtnl_put(&rq, IFLA_NET_NS_FD, &elsewhere, sizeof(elsewhere));
	assert_int_equal(rtnl_send(fd, &rq), 0);
	assert_int_equal(interfaces_list(&ours, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(ours[0].peer_netns, -1);
	assert_true(ours[1].peer_netns >= 0);
	assert_int_equal(interfaces_netns_number(elsewhere), ours[1].peer_netns);
	assert_int_equal(interfaces_netns_number(-1), -1);
	free(ours);
}

struct seen {
	unsigned own, broadcast, stop_at;
	struct np_addr last;
};

static int see(void *data, const struct np_addr *addr, bool broadcast)
{
	struct seen *seen = data;

	++*(broadcast ? &seen->broadcast : &seen->own);
	seen->last = *addr;
	return seen->own == seen->stop_at ? 7 : 0;
}

static void addresses_are_all_there(void **state)
{
	struct ifaddrs *list, *a;
	struct seen seen = { 0 };
	unsigned own = 0;

	(void)state;
	many_make(600);
	assert_int_equal(getifaddrs(&list), 0);
	for (a = list; a; a = a->ifa_next)
		own += a->ifa_addr && (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6);
	freeifaddrs(list);
	assert_true(own >= 601); /* and 127.0.0.1, and ::1 where there is IPv6 */
	assert_int_equal(interfaces_each_addr(see, &seen), 0);
	assert_int_equal(seen.own, own);
	assert_int_equal(seen.broadcast, 600);
}

static void who_has_seen_enough_is_asked_no_more(void **state)
{
	const struct np_addr loopback = np_addr_v4(htonl(INADDR_LOOPBACK));
	struct seen seen = { .stop_at = 1 };

	(void)state;
	many_make(1);
	assert_int_equal(interfaces_each_addr(see, &seen), 7);
	assert_int_equal(seen.own, 1);
	assert_memory_equal(&seen.last, &loopback, sizeof(loopback));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(devices_are_all_there, fresh_namespace),
		cmocka_unit_test_setup(the_other_end_may_be_elsewhere, fresh_namespace),
		cmocka_unit_test_setup(addresses_are_all_there, fresh_namespace),
		cmocka_unit_test_setup(who_has_seen_enough_is_asked_no_more, fresh_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
