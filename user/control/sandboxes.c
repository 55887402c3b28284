/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes */
#include <errno.h>

#include "base/cleanup.h"
#include "control/body.h"
#include "control/names.h"
#include "control/objects.h"
#include "control/reply.h"

/* With a cgroup it adopts that one, without it makes one. */
int sandboxes_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = NULL, *cgroup = NULL;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session },
		{ "cgroup", false, .ret_text = &cgroup },
	};
	struct service *service = rq->config->service;
	_json_ json_t *body = NULL, *object = NULL;
	const struct sandbox *sandbox;
	char notices[FS_PATH_SIZE];
	struct session_name name;
	unsigned cut;
	int r;

	r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r < 0)
		return r;
	r = name_read(session, &name, ret_failure);
	if (r < 0)
		return r;
	if (cgroup)
		r = service_sandbox_adopt(service, name.text, cgroup, rq->peer.who, &sandbox, &cut, ret_failure);
	else
		r = service_sandbox_make(service, name.text, rq->peer.who, &sandbox, ret_failure);
	if (r < 0)
		return r;
	object = sandbox_object(sandbox);
	if (cgroup && json_object_set_new(object, "cut", json_integer(cut)) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (service_notices_path(service, name.text, notices) == 0 &&
	    json_object_set_new(object, "notices", json_text(notices)) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	return answer_json(ret, 201, take_ptr(object), ret_failure);
}

int sandboxes_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	bool cut_short = false;
	json_t *array = sandboxes_array(rq->config->service, NULL, &cut_short);

	return answer_json(ret, 200,
			   json_pack("{s:o,s:o*}", "sandboxes", array, "truncated", cut_short ? json_true() : NULL),
			   ret_failure);
}

int sandbox_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct sandbox *sandbox = service_sandbox_by_id(rq->config->service, rq->args[0]);

	if (!sandbox)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
	return answer_json(ret, 200, sandbox_object(sandbox), ret_failure);
}

int sandbox_remove(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct sandbox *sandbox = service_sandbox_by_id(rq->config->service, rq->args[0]);
	int r;

	if (!sandbox)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
	r = service_sandbox_remove(rq->config->service, rq->args[0], rq->peer.who, ret_failure);
	if (r < 0)
		return r;
	return answer_json(ret, 200, json_pack("{s:o,s:b}", "sandbox", json_text(rq->args[0]), "removed", 1),
			   ret_failure);
}
