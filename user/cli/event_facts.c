/* SPDX-License-Identifier: MIT */
#include "cli/event_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api_client/api.h"
#include "launch/run.h" /* wall_us() */
#include "reason.h"
#include "vocab/limits.h"
#include "vocab/words.h"

/* The host of a URL, of "host:port" or of "[address]:port". */
static void url_host(const char *url, char *ret, size_t size)
{
	const char *begin = strstr(url, "://"), *end;

	begin = begin ? begin + 3 : url;
	if (*begin == '[' && (end = strchr(begin, ']')))
		begin++;
	else
		end = begin + strcspn(begin, ":/?#");
	snprintf(ret, size, "%.*s", (int)(end - begin), begin);
}

static const char *kind_of(const json_t *event, const char *kind)
{
	if (strcmp(kind, "allow") != 0 && strcmp(kind, "refuse") != 0)
		return !strcmp(member_text(event, "reason") ?: "", "raised") ? "rise" : "change";
	if (json_object_get(event, "hook"))
		return "socket";
	if (json_object_get(event, "lookup"))
		return "dns";
	return member_text(event, "method") && strcmp(member_text(event, "method"), "CONNECT") != 0 ? "request"
												    : "connection";
}

static void number_fact(const json_t *event, const char *name, char *text, size_t size)
{
	if (json_is_integer(json_object_get(event, name)))
		snprintf(text, size, "%lld", member_number(event, name));
}

/* Of all of its stages, in milliseconds. */
static void ms_fact(const json_t *event, char *text, size_t size)
{
	static const char *const stages[] = { "dns_us", "connect_us", "tls_us", "wait_us", "receive_us" };
	unsigned long long us = 0;
	bool timed = false;

	for (size_t i = 0; i < ARRAY_SIZE(stages); i++) {
		us += (unsigned long long)member_number(event, stages[i]);
		timed |= json_is_integer(json_object_get(event, stages[i]));
	}
	if (timed)
		snprintf(text, size, "%llu.%03llu", us / 1000, us % 1000);
}

void event_facts_read(const json_t *event, struct event_facts *ret)
{
	static const struct {
		enum filter_key key;
		const char *name;
	} texts[] = {
		{ FILTER_URL, "url" },	       { FILTER_METHOD, "method" },   { FILTER_REASON, "reason" },
		{ FILTER_SESSION, "session" }, { FILTER_SANDBOX, "sandbox" }, { FILTER_PROGRAM, "comm" },
		{ FILTER_LEVEL, "level" },     { FILTER_MODE, "mode" },	      { FILTER_RULE, "rule" },
		{ FILTER_LIST, "list" },       { FILTER_ADDRESS, "address" },
	};
	const char *kind = member_text(event, "kind") ?: "", *url = member_text(event, "url");
	const char **of;

	*ret = (struct event_facts){ 0 };
	of = ret->facts.of;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		of[texts[i].key] = member_text(event, texts[i].name);
	number_fact(event, "status", ret->status, sizeof(ret->status));
	number_fact(event, "port", ret->port, sizeof(ret->port));
	number_fact(event, "question", ret->question, sizeof(ret->question));
	number_fact(event, "sent", ret->sent, sizeof(ret->sent));
	number_fact(event, "received", ret->received, sizeof(ret->received));
	ms_fact(event, ret->ms, sizeof(ret->ms));
	if (url)
		url_host(url, ret->host, sizeof(ret->host));
	else
		snprintf(ret->host, sizeof(ret->host), "%s",
			 member_text(event, "lookup") ?: member_text(event, "address") ?: "");
	of[FILTER_HOST] = ret->host;
	of[FILTER_STATUS] = ret->status;
	of[FILTER_PORT] = ret->port;
	of[FILTER_QUESTION] = ret->question;
	of[FILTER_SENT] = ret->sent;
	of[FILTER_RECEIVED] = ret->received;
	of[FILTER_MS] = ret->ms;
	of[FILTER_VERDICT] = !strcmp(kind, "allow") ? "allowed" : !strcmp(kind, "refuse") ? "refused" : kind;
	of[FILTER_KIND] = kind_of(event, kind);
}

int filter_read(const char *command, const char *text, struct event_filter *ret)
{
	char problem[FILTER_PROBLEM_SIZE];

	if (event_filter_parse(text ? text : "", ret, problem) < 0)
		return usage_error(command, "the filter: %s", problem);
	return CLI_OK;
}

int since_check(const char *command, const char *text, char *ret, size_t size)
{
	const size_t digits = strspn(text, "0123456789");
	const uint64_t now = wall_us();
	char time[TIME_TEXT_SIZE];
	uint64_t ms = 0, us;

	if (digits && digits < 6 && !strcmp(text + digits, "d"))
		ms = strtoull(text, NULL, 10) * 86400000;
	else if (!duration_parse(text, &ms))
		ms = 0;
	if (ms)
		us = ms * 1000 < now ? now - ms * 1000 : 0;
	else if (!time_parse(text, &us))
		return usage_error(
			command,
			"--since takes 10m, 2h, 3d, a date (2026-01-31) or a time (2026-01-31T00:00:00Z), and got '%s'",
			text);
	time_format(us, time);
	snprintf(ret, size, "%s", time);
	return CLI_OK;
}

/* -- pages ---------------------------------------------------------------------------------------- */

struct page {
	client_line_fn *fn;
	void *data;
	unsigned long long last; /* seq of the last event that had one */
};

static int page_line(void *data, char *line)
{
	struct page *page = data;

	if (strncmp(line, "{\"seq\":", 7) == 0)
		page->last = strtoull(line + 7, NULL, 10);
	return page->fn(page->data, line);
}

static char *page_path(const struct event_pages *pages, const char *after, unsigned limit)
{
	_buf_ struct buf path = BUF_INIT(8192);
	char number[16];

	snprintf(number, sizeof(number), "%u", limit);
	buf_puts(&path, "/v1/events");
	api_query(&path, "session", pages->session);
	api_query(&path, "reason", pages->reason);
	api_query(&path, "limit", number);
	api_query(&path, *after ? "after" : "since",
		  *after	 ? after
		  : pages->since ? pages->since
				 : "1970-01-01T00:00:00Z");
	return buf_take(&path);
}

int event_pages_each(const struct cli *cli, const struct event_pages *pages, client_line_fn *fn, void *data)
{
	struct page page = { .fn = fn, .data = data };
	unsigned limit = NP_EVENTS_PAGE;
	char after[24] = "";

	for (;;) {
		cleanup(client_answer_free) struct client_answer answer = { 0 };
		const unsigned long long before = page.last;
		_free_ char *path = page_path(pages, after, limit);
		int err = path ? client_stream(cli->socket, path, page_line, &page, &answer) : -E2BIG;

		if (err > 0)
			return CLI_REFUSED; /* main() tells that standard output is gone */
		if (err < 0)
			return api_unreachable(cli->socket, NULL, err);
		/* With long bodies captured, fewer of them fit into one answer. */
		if (answer.status == 429 && limit > 50 && answer.body.data &&
		    strstr(answer.body.data, "smaller limit")) {
			limit /= 4;
			continue;
		}
		if (answer.status != 200) {
			if (cli->json && answer.body.data)
				puts(answer.body.data);
			return api_refused(NULL, answer.status, answer.body.data ? answer.body.data : "");
		}
		if (page.last == before)
			return CLI_OK;
		snprintf(after, sizeof(after), "%llu", page.last);
	}
}
