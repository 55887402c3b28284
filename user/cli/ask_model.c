/* SPDX-License-Identifier: MIT */
#include "cli/ask_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/api.h"
#include "base/array.h"
#include "vocab/words.h"

#define KEY_END	   3 /* Ctrl-C; Ctrl-D is the next */
#define KEY_ESCAPE 27

/* -- what waits ---------------------------------------------------------------------------------- */

const char *ask_id(const json_t *question)
{
	return member_text(question, "id") ?: "";
}

bool ask_is_run(const json_t *question)
{
	return json_object_get(question, "run");
}

static size_t item_find(const struct ask_model *ask, const char *id)
{
	size_t i = 0;

	while (i < ask->n && strcmp(ask_id(ask->items[i]), id) != 0)
		i++;
	return i;
}

void ask_remove(struct ask_model *ask, const char *id)
{
	const size_t at = item_find(ask, id);

	if (at == ask->n)
		return;
	json_decref(ask->items[at]);
	memmove(ask->items + at, ask->items + at + 1, (--ask->n - at) * sizeof(*ask->items));
}

static void items_clear(struct ask_model *ask)
{
	while (ask->n)
		json_decref(ask->items[--ask->n]);
}

void ask_model_free(struct ask_model *ask)
{
	items_clear(ask);
	free(ask->items);
	json_decref(ask->shown);
}

static void reason_clear(struct ask_model *ask)
{
	ask->stage = ASK_LOOK;
	ask->reason_len = 0;
	ask->reason[0] = '\0';
}

static void shown_set(struct ask_model *ask, json_t *question)
{
	json_decref(ask->shown);
	ask->shown = json_incref(question);
	reason_clear(ask);
	ask->looked = 0;
}

void ask_show_next(struct ask_model *ask, bool skip)
{
	json_t *next = NULL;
	size_t from = skip && ask->shown ? item_find(ask, ask_id(ask->shown)) + 1 : 0;

	if (ask->shown)
		snprintf(ask->last, sizeof(ask->last), "%s", member_text(ask->shown, "session") ?: "");
	for (size_t i = 0; i < ask->n && !next; i++) {
		json_t *item = ask->items[(from + i) % ask->n];

		if (strcmp(member_text(item, "session") ?: "", ask->last) != 0)
			next = item;
	}
	if (!next && ask->n)
		next = ask->items[from % ask->n];
	shown_set(ask, next);
}

void ask_message(struct ask_model *ask, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ask->message, sizeof(ask->message), fmt, ap);
	va_end(ap);
}

void ask_report_over(struct ask_model *ask, const json_t *question)
{
	const char *state = member_text(question, "state") ?: "?", *by = member_text(question, "answered_by");

	if (by)
		ask_message(ask, "%s was answered %s by %s", ask_id(question), member_text(question, "answer") ?: "?",
			    by);
	else
		ask_message(ask, "%s is over: %s", ask_id(question),
			    !strcmp(state, "expired") ? "nobody answered in time" : state);
}

static void pending_take(struct ask_model *ask, json_t *question)
{
	const size_t at = item_find(ask, ask_id(question));

	if (at < ask->n) {
		json_decref(ask->items[at]);
		ask->items[at] = json_incref(question);
	} else if (ARRAY_RESERVE(ask->items, ask->size, ask->n + 1) == 0) {
		ask->items[ask->n++] = json_incref(question);
		ask->rung = true;
	}
	if (!ask->shown)
		ask_show_next(ask, false);
}

void ask_take(struct ask_model *ask, json_t *question)
{
	const bool is_shown = ask->shown && !strcmp(ask_id(ask->shown), ask_id(question));

	if (!strcmp(member_text(question, "state") ?: "", "pending")) {
		pending_take(ask, question);
		return;
	}
	ask_remove(ask, ask_id(question));
	if (is_shown && ask->stage == ASK_LOOK) { /* what is being answered stays: sending it says the same */
		ask_report_over(ask, question);
		ask_show_next(ask, false);
	}
}

