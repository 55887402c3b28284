/* SPDX-License-Identifier: MIT */
#include "init/mount_check.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* A sandbox's own. */
#define PLANNED                                                                   \
	"10 9 0:40 / / ro - tmpfs tmpfs rw\n"                                     \
	"11 10 254:0 /usr /usr ro - ext4 /dev/vda rw\n"                           \
	"12 10 0:22 /class /sys/class ro - sysfs sysfs rw\n"                      \
	"13 10 0:22 /devices /sys/devices ro - sysfs sysfs rw\n"                  \
	"14 10 0:41 / /proc rw - proc proc rw\n"                                  \
	"15 14 0:41 /irq /proc/irq ro - proc proc rw\n"                           \
	"16 10 0:42 / /dev rw - tmpfs tmpfs rw\n"                                 \
	"17 16 0:6 /null /dev/null rw - devtmpfs devtmpfs rw\n"                   \
	"18 16 0:43 / /dev/pts rw - devpts devpts rw\n"                           \
	"19 10 0:6 /null /etc/shadow ro master:1 propagate_from:2 - devtmpfs x rw\n" \
	"20 10 254:0 /srv/a\\040b /data rw - ext4 /dev/vda rw\n"

static const char *find(const char *more)
{
	static char table[8192];

	snprintf(table, sizeof(table), "%s%s", PLANNED, more);
	return windows_find(table);
}

static void what_was_planned(void **state)
{
	(void)state;
	assert_null(find(""));
}

static void windows_in_sight(void **state)
{
	(void)state;
	assert_string_equal(find("30 20 0:50 / /data/x rw - proc proc rw\n"), "/data/x");
	assert_string_equal(find("30 20 0:50 / /data/x rw - cgroup2 cgroup2 rw\n"), "/data/x");
	assert_string_equal(find("30 20 0:50 / /data/\\040y rw - bpf bpf rw\n"), "/data/\\040y");
	assert_string_equal(find("30 10 0:22 / /sys rw - sysfs sysfs rw\n"), "/sys");
	assert_string_equal(find("30 10 0:22 / /sys/class rw - sysfs sysfs rw\n"), "/sys/class");
	assert_string_equal(find("30 20 0:6 /kmsg /data/kmsg rw - devtmpfs d rw\n"), "/data/kmsg");
	assert_string_equal(find("30 10 0:41 / /procs rw - proc proc rw\n"), "/procs");
}

static void windows_that_are_covered(void **state)
{
	(void)state;
	assert_null(find("30 20 0:50 / /data/x rw - bpf bpf rw\n31 30 0:51 / /data/x ro - tmpfs tmpfs rw\n"));
	assert_null(find("31 30 0:51 / /data/x ro - tmpfs tmpfs rw\n30 20 0:50 / /data/x rw - bpf bpf rw\n"));
	/* Around it. */
	assert_null(find("30 20 0:50 / /data/x rw - tmpfs t rw\n31 30 0:51 / /data/x/bpf rw - bpf bpf rw\n"
			 "32 30 0:52 / /data/x ro - tmpfs tmpfs rw\n"));
	/* Beside it, below it, and by another window: these hide nothing. */
	assert_non_null(find("30 20 0:50 / /data/x rw - bpf bpf rw\n31 20 0:51 / /data/y ro - tmpfs tmpfs rw\n"));
	assert_non_null(find("30 20 0:50 / /data/x rw - bpf bpf rw\n31 30 0:51 / /data/x/y ro - tmpfs tmpfs rw\n"));
	assert_string_equal(find("30 20 0:50 / /data/x rw - bpf b rw\n31 30 0:51 / /data/x rw - proc p rw\n"), "/data/x");
}

static void tables_that_are_none(void **state)
{
	static char many[WINDOWS_MOUNTS * 40 + 200];
	size_t len = 0;

	(void)state;
	assert_non_null(windows_find((char[]){ "" }));
	assert_non_null(windows_find((char[]){ "10 9 0:40 / /\n" }));
	assert_non_null(windows_find((char[]){ "10 9 - tmpfs x rw\n" }));
	assert_non_null(windows_find((char[]){ "10 9 0:40 / / ro - \n" }));
	for (int i = 0; i <= WINDOWS_MOUNTS; i++)
		len += (size_t)snprintf(many + len, sizeof(many) - len, "%d 1 0:1 / /a%d rw - ext4 x rw\n", i, i);
	assert_non_null(windows_find(many));
	/* Loops of parents end. */
	assert_non_null(windows_find((char[]){ "1 2 0:1 / /a rw - bpf x rw\n2 1 0:1 / /b rw - ext4 x rw\n" }));
	assert_non_null(windows_find((char[]){ "1 1 0:1 / /a rw - bpf x rw\n" }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_planned),
		cmocka_unit_test(windows_in_sight),
		cmocka_unit_test(windows_that_are_covered),
		cmocka_unit_test(tables_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
