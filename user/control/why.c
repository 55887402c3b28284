/* SPDX-License-Identifier: MIT */
/* /v1/sessions/USER/SESSION/why: what was refused, why, since when, and what is allowed instead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/sql.h"
#include "vocab/words.h"
#include "control/body.h"
#include "control/refusals.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "control/why_files.h"
#include "control/why_questions.h"
#include "policy/near_miss.h"
#include "policy/parse_attempt.h"
#include "policy/quote.h"
#include "policy/reach_summary.h"
#include "vocab/limits.h"

#define LAST_DEFAULT 10
#define TEXT_MAX     (96u << 10) /* NP_WHY_MAX lines of five texts of NP_WHY_WHERE, the hints and NP_REACH_ITEMS */

/* When and how the session came to its mode. */
struct since {
	enum np_mode mode;
	uint64_t created_us;
	bool found;
	struct notice_row notice; /* without its text */
	bool starts, raised;
	enum level level; /* before the notice at hand */
};

static int since_note(void *data, const struct notice_row *row)
{
	struct since *since = data;

	if (row->rung.mode == since->mode && !since->found) {
		since->found = true;
		since->notice = *row;
		since->notice.text = NULL;
		since->starts = row->made_us <= since->created_us;
		since->raised = row->rung.level > since->level;
	}
	since->level = row->rung.level;
	return 0;
}

static void since_cause(const struct since *since, const char *session, struct buf *out)
{
	const struct notice_row *notice = &since->notice;

	notice_cause(&(struct notice_facts){ .session = session,
					     .rung = notice->rung,
					     .dataset = notice->dataset[0] ? notice->dataset : NULL,
					     .reason = notice->reason[0] ? notice->reason : NULL,
					     .starts = since->starts,
					     .raised = since->raised },
		     out);
}

static void head_text(const struct session_row *row, const struct since *since, struct buf *out)
{
	char time[TIME_TEXT_SIZE], shorter[32];

	time_format(since->found ? since->notice.made_us : row->created_us, time);
	time_shorten(time, shorter);
	buf_printf(out, "Session %s is at level %s, network mode %s", row->name.text, level_name(row->rung.level),
		   mode_name(row->rung.mode));
	if (since->found) {
		/* A level that rose later, within the mode, is not what the cause speaks of. */
		if (since->notice.rung.level != row->rung.level)
			buf_printf(out, ", in that mode since %s, then at level %s: ", shorter,
				   level_name(since->notice.rung.level));
		else
			buf_printf(out, ", since %s: ", shorter);
		since_cause(since, row->name.text, out);
	} else if (row->rung.mode == NP_FULL) {
		buf_printf(out, ", since it was made at %s", shorter);
	}
	buf_puts(out, ".\n");
}

static json_t *since_object(const struct since *since)
{
	const struct notice_row *notice = &since->notice;

	if (!since->found)
		return json_null();
	return json_pack("{s:o,s:s,s:o*,s:o*,s:I}", "time", json_time(notice->made_us), "level",
			 level_name(notice->rung.level), "dataset",
			 notice->dataset[0] ? json_text(notice->dataset) : NULL, "reason",
			 notice->reason[0] ? json_text(notice->reason) : NULL, "notice", (json_int_t)notice->number);
}

static json_t *allowed_object(const struct reach *reach, const char *text)
{
	json_t *items = json_array();

	for (size_t i = 0; items && i < reach->count; i++)
		json_array_append_new(items, json_text(reach->items[i]));
	return json_pack("{s:o,s:o,s:I}", "text", json_text(text), "hosts", items, "more", (json_int_t)reach->more);
}

static json_t *refused_array(const struct refusals *refusals, enum np_mode mode)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < refusals->count; i++)
		json_array_append_new(array, refusal_object(&refusals->items[i], mode));
	return array;
}

static json_t *not_kept_object(const struct refusals *refusals)
{
	if (!refusals->not_kept)
		return json_null();
	return json_pack("{s:I,s:o,s:o}", "refusals", (json_int_t)refusals->not_kept, "since",
			 json_time(refusals->since_us), "until", json_time(refusals->until_us));
}

/* Of this session, and not of one of its name that was forgotten: a sandbox reads them. */
static int refusals_load(struct event_log *events, const struct session_row *row, unsigned most, size_t last,
			 struct refusals *ret, struct failure *ret_failure)
{
	_buf_ struct buf lines = BUF_INIT(NP_ANSWER_BYTES);
	const char *session = row->name.text;
	struct keep_dropped dropped = { 0 };
	uint64_t before = 0;
	int r = event_log_before(events, row->created_us, &before);

	if (r == 0)
		r = event_log_refused(events, session, before, most, &lines);
	if (r == -E2BIG) { /* of the longest kind, which a sandbox can choose: fewer of them always fit */
		buf_clear(&lines);
		r = event_log_refused(events, session, before, NP_ANSWER_BYTES / NP_EVENT_LINE_MAX, &lines);
	}
	if (r == 0)
		r = event_log_dropped(events, session, &dropped);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the history could not be read: %s", sql_strerror(r));
	refusals_read(lines.data, lines.len, last, ret);
	if (dropped.until_us[KEEP_REFUSED] < row->created_us)
		return 0;
	ret->not_kept = dropped.count[KEEP_REFUSED];
	ret->since_us = dropped.since_us[KEEP_REFUSED];
	ret->until_us = dropped.until_us[KEEP_REFUSED];
	return 0;
}

