/* SPDX-License-Identifier: MIT */
/* One request from its headers to its answer. */
#pragma once

#include "control/request.h"

struct exchange;

int exchange_new(struct exchange **ret);
void exchange_free(struct exchange *ex); /* NULL is fine */

/* The headers are here, the body is not. MHD_YES to go on, or what answering at once gave: the answer is sent,
 * the body is not read and the connection ends. */
enum MHD_Result exchange_begin(struct exchange *ex, struct MHD_Connection *connection, const char *method,
			       const char *url, const struct server_config *config);

/* Bytes of the body. MHD_NO ends the connection. */
enum MHD_Result exchange_take(struct exchange *ex, const char *data, size_t len);

enum exchange_outcome {
	EXCHANGE_ANSWERED,
	EXCHANGE_STREAMS, /* the answer goes on until somebody ends it */
	EXCHANGE_WAITS,	  /* the connection is suspended: resume it, and this is called again */
	EXCHANGE_GOES_ON, /* likewise, in the next round */
};

/* The request is complete: answers it. */
enum MHD_Result exchange_finish(struct exchange *ex, struct MHD_Connection *connection, const char *method,
				const char *url, const struct server_config *config, struct follow_set *follows,
				struct output_set *outputs, enum exchange_outcome *ret_outcome);
