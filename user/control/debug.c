/* SPDX-License-Identifier: MIT */
/* /v1/debug: what the daemon holds, and what the inspectors show of themselves. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/sql.h"
#include "control/args.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "vocab/limits.h"
#include "vocab/rung_json.h"

/* An answer that is being written. */
struct dump {
	const struct server_config *config;
	struct buf *out;
	uint32_t number;     /* of the question to the inspectors */
	const char *session; /* NULL: all */
	unsigned sandboxes, disagree, runs, questions;
};

static void policy_put(const struct dump *dump)
{
	struct policy_loaded loaded;

	dump->config->policy_loaded(dump->config->data, &loaded);
	json_open_object(dump->out, "policy");
	json_put_text(dump->out, "file", loaded.file, FS_PATH_SIZE);
	json_put_text(dump->out, "hash", loaded.policy->hash, SIZE_MAX);
	json_put_number(dump->out, "epoch", loaded.epoch);
	json_close_object(dump->out);
}

/* As the session service, the kernel, the supervisor and each inspector have it. */
static int sandbox_put(void *data, const struct sandbox_info *sandbox)
{
	struct dump *dump = data;
	const struct server_config *config = dump->config;
	struct np_rung kernel = { 0 };
	bool agree, known;

	if (dump->sandboxes++ >= NP_DEBUG_SANDBOXES)
		return 0;
	known = service_kernel_rung(config->service, sandbox->cgroup.id, &kernel) == 0;
	json_open_object(dump->out, NULL);
	json_put_text(dump->out, "sandbox", sandbox->id, sizeof(sandbox->id));
	json_put_text(dump->out, "session", sandbox->session.text, sizeof(sandbox->session.text));
	json_put_text(dump->out, "cgroup", sandbox->cgroup.path, sizeof(sandbox->cgroup.path));
	json_put_number(dump->out, "cgroup_id", sandbox->cgroup.id);
	json_put_rung(dump->out, "service", &sandbox->rung);
	json_put_rung(dump->out, "kernel", known ? &kernel : NULL);
	agree = config->debug.rungs(config->debug.ctx, dump->number, sandbox->cgroup.id, &sandbox->rung, dump->out);
	agree = agree && known && np_rung_equal(&kernel, &sandbox->rung);
	dump->disagree += !agree;
	json_put_bool(dump->out, "agree", agree);
	json_put_number(dump->out, "requests", sandbox->counts.requests);
	json_put_number(dump->out, "queries", sandbox->counts.queries);
	json_put_number(dump->out, "refused", sandbox->counts.refused);
	json_close_object(dump->out);
	return 0;
}

static int sandboxes_put(struct dump *dump)
{
	int r;

	json_open_array(dump->out, "sandboxes");
	r = service_sandboxes_each(dump->config->service, dump->session, sandbox_put, dump);
	json_close_array(dump->out);
	json_put_number(dump->out, "sandboxes_left_out",
			dump->sandboxes > NP_DEBUG_SANDBOXES ? dump->sandboxes - NP_DEBUG_SANDBOXES : 0);
	json_put_number(dump->out, "disagree", dump->disagree);
	return r;
}

static int forward_put(void *data, const struct forward_row *forward)
{
	struct buf *out = ((struct dump *)data)->out;

	json_open_object(out, NULL);
	json_put_number(out, "forward", forward->id);
	json_put_text(out, "session", forward->session.text, sizeof(forward->session.text));
	json_put_text(out, "sandbox", forward->sandbox, sizeof(forward->sandbox));
	json_put_number(out, "port", forward->port);
	json_close_object(out);
	return 0;
}

/* Neither its command nor its environment: they may hold what is not for everybody's eyes. */
static int run_put(void *data, const struct run_row *row)
{
	struct dump *dump = data;

	if ((dump->session && strcmp(row->session.text, dump->session) != 0) || dump->runs++ >= NP_LIST_MAX)
		return 0;
	json_open_object(dump->out, NULL);
	json_put_number(dump->out, "run", row->id);
	json_put_text(dump->out, "session", row->session.text, sizeof(row->session.text));
	json_put_text(dump->out, "state", run_state_name(row->state), SIZE_MAX);
	json_put_text(dump->out, "sandbox", row->sandbox[0] ? row->sandbox : NULL, sizeof(row->sandbox));
	json_put_bool(dump->out, "launched", row->launched);
	json_close_object(dump->out);
	return 0;
}

