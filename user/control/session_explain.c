/* SPDX-License-Identifier: MIT */
/* /v1/sessions/USER/SESSION/explain: what a request of the session would meet now, of rules, people and deciders, and which
 * credentials would go with it. */
#include <errno.h>
#include <stdio.h>

#include "addr.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "control/body.h"
#include "control/inbox.h"
#include "control/reply.h"
#include "policy/asked.h"
#include "policy/asked_whom.h"
#include "policy/credential_fate.h"
#include "policy/outcome.h"
#include "policy/parse_attempt.h"
#include "vocab/limits.h"
#include "vocab/words.h"

static int attempt_read(const struct request *rq, struct arena *arena, struct facts *facts, struct failure *ret_failure)
{
	const char *method = NULL, *url = NULL, *connect = NULL, *problem = "";
	uint64_t length = 0;
	const struct body_field fields[] = {
		{ "method", false, .ret_text = &method },
		{ "url", false, .ret_text = &url },
		{ "connect", false, .ret_text = &connect },
		{ "body", false, .ret_number = &length },
	};
	_json_ json_t *body = NULL;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r < 0)
		return r;
	if (!url == !connect || (connect && (method || length)))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "it takes \"url\", with \"method\" and \"body\", or \"connect\"");
	r = connect ? attempt_connect(arena, connect, facts, &problem)
		    : attempt_request(arena, method ? method : "GET", url, facts, &problem);
	facts->body = length;
	facts->has_body = length;
	return r < 0 ? failure_put(ret_failure, r, r == -EINVAL ? NP_R_BAD_FIELD : NP_R_FAILED, "\"%s\": %s",
				   connect ? "connect" : "url", problem)
		     : 0;
}

/* What an inspector would ask about: its URL is written as that does. */
static void row_fill(const struct facts *facts, const struct session_row *session, const struct verdict *verdict,
		     struct question_row *row)
{
	char addr[ADDR_TEXT_SIZE] = "", port[8] = "";
	const bool v6 = !facts->name && !np_addr_is_v4(&facts->addr), tls = facts->leg == LEG_TLS;

	*row = (struct question_row){ .session = session->name,
				      .rule = asked_rule(verdict),
				      .port = facts->port,
				      .write = !facts->method || !facts_read(facts),
				      .tls = facts->method && tls,
				      .rung = session->rung };
	if (!facts->name)
		addr_format(&facts->addr, addr);
	snprintf(row->host, sizeof(row->host), "%s", facts->name ? facts->name : addr);
	snprintf(row->method, sizeof(row->method), "%s", facts->method ? facts->method : "");
	if (facts->method && facts->port != (tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", facts->port);
	if (facts->method)
		snprintf(row->url, sizeof(row->url), "%s://%s%s%s%s%s", tls ? "https" : "http", v6 ? "[" : "",
			 row->host, v6 ? "]" : "", port, facts->path);
}

/* What it meets, in a sentence. */
static void met_put(const struct asked_whom *whom, const struct question_met *met, struct buf *out, bool *ret_retry)
{
	const struct question_row *row = &met->question;
	const unsigned long long n = row->id;

	*ret_retry = true;
	if (met->asked && row->answer == ANSWER_DENY) {
		*ret_retry = false;
		buf_printf(out, "question %llu was denied by %s: it is refused, and trying again will not help", n,
			   row->who);
	} else if (whom->decider && met->decided) {
		*ret_retry = met->decision.kind == DECISION_ALLOW;
		buf_printf(out, "the decider's answer is remembered for %llu s: %s", (unsigned long long)met->left_s,
			   met->decision.kind == DECISION_ALLOW ? "it goes on" : "it is refused, until then");
	} else if (whom->decider) {
		buf_puts(out, "the decider is asked");
		if (met->asked)
			buf_printf(out, "; if it hands it on, question %llu %s", n,
				   row->state == QUESTION_PENDING ? "is joined" : "has an answer");
	} else if (!met->asked) {
		buf_puts(out, "a person is asked: there is neither a question nor an answer yet");
	} else if (row->state == QUESTION_PENDING) {
		buf_printf(out, "question %llu waits for a person: it joins that", n);
	} else if (row->answer == ANSWER_ONCE) {
		buf_printf(out,
			   "question %llu was answered once by %s: the request that it shows goes on, another one is "
			   "asked about",
			   n, row->who);
	} else {
		buf_printf(out, "question %llu was answered %s by %s: it goes on", n, question_answer_name(row->answer),
			   row->who);
	}
}

static json_t *met_object(const struct question_met *met)
{
	return !met->decided ? json_null()
			     : json_pack("{s:s,s:s,s:I,s:o}", "answer",
					 met->decision.kind == DECISION_ALLOW ? "allow" : "deny", "for",
					 met->decision.remember == REMEMBER_SESSION ? "session" : "host", "seconds",
					 (json_int_t)met->left_s, "reason", json_text(met->decision.words));
}

static json_t *credentials_array(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	_buf_ struct buf text = BUF_INIT(NP_CASE_MEMORY);

	credential_fates_json(policy, facts, verdict, &text);
	return buf_error(&text) ? NULL : json_loadb(text.data, text.len, 0, NULL);
}

int session_explain(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_arena_ struct arena *arena = NULL;
	_buf_ struct buf outcome = BUF_INIT(512);
	struct facts facts = { .session = rq->session.text };
	char place[PLACE_TEXT_SIZE], text[VERDICT_TEXT_SIZE];
	struct policy_loaded loaded;
	struct session_row session;
	struct asked_whom whom;
	struct question_met met = { 0 };
	struct question_row row;
	struct verdict verdict;
	bool asks, retry = false;
	int r = arena_new(NP_CASE_MEMORY, &arena);

	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "there is no memory for it");
	r = attempt_read(rq, arena, &facts, ret_failure);
	if (r == 0)
		r = service_session_show(rq->config->service, rq->session.text, &session, ret_failure);
	if (r < 0)
		return r;
	rq->config->policy_loaded(rq->config->data, &loaded);
	facts.rung = session.rung;
	if (loaded.policy->modes.of[facts.rung.level] > facts.rung.mode)
		facts.rung.mode = loaded.policy->modes.of[facts.rung.level];
	verdict = policy_outcome(loaded.policy, &facts);
	verdict_text(loaded.policy, &facts, &verdict, text);
	asked_place(loaded.policy, (enum level)facts.rung.level, &verdict, place);
	asks = asked_whom(loaded.policy, &facts, &verdict, &whom);
	if (asks) {
		row_fill(&facts, &session, &verdict, &row);
		service_question_look(rq->config->service, &row, whom.decider, &met);
		met_put(&whom, &met, &outcome, &retry);
	}
	return answer_json(
		ret, 200,
		json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "session", rq->session.text,
			  "action", action_name(verdict.action), "reason", reason_token(verdict.reason), "rule", place,
			  "message", json_text(text), "whom", asks ? json_text(whom.whom) : json_null(), "about",
			  asks ? json_text(whom.about) : json_null(), "waits",
			  asks ? json_text(whom.waits) : json_null(), "question",
			  met.asked ? question_shown(rq, &met.question) : json_null(), "remembered", met_object(&met),
			  "outcome", outcome.data && !buf_error(&outcome) ? json_text(outcome.data) : json_null(),
			  "retry", (int)retry, "credentials", credentials_array(loaded.policy, &facts, &verdict)),
		ret_failure);
}
