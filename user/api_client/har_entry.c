/* SPDX-License-Identifier: MIT */
#include "api_client/har_entry.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/message.h"
#include "base/chars.h"
#include "base/json.h"
#include "vocab/words.h"

bool har_is_entry(const json_t *event)
{
	const char *kind = member_text(event, "kind") ?: "";

	return (!strcmp(kind, "allow") || !strcmp(kind, "refuse")) && member_text(event, "url") &&
	       !json_object_get(event, "hook");
}

/* A number of milliseconds. */
static void put_ms(struct buf *out, const char *key, uint64_t us)
{
	char text[40];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, us / 1000, us % 1000);
	json_put_json(out, key, text);
}

static uint64_t us_of(const json_t *event, const char *name)
{
	const long long us = member_number(event, name);

	return us > 0 ? (uint64_t)us : 0;
}

static void put_pair(struct buf *out, const char *name, size_t name_len, const char *value, size_t value_len)
{
	json_open_object(out, NULL);
	json_put_bytes(out, "name", name, name_len);
	json_put_bytes(out, "value", value, value_len);
	json_close_object(out);
}

/* Lines "name: value", as they were captured. */
static void put_headers(struct buf *out, const char *lines)
{
	json_open_array(out, "headers");
	while (lines && *lines) {
		const size_t len = strcspn(lines, "\n");
		const char *colon = memchr(lines, ':', len);
		size_t end = len;

		if (end && lines[end - 1] == '\r')
			end--;
		if (colon && colon > lines) {
			const char *value = colon + 1;

			while (value < lines + end && *value == ' ')
				value++;
			put_pair(out, lines, (size_t)(colon - lines), value, (size_t)(lines + end - value));
		}
		lines += len + (lines[len] == '\n');
	}
	json_close_array(out);
}

/* The value of a header in these lines; its length, or 0. */
static size_t header_find(const char *lines, const char *name, const char **ret)
{
	const size_t n = strlen(name);

	while (lines && *lines) {
		const size_t len = strcspn(lines, "\r\n");

		if (len > n && lines[n] == ':' && !strncasecmp(lines, name, n)) {
			*ret = lines + n + 1 + strspn(lines + n + 1, " ");
			return (size_t)(lines + len - *ret);
		}
		lines += strcspn(lines, "\n");
		lines += *lines == '\n';
	}
	return 0;
}

static void put_type(struct buf *out, const char *lines, const char *otherwise)
{
	const char *type = otherwise;
	size_t len = header_find(lines, "content-type", &type);

	json_put_bytes(out, "mimeType", type, len ? len : strlen(otherwise));
}

