/* SPDX-License-Identifier: MIT */
/* What a decider is told: one line of JSON, which docs/deciders.md describes. */
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

void decision_frame(struct service *service, const struct decision_open *open, const struct question_ask *ask,
		    struct buf *out)
{
	const struct question_row *row = &open->row;

	(void)service;
	json_open_object(out, NULL);
	json_put_text(out, "type", "decide", SIZE_MAX);
	json_put_number(out, "id", open->id);
	json_put_text(out, "session", row->session.text, SIZE_MAX);
	json_put_text(out, "sandbox", row->sandbox, SIZE_MAX);
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
	json_close_object(out);
}
