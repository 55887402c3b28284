/* SPDX-License-Identifier: MIT */
#include "sandbox/caps.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>
#include <cmocka.h>

#include "child.h"

static uint64_t caps_now(bool permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		abort();
	return permitted ? data[0].permitted | (uint64_t)data[1].permitted << 32
			 : data[0].effective | (uint64_t)data[1].effective << 32;
}

static int reduced(void)
{
	CHECK(caps_reduce() == 0);
	CHECK((caps_now(true) & ~caps_kept) == 0);
	CHECK(caps_now(true) == caps_now(false));
	CHECK(caps_now(true) & BIT(CAP_SETUID));
	CHECK(prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) == 1);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(caps_kept & BIT(cap)))
			CHECK(prctl(PR_CAPBSET_READ, cap, 0, 0, 0) <= 0);
	/* An exec as root does not bring them back. */
	execl("/bin/sh", "sh", "-c", "grep -q '^CapEff:.0*4fb$' /proc/self/status", (char *)NULL);
	return 1;
}

static int as_another_user(void)
{
	CHECK(caps_reduce() == 0);
	CHECK(setresgid(65534, 65534, 65534) == 0);
	CHECK(setresuid(65534, 65534, 65534) == 0);
	CHECK(caps_now(true) == 0);
	execl("/bin/sh", "sh", "-c", "grep -q '^CapPrm:.0*$' /proc/self/status", (char *)NULL);
	return 1;
}

static void only_a_few_stay(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(child_run(reduced), 0);
	assert_int_equal(child_run(as_another_user), 0);
}

static void the_dangerous_are_not_among_them(void **state)
{
	static const int never[] = { CAP_NET_ADMIN,	  CAP_NET_RAW,	    CAP_SYS_ADMIN, CAP_SYS_PTRACE,
				     CAP_SYS_MODULE,	  CAP_SYS_RAWIO,    CAP_BPF,	   CAP_PERFMON,
				     CAP_MKNOD,		  CAP_SYS_CHROOT,   CAP_SYS_BOOT,  CAP_SYS_TIME,
				     CAP_DAC_READ_SEARCH, CAP_SETFCAP,	    CAP_SETPCAP,   CAP_AUDIT_READ,
				     CAP_AUDIT_WRITE,	  CAP_AUDIT_CONTROL };

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(caps_kept & BIT(never[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_few_stay),
		cmocka_unit_test(the_dangerous_are_not_among_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