/* Why no rule allows a name, when one nearly does: what agents and people ask next. */
static void near_note(const struct policy *policy, const struct session_row *row, struct refusal *refusal)
{
	const char *url = json_string_value(json_object_get(refusal->event, "url"));
	const char *name = json_string_value(json_object_get(refusal->event, "lookup"));
	struct facts facts = { .rung = row->rung, .session = row->name.text };
	struct near_miss near[NEAR_MISSES_MAX];
	char text[NEAR_TEXT_SIZE], connect[300];
	_arena_ struct arena *arena = NULL;
	const char *problem;

	if (refusal->reason != NP_R_NOT_IN_POLICY || arena_new(NP_CASE_MEMORY, &arena) < 0)
		return;
	snprintf(connect, sizeof(connect), "%.280s:443", name ? name : "");
	if ((name ? attempt_connect(arena, connect, &facts, &problem)
		  : attempt_request(arena, "GET", url ? url : "", &facts, &problem)) < 0 ||
	    !policy_near_misses(policy, &facts, false, near))
		return;
	near_miss_text(near, facts.name, text);
	text_clean(refusal->near, sizeof(refusal->near), text, strlen(text));
}

/* What there is to say, in words and as facts. */
struct why {
	struct since since;
	struct reach reach;
	struct refusals refusals;
	struct buf allowed, text;
	json_t *questions;
};

static void why_clear(struct why *why)
{
	refusals_clear(&why->refusals);
	buf_free(&why->allowed);
	buf_free(&why->text);
	json_decref(why->questions);
}

/* Of the newest refusals, at most most of them, merged to the last. */
static int why_make(const struct server_config *config, const struct session_row *row, unsigned most, size_t last,
		    struct why *ret, struct failure *ret_failure)
{
	struct policy_loaded loaded;
	int r = refusals_load(config->events, row, most, last, &ret->refusals, ret_failure);

	if (r < 0)
		return r;
	ret->since = (struct since){ .mode = row->rung.mode, .created_us = row->created_us };
	ret->text = BUF_INIT(TEXT_MAX);
	ret->allowed = BUF_INIT(TEXT_MAX);
	r = store_notices_each(service_store(config->service), row->name.text, 0, since_note, &ret->since);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the notices could not be read: %s", sql_strerror(r));
	config->policy_loaded(config->data, &loaded);
	policy_reach(loaded.policy, &row->rung, row->name.text, &ret->reach);
	reach_text(loaded.policy, row->rung.mode, &ret->reach, &ret->allowed);
	for (size_t i = 0; i < ret->refusals.count; i++)
		near_note(loaded.policy, row, &ret->refusals.items[i]);
	head_text(row, &ret->since, &ret->text);
	buf_printf(&ret->text, "It may reach %s.\n", ret->allowed.data);
	r = why_questions(config->service, row->name.text, &ret->text, &ret->questions);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the questions could not be read: %s", sql_strerror(r));
	refusals_text(&ret->refusals, row->rung.mode, &ret->text);
	if (buf_error(&ret->text) || buf_error(&ret->allowed))
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the text could not be made");
	return 0;
}

static int why_answer(const struct session_row *row, const struct why *why, struct answer *ret,
		      struct failure *ret_failure)
{
	const struct refusals *refusals = &why->refusals;

	return answer_json(
		ret, 200,
		json_pack("{s:o,s:s,s:s,s:o,s:o,s:O,s:o,s:i,s:i,s:I,s:b,s:o,s:o}", "session", json_text(row->name.text),
			  "level", level_name(row->rung.level), "mode", mode_name(row->rung.mode), "since",
			  since_object(&why->since), "allowed", allowed_object(&why->reach, why->allowed.data),
			  "questions", why->questions, "refused", refused_array(refusals, row->rung.mode), "others",
			  (int)refusals->others, "quiet", (int)refusals->quiet, "suppressed",
			  (json_int_t)refusals->suppressed, "truncated", (int)(refusals->seen >= NP_WHY_EVENTS),
			  "not_kept", not_kept_object(refusals), "text", json_text(why->text.data)),
		ret_failure);
}

int session_why(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	struct why why = { 0 };
	uint64_t last = LAST_DEFAULT;
	struct session_row row;
	int r;

	if (rq->query[0] && (url_number(rq->query[0], NP_WHY_MAX, &last) < 0 || last == 0))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "last must be a number from 1 to %d",
				   NP_WHY_MAX);
	r = service_session_show(rq->config->service, rq->session.text, &row, ret_failure);
	if (r < 0)
		return r;
	r = why_make(rq->config, &row, NP_WHY_EVENTS, (size_t)last, &why, ret_failure);
	if (r == 0)
		r = why_answer(&row, &why, ret, ret_failure);
	why_clear(&why);
	return r;
}

void why_publish(const struct server_config *config, const char *session)
{
	struct failure failure;
	struct session_row row;
	struct why why = { 0 };
	char time[TIME_TEXT_SIZE], shorter[32];

	if (service_session_show(config->service, session, &row, &failure) < 0 || row.ended)
		return;
	if (why_make(config, &row, NP_WHY_FILE_EVENTS, LAST_DEFAULT, &why, &failure) == 0) {
		time_format(loop_wall_us(), time);
		time_shorten(time, shorter);
		buf_printf(&why.text, "As of %s.\n", shorter);
		service_why_put(config->service, &row.name, &why.text);
	}
	why_clear(&why);
}
