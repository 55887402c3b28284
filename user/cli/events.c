/* SPDX-License-Identifier: MIT */
/* netpawl events */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/chars.h"
#include "vocab/words.h"
#include "api_client/api.h"
#include "cli/event_facts.h"
#include "cli/ocsf.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"
#include "vocab/limits.h"
#include "reason.h"

#define LIMIT_DEFAULT 100 /* as the API has it */

static const char events_help[] =
	"Usage: netpawl events [OPTIONS]\n\n"
	"Prints what was refused and what was changed, one line each: time, kind, reason, session, the request and\n"
	"the address and port that it was about, process[pid], the rule that decided, the sandbox, and a sentence.\n\n"
	"Options:\n"
	"  --follow         go on with what happens from now on, until interrupted\n"
	"  --session U/S    of this session only\n"
	"  --reason TOKEN   with this reason only\n"
	"  --since WHEN     all from then on: 90s, 10m, 2h or 3d ago, a date, or a time as events have it\n"
	"  --filter TEXT    what passes this filter only: 'host:github.com verdict:refused -llm'\n"
	"  --format FORMAT  text, json (as --json) or ocsf: OCSF 1.6, one object a line, for SIEM systems\n"
	"  --quiet          what rules and lists with quiet: true refuse, too; --json has it in any case\n"
	"  --limit N        the newest N that pass the filter (default 100); with --since the oldest N (all); with\n"
	"                   --follow those of the newest N (0)\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl events --follow --session alice/demo\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon, or it went away.\n";

/* "POST https://api.example/v1 403", "dns MX corp.example", or nothing. */
static void request_append(struct buf *out, const json_t *event)
{
	const char *url = member_text(event, "url"), *method = member_text(event, "method");
	const char *name = member_text(event, "lookup");
	const json_t *status = json_object_get(event, "status");

	if (name)
		buf_printf(out, " dns %s", name);
	else if (url)
		buf_printf(out, " %s%s%s", method ? method : "", method ? " " : "", url);
	if (url && !name && json_integer_value(status))
		buf_printf(out, " %lld", (long long)json_integer_value(status));
}

/* "tcp 192.0.2.1:443", "unix /run/x.sock", "tcp [2001:db8::1]:53". */
static void target_append(struct buf *out, const json_t *event)
{
	const char *address = member_text(event, "address");
	const json_t *protocol = json_object_get(event, "protocol"), *port = json_object_get(event, "port");
	_free_ char *word = scalar_text(protocol);
	bool v6 = address && strchr(address, ':') && *address != '/' && *address != '@';

	if (!address && !word)
		return;
	if (address && (*address == '/' || *address == '@') && !word)
		word = strdup("unix");
	buf_printf(out, " %s", word ? word : "");
	if (address)
		buf_printf(out, word ? " %s%s%s" : "%s%s%s", v6 && port ? "[" : "", address, v6 && port ? "]" : "");
	if (port)
		buf_printf(out, address ? ":%lld" : " port %lld", (long long)json_integer_value(port));
}

static void named_append(struct buf *out, const json_t *event, const char *name)
{
	const json_t *value = json_object_get(event, name);
	_free_ char *text = scalar_text(value);

	if (text)
		buf_printf(out, " %s=%s", name, text);
}

static void event_format(struct buf *out, const json_t *event)
{
	const char *comm = member_text(event, "comm"), *text = member_text(event, "text");
	const char *reason = member_text(event, "reason") ?: "-";
	const json_t *pid = json_object_get(event, "pid"), *suppressed = json_object_get(event, "suppressed");

	buf_printf(out, "%s %-6s %-15s %s", member_text(event, "time") ?: "-", member_text(event, "kind") ?: "-",
		   reason, member_text(event, "session") ?: "-");
	request_append(out, event);
	target_append(out, event);
	if (comm)
		buf_printf(out, " %s[%lld]", comm, (long long)json_integer_value(pid));
	else if (pid)
		buf_printf(out, " pid=%lld", (long long)json_integer_value(pid));
	named_append(out, event, "rule");
	named_append(out, event, "list");
	named_append(out, event, "sandbox");
	if (!json_object_get(event, "hook")) { /* a change: the level and what came with it */
		named_append(out, event, "level");
		named_append(out, event, "mode");
		named_append(out, event, "dataset");
		named_append(out, event, "cut");
		named_append(out, event, "who");
	}
	buf_printf(out, " %s", member_text(event, "message") ?: "");
	if (text)
		buf_printf(out, ": %s", text);
	/* Of events that are about a number, text and sentence have it already. */
	if (json_integer_value(suppressed) > 0 && strcmp(reason, "requests_lost") != 0)
		buf_printf(out, strcmp(reason, "suppressed") == 0 ? " (%lld of them)" : " (and %lld more)",
			   (long long)json_integer_value(suppressed));
}

