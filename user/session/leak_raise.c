/* SPDX-License-Identifier: MIT */
/* The value of a credential was about to leave: the session is raised if the credential says so. */
#include <stdio.h>

#include "policy/credential.h"
#include "session/service_internal.h"

void service_leak(struct service *service, uint64_t cgroup_id, const char *of, const char *name)
{
	const struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup_id);
	/* Whose it was when the inspector told of it: the cgroup may be another session's by now. */
	const struct session *session = *of ? session_find(service, of) : sandbox ? sandbox->session : NULL;
	const struct policy *policy = service->config.policy(service->config.policy_data);
	const struct credential *credential = policy ? credential_find(policy, name) : NULL;
	struct escalation done;
	struct failure failure = { 0 };
	char words[NP_NAME_MAX + 64];

	if ((!session && !*of) || !credential || credential->on_leak == CREDENTIAL_NO_RAISE ||
	    (session && session->stands.level >= credential->on_leak))
		return;
	snprintf(words, sizeof(words), "a request had the value of the credential %s", credential->name);
	/* If it fails the kernel is tight all the same; the next raise, or the sweep, does what is missing. */
	service_escalate(service, session ? session->name.text : of, (enum level)credential->on_leak, NULL, words, true,
			 "inspector", &done, &failure);
}
