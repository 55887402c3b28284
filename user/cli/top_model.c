/* SPDX-License-Identifier: MIT */
#include "cli/top_model.h"

#include <stdio.h>
#include <string.h>

#include "api_client/message.h"
#include "cli/event_facts.h"
#include "vocab/words.h"

void top_model_init(struct top_model *model)
{
	*model = (struct top_model){ 0 };
}

void top_model_free(struct top_model *model)
{
	for (size_t i = 0; i < TOP_ROWS; i++)
		json_decref(model->rows[i].event);
	json_decref(model->sessions);
	json_decref(model->questions);
	json_decref(model->credentials);
	top_model_init(model);
}

/* -- what comes in --------------------------------------------------------------------------------- */

static struct top_row *row_at(const struct top_model *model, size_t newest)
{
	return (struct top_row *)&model->rows[(model->first + model->n - 1 - newest) % TOP_ROWS];
}

static bool member_same(const json_t *a, const json_t *b, const char *name)
{
	const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

	return x && y ? json_equal(x, y) : x == y;
}

/* The same attempt of the same session with the same end. Changes are each their own. */
static bool event_repeats(const json_t *a, const json_t *b)
{
	/* All that a filter asks for, but for sandbox, bytes and times: a row is the newest of its repeats. */
	static const char *const names[] = { "kind",   "reason", "session", "method",  "url",  "status",
					     "lookup", "hook",	 "address", "port",    "comm", "rule",
					     "level",  "mode",	 "list",    "question" };

	if (!strcmp(member_text(a, "kind") ?: "", "change"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!member_same(a, b, names[i]))
			return false;
	return true;
}

static void event_count(struct top_model *model, const json_t *event)
{
	const char *kind = member_text(event, "kind") ?: "";
	const unsigned more = member_number(event, "suppressed") > 0 ? (unsigned)member_number(event, "suppressed") : 0;

	if (!strcmp(kind, "allow"))
		model->allowed++;
	else if (!strcmp(kind, "refuse"))
		model->refused += 1;
	else
		model->changes++;
	if (!strcmp(member_text(event, "reason") ?: "", "lost"))
		model->lost += more;
	if (member_number(event, "sent") > 0)
		model->sent += (unsigned long long)member_number(event, "sent");
}

static void row_update(struct top_row *row, json_t *event)
{
	row->count++;
	if (member_number(event, "sent") > 0)
		row->sent += (unsigned long long)member_number(event, "sent");
	json_decref(row->event);
	row->event = event;
}

void top_take_event(struct top_model *model, const char *line)
{
	static const char *const large[] = { "request_headers", "response_headers", "request_body",
					     "response_body",	"request_base64",   "response_base64" };
	json_t *event = json_loads(line, 0, NULL);
	struct top_row *row;

	if (!json_is_object(event)) {
		json_decref(event);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		json_object_del(event, large[i]);
	model->lines++;
	if (member_number(event, "seq") > 0)
		model->last = (unsigned long long)member_number(event, "seq");
	event_count(model, event);
	for (size_t i = 0; i < model->n && i < TOP_REPEATS; i++)
		/* What is not shown while paused does not change what is. */
		if (event_repeats(row_at(model, i)->event, event) &&
		    (!model->paused || row_at(model, i)->at > model->paused_at)) {
			row_update(row_at(model, i), event);
			return;
		}
	if (model->n == TOP_ROWS) {
		json_decref(model->rows[model->first].event);
		model->rows[model->first] = (struct top_row){ 0 };
		model->first = (model->first + 1) % TOP_ROWS;
		model->n--;
	}
	model->n++;
	row = row_at(model, 0);
	*row = (struct top_row){ .at = model->lines };
	row_update(row, event);
}

/* The answer has the newest first; people answer in the order that they are asked in. */
static void list_reverse(json_t *list)
{
	for (size_t i = 1; i < json_array_size(list); i++) {
		json_t *item = json_incref(json_array_get(list, i));

		json_array_remove(list, i);
		json_array_insert_new(list, 0, item);
	}
}

void top_take_lists(struct top_model *model, const char *line)
{
	_json_ json_t *answer = json_loads(line, 0, NULL);
	const struct {
		const char *name;
		json_t **list;
	} lists[] = { { "sessions", &model->sessions },
		      { "questions", &model->questions },
		      { "credentials", &model->credentials } };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		json_t *list = json_object_get(answer, lists[i].name);

		if (!json_is_array(list))
			continue;
		json_decref(*lists[i].list);
		*lists[i].list = json_incref(list);
		if (lists[i].list == &model->questions)
			list_reverse(list);
	}
}

void top_pause(struct top_model *model, bool paused)
{
	model->paused = paused;
	model->paused_at = model->lines;
}

/* -- what is shown ----------------------------------------------------------------------------------- */

static bool row_is_visible(const struct top_model *model, const struct top_row *row)
{
	struct event_facts facts;

	if (model->paused && row->at > model->paused_at)
		return false;
	if (!model->filter.n)
		return true;
	event_facts_read(row->event, &facts);
	return event_filter_passes(&model->filter, &facts.facts);
}

const struct top_row *top_visible(const struct top_model *model, size_t index)
{
	for (size_t i = 0; i < model->n; i++)
		if (row_is_visible(model, row_at(model, i)) && !index--)
			return row_at(model, i);
	return NULL;
}

size_t top_visible_count(const struct top_model *model)
{
	size_t n = 0;

	for (size_t i = 0; i < model->n; i++)
		n += row_is_visible(model, row_at(model, i));
	return n;
}

void top_clean(char *ret, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		if (*text >= ' ' && *text < 0x7f)
			ret[n++] = *text;
		else if (((unsigned char)*text & 0xc0) != 0x80) /* not the rest of a character */
			ret[n++] = '?';
	ret[n] = '\0';
}

static void what_change(const json_t *event, char *ret, size_t size)
{
	const char *reason = member_text(event, "reason") ?: "-";

	if (!strcmp(reason, "raised"))
		snprintf(ret, size, "raised to %s, %s%s%s, %lld cut", member_text(event, "level") ?: "?",
			 member_text(event, "mode") ?: "?", member_text(event, "dataset") ? ": " : "",
			 member_text(event, "dataset") ?: "", member_number(event, "cut"));
	else if (!strcmp(reason, "not_kept") || !strcmp(reason, "lost"))
		snprintf(ret, size, "--- a gap: %lld events ---",
			 member_number(event, "dropped") + member_number(event, "suppressed"));
	else
		snprintf(ret, size, "%s%s%s", member_text(event, "message") ?: reason,
			 member_text(event, "text") ? ": " : "", member_text(event, "text") ?: "");
}

void top_what(const json_t *event, char *ret, size_t size)
{
	const char *url = member_text(event, "url"), *address = member_text(event, "address");
	char text[2048], status[16] = "";

	if (member_number(event, "status"))
		snprintf(status, sizeof(status), " %lld", member_number(event, "status"));
	if (strcmp(member_text(event, "kind") ?: "", "allow") != 0 &&
	    strcmp(member_text(event, "kind") ?: "", "refuse") != 0)
		what_change(event, text, sizeof(text));
	else if (member_text(event, "lookup"))
		snprintf(text, sizeof(text), "dns %s", member_text(event, "lookup"));
	else if (url)
		snprintf(text, sizeof(text), "%s %s%s", member_text(event, "method") ?: "connect", url, status);
	else if (address && member_number(event, "port"))
		snprintf(text, sizeof(text), strchr(address, ':') ? "%s [%s]:%lld" : "%s %s:%lld",
			 member_text(event, "protocol") ?: "", address, member_number(event, "port"));
	else
		snprintf(text, sizeof(text), "%s %s", member_text(event, "hook") ?: "", address ? address : "");
	top_clean(ret, size, text);
}

void top_bytes(unsigned long long bytes, char ret[static 16])
{
	static const char units[] = "BKMGT";
	unsigned unit = 0;
	double n = (double)bytes;

	while (n >= 1000 && unit < sizeof(units) - 2) {
		n /= 1024;
		unit++;
	}
	snprintf(ret, 16, unit ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

void top_question_name(const char *id, char ret[static 64])
{
	const bool run = !strncmp(id, "run-", 4);

	snprintf(ret, 64, "%s %.40s", run ? "run" : "question", run ? id + 4 : id);
}

const char *top_question_id(const struct top_model *model, size_t index)
{
	return member_text(json_array_get(model->questions, index), "id") ?: "";
}

size_t top_question_find(const struct top_model *model, const char *id)
{
	const size_t n = json_array_size(model->questions);
	size_t i = 0;

	while (i < n && strcmp(top_question_id(model, i), id) != 0)
		i++;
	return i;
}

long long top_left(const json_t *question, unsigned long long now_us)
{
	uint64_t until;

	if (!time_parse(member_text(question, "expires") ?: "", &until))
		return -1;
	return until > now_us ? (long long)((until - now_us) / 1000000) : 0;
}
