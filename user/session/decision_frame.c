/* SPDX-License-Identifier: MIT */
/* What a decider is told: one line of JSON, which docs/deciders.md describes. */
#include <nettle/base64.h>
#include <string.h>

#include "base/json.h"
#include "session/service_internal.h"
#include "vocab/words.h"

/* "name: value" a line; each becomes a pair, in their order, for names may come twice. */
static void headers_put(const char *text, size_t len, struct buf *out)
{
	const char *end;

	json_open_array(out, "headers");
	for (; len && (end = memchr(text, '\n', len)); len -= (size_t)(end - text) + 1, text = end + 1) {
		const char *colon = memchr(text, ':', (size_t)(end - text));

		if (!colon || end - colon < 2)
			continue;
		json_open_array(out, NULL);
		json_put_bytes(out, NULL, text, (size_t)(colon - text));
		json_put_bytes(out, NULL, colon + 2, (size_t)(end - colon) - 2);
		json_close_array(out);
	}
	json_close_array(out);
}

struct datasets {
	struct buf *out;
	unsigned n;
};

static int dataset_put(void *data, const struct dataset_row *row)
{
	struct datasets *datasets = data;

	if (datasets->n++ >= NP_DECIDE_DATASETS)
		return 0;
	json_open_object(datasets->out, NULL);
	json_put_text(datasets->out, "dataset", row->name, SIZE_MAX);
	json_put_text(datasets->out, "level", level_name(row->level), SIZE_MAX);
	json_put_text(datasets->out, "reason", row->reason, SIZE_MAX);
	json_close_object(datasets->out);
	return 0;
}

static int notice_take(void *data, const struct notice_row *row)
{
	struct notice_row *last = data;

	*last = *row;
	last->text = NULL; /* it was lent */
	return 0;
}

/* What the session holds, why it stands where it stands, and what its platform says that it is for. */
static void session_put(struct service *service, const char *session, struct buf *out)
{
	struct store *store = service->config.store;
	struct datasets datasets = { .out = out };
	struct notice_row last = { 0 };
	struct context_row context = { "", "" };

	json_open_array(out, "datasets");
	store_datasets_each(store, session, dataset_put, &datasets);
	json_close_array(out);
	json_put_number(out, "datasets_in_all", datasets.n);
	store_notices_each(store, session, 0, notice_take, &last);
	if (last.number) {
		json_open_object(out, "raised");
		json_put_text(out, "level", level_name(last.rung.level), SIZE_MAX);
		json_put_text(out, "dataset", last.dataset, SIZE_MAX);
		json_put_text(out, "reason", last.reason, SIZE_MAX);
		json_close_object(out);
	} else {
		json_put_text(out, "raised", NULL, 0);
	}
	store_context_get(store, session, &context);
	json_put_text(out, "purpose", context.purpose[0] ? context.purpose : NULL, SIZE_MAX);
	json_put_json(out, "context", context.context[0] ? context.context : "null"); /* see control/context.c */
}

void decision_frame(struct service *service, const struct decision_open *open, const struct question_ask *ask,
		    struct buf *out)
{
	const struct question_row *row = &open->row;

	json_open_object(out, NULL);
	json_put_text(out, "type", "decide", SIZE_MAX);
	json_put_number(out, "id", open->id);
	json_put_text(out, "session", row->session.text, SIZE_MAX);
	json_put_text(out, "sandbox", row->sandbox, SIZE_MAX);
	if (row->pid)
		json_put_number(out, "pid", row->pid);
	else
		json_put_text(out, "pid", NULL, 0);
	json_put_text(out, "comm", row->comm[0] ? row->comm : NULL, SIZE_MAX);
	json_put_text(out, "program", row->program[0] ? row->program : NULL, SIZE_MAX);
	json_put_text(out, "level", level_name(row->rung.level), SIZE_MAX);
	json_put_text(out, "mode", mode_name(row->rung.mode), SIZE_MAX);
	json_put_number(out, "generation", row->rung.generation);
	json_put_text(out, "rule", row->place, SIZE_MAX);
	json_put_text(out, "host", row->host, SIZE_MAX);
	json_put_number(out, "port", row->port);
	json_put_text(out, "kind", row->write ? "write" : "read", SIZE_MAX);
	json_put_text(out, "method", row->method[0] ? row->method : NULL, SIZE_MAX);
	json_put_text(out, "url", row->url, SIZE_MAX);
	headers_put(ask->headers, ask->headers_len, out);
	if (row->body == UINT64_MAX)
		json_put_text(out, "body", NULL, 0); /* there is one, and nobody knows how long it is */
	else
		json_put_number(out, "body", row->body);
	session_put(service, row->session.text, out);
	trails_put(&service->decisions.trails, &service->key, row->session.text, row->host, out);
	json_close_object(out);
}

void decision_body_frame(uint64_t id, const char *bytes, size_t len, bool whole, struct buf *out)
{
	char text[BASE64_ENCODE_RAW_LENGTH(NP_DECIDE_BODY)];
	const size_t n = len < NP_DECIDE_BODY ? len : NP_DECIDE_BODY;

	base64_encode_raw(text, n, (const uint8_t *)bytes);
	json_open_object(out, NULL);
	json_put_text(out, "type", "body", SIZE_MAX);
	json_put_number(out, "id", id);
	json_put_bytes(out, "base64", text, BASE64_ENCODE_RAW_LENGTH(n));
	json_put_bool(out, "whole", whole);
	json_close_object(out);
}
