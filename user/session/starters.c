/* SPDX-License-Identifier: MIT */
/* Four eyes: whoever starts something in a session does not answer for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "policy/policy.h"
#include "session/service_internal.h"

/* A person is a uid: "uid 1000" of "uid 1000 pid 77". False: it is nobody who could answer. */
static bool person_read(const char *who, char person[static QUESTION_WHO_SIZE])
{
	size_t len = strcspn(who, " ");

	if (strncmp(who, "uid ", 4) != 0)
		return false;
	len += 1 + strcspn(who + len + 1, " ");
	return snprintf(person, QUESTION_WHO_SIZE, "%.*s", (int)len, who) < QUESTION_WHO_SIZE;
}

int starter_note(struct service *service, const struct session_name *name, const char *who, struct failure *ret_failure)
{
	char person[QUESTION_WHO_SIZE];
	int r = 0;

	if (person_read(who, person))
		r = store_starter_put(service->config.store, name, person);
	return r ? service_fail(ret_failure, NP_R_NOT_RECORDED, r, "who starts something in %s: %s", name->text,
				sql_strerror(r))
		 : 0;
}

int starter_check(struct service *service, const struct session_name *name, bool of_user, const char *who,
		  struct failure *ret_failure)
{
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;
	char person[QUESTION_WHO_SIZE];
	bool is = true;
	int r;

	if (!policy || !policy->approval.four_eyes)
		return 0;
	if (!person_read(who, person))
		return service_fail(ret_failure, NP_R_NO_ROLE, -EACCES, "%s", who);
	r = (of_user ? store_starter_of_user : store_starter_is)(service->config.store, name, person, &is);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "who started %s is not known: %s", name->text,
				    sql_strerror(r));
	if (!is)
		return 0;
	return service_fail(
		ret_failure, NP_R_NO_ROLE, -EACCES,
		"%s has started something in %s%.*s, and somebody else answers for it (approval: four_eyes)", person,
		of_user ? "a session of " : "", of_user ? (int)strcspn(name->text, "/") : (int)strlen(name->text),
		name->text);
}
