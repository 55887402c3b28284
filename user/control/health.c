/* SPDX-License-Identifier: MIT */
/* /v1/health */
#include <unistd.h>

#include "base/json.h"
#include "control/reply.h"
#include "vocab/limits.h"

/* By which ways the inspector goes: without credentials. */
static void proxies_put(const struct server_config *config, struct buf *out)
{
	struct policy_loaded loaded;

	if (!config->policy_loaded)
		return;
	config->policy_loaded(config->data, &loaded);
	json_open_array(out, "upstream_proxies");
	for (size_t i = 0; i < loaded.policy->n_proxies; i++)
		json_put_text(out, NULL, loaded.policy->proxies[i].url ? loaded.policy->proxies[i].url : "direct",
			      PROXY_URL_SIZE);
	json_close_array(out);
}

/* What waits for people, and what became of what did. */
static void questions_put(const struct server_config *config, struct buf *out)
{
	struct question_counts counts;

	service_questions_count(config->service, &counts);
	json_open_object(out, "questions");
	json_put_number(out, "pending", counts.pending);
	json_put_number(out, "waiting", counts.waiting);
	json_put_number(out, "answers", counts.answers);
	json_put_number(out, "asked", counts.asked);
	for (enum question_state state = QUESTION_ALLOWED; state < QUESTION_STATES; state++)
		json_put_number(out, question_state_name(state), counts.ended[state]);
	json_put_number(out, "runs_pending", store_runs_asked(service_store(config->service)));
	json_close_object(out);
}

int node_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);

	json_open_object(&out, NULL);
	json_put_text(&out, "version", NETPAWL_VERSION, SIZE_MAX);
	if (rq->config->node)
		rq->config->node(rq->config->data, &out);
	json_close_object(&out);
	return answer_text(ret, "application/json", &out, ret_failure);
}

int health_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	const struct server_config *config = rq->config;
	const struct store *store = service_store(config->service);
	const unsigned ended = store_sessions_ended(store);

	json_open_object(&out, NULL);
	json_put_text(&out, "status", config->is_degraded && config->is_degraded(config->data) ? "degraded" : "ok",
		      SIZE_MAX);
	json_put_text(&out, "version", NETPAWL_VERSION, SIZE_MAX);
	json_put_number(&out, "pid", (uint64_t)getpid());
	json_put_number(&out, "sessions", store_sessions_count(store) - ended);
	json_put_number(&out, "sessions_ended", ended);
	json_put_number(&out, "levels_remembered", store_levels_count(store));
	json_put_number(&out, "sandboxes", service_sandboxes_count(config->service));
	questions_put(config, &out);
	proxies_put(config, &out);
	if (config->health)
		config->health(config->data, &out);
	json_close_object(&out);
	return answer_text(ret, "application/json", &out, ret_failure);
}
