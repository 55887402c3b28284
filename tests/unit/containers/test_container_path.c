/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "containers/container_path.c"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void test_paths_of_engines(void **state)
{
	static const struct {
		const char *path, *engine, *below;
	} good[] = {
		{ "/system.slice/docker-" ID ".scope", "docker", "" },
		{ "/docker/" ID, "docker", "/init.scope" },
		{ "/sys/fs/cgroup/unified/docker/" ID, "docker", "" },
		{ "/machine.slice/libpod-" ID ".scope", "podman", "/container" },
		{ "/libpod_parent/libpod-" ID, "podman", "" },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman",
		  "/container" },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-" ID ".scope",
		  "containerd", "" },
		{ "/kubepods/burstable/pod1/" ID, NULL, "/a/b" },
		{ "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", "cri-o", "/container" },
		{ "/agents.slice/" ID, NULL, "" },
		{ "/docker/" OTHER "/docker/" ID, "docker", "" }, /* in another one */
		{ ID, NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct container container;
		char path[512];

		snprintf(path, sizeof(path), "%s%s", good[i].path, good[i].below);
		assert_true(container_of_path(path, &container));
		assert_string_equal(container.id, ID);
		assert_int_equal(container.len, strlen(good[i].path));
		if (good[i].engine)
			assert_string_equal(container.engine, good[i].engine);
		else
			assert_null(container.engine);
	}
}

static void test_paths_of_others(void **state)
{
	static const char *const bad[] = {
		"",
		"/",
		"//",
		"/docker",
		"/docker/",
		"/system.slice/docker.service",
		"/machine.slice/libpod-conmon-" ID ".scope",
		"/kubepods/pod1/crio-conmon-" ID,
		"/docker/" ID "0",
		"/docker/0123",
		"/docker/" ID ".slice",
		"/docker-" ID "-x.scope",
		".scope",
	};
	struct container container;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(container_of_path(bad[i], &container));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_of_engines),
		cmocka_unit_test(test_paths_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
