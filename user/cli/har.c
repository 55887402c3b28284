/* SPDX-License-Identifier: MIT */
/* netpawl har */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api_client/api.h"
#include "api_client/har_entry.h"
#include "cli/event_facts.h"
#include "cli/options.h"
#include "cli/session_command.h"
#include "base/progress.h"
#include "vocab/words.h"

static const char har_help[] =
	"Usage: netpawl har [OPTIONS] > FILE.har\n\n"
	"Writes requests as an HTTP archive (HAR 1.2), for a browser's developer tools and others that read it. "
	"Requests\n"
	"that were refused are in it with the status that the program got, 403 most of the time; \"_netpawl\" of an\n"
	"entry has the verdict, its reason and rule, the session and where it stood. Bodies and headers are there\n"
	"where a rule captures them; secrets are in no event, and so not in here.\n\n"
	"Options:\n"
	"  --session U/S    of this session only\n"
	"  --since WHEN     from then on: 90s, 10m, 2h or 3d ago, a date, or a time as events have it\n"
	"  --filter TEXT    what passes this filter only: 'host:github.com verdict:refused -llm'\n" OPTIONS_COMMON
	"\nExample:\n"
	"  netpawl har --session alice/demo --since 1h --filter 'verdict:refused' > refused.har\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon, or it went away: the file is cut off "
	"then.\n";

struct har_writer {
	struct event_filter filter;
	struct buf out;
	struct progress progress;
	unsigned long long events, entries, not_kept;
};

static void har_begin(void)
{
	printf("{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"netpawl\",\"version\":\"" NETPAWL_VERSION
	       "\"},\"entries\":[");
}

static int har_line(void *data, char *line)
{
	struct har_writer *writer = data;
	_json_ json_t *event = json_loads(line, 0, NULL);
	struct event_facts facts;

	if (!json_is_object(event))
		return -EPROTO;
	if (!writer->events++)
		har_begin();
	progress_step(&writer->progress, 1);
	if (!strcmp(member_text(event, "reason") ?: "", "not_kept"))
		writer->not_kept += (unsigned long long)member_number(event, "dropped");
	event_facts_read(event, &facts);
	if (!har_is_entry(event) || !event_filter_passes(&writer->filter, &facts.facts))
		return 0;
	buf_clear(&writer->out);
	buf_puts(&writer->out, writer->entries++ ? ",\n" : "\n");
	har_entry_put(event, &writer->out);
	if (buf_error(&writer->out))
		return buf_error(&writer->out);
	fwrite(writer->out.data, 1, writer->out.len, stdout);
	return ferror(stdout) ? 1 : 0;
}

int command_har(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL, *since = NULL, *filter = NULL;
	const struct option_spec specs[] = {
		{ "session", .value = &session, .complete = COMPLETE_SESSION },
		{ "since", .value = &since, .complete = COMPLETE_NOTHING },
		{ "filter", .value = &filter, .complete = COMPLETE_NOTHING },
	};
	const struct options options = {
		.command = argv[0], .help = har_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	struct har_writer writer = { .out = BUF_INIT(8u << 20) };
	char time[TIME_TEXT_SIZE];
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	code = session ? session_check(argv[0], session) : CLI_OK;
	if (code == CLI_OK && since)
		code = since_check(argv[0], since, time, sizeof(time));
	if (code == CLI_OK)
		code = filter_read(argv[0], filter, &writer.filter);
	if (code != CLI_OK)
		return code;
	progress_start(&writer.progress, "events read", 0);
	code = event_pages_each(cli, &(struct event_pages){ .session = session, .since = since ? time : NULL },
				har_line, &writer);
	progress_clear(&writer.progress);
	buf_free(&writer.out);
	if (code == CLI_OK && session && !writer.events)
		code = session_find(cli, session);
	if (code != CLI_OK) /* nobody takes what is cut off for all there is */
		return code;
	if (!writer.events)
		har_begin();
	printf("\n],\"comment\":\"%llu requests; %llu older events were not kept\"}}\n", writer.entries,
	       writer.not_kept);
	return CLI_OK;
}