struct stream {
	const struct cli *cli;
	struct event_filter filter;
	bool quiet;    /* what the policy calls quiet, too */
	bool ocsf;     /* for SIEM systems */
	char host[65]; /* the name of this one, for them */
	size_t lines;
	uint64_t limit;		      /* how many that pass, when pages are read */
	uint64_t passed;	      /* so far */
	char *newest[NP_EVENTS_PAGE]; /* lines that passed, the last limit of them: a ring */
};

static void stream_free(struct stream *stream)
{
	for (size_t i = 0; i < ARRAY_SIZE(stream->newest); i++)
		free(stream->newest[i]);
}

/* Is it wanted? An event that was parsed to find out is *ret. */
static int line_passes(const struct stream *stream, const char *line, json_t **ret)
{
	struct event_facts facts;

	if (stream->cli->json && !stream->filter.n && !stream->ocsf)
		return true;
	*ret = json_loads(line, 0, NULL);
	if (!json_is_object(*ret))
		return -EPROTO;
	if (!stream->cli->json && !stream->ocsf && !stream->quiet && json_is_true(json_object_get(*ret, "quiet")))
		return false;
	event_facts_read(*ret, &facts);
	return event_filter_passes(&stream->filter, &facts.facts);
}

static int line_print(void *data, char *line)
{
	struct stream *stream = data;
	cleanup(buf_free) struct buf out = BUF_INIT(OUTPUT_TEXT_MAX);
	_json_ json_t *event = NULL;
	int r;

	stream->lines++;
	r = line_passes(stream, line, &event);
	if (r <= 0)
		return r;
	stream->passed++;
	if (stream->ocsf) {
		ocsf_put(event, stream->host, &out);
		if (buf_error(&out))
			return buf_error(&out);
		puts(out.data);
	} else if (stream->cli->json) {
		puts(line);
	} else {
		event_format(&out, event);
		output_clean_line(stdout, "%s", out.data ? out.data : "");
	}
	/* A follower's reader waits for each line; nobody is left to read when it cannot be written. */
	return fflush(stdout) == 0 ? 0 : 1;
}

/* The first ones that pass. */
static int line_print_first(void *data, char *line)
{
	struct stream *stream = data;
	int r = line_print(stream, line);

	return !r && stream->passed == stream->limit ? 1 : r;
}

/* The last ones that pass: which these are is known at the end. */
static int line_keep_last(void *data, char *line)
{
	struct stream *stream = data;
	_json_ json_t *event = NULL;
	char **place;
	int r;

	stream->lines++;
	r = line_passes(stream, line, &event);
	if (r <= 0)
		return r;
	place = &stream->newest[stream->passed++ % stream->limit];
	free(*place);
	*place = strdup(line);
	return *place ? 0 : -ENOMEM;
}

static int last_print(struct stream *stream)
{
	const uint64_t end = stream->passed;
	int r = 0;

	for (uint64_t i = end > stream->limit ? end - stream->limit : 0; !r && i < end; i++)
		r = line_print(stream, stream->newest[i % stream->limit]);
	return r ? CLI_REFUSED : CLI_OK;
}

static int limit_check(const char *text, uint64_t *ret)
{
	return number_parse(text, strlen(text), NP_EVENTS_PAGE, ret) < 0 ? -EINVAL : 0;
}

static char *query_build(const char *session, const char *reason, const char *limit, bool follow, const char *since)
{
	_buf_ struct buf path = BUF_INIT(8192);

	buf_puts(&path, "/v1/events");
	api_query(&path, "session", session);
	api_query(&path, "reason", reason);
	api_query(&path, "limit", limit);
	api_query(&path, "follow", follow ? "1" : NULL);
	api_query(&path, "since", since);
	return buf_take(&path);
}

