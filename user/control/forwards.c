/* SPDX-License-Identifier: MIT */
/* /v1/forwards: which sockets of an operator may call a listener of a sandbox. */
#include <errno.h>

#include "base/cleanup.h"
#include "control/body.h"
#include "control/http_status.h"
#include "control/json_objects.h"
#include "control/reply.h"

static json_t *forward_object(const struct forward_row *forward)
{
	return json_pack("{s:I,s:o,s:o,s:I,s:o,s:o,s:o*}", "forward", (json_int_t)forward->id, "session",
			 json_text(forward->session.text), "sandbox", json_text(forward->sandbox), "port",
			 (json_int_t)forward->port, "address", json_text(forward->address), "who",
			 json_text(forward->who), "netns", netns_object(&forward->netns));
}

static int forward_add(void *data, const struct forward_row *forward)
{
	return array_add(data, forward_object(forward));
}

json_t *forwards_array(struct service *service, const char *session)
{
	_json_ json_t *array = json_array();

	if (!array || service_forwards_each(service, session, forward_add, array) < 0)
		return NULL;
	return take_ptr(array);
}

int forwards_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = "", *sandbox = NULL;
	uint64_t port = 0;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session },
		{ "sandbox", false, .ret_text = &sandbox },
		{ "port", true, .ret_number = &port },
	};
	const struct forward_row *forward;
	_json_ json_t *body = NULL;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r < 0)
		return r;
	if (!port || port > 65535)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"port\" is a number from 1 to 65535");
	r = service_forward_open(rq->config->service, session, sandbox, (unsigned)port, rq->peer.who, &forward,
				 ret_failure);
	return r < 0 ? r : answer_json(ret, 201, forward_object(forward), ret_failure);
}

/* cookie: of a socket that is about to call; gone: of one that is closed. Neither: it is still wanted. */
int forward_socket(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	uint64_t cookie = 0, gone = 0;
	const struct body_field fields[] = {
		{ "cookie", false, .ret_number = &cookie },
		{ "gone", false, .ret_number = &gone },
	};
	struct service *service = rq->config->service;
	const struct forward_row *forward = NULL;
	_json_ json_t *body = NULL;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r >= 0)
		r = gone ? service_forward_socket_gone(service, rq->id, gone, ret_failure)
			 : service_forward_socket(service, rq->id, cookie, &forward, ret_failure);
	if (r < 0)
		return r;
	return answer_json(ret, 200,
			   json_pack("{s:I,s:o*}", "forward", (json_int_t)rq->id, "address",
				     forward ? json_text(forward->address) : NULL),
			   ret_failure);
}

int forward_remove(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	int r = service_forward_close(rq->config->service, rq->id, rq->peer.who, ret_failure);

	return r < 0 ? r
		     : answer_json(ret, 200, json_pack("{s:I,s:b}", "forward", (json_int_t)rq->id, "removed", 1),
				   ret_failure);
}
