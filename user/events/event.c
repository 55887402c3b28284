/* SPDX-License-Identifier: MIT */
#include "events/event.h"

#include <stdio.h>

#include "base/json.h"
#include "vocab/limits.h"

const char *event_kind(unsigned reason)
{
	if (NP_REASON_ALLOWS(reason))
		return "allow";
	if (NP_REASON_REFUSES(reason))
		return "refuse";
	if (NP_REASON_CHANGES(reason))
		return "change";
	return "error";
}

static void put_text(struct buf *out, const char *key, const char *value, size_t max)
{
	if (value)
		json_put_text(out, key, value, max);
}

static void put_string(struct buf *out, const char *key, const char *value)
{
	put_text(out, key, value, NP_EVENT_STRING_MAX);
}

static void put_number_if(struct buf *out, const char *key, uint64_t value)
{
	if (value)
		json_put_number(out, key, value);
}

static void put_time(struct buf *out, const char *key, uint64_t wall_us)
{
	char text[TIME_TEXT_SIZE];

	if (!wall_us)
		return;
	time_format(wall_us, text);
	put_string(out, key, text);
}

static void put_protocol(struct buf *out, unsigned protocol)
{
	char number[12];

	if (!protocol)
		return;
	snprintf(number, sizeof(number), "%u", protocol);
	put_string(out, "protocol", protocol_name(protocol) ? protocol_name(protocol) : number);
}

static void put_capture(struct buf *out, const struct event *event)
{
	const size_t max = NP_CAPTURE_MAX / 3 * 4 + 8; /* in base64 */

	put_text(out, "request_headers", event->request_headers, max);
	put_text(out, event->request_base64 ? "request_base64" : "request_body", event->request_body, max);
	put_text(out, "response_headers", event->response_headers, max);
	put_text(out, event->response_base64 ? "response_base64" : "response_body", event->response_body, max);
}

void event_to_json(const struct event *event, struct buf *out)
{
	json_open_object(out, NULL);
	put_number_if(out, "seq", event->seq);
	put_time(out, "time", event->wall_us);
	put_string(out, "kind", event_kind(event->reason));
	put_string(out, "reason", reason_token(event->reason));
	put_string(out, "message", reason_sentence(event->reason));
	put_string(out, "session", event->session);
	put_string(out, "sandbox", event->sandbox);
	put_string(out, "mode", event->rung.mode ? mode_name(event->rung.mode) : NULL);
	put_string(out, "level", event->rung.mode ? level_name(event->rung.level) : NULL);
	put_number_if(out, "generation", event->rung.generation);
	if (event->rung.flags & NP_READ_ONLY)
		json_put_bool(out, "read_only", true);
	put_string(out, "hook", event->hook ? hook_token(event->hook) : NULL);
	put_protocol(out, event->protocol);
	put_string(out, "address", event->address);
	put_number_if(out, "port", event->port);
	put_number_if(out, "listener_port", event->listener_port);
	put_number_if(out, "pid", event->pid);
	if ((event->pid && event->hook) || event->uid) /* an inspector knows the process alone */
		json_put_number(out, "uid", event->uid);
	put_string(out, "comm", event->comm);
	put_string(out, "lookup", event->query);
	put_string(out, "method", event->method);
	put_string(out, "url", event->url);
	put_string(out, "credential", event->credential);
	put_number_if(out, "tokens", event->tokens);
	put_string(out, "captured", event->captured);
	put_string(out, "proxy", event->proxy);
	put_number_if(out, "status", event->status);
	put_string(out, "http", event->http);
	put_number_if(out, "sent", event->sent);
	put_number_if(out, "received", event->received);
	put_number_if(out, "dns_us", event->dns_us);
	put_number_if(out, "connect_us", event->connect_us);
	put_number_if(out, "tls_us", event->tls_us);
	put_number_if(out, "wait_us", event->wait_us);
	put_number_if(out, "receive_us", event->receive_us);
	put_capture(out, event);
	put_string(out, "rule", event->rule);
	put_string(out, "list", event->list);
	if (event->quiet)
		json_put_bool(out, "quiet", true);
	put_number_if(out, "suppressed", event->suppressed);
	put_number_if(out, "dropped", event->dropped);
	put_time(out, "since", event->since_us);
	put_number_if(out, "until_seq", event->until_seq);
	put_number_if(out, "run", event->run);
	put_string(out, "dataset", event->dataset);
	put_string(out, "text", event->text);
	put_string(out, "policy", event->policy);
	put_string(out, "who", event->who);
	if (event->has_cut)
		json_put_number(out, "cut", event->cut);
	put_number_if(out, "applied_us", event->applied_us);
	put_number_if(out, "question", event->question);
	put_string(out, "answer", event->answer);
	put_number_if(out, "waited_us", event->waited_us);
	json_close_object(out);
	buf_append(out, "\n", 1);
}
