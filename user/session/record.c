/* SPDX-License-Identifier: MIT */
/* Step 4 of a raise: what stands goes on disk, with the dataset and the notice, in one transaction. */
#include <errno.h>
#include <string.h>

#include "session/notice_file.h"
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

	session_workspace_end(service,
			      session); /* of the session that ended: whoever comes back finds what the policy left */
	r = store_session_put(service->config.store, &row, notice);
	if (r)
		return r;
	*ret_created = true;
	session->status = SESSION_OPEN;
	session->workspace_due = false;
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

int session_write(struct service *service, struct session *session, const struct raise_request *request,
		  struct written *ret, struct buf *line)
{
	_buf_ struct buf text = BUF_INIT(NP_NOTICE_TEXT);
	bool has_dataset = request && request->dataset, too_many = false;
	struct dataset_row dataset;
	struct notice_row notice;
	/* The first transaction that writes the new mode has the notice: neither is there without the other. */
	struct notice_row *due = session_notice(service, session, request, &notice, &text) ? &notice : NULL;
	int r = 0;

	*ret = (struct written){ .notice = due };
	if (has_dataset)
		dataset_fill(service, request, &dataset);
	if (session->status != SESSION_OPEN) {
		r = session_put_new(service, session, due, &ret->created);
		due = NULL;
	}
	if (!r && has_dataset) {
		r = session_store(service, session, &dataset, due);
		too_many = r == -E2BIG;
	}
	/* Bookkeeping is no reason to lose a raise: without the dataset then. */
	if ((!r || too_many) && !np_rung_equal(&session->stands, &session->recorded))
		r = session_store(service, session, NULL, due);
	else if (too_many)
		r = 0;
	/* Worth remembering only when it starts above the bottom. */
	session->dirty = r && session->status == SESSION_NEW && session->stands.level > LEVEL_PUBLIC;
	ret->notice &= !r;
	if (ret->notice)
		notice_to_json(session->name.text, &notice, line);
	return !r && too_many ? -E2BIG : r;
}

int session_record(struct service *service, struct session *session)
{
	_buf_ struct buf line = BUF_INIT(NP_NOTICE_LINE);
	struct written written;
	int r = session_write(service, session, NULL, &written, &line);

	if (written.notice)
		session_publish_new(service, session, &line);
	return r;
}
