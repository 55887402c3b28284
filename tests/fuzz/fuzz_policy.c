/* SPDX-License-Identifier: MIT */
/* A policy file is hostile until it has been read: any bytes give a policy that holds, or an error that names a place. */
#include "policy/policy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy policy = { 0 };
	char problem[512] = "";
	int r = policy_parse("fuzz.yaml", (const char *)data, size, &policy, problem);

	if (r < 0) {
		if (!problem[0] || strncmp(problem, "fuzz.yaml", 9) != 0)
			abort();
		return 0;
	}
	for (size_t i = 0; i < 4; i++)
		if (policy.modes[i] < NP_FULL || policy.modes[i] > NP_NONE || (i && policy.modes[i] < policy.modes[i - 1]))
			abort();
	if (policy.n_host_loopback > NP_HOST_PORTS_MAX)
		abort();
	return 0;
}
