/* SPDX-License-Identifier: MIT */
/* The fakes, with a policy that the service asks. */
#pragma once

#include "fake.h"
#include "policy/policy.h"

static struct policy *loaded;

static inline int fake_policy_setup(void **state, const char *text)
{
	_problems_ struct problems problems = { 0 };

	if (fake_setup(state) || policy_load_text("p.yaml", text, strlen(text), &loaded, &problems))
		return -1;
	fake.policy = loaded;
	fake.modes = loaded->modes;
	fake_stop();
	fake_start();
	return 0;
}

static inline int fake_policy_teardown(void **state)
{
	policy_free(loaded);
	loaded = NULL;
	return fake_teardown(state);
}
