/* SPDX-License-Identifier: MIT */
#include "events/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "events/journal.h"
#include "vocab/limits.h"

/* A member that is a string. No string of an event can hold such a key: its quotes would be escaped. */
static bool text_find(const char *line, const char *key, char *text, size_t size)
{
	const char *at = strstr(line, key);
	size_t len;

	if (!at)
		return false;
	at += strlen(key);
	len = strcspn(at, "\"\\");
	if (at[len] != '"' || len >= size)
		return false;
	memcpy(text, at, len);
	text[len] = '\0';
	return true;
}

#define SESSION_SIZE 256

static uint64_t number_find(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* The row of a line that event_to_json() made; row->session points to `session`. False for any other line. */
static bool replay_row(const char *line, struct history_row *row, char session[static SESSION_SIZE])
{
	char reason[64], wall[64];
	int code;

	*row = (struct history_row){ .seq = number_find(line, "{\"seq\":") };
	if (strncmp(line, "{\"seq\":", 7) != 0 || !row->seq || row->seq > INT64_MAX / 2 ||
	    line[strlen(line) - 1] != '}' || !text_find(line, ",\"reason\":\"", reason, sizeof(reason)))
		return false;
	code = reason_parse(reason);
	if (code < 0)
		return false;
	row->reason = (unsigned)code;
	if (text_find(line, ",\"time\":\"", wall, sizeof(wall)))
		time_parse(wall, &row->wall_us);
	if (text_find(line, ",\"session\":\"", session, SESSION_SIZE))
		row->session = session;
	row->weight = history_weight(row->reason, number_find(line, ",\"suppressed\":"));
	return true;
}

static void replay_file(int dirfd, const char *name, unsigned index, struct history *history)
{
	_free_ char *text = journal_tail(dirfd, name, index, NP_REPLAY_BYTES);
	char session[SESSION_SIZE], *rest = text;
	struct history_row row;

	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		size_t len = strlen(line);

		if (!rest || !len || !replay_row(line, &row, session) || row.seq <= history_last_seq(history))
			continue;
		line[len] = '\n'; /* as it was */
		history_put(history, &row, line, len + 1);
	}
}

void replay_journal(int dirfd, const char *name, struct history *history)
{
	/* The newest may have been begun just before. */
	replay_file(dirfd, name, 1, history);
	replay_file(dirfd, name, 0, history);
}
