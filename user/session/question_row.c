/* SPDX-License-Identifier: MIT */
/* What a person is shown of a request, made from what an inspector reports: cut to a length that people read, and
 * without control characters. */
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "session/questions_internal.h"
#include "vocab/limits.h"

/* One line of it, if it fits: "name: value", and the end of a value that is too long is three dots. */
static bool header_add(char *to, size_t size, const char *line, size_t len)
{
	char raw[NP_DECIDE_HEADERS], name[128], value[NP_QUESTION_VALUE];
	const char *colon = memchr(line, ':', len);
	const size_t have = strlen(to);

	if (!colon || len >= sizeof(raw))
		return true; /* it was cut in the middle: nothing that anybody could read */
	memcpy(raw, line, len);
	raw[len] = raw[colon - line] = '\0';
	text_ascii(name, sizeof(name), raw);
	text_ascii(value, sizeof(value), len > (size_t)(colon - line) + 2 ? raw + (colon - line) + 2 : "");
	if ((size_t)snprintf(to + have, size - have, "%s: %s\n", name, value) < size - have)
		return true;
	to[have] = '\0';
	return false;
}

/* Whole lines, as many as there is room for; the last one says that there are more. */
static void headers_fill(const char *text, size_t len, char to[static NP_QUESTION_HEADERS])
{
	static const char more[] = "...: there are more\n";
	const char *end;

	to[0] = '\0';
	for (; len && (end = memchr(text, '\n', len)); len -= (size_t)(end - text) + 1, text = end + 1)
		if (!header_add(to, NP_QUESTION_HEADERS - sizeof(more), text, (size_t)(end - text))) {
			strcat(to, more);
			return;
		}
}

static bool text_fill(char *to, size_t size, const char *from)
{
	return (size_t)snprintf(to, size, "%s", from) < size;
}

bool question_row_fill(const struct service *service, const struct question_ask *ask, const struct sandbox *sandbox,
		       const struct policy *policy, struct question_row *row)
{
	*row = (struct question_row){
		.session = sandbox->session->name,
		.port = ask->port,
		.rule = ask->rule,
		.write = ask->write,
		.tls = ask->tls,
		.body = ask->body,
		.rung = sandbox->session->stands,
		.created_us = service->config.wall_us(),
		.pid = (uint32_t)ask->pid,
		.preview_len = ask->preview_len < NP_QUESTION_PREVIEW ? ask->preview_len : NP_QUESTION_PREVIEW,
	};
	row->expires_us = row->created_us + policy->approval.timeout_ms * 1000;
	memcpy(row->sandbox, sandbox->pub.id, sizeof(row->sandbox));
	if (row->preview_len)
		memcpy(row->preview, ask->preview, row->preview_len);
	headers_fill(ask->headers, ask->headers_len, row->headers);
	return text_fill(row->place, sizeof(row->place), ask->place) &&
	       text_fill(row->host, sizeof(row->host), ask->host) &&
	       text_fill(row->method, sizeof(row->method), ask->method) &&
	       text_fill(row->url, sizeof(row->url), ask->url) &&
	       text_fill(row->policy, sizeof(row->policy), policy->hash);
}

void question_row_process(const struct service *service, uint64_t cgroup_id, struct question_row *row)
{
	const struct gate *gate = &service->config.gate;
	struct gate_process process = { 0 };

	if (!row->pid || !gate->process || gate->process(gate->ctx, cgroup_id, (pid_t)row->pid, &process) < 0)
		return;
	memcpy(row->comm, process.name, sizeof(row->comm));
	memcpy(row->program, process.file, sizeof(row->program));
}