/* What a URI may not have in it is escaped: readers of archives are strict about that, and clients are not. */
static void put_url(struct buf *out, const char *url)
{
	static const char fine[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?@!$&'()*+,;=";
	_buf_ struct buf text = BUF_INIT(out->max);
	size_t path_at = 0;

	if (strstr(url, "://"))
		path_at = (size_t)(strstr(url, "://") + 3 - url) + strcspn(strstr(url, "://") + 3, "/?#");
	else
		buf_puts(&text, "tcp://");
	for (const char *c = url; *c; c++) {
		const bool escape = *c == '%' && hex_digit(c[1]) >= 0 && hex_digit(c[2]) >= 0;
		const bool bracket = (*c == '[' || *c == ']') && ((size_t)(c - url) < path_at || !path_at);

		if (strchr(fine, *c) || escape || bracket)
			buf_append(&text, c, 1);
		else
			buf_printf(&text, "%%%02X", (unsigned char)*c);
	}
	if (buf_error(&text)) {
		out->error = buf_error(&text);
		return;
	}
	json_put_text(out, "url", text.data ? text.data : "", SIZE_MAX);
}

static size_t percent_decode(const char *text, size_t len, char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (text[i] == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
			to[n++] = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			i += 2;
		} else {
			to[n++] = text[i] == '+' ? ' ' : text[i];
		}
	return n;
}

static void put_query(struct buf *out, const char *url)
{
	const char *at = strchr(url, '?');
	_free_ char *name = malloc(strlen(url) + 1), *value = malloc(strlen(url) + 1);

	json_open_array(out, "queryString");
	while (name && value && at && at[1]) {
		const char *begin = at + 1;
		const size_t len = strcspn(begin, "&#");
		const char *equals = memchr(begin, '=', len);
		const size_t name_len = equals ? (size_t)(equals - begin) : len;

		if (len)
			put_pair(out, name, percent_decode(begin, name_len, name), value,
				 equals ? percent_decode(equals + 1, len - name_len - 1, value) : 0);
		at = begin[len] == '&' ? begin + len : NULL;
	}
	json_close_array(out);
}

/* Cookies are among the headers that are not captured. */
static void put_message(struct buf *out, const json_t *event)
{
	const char *http = member_text(event, "http");
	char version[16] = "unknown"; /* it was refused before anything was read, or its bytes passed unseen */

	if (http)
		snprintf(version, sizeof(version), "HTTP/%.8s", http);
	json_put_text(out, "httpVersion", version, SIZE_MAX);
	json_open_array(out, "cookies");
	json_close_array(out);
	json_put_json(out, "headersSize", "-1");
}

static void put_request(const json_t *event, struct buf *out)
{
	const char *url = member_text(event, "url"), *headers = member_text(event, "request_headers");
	const char *body = member_text(event, "request_body"), *base64 = member_text(event, "request_base64");

	json_open_object(out, "request");
	json_put_text(out, "method", member_text(event, "method") ?: "CONNECT", SIZE_MAX);
	put_url(out, url);
	put_message(out, event);
	put_headers(out, headers);
	put_query(out, url);
	json_put_number(out, "bodySize", us_of(event, "sent"));
	if (body || base64) {
		json_open_object(out, "postData");
		put_type(out, headers, "application/octet-stream");
		json_put_text(out, "text", body ? body : base64, SIZE_MAX);
		if (base64)
			json_put_text(out, "comment", "the text is base64", SIZE_MAX);
		json_close_object(out);
	}
	json_close_object(out);
}

static bool event_refused(const json_t *event)
{
	return !strcmp(member_text(event, "kind") ?: "", "refuse");
}

static void put_response(const json_t *event, struct buf *out)
{
	const char *headers = member_text(event, "response_headers"), *body = member_text(event, "response_body");
	const char *base64 = member_text(event, "response_base64");
	const long long status = member_number(event, "status");

	json_open_object(out, "response");
	json_put_number(out, "status", status ? (uint64_t)status : event_refused(event) ? 403 : 0);
	json_put_text(out, "statusText", event_refused(event) ? member_text(event, "reason") : "", SIZE_MAX);
	put_message(out, event);
	put_headers(out, headers);
	json_open_object(out, "content");
	json_put_number(out, "size", us_of(event, "received"));
	put_type(out, headers, "x-unknown");
	if (body || base64)
		json_put_text(out, "text", body ? body : base64, SIZE_MAX);
	if (base64)
		json_put_text(out, "encoding", "base64", SIZE_MAX);
	json_close_object(out);
	json_put_text(out, "redirectURL", "", SIZE_MAX);
	json_put_number(out, "bodySize", us_of(event, "received"));
	json_close_object(out);
}

/* -1: it was not needed, as on a connection that was there. */
static void put_timing(struct buf *out, const char *key, uint64_t us)
{
	if (us)
		put_ms(out, key, us);
	else
		json_put_json(out, key, "-1");
}

static void put_timings(const json_t *event, struct buf *out)
{
	const uint64_t tls = us_of(event, "tls_us");

	json_open_object(out, "timings");
	json_put_json(out, "blocked", "-1");
	put_timing(out, "dns", us_of(event, "dns_us"));
	put_timing(out, "connect", us_of(event, "connect_us") + tls); /* TLS is counted in both, as HAR has it */
	put_timing(out, "ssl", tls);
	json_put_json(out, "send", "0");
	put_ms(out, "wait", us_of(event, "wait_us"));
	put_ms(out, "receive", us_of(event, "receive_us"));
	json_close_object(out);
}

static void put_member(const json_t *event, struct buf *out, const char *name)
{
	if (member_text(event, name))
		json_put_text(out, name, member_text(event, name), SIZE_MAX);
}

static void put_ours(const json_t *event, struct buf *out)
{
	static const char *const names[] = {
		"reason", "message", "rule", "list", "session", "sandbox", "text", "proxy"
	};

	json_open_object(out, "_netpawl");
	json_put_text(out, "verdict", event_refused(event) ? "refused" : "allowed", SIZE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put_member(event, out, names[i]);
	if (member_text(event, "mode")) {
		json_open_object(out, "rung");
		put_member(event, out, "mode");
		put_member(event, out, "level");
		json_put_number(out, "generation", us_of(event, "generation"));
		json_close_object(out);
	}
	if (member_number(event, "question"))
		json_put_number(out, "question", us_of(event, "question"));
	json_put_number(out, "seq", us_of(event, "seq"));
	json_close_object(out);
}

void har_entry_put(const json_t *event, struct buf *out)
{
	const uint64_t total = us_of(event, "dns_us") + us_of(event, "connect_us") + us_of(event, "tls_us") +
			       us_of(event, "wait_us") + us_of(event, "receive_us");
	char started[TIME_TEXT_SIZE];
	uint64_t ended = 0;

	time_parse(member_text(event, "time") ?: "", &ended);
	time_format(ended > total ? ended - total : 0, started);
	json_open_object(out, NULL);
	json_put_text(out, "startedDateTime", started, SIZE_MAX);
	put_ms(out, "time", total);
	put_request(event, out);
	put_response(event, out);
	json_open_object(out, "cache");
	json_close_object(out);
	put_timings(event, out);
	if (member_text(event, "address"))
		json_put_text(out, "serverIPAddress", member_text(event, "address"), SIZE_MAX);
	put_ours(event, out);
	json_close_object(out);
}
