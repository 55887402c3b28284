/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "containers/pod_find.c"

#define UID  "0b5cfd4e-1f2a-4d1b-9a55-3e6f2a9c1b77"
#define UID_ "0b5cfd4e_1f2a_4d1b_9a55_3e6f2a9c1b77"

static void test_names_of_kubelet(void **state)
{
	static const char *const names[] = { "pod" UID, "kubepods-pod" UID_ ".slice",
					     "kubepods-besteffort-pod" UID_ ".slice",
					     "kubelet-kubepods-burstable-pod" UID_ ".slice" };
	static const char *const others[] = { "",
					      "pod",
					      UID,
					      "pod" UID_,
					      "pod" UID "0",
					      "kubepods-pod" UID_,
					      "kubepodspod" UID_ ".slice",
					      "kubepods-pod" UID_ "0.slice",
					      "pod" UID_ ".slice",
					      "cri-containerd-" UID_ ".scope" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(pod_name_is(names[i], UID));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(pod_name_is(others[i], UID));
	assert_false(pod_name_is("pod", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_kubelet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
