/* SPDX-License-Identifier: MIT */
/* Step 4 of a raise: what stands goes on disk, with the dataset and the notice, in one transaction. */
#include <errno.h>
#include <string.h>

#include "session/notice_file.h"
#include "session/raise_log.h"
#include "session/raise_outcome.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

static void dataset_fill(struct service *service, const struct raise_request *request, struct dataset_row *row)
{
	*row = (struct dataset_row){ .level = request->level, .added_us = service->config.wall_us() };
	strncpy(row->name, request->dataset, sizeof(row->name) - 1);
	if (request->text)
		strncpy(row->reason, request->text, sizeof(row->reason) - 1);
}

/* Makes or revives it in the store, when it is not open there. */
static int session_put_new(struct service *service, struct session *session, struct notice_row *notice,
			   bool *ret_created)
{
	struct session_row row = {
		.name = session->name,
		.rung = session->stands,
		.created_us = service->config.wall_us(),
		.temporary = session->temporary,
	};
	int r;

	/* Of the session that ended: whoever comes back finds what the policy left. Files are no reason to lose a raise: those that do not go
	 * keep sandboxes out (make_in()), and not the session. */
	(void)session_workspace_renew(service, session);
	r = store_session_put(service->config.store, &row, notice);
	if (r)
		return r;
	*ret_created = true;
	session->status = SESSION_OPEN;
	session->recorded = session->stands;
	return 0;
}

static int session_store(struct service *service, struct session *session, const struct dataset_row *dataset,
			 struct notice_row *notice)
{
	int r = store_session_raise(service->config.store, session->name.text, &session->stands, dataset, notice, NULL);

	if (!r)
		session->recorded = session->stands;
	return r;
}

void record_make(struct service *service, const struct session *session, const struct raise_request *request,
		 struct record *ret)
{
	*ret = (struct record){ .text = BUF_INIT(NP_NOTICE_TEXT), .has_dataset = request && request->dataset };
	if (ret->has_dataset)
		dataset_fill(service, request, &ret->dataset);
	ret->has_notice = session_notice(service, session, request, &ret->notice, &ret->text);
}

void record_free(struct record *record)
{
	buf_free(&record->text);
}

bool record_begin(struct service *service, const struct session *session, const struct record *record)
{
	const struct raise_entry entry = {
		.session = session->name.text,
		.rung = session->stands,
		.dataset = record->has_dataset ? &record->dataset : NULL,
		.notice = record->has_notice ? &record->notice : NULL,
	};

	/* What is no raise of a session that is on record has more to write than that. */
	if (session->status != SESSION_OPEN || np_rung_equal(&session->stands, &session->recorded))
		return false;
	return store_raise_begin(service->config.store, &entry) == 0;
}

int record_check(struct service *service, const struct session *session, struct record *record, struct buf *line)
{
	int r = store_raise_check(service->config.store, session->name.text, &record->notice.number);

	if (!r && record->has_notice)
		notice_to_json(session->name.text, &record->notice, line);
	return r;
}

uint64_t session_owed_us(const struct session *session)
{
	return np_rung_equal(&session->owed, &session->stands) ? session->owed_us : 0;
}

/* An event of a later record says since when it was owed. */
static void session_owe(struct service *service, struct session *session, int r)
{
	if (!r)
		session->owed_us = 0;
	else if (!session_owed_us(session) && !np_rung_equal(&session->stands, &session->recorded)) {
		session->owed_us = service->config.wall_us();
		session->owed = session->stands;
	}
}

int record_end(struct service *service, struct session *session, const struct record *record, int written, int checked,
	       struct written *ret)
{
	int r = store_raise_end(service->config.store, written, checked);

	*ret = (struct written){ .notice = !r && record->has_notice };
	if (!r)
		session->recorded = session->stands;
	session_owe(service, session, r);
	return r;
}

int record_write(struct service *service, struct session *session, struct record *record, struct written *ret,
		 struct buf *line)
{
	/* The first transaction that writes the new mode has the notice: neither is there without the other. */
	struct notice_row *due = record->has_notice ? &record->notice : NULL;
	bool too_many = false;
	int r = 0;

	*ret = (struct written){ .notice = due };
	if (session->status != SESSION_OPEN) {
		r = session_put_new(service, session, due, &ret->created);
		due = NULL;
	}
	if (!r && record->has_dataset) {
		r = session_store(service, session, &record->dataset, due);
		too_many = r == -E2BIG;
	}
	/* Bookkeeping is no reason to lose a raise: without the dataset then. */
	if ((!r || too_many) && !np_rung_equal(&session->stands, &session->recorded))
		r = session_store(service, session, NULL, due);
	else if (too_many)
		r = 0;
	/* Worth remembering only when it starts above the bottom. */
	session->dirty = r && session->status == SESSION_NEW && session->stands.level > LEVEL_PUBLIC;
	session_owe(service, session, r);
	ret->notice &= !r;
	if (ret->notice)
		notice_to_json(session->name.text, &record->notice, line);
	return !r && too_many ? -E2BIG : r;
}

int session_record(struct service *service, struct session *session)
{
	_buf_ struct buf line = BUF_INIT(NP_NOTICE_LINE);
	cleanup(record_free) struct record record;
	struct written written;
	int r;

	record_make(service, session, NULL, &record);
	r = record_write(service, session, &record, &written, &line);
	if (written.notice)
		session_publish_new(service, session, &line);
	return r;
}

int session_record_rise(struct service *service, struct session *session, const char *who)
{
	const struct np_rung before = session->recorded;
	const uint64_t owed_us = session_owed_us(session);
	int r = session_record(service, session);

	if (!r)
		rise_emit(service, session, &before, owed_us, who);
	return r;
}