void ask_take_line(struct ask_model *ask, const char *line)
{
	_json_ json_t *question = *line == '{' ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (question) {
		ask->away = false;
		ask_take(ask, question);
	} else if (*line == '+') { /* if it is not back, that follows at once */
		ask->away = false;
		items_clear(ask);
	} else if (*line == '-') {
		ask->away = true;
		ask_message(ask, "the daemon went away (%s); trying again", line + 1);
	} else if (*line == '!') {
		ask->over = ask->refused = true;
		ask_message(ask, "%s", line + 1);
	}
}

/* -- keys ----------------------------------------------------------------------------------------- */

static void answer_choose(struct ask_model *ask, const char *answer)
{
	ask->answer = answer;
	ask->stage = ASK_REASON;
	ask->message[0] = '\0';
}

static void key_look(struct ask_model *ask, char key)
{
	const bool run = ask->shown && ask_is_run(ask->shown);

	if (key == 'q' || key == KEY_END || key == KEY_END + 1) {
		ask->over = true;
		return;
	}
	if (!ask->shown)
		return;
	if (key == 'n' || key == '\t')
		ask_show_next(ask, true);
	else if (key == 'd' || (run && key == 'r'))
		answer_choose(ask, "deny");
	else if (key == 'o' || (run && key == 'a'))
		answer_choose(ask, "once");
	else if (!run && key == 'h')
		answer_choose(ask, "host");
	else if (!run && key == 'm' && !member_text(ask->shown, "domain"))
		ask_message(ask, "its host has no domain that is known to be one owner's; h is for the host");
	else if (!run && key == 'm')
		answer_choose(ask, "domain");
	else if (!run && key == 'a')
		answer_choose(ask, "always");
}

enum ask_wish ask_key(struct ask_model *ask, char key)
{
	if (ask->stage == ASK_LOOK) {
		key_look(ask, key);
	} else if (key == '\r' || key == '\n') {
		return ASK_SEND;
	} else if (key == KEY_ESCAPE) { /* what happened to it meanwhile is said now */
		reason_clear(ask);
		return ASK_RENEW;
	} else if (key == KEY_END) {
		ask->over = true;
	} else if ((key == 127 || key == 8) && ask->reason_len) {
		ask->reason[--ask->reason_len] = '\0';
	} else if (key >= ' ' && key <= '~' && ask->reason_len + 1 < sizeof(ask->reason)) {
		ask->reason[ask->reason_len++] = key;
		ask->reason[ask->reason_len] = '\0';
	}
	return ASK_NOTHING;
}

/* -- rows of the screen --------------------------------------------------------------------------- */

static long long seconds_left(const json_t *question, const char *member, time_t now)
{
	const char *text = member_text(question, member);
	uint64_t us;
	long long left = text && time_parse(text, &us) ? (long long)(us / 1000000) - (long long)now : 0;

	return left > 0 ? left : 0;
}

void ask_set_clock(struct ask_model *ask, time_t now)
{
	const long long left = seconds_left(ask->shown, "expires", now),
			held = seconds_left(ask->shown, "held_until", now);
	const long long waiting = member_number(ask->shown, "waiting");
	char who[128];

	if (ask->stage == ASK_REASON)
		return;
	if (!ask->shown) {
		ask->clock[0] = '\0';
		return;
	}
	if (ask_is_run(ask->shown))
		snprintf(who, sizeof(who), "the run waits");
	else if (!waiting)
		snprintf(who, sizeof(who), "nobody waits now; a retry meets the answer");
	else if (held)
		snprintf(who, sizeof(who), "%lld wait%s, the first for %lld s more", waiting, waiting == 1 ? "s" : "",
			 held);
	else
		snprintf(who, sizeof(who), "%lld wait%s", waiting, waiting == 1 ? "s" : "");
	snprintf(ask->clock, sizeof(ask->clock), "%lld:%02lld left to answer; %s", left / 60, left % 60, who);
}

void ask_prompt_text(const struct ask_model *ask, size_t columns, char *out, size_t size)
{
	char begin[96];
	size_t room;

	snprintf(begin, sizeof(begin), "%s %s; reason, if any: ", ask->answer, ask_id(ask->shown));
	room = columns > strlen(begin) + 2 ? columns - strlen(begin) - 2 : 8;
	snprintf(out, size, "%s%s", begin, ask->reason + (ask->reason_len > room ? ask->reason_len - room : 0));
}
