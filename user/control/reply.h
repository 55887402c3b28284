/* SPDX-License-Identifier: MIT */
/* Answers, and how they go out by HTTP. */
#pragma once

#include <jansson.h>

#include "control/http_status.h"
#include "control/request.h"

/* A JSON string of any bytes: what is not UTF-8 (a text that was cut, a strange path) becomes '?'. */
json_t *json_text(const char *text);
json_t *json_time(uint64_t wall_us);
json_t *time_or_null(uint64_t us); /* 0: there is none */

/* What `netpawl run` has to know of the daemon. */
json_t *launch_object(const struct server_config *config);

/* Takes over json, also when it fails; NULL for json means that memory ran out. */
int answer_json(struct answer *ret, unsigned status, json_t *json, struct failure *ret_failure);
/* The same with a text that is there already, and is taken. */
int answer_text(struct answer *ret, const char *type, struct buf *text, struct failure *ret_failure);
/* Never fails: a ready-made text is sent when there is no memory for a better one. */
void answer_failure(struct answer *ret, const struct failure *failure);

/* Makes it a stream: see follow_open(). */
int follow_answer(struct request *rq, const struct follow_options *options, struct buf *history, struct answer *ret,
		  struct failure *ret_failure);

/* Sends the answer and empties it. */
enum MHD_Result answer_send(struct answer *answer, struct MHD_Connection *connection);
