/* SPDX-License-Identifier: MIT */
/*
 * Every request goes the same way: is it from our page (guard.h), is it a file of the page, is its sender logged in
 * (logins.h), is it one of the calls that we pass on (calls.h). What comes before the login says nothing of anybody.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "console/assets.h"
#include "console/console.h"
#include "reason.h"
#include "vocab/limits.h"
#include "vocab/words.h"

uint64_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

static const char *const every_answer[][2] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
	  "'none'; "
	  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Cache-Control", "no-store" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()" },
};

enum MHD_Result visit_send(struct visit *visit, unsigned status, const char *type, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < ARRAY_SIZE(every_answer); i++)
		MHD_add_response_header(response, every_answer[i][0], every_answer[i][1]);
	MHD_add_response_header(response, "Content-Type", type);
	result = MHD_queue_response(visit->connection, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result visit_text(struct visit *visit, unsigned status, const char *type, char *text, size_t len)
{
	struct MHD_Response *response = text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;

	if (!response)
		free(text);
	return visit_send(visit, status, type, response);
}

enum MHD_Result visit_fail(struct visit *visit, unsigned status, unsigned reason, const char *detail)
{
	_buf_ struct buf out = BUF_INIT(8192);
	size_t len;

	json_open_object(&out, NULL);
	json_put_text(&out, "error", reason_token(reason), 64);
	json_put_text(&out, "message", reason_sentence(reason), 512);
	json_put_text(&out, "detail", detail, 512);
	json_close_object(&out);
	len = out.len;
	return visit_text(visit, status, "application/json", buf_take(&out), len);
}

static enum MHD_Result asset_send(struct visit *visit, const struct asset *asset)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(asset->len, (void *)asset->data, MHD_RESPMEM_PERSISTENT);

	return visit_send(visit, 200, asset->type, response);
}

struct header_count {
	unsigned host, origin;
};

static enum MHD_Result headers_count(void *data, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct header_count *count = data;

	(void)kind;
	(void)value;
	count->host += !strcasecmp(key, "Host");
	count->origin += !strcasecmp(key, "Origin");
	return MHD_YES;
}

static const char *visit_header(const struct visit *visit, const char *name)
{
	return MHD_lookup_connection_value(visit->connection, MHD_HEADER_KIND, name);
}

static const char *visit_is_foreign(const struct visit *visit)
{
	struct header_count count = { 0 };
	struct guard_headers headers = {
		.host = visit_header(visit, "Host"),
		.origin = visit_header(visit, "Origin"),
		.sec_fetch = visit_header(visit, "Sec-Fetch-Site"),
		.type = visit_header(visit, "Content-Type"),
		.changes = strcmp(visit->method, "GET") != 0 && strcmp(visit->method, "HEAD") != 0,
	};

	MHD_get_connection_values(visit->connection, MHD_HEADER_KIND, headers_count, &count);
	headers.twice = count.host > 1 || count.origin > 1;
	return guard_refuses(&visit->console->guard, &headers);
}

static bool visit_is_logged_in(const struct visit *visit)
{
	char cookie[SECRET_SIZE];

	return cookie_find(visit_header(visit, "Cookie"), visit->console->cookie, cookie) == 0 &&
	       logins_know(visit->console->logins, cookie, visit_header(visit, "X-Netpawl-Key"));
}

/* What can be said before the body was read. MHD_YES with *ret_over: it was answered. */
static enum MHD_Result visit_look(struct visit *visit, bool *ret_over)
{
	const char *foreign = visit_is_foreign(visit), *length = visit_header(visit, "Content-Length");

	*ret_over = true;
	if (!visit->path)
		return visit_fail(visit, 414, NP_R_TOO_LARGE, "the address is too long");
	if (foreign)
		return visit_fail(visit, 403, NP_R_NOT_PERMITTED, foreign);
	if (length && strtoull(length, NULL, 10) > NP_CONSOLE_BODY)
		return visit_fail(visit, 413, NP_R_TOO_LARGE, "the body is too large");
	*ret_over = false;
	return MHD_YES;
}

static enum MHD_Result visit_answer(struct visit *visit)
{
	bool reads = !strcmp(visit->method, "GET") || !strcmp(visit->method, "HEAD"), logged_in;
	const struct asset *asset = reads ? asset_find(visit->path) : NULL;

	if (visit->body_seen > NP_CONSOLE_BODY)
		return visit_fail(visit, 413, NP_R_TOO_LARGE, "the body is too large");
	if (asset)
		return asset_send(visit, asset);
	logged_in = visit_is_logged_in(visit);
	if (own_is(visit->path))
		return own_call(visit, logged_in);
	if (!logged_in)
		return visit_fail(visit, 401, NP_R_NOT_PERMITTED, "open the link that netpawl console has printed");
	return visit_pass_on(visit);
}

/* Called with the request line; what it returns is the context of the request. */
void *visit_on_begin(void *console, const char *uri, struct MHD_Connection *connection)
{
	struct visit *visit = calloc(1, sizeof(*visit));
	const char *mark;

	if (!visit)
		return NULL;
	*visit = (struct visit){ .console = console, .connection = connection, .body = BUF_INIT(NP_CONSOLE_BODY) };
	if (strlen(uri) > NP_CONSOLE_URI)
		return visit;
	mark = strchr(uri, '?');
	visit->path = mark ? strndup(uri, (size_t)(mark - uri)) : strdup(uri);
	visit->query = mark ? strdup(mark + 1) : NULL;
	if (mark && !visit->query)
		free(take_ptr(visit->path));
	return visit;
}

enum MHD_Result visit_on_request(void *console, struct MHD_Connection *connection, const char *url, const char *method,
				 const char *version, const char *data, size_t *len, void **context)
{
	struct visit *visit = *context;

	(void)console;
	(void)connection;
	(void)url;
	(void)version;
	if (!visit)
		return MHD_NO;
	if (!visit->method) { /* the headers are there, and nothing more */
		visit->method = method;
		return visit_look(visit, &visit->refused);
	}
	if (visit->refused)
		return MHD_NO;
	if (*len == 0)
		return visit_answer(visit);
	visit->body_seen += *len;
	buf_append(&visit->body, data, *len);
	if (buf_error(&visit->body))
		buf_free(&visit->body);
	*len = 0;
	return visit->body_seen > 2 * (size_t)NP_CONSOLE_BODY ? MHD_NO : MHD_YES;
}

void visit_on_end(void *console, struct MHD_Connection *connection, void **context, enum MHD_RequestTerminationCode why)
{
	struct visit *visit = *context;

	(void)console;
	(void)connection;
	(void)why;
	if (!visit)
		return;
	buf_free(&visit->body);
	free(visit->path);
	free(visit->query);
	free(visit);
	*context = NULL;
}

/* Paths stay as they were sent: the daemon decodes them. */
size_t visit_on_unescape(void *data, struct MHD_Connection *connection, char *text)
{
	(void)data;
	(void)connection;
	return strlen(text);
}