static int events_stream(const char *path, bool follow, struct stream *stream)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	const struct cli *cli = stream->cli;
	int err = client_stream(cli->socket, path, line_print, stream, &answer);

	if (err > 0)
		return CLI_REFUSED; /* main() tells that standard output is gone */
	if (err < 0)
		return api_unreachable(cli->socket, NULL, err);
	if (answer.status != 200) {
		if (cli->json && answer.body.data)
			puts(answer.body.data);
		return api_refused(NULL, answer.status, answer.body.data ? answer.body.data : "");
	}
	return follow ? api_unreachable(cli->socket, NULL, -ECONNRESET) : CLI_OK;
}

/* Page by page: all of them, or as many as the limit says that pass the filter, which the daemon does not know. */
static int pages_print(const struct event_pages *pages, bool limited, struct stream *stream)
{
	int code;

	if (!limited && pages->since)
		return event_pages_each(stream->cli, pages, line_print, stream);
	if (!stream->limit)
		return CLI_OK;
	if (pages->since) {
		code = event_pages_each(stream->cli, pages, line_print_first, stream);
		return stream->passed == stream->limit && !ferror(stdout) ? CLI_OK : code;
	}
	code = event_pages_each(stream->cli, pages, line_keep_last, stream);
	return code == CLI_OK ? last_print(stream) : code;
}

static int events_print(const struct cli *cli, const char *session, const char *reason, const char *limit, bool follow,
			const char *since, struct stream *stream)
{
	_free_ char *path = query_build(session, reason, limit, follow, since);
	int code;

	if (!path) {
		error_print(NULL, NP_R_BAD_REQUEST, "the session or the reason is too long");
		return CLI_REFUSED;
	}
	if (!follow && (stream->filter.n || (since && !limit)))
		code = pages_print(&(struct event_pages){ session, reason, since }, limit, stream);
	else
		code = events_stream(path, follow, stream);
	return code == CLI_OK && session && !stream->lines ? session_find(cli, session) : code;
}

int command_events(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL, *reason = NULL, *limit = NULL, *since = NULL, *filter = NULL, *format = NULL;
	cleanup(stream_free) struct stream stream = { .cli = cli, .limit = LIMIT_DEFAULT };
	bool follow = false;
	const struct option_spec specs[] = {
		{ "follow", .flag = &follow },
		{ "session", .value = &session, .complete = COMPLETE_SESSION },
		{ "reason", .value = &reason },
		{ "limit", .value = &limit },
		{ "since", .value = &since },
		{ "quiet", .flag = &stream.quiet },
		{ "filter", .value = &filter, .complete = COMPLETE_NOTHING },
		{ "format", .value = &format, .complete = COMPLETE_NOTHING },
	};
	const struct options options = {
		.command = argv[0], .help = events_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	char time[TIME_TEXT_SIZE];
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (limit && limit_check(limit, &stream.limit) < 0)
		return usage_error(argv[0], "--limit takes a number up to %d, and got '%s'", NP_EVENTS_PAGE, limit);
	if (format && strcmp(format, "text") != 0 && strcmp(format, "json") != 0 && strcmp(format, "ocsf") != 0)
		return usage_error(argv[0], "--format takes text, json or ocsf, and got '%s'", format);
	stream.ocsf = format && !strcmp(format, "ocsf");
	gethostname(stream.host, sizeof(stream.host) - 1);
	cli->json |= format && !strcmp(format, "json");
	code = since ? since_check(argv[0], since, time, sizeof(time)) : CLI_OK;
	if (code == CLI_OK)
		code = filter_read(argv[0], filter, &stream.filter);
	if (code != CLI_OK)
		return code;
	code = session ? session_check(argv[0], session) : CLI_OK;
	if (code != CLI_OK)
		return code;
	if (reason && reason_parse(reason) < 0)
		return usage_error(argv[0], "there is no reason '%s'", reason);
	return events_print(cli, session, reason, limit, follow, since ? time : NULL, &stream);
}
