/* SPDX-License-Identifier: MIT */
/* Random bytes as what a runtime tells a CNI plugin: up to the first NUL the arguments, then a container's id, then the
 * configuration. What is accepted names a container as a file is named, a session as sessions are named or none, and a cgroup below
 * the root or none. */
#include "cni/cni_request.c"

#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_take(const uint8_t **data, size_t *size)
{
	size_t len = strnlen((const char *)*data, *size);
	char *text = strndup((const char *)*data, len);

	check(text);
	len += len < *size;
	*data += len;
	*size -= len;
	return text;
}

static void request_check(const struct cni_request *q)
{
	struct session_name again;
	const char *problem;

	check(q->container[0] && !strchr(q->container, '/') && q->container[0] != '.');
	check(!strchr(q->pod_uid, '/'));
	check(!q->wish.has_level || (q->wish.session.text[0] && q->wish.level < LEVEL_COUNT));
	check(!q->has_least || q->least < LEVEL_COUNT);
	if (q->wish.session.text[0])
		check(session_name_parse(q->wish.session.text, &again, &problem) == 0);
	if (q->cgroup[0])
		check(q->cgroup[0] == '/' && !strstr(q->cgroup, "/../") && q->cgroup[strlen(q->cgroup) - 1] != '/');
	check(!q->result == (q->command != CNI_ADD));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const commands[] = { "ADD", "CHECK", "DEL" };
	char *args = text_take(&data, &size), *id = text_take(&data, &size);
	char *copy = malloc(size ? size : 1); /* ends where the text ends */

	check(copy);
	memcpy(copy, data, size);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct cni_environment env = { commands[i], id, "/run/netns/x", args };
		struct cni_problem problem = { 0 };
		struct cni_request q;

		if (cni_request_read(&env, copy, size, &q, &problem) == 0) {
			request_check(&q);
			cni_request_free(&q);
		} else {
			check(problem.code && problem.text);
		}
	}
	free(copy);
	free(args);
	free(id);
	return 0;
}
