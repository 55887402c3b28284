/* SPDX-License-Identifier: MIT */
/* Notices: what the agent in a session is told when its network tightens. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/notice_file.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

bool session_notice(struct service *service, const struct session *session, const struct raise_request *request,
		    struct notice_row *ret, struct buf *text)
{
	static const struct np_rung bottom = { .level = LEVEL_PUBLIC, .mode = NP_FULL };
	const struct np_rung *before = session->status == SESSION_NEW ? &bottom : &session->recorded,
			     *stands = &session->stands;
	struct notice_facts facts = {
		.session = session->name.text,
		.rung = *stands,
		.dataset = request ? request->dataset : NULL,
		.reason = request ? request->text : NULL,
		.starts = session->status == SESSION_NEW && stands->level == session->recorded.level,
		.raised = stands->level > before->level,
	};

	/* A higher level that is PROXIED as well has rules of its own. */
	if (stands->mode <= before->mode && !(stands->mode == NP_PROXIED && facts.raised))
		return false;
	service->config.notice_write(service->config.notice_data, &facts, text);
	*ret = (struct notice_row){
		.made_us = service->config.wall_us(),
		.rung = *stands,
		.text = text->data && !buf_error(text) ? text->data : reason_sentence(NP_R_RAISED),
	};
	strncpy(ret->dataset, facts.dataset ? facts.dataset : "", sizeof(ret->dataset) - 1);
	strncpy(ret->reason, facts.reason ? facts.reason : "", sizeof(ret->reason) - 1);
	return true;
}

static void publish_failed(struct service *service, const struct session *session, const char *what, int error)
{
	char words[256];
	struct event event = { .reason = NP_R_FAILED, .text = words };

	snprintf(words, sizeof(words), "the file with its notices could not be %s: %s", what, strerror(-error));
	service_emit(service, &event, session, NULL);
}

void session_publish(struct service *service, struct session *session)
{
	_buf_ struct buf text = BUF_INIT(2u * NP_NOTICES_PER_SESSION * NP_NOTICE_LINE);
	const char *dir = service->config.notices_dir;
	char path[FS_PATH_SIZE];
	int r;

	if (!dir)
		return;
	/* Nobody has looked for it yet: it comes with the first sandbox. */
	if (!session->sandbox_count && notice_file_path(dir, session->name.text, path) == 0 && access(path, F_OK) < 0 &&
	    errno == ENOENT)
		return;
	r = notices_to_json(service->config.store, session->name.text, 0, &text);
	if (r == 0)
		r = notice_file_put(dir, &session->name, session->sandbox_count, &text);
	session->published = r == 0;
	session->published_bytes = text.len;
	if (r < 0)
		publish_failed(service, session, "written", r);
}

void session_publish_new(struct service *service, struct session *session, const struct buf *line)
{
	session->published =
		session->published && line->len && buf_error(line) == 0 &&
		notice_file_append(service->config.notices_dir, &session->name, session->published_bytes, line) == 0;
	session->published_bytes += line->len;
	if (!session->published)
		session_publish(service, session);
}

void session_unpublish(struct service *service, const struct session *session)
{
	int r = service->config.notices_dir ? notice_file_remove(service->config.notices_dir, &session->name) : 0;

	if (r < 0)
		publish_failed(service, session, "removed", r);
}

int service_notices_path(const struct service *service, const char *session, char path[static FS_PATH_SIZE])
{
	return service->config.notices_dir ? notice_file_path(service->config.notices_dir, session, path) : -ENOENT;
}

void service_why_put(struct service *service, const struct session_name *name, const struct buf *text)
{
	if (service->config.notices_dir)
		why_file_put(service->config.notices_dir, name, text); /* what is lost is written with the next one */
}

/* The daemon died between the end of a session and that of its file. */
static void notice_recover(void *data, const struct session_name *name)
{
	struct service *service = data;
	struct session_row row;
	int r = store_session_get(service->config.store, name->text, &row);

	if (r == -ENOENT || (!r && row.ended))
		notice_file_remove(service->config.notices_dir, name);
}

void notices_recover(struct service *service)
{
	if (service->config.notices_dir)
		notice_files_each(service->config.notices_dir, notice_recover, service);
}
