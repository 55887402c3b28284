/* SPDX-License-Identifier: MIT */
#include "netns/rtnetlink.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void attributes_and_nests(void **state)
{
	const struct ifinfomsg link = { .ifi_index = 7 };
	struct rtnl_request rq;
	struct rtattr *nest;
	const struct rtattr *a;

	(void)state;
	rtnl_begin(&rq, RTM_NEWLINK, NLM_F_CREATE, &link, sizeof(link));
	assert_int_equal(rq.header.nlmsg_len, NLMSG_LENGTH(sizeof(link)));
	nest = rtnl_nest(&rq, IFLA_LINKINFO);
	rtnl_put(&rq, 1, "veth", 4);
	rtnl_put(&rq, 2, "x", 1);
	rtnl_nest_end(&rq, nest);
	rtnl_put(&rq, IFLA_IFNAME, "lo", 3);
	a = (const void *)((const char *)&rq + NLMSG_LENGTH(sizeof(link)));
	assert_int_equal(a->rta_type, IFLA_LINKINFO);
	assert_int_equal(a->rta_len, RTA_LENGTH(0) + RTA_LENGTH(4) + RTA_LENGTH(1));
	a = (const void *)((const char *)a + RTA_ALIGN(a->rta_len));
	assert_int_equal(a->rta_type, IFLA_IFNAME);
	assert_string_equal(RTA_DATA(a), "lo");
}

static void what_does_not_fit(void **state)
{
	const struct ifinfomsg link = { 0 };
	char data[RTNL_ROOM] = "";
	struct rtnl_request rq;

	(void)state;
	rtnl_begin(&rq, RTM_NEWLINK, 0, &link, sizeof(link));
	rtnl_put(&rq, 1, data, sizeof(data));
	assert_null(rtnl_nest(&rq, 2));
	rtnl_put(&rq, 3, "x", 1); /* it stays so */
	rtnl_nest_end(&rq, NULL);
	assert_int_equal(rtnl_send(-1, &rq), -EMSGSIZE);
}

/* Of devices that are there, and of one that is not. */
static void the_kernel_answers(void **state)
{
	struct ifinfomsg link = { .ifi_index = 1 };
	char answer[16384] __attribute__((aligned(8)));
	_close_ int fd = rtnl_open();
	struct rtnl_request rq;

	(void)state;
	assert_true(fd >= 0);
	rtnl_begin(&rq, RTM_GETLINK, 0, &link, sizeof(link));
	assert_int_equal(rtnl_ask(fd, &rq, answer, sizeof(answer)), 0);
	assert_int_equal(((struct nlmsghdr *)answer)->nlmsg_type, RTM_NEWLINK);
	link.ifi_index = 0x7ffffff0;
	rtnl_begin(&rq, RTM_GETLINK, 0, &link, sizeof(link));
	assert_int_equal(rtnl_ask(fd, &rq, answer, sizeof(answer)), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_and_nests),
		cmocka_unit_test(what_does_not_fit),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
