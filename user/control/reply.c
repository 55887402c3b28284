/* SPDX-License-Identifier: MIT */
#include "control/reply.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "control/body.h"
#include "vocab/limits.h"

static const char type_json[] = "application/json";

json_t *json_text(const char *text)
{
	json_t *json = json_string(text);
	_free_ char *plain = NULL;

	if (json)
		return json;
	plain = strdup(text);
	if (!plain)
		return NULL;
	for (char *p = plain; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	return json_string(plain);
}

json_t *json_time(uint64_t wall_us)
{
	char text[TIME_TEXT_SIZE];

	time_format(wall_us, text);
	return json_string(text);
}

json_t *time_or_null(uint64_t us)
{
	return us ? json_time(us) : json_null();
}

int answer_json(struct answer *ret, unsigned status, json_t *json, struct failure *ret_failure)
{
	_json_ json_t *owned = json;
	char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;

	if (!text)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	*ret = (struct answer){
		.status = status,
		.type = type_json,
		.body = text,
		.len = strlen(text),
	};
	return 0;
}

int answer_text(struct answer *ret, const char *type, struct buf *text, struct failure *ret_failure)
{
	*ret = (struct answer){ .status = 200, .type = type, .len = text->len };
	ret->body = buf_take(text);
	return ret->body ? 0 : failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the answer could not be written");
}

void answer_failure(struct answer *ret, const struct failure *failure)
{
	static const char last_resort[] = "{\"error\":\"failed\",\"message\":\"an internal error\"}";
	struct failure ignored;
	json_t *json = json_pack("{s:s,s:s,s:o*}", "error", reason_token(failure->reason), "message",
				 reason_sentence(failure->reason), "detail",
				 failure->text[0] ? json_text(failure->text) : NULL);

	if (answer_json(ret, failure_status(failure->reason), json, &ignored) == 0)
		return;
	*ret = (struct answer){
		.status = MHD_HTTP_INTERNAL_SERVER_ERROR,
		.type = type_json,
		.body = strdup(last_resort),
	};
	ret->len = ret->body ? sizeof(last_resort) - 1 : 0;
}

int follow_answer(struct request *rq, const struct follow_options *options, struct buf *history, struct answer *ret,
		  struct failure *ret_failure)
{
	struct MHD_Response *stream;
	int r = follow_open(rq->follows, rq->connection, options, history, &stream);

	if (r == -EMFILE)
		return failure_put(ret_failure, r, NP_R_TOO_MANY,
				   "user %u has %d followers connected, or all have %d, of which %d are operators'",
				   (unsigned)rq->peer.uid, NP_FOLLOWERS_PER_USER, NP_FOLLOWERS_MAX,
				   NP_FOLLOWERS_RESERVE);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the stream could not be opened");
	*ret = (struct answer){ .status = 200, .type = "application/x-ndjson", .stream = stream };
	return 0;
}

static void response_done(struct MHD_Response *const *response)
{
	if (*response)
		MHD_destroy_response(*response);
}

enum MHD_Result answer_send(struct answer *answer, struct MHD_Connection *connection)
{
	cleanup(response_done) struct MHD_Response *response = take_ptr(answer->stream);

	if (!response) {
		response = MHD_create_response_from_buffer(answer->len, answer->body, MHD_RESPMEM_MUST_FREE);
		if (!response) {
			free(take_ptr(answer->body));
			return MHD_NO;
		}
		answer->body = NULL;
	}
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type) != MHD_YES ||
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") != MHD_YES)
		return MHD_NO;
	if (answer->allow && MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow) != MHD_YES)
		return MHD_NO;
	return MHD_queue_response(connection, answer->status, response);
}
