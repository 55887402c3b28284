/* SPDX-License-Identifier: MIT */
/* /v1/metrics */
#include <errno.h>
#include <microhttpd.h>

#include "base/exposition.h"
#include "base/sql.h"
#include "control/reply.h"
#include "vocab/limits.h"

static int mode_count(void *data, const struct sandbox_info *sandbox)
{
	unsigned *counts = data;

	if (sandbox->rung.mode <= NP_NONE)
		counts[sandbox->rung.mode]++;
	return 0;
}

/* What is there now. */
static int gauges_put(const struct server_config *config, struct buf *out)
{
	unsigned levels[LEVEL_COUNT] = { 0 }, modes[NP_NONE + 1] = { 0 };
	struct store *store = service_store(config->service);
	int r = store_sessions_by_level(store, levels);

	if (r < 0)
		return r;
	service_sandboxes_each(config->service, NULL, mode_count, modes);
	metric_family(out, "netpawl_build_info", METRIC_GAUGE, "Always 1; its labels say what runs.");
	metric_put(out, "netpawl_build_info", 1, "version", NETPAWL_VERSION, NULL);
	metric_family(out, "netpawl_degraded", METRIC_GAUGE,
		      "1: something that enforcement or the record needs is gone; see netpawl status.");
	metric_put(out, "netpawl_degraded", config->is_degraded && config->is_degraded(config->data), NULL);
	metric_family(out, "netpawl_sessions", METRIC_GAUGE, "Sessions that have not ended, by level.");
	for (unsigned level = 0; level < LEVEL_COUNT; level++)
		metric_put(out, "netpawl_sessions", levels[level], "level", level_name(level), NULL);
	metric_family(out, "netpawl_sessions_ended", METRIC_GAUGE, "Sessions on record that have ended.");
	metric_put(out, "netpawl_sessions_ended", store_sessions_ended(store), NULL);
	metric_family(out, "netpawl_sandboxes", METRIC_GAUGE, "Sandboxes, by mode.");
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++)
		metric_put(out, "netpawl_sandboxes", modes[mode], "mode", mode_name(mode), NULL);
	metric_family(out, "netpawl_questions_pending", METRIC_GAUGE, "Questions that wait for a person.");
	metric_put(out, "netpawl_questions_pending", service_questions_pending(config->service), NULL);
	return 0;
}

int metrics_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *accept = MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES), open = BUF_INIT(NP_ANSWER_BYTES);
	int r = gauges_put(rq->config, &out);

	if (r < 0)
		return failure_put(ret_failure, -EIO, NP_R_FAILED, "the record could not be read: %s", sql_strerror(r));
	if (rq->config->metrics)
		rq->config->metrics(rq->config->data, &out);
	if (!exposition_wants_open(accept))
		return answer_text(ret, EXPOSITION_TYPE, &out, ret_failure);
	if (!buf_error(&out))
		exposition_to_open(out.data, out.len, &open);
	return answer_text(ret, OPENMETRICS_TYPE, buf_error(&out) ? &out : &open, ret_failure);
}
