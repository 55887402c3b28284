/* SPDX-License-Identifier: MIT */
/* An event of the API as a filter asks about it, and pages of events. */
#pragma once

#include <jansson.h>

#include "api_client/api_http.h"
#include "cli/cli.h"
#include "vocab/event_filter.h"

/* Texts of facts that are not in the event as they are. Borrows from the event. */
struct event_facts {
	struct filter_facts facts;
	char host[512], status[8], port[8], question[24], sent[24], received[24], ms[24];
};
void event_facts_read(const json_t *event, struct event_facts *ret);

/* CLI_OK and the filter (text NULL: one that everything passes), or the exit code. */
int filter_read(const char *command, const char *text, struct event_filter *ret);

/* "10m" ago, a date or a time: as the API takes it. CLI_OK or the exit code. */
int since_check(const char *command, const char *text, char *ret, size_t size);

/* All events of a session (or of all: NULL), with a reason (NULL: any), since a time (NULL: from the first), page by page, so that
 * none of it is held. fn as client_stream() has it. Returns the exit code, with everything said. */
struct event_pages {
	const char *session, *reason, *since;
};
int event_pages_each(const struct cli *cli, const struct event_pages *pages, client_line_fn *fn, void *data);