/* Neither what is asked about nor what a person wrote. */
static void question_put(void *data, const struct question_row *row, unsigned waiting)
{
	struct dump *dump = data;

	if (dump->questions++ >= NP_LIST_MAX)
		return;
	json_open_object(dump->out, NULL);
	json_put_number(dump->out, "question", row->id);
	json_put_text(dump->out, "session", row->session.text, sizeof(row->session.text));
	json_put_text(dump->out, "state", question_state_name(row->state), SIZE_MAX);
	json_put_text(dump->out, "answer", row->answer ? question_answer_name(row->answer) : NULL, SIZE_MAX);
	json_put_number(dump->out, "waiting", waiting);
	json_close_object(dump->out);
}

static void session_put(const struct dump *dump, const struct session_row *row)
{
	json_open_object(dump->out, "session");
	json_put_text(dump->out, "session", row->name.text, sizeof(row->name.text));
	json_put_rung(dump->out, "rung", &row->rung);
	json_put_bool(dump->out, "ended", row->ended);
	json_put_number(dump->out, "datasets", row->datasets);
	dump->config->debug.session(dump->config->debug.ctx, row->name.text, dump->out);
	json_close_object(dump->out);
}

static int dump_write(struct dump *dump, const struct session_row *row, struct failure *ret_failure)
{
	const struct server_config *config = dump->config;
	int r;

	json_open_object(dump->out, NULL);
	policy_put(dump);
	if (dump->session)
		session_put(dump, row);
	r = sandboxes_put(dump);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sandboxes could not be read");
	json_open_array(dump->out, "forwards");
	service_forwards_each(config->service, dump->session, forward_put, dump);
	json_close_array(dump->out);
	json_open_array(dump->out, "runs");
	r = store_runs_open_each(service_store(config->service), run_put, dump);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the runs could not be read: %s", sql_strerror(r));
	json_close_array(dump->out);
	json_open_array(dump->out, "questions");
	service_questions_each(config->service, dump->session, question_put, dump);
	json_close_array(dump->out);
	config->debug.inspectors(config->debug.ctx, dump->number, dump->out);
	json_close_object(dump->out);
	return 0;
}

/* Asks the inspectors, once for a request. 1: look again later. */
static int inspectors_ask(struct request *rq, const char *session, uint64_t after, struct failure *ret_failure)
{
	const struct inspectors_debug *debug = &rq->config->debug;
	uint32_t number = rq->mark;
	int r = number ? 0 : debug->ask(debug->ctx, session, (uint32_t)after, &number);

	if (r == -EBUSY && !rq->may_wait)
		return failure_put(ret_failure, r, NP_R_NO_INSPECTOR, "others look at the inspectors; try again");
	rq->mark = number;
	return r == -EBUSY || !debug->done(debug->ctx, number);
}

int debug_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	struct dump dump = { .config = rq->config, .out = &out };
	struct session_name name = { .text = "" };
	struct session_row row = { 0 };
	uint64_t after = 0;
	int r = rq->query[0] ? name_read(rq->query[0], &name, ret_failure) : 0;

	if (r == 0 && rq->query[0])
		r = service_session_show(rq->config->service, name.text, &row, ret_failure);
	if (r == 0 && rq->query[1] && url_number(rq->query[1], UINT32_MAX, &after) < 0)
		r = failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "after must be a number of entries");
	if (r == 0)
		r = inspectors_ask(rq, name.text, after, ret_failure);
	if (r < 0)
		return r;
	if (r > 0) {
		ret->wait = true;
		return 0;
	}
	dump.number = rq->mark;
	dump.session = rq->query[0] ? name.text : NULL;
	r = dump_write(&dump, &row, ret_failure);
	return r < 0 ? r : answer_text(ret, "application/json", &out, ret_failure);
}
