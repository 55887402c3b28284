/* SPDX-License-Identifier: MIT */
#include "daemon/translate.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "policy/tables.h"
#include "policy/verdict.h"

static void translate_unix(const struct np_event *raw, char *text, size_t size)
{
	size_t len = raw->unix_len < sizeof(raw->unix_path) ? raw->unix_len : sizeof(raw->unix_path);

	if (len >= size)
		len = size - 1;
	memcpy(text, raw->unix_path, len);
	text[len] = '\0';
	if (len && !text[0])
		text[0] = '@'; /* how people write an abstract name */
}

void translate_event(const struct np_event *raw, const struct sandbox_info *sandbox,
		     const struct loaded_policy *policies, uint64_t now_ns, uint64_t wall_us, struct translated *ret)
{
	static const struct np_addr none;
	const struct policy *policy = NULL;
	const struct rule *rule = policies ? loaded_policy_rule(policies, raw, &policy) : NULL;
	const struct pattern *pattern = rule ? gate_pattern_find(policy, rule, raw) : NULL;

	*ret = (struct translated){ 0 };
	if (rule)
		place_format(policy, &rule->at, ret->rule);
	memcpy(ret->comm, raw->comm, sizeof(raw->comm));
	if (raw->family == AF_UNIX)
		translate_unix(raw, ret->address, sizeof(ret->address));
	else if (memcmp(&raw->addr, &none, sizeof(none)) != 0)
		addr_format(&raw->addr, ret->address);
	ret->event = (struct event){
		.wall_us = wall_us - (now_ns > raw->time_ns ? (now_ns - raw->time_ns) / 1000 : 0),
		.reason = raw->reason,
		.session = sandbox ? sandbox->session.text : NULL,
		.sandbox = sandbox ? sandbox->id : NULL,
		.rung = raw->rung,
		.hook = raw->hook,
		.protocol = raw->protocol,
		.address = ret->address[0] ? ret->address : NULL,
		.port = raw->port,
		.listener_port = raw->family != AF_UNIX ? raw->near_port : 0,
		.pid = raw->pid,
		.uid = raw->uid,
		.comm = ret->comm[0] ? ret->comm : NULL,
		.rule = rule ? ret->rule : NULL,
		.list = pattern ? pattern->list : NULL,
		.quiet = NP_REASON_REFUSES(raw->reason) && denied_quietly(rule, pattern),
	};
}

static const char *text_or_null(char *text, size_t size)
{
	text[size - 1] = '\0';
	return *text ? text : NULL;
}

/* Is this a rung that the sandbox had, and could an inspector decide so in it? All of a rung only rises, and what is
 * inspected is inspected because the mode is PROXIED. */
static bool is_possible(const struct link_request *r, const struct np_rung *now)
{
	const struct np_rung *rung = &r->rung;

	if (!np_rung_is_valid(rung) || np_rung_is_looser(now, rung) || rung->generation > now->generation ||
	    (NP_REASON_ALLOWS(r->reason) && rung->mode != NP_PROXIED))
		return false;
	return rung->generation < now->generation || (rung->mode == now->mode && rung->level == now->level);
}

static const char *version_text(unsigned http)
{
	return http == 20 ? "2" : http == 11 ? "1.1" : http == 10 ? "1.0" : NULL;
}

bool translate_request(const struct link_request *reported, const char *const tails[LINK_TAILS],
		       const struct sandbox_info *sandbox, struct requested *ret)
{
	struct link_request *r = &ret->request;

	*r = *reported;
	if (!(NP_REASON_ALLOWS(r->reason) || NP_REASON_REFUSES(r->reason)) ||
	    !strcmp(reason_token(r->reason), "unknown") || r->status > 999 || !is_possible(r, &sandbox->rung))
		return false;
	ret->event = (struct event){
		.reason = r->reason,
		.session = sandbox->session.text,
		.sandbox = sandbox->id,
		.rung = r->rung,
		.protocol = tails[LINK_QUERY] ? 0 : IPPROTO_TCP,
		.address = text_or_null(r->address, sizeof(r->address)),
		.port = r->port,
		.pid = r->pid,
		.query = tails[LINK_QUERY],
		.method = tails[LINK_METHOD],
		.url = tails[LINK_URL],
		.credential = text_or_null(r->credential, sizeof(r->credential)),
		.tokens = r->tokens < NP_TOKENS_ISSUED ? r->tokens : NP_TOKENS_ISSUED,
		.captured = text_or_null(r->captured, sizeof(r->captured)),
		.proxy = tails[LINK_PROXY],
		.status = r->status,
		.http = version_text(r->http),
		.sent = r->sent,
		.received = r->received,
		.dns_us = r->dns_us,
		.connect_us = r->connect_us,
		.tls_us = r->tls_us,
		.wait_us = r->wait_us,
		.receive_us = r->receive_us,
		.request_headers = tails[LINK_REQUEST_HEADERS],
		.response_headers = tails[LINK_RESPONSE_HEADERS],
		.request_body = tails[LINK_REQUEST_BODY],
		.response_body = tails[LINK_RESPONSE_BODY],
		.request_base64 = r->request_base64,
		.response_base64 = r->response_base64,
		.rule = text_or_null(r->place, sizeof(r->place)),
		.list = text_or_null(r->list, sizeof(r->list)),
		.quiet = r->quiet && NP_REASON_REFUSES(r->reason),
		.policy = text_or_null(r->policy, sizeof(r->policy)),
		.text = text_or_null(r->text, sizeof(r->text)),
		.question = r->question < INT64_MAX ? r->question : 0,
	};
	return true;
}
