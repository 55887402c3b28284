/* SPDX-License-Identifier: MIT */
/* Which kinds are fit; tests/e2e/test_devices.py has what becomes of them. */
#include "launch/device_kinds.c"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static char path[] = "/tmp/np-devices-XXXXXX";

static bool says(const char *table, unsigned number, bool (*is_fit)(const char *name))
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(table, file);
	fclose(file);
	return table_says_fit(path, number, is_fit);
}

static void kinds(void **state)
{
	static const char table[] =
		"Character devices:\n  1 mem\n 10 misc\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n226 drm\n"
		"240 nvidia-nvlink\n241 drm\n241 macvtap\n508 nvidia-uvm\n\nBlock devices:\n  8 sd\n250 drm\n";

	(void)state;
	assert_true(says(table, 195, driver_is_fit));
	assert_true(says(table, 226, driver_is_fit));
	assert_true(says(table, 508, driver_is_fit));
	assert_false(says(table, 1, driver_is_fit));
	assert_false(says(table, 10, driver_is_fit));
	assert_false(says(table, 240, driver_is_fit)); /* it joins hosts */
	assert_false(says(table, 241, driver_is_fit)); /* not all of its names */
	assert_false(says(table, 250, driver_is_fit)); /* a block device's */
	assert_false(says(table, 22, driver_is_fit));
	assert_false(says("", 226, driver_is_fit));
	assert_true(says("232 kvm\n200 tun\n", 232, misc_is_fit));
	assert_false(says("232 kvm\n200 tun\n", 200, misc_is_fit));
	assert_false(table_says_fit("/np-nowhere", 226, driver_is_fit));
	assert_true(device_is_fit(makedev(1, 3)));
	assert_false(device_is_fit(makedev(1, 1)));
	assert_false(device_is_fit(makedev(1, 11)));
}

static void groups(void **state)
{
	static struct host host = { .devices = { { .group = 0 }, { .group = 7 }, { .group = 8 }, { .group = 7 } },
				    .n_devices = 4 };
	struct identity identity = { .ngroups = 1, .groups = { 8 } };

	(void)state;
	assert_int_equal(devices_groups(&host, &identity), 0);
	assert_int_equal(identity.ngroups, 2);
	assert_int_equal(identity.groups[1], 7);
	identity.ngroups = IDENTITY_GROUPS_MAX;
	for (int i = 0; i < IDENTITY_GROUPS_MAX; i++)
		identity.groups[i] = 1000;
	assert_int_equal(devices_groups(&host, &identity), -E2BIG);
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(groups),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
