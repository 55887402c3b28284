/* SPDX-License-Identifier: MIT */
/* The service itself, the verbs on sessions, look-ups. */
#include "session/service.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql.h"
#include "session/questions_internal.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

int service_fail(struct failure *ret, unsigned reason, int err, const char *fmt, ...)
{
	if (!ret)
		return err;
	ret->reason = reason;
	ret->text[0] = '\0';
	if (fmt) {
		va_list ap;

		va_start(ap, fmt);
		vsnprintf(ret->text, sizeof(ret->text), fmt, ap);
		va_end(ap);
	}
	return err;
}

int service_name_read(const char *text, struct session_name *ret, struct failure *ret_failure)
{
	const char *problem;

	if (session_name_parse(text, ret, &problem))
		return service_fail(ret_failure, NP_R_BAD_NAME, -EINVAL, "%s", problem);
	return 0;
}

void service_emit(struct service *service, struct event *event, const struct session *session,
		  const struct sandbox *sandbox)
{
	event->wall_us = service->config.wall_us();
	if (!event->who)
		event->who = "daemon";
	if (session) {
		event->session = session->name.text;
		event->rung = session->stands;
	}
	if (sandbox) {
		event->sandbox = sandbox->pub.id;
		if (sandbox->registered)
			event->rung = sandbox->pub.rung;
	}
	service->config.emit(service->config.emit_data, event);
}

void sandbox_event(struct service *service, unsigned reason, const struct sandbox *sandbox, const char *who,
		   const unsigned *cut)
{
	struct event event = { .reason = reason, .who = who };

	if (cut) {
		event.cut = *cut;
		event.has_cut = 1;
	}
	service_emit(service, &event, sandbox->session, sandbox);
}

int service_new(const struct service_config *config, struct service **ret)
{
	struct service *service = calloc(1, sizeof(*service));

	if (!service)
		return -ENOMEM;
	service->config = *config;
	TAILQ_INIT(&service->all);
	TAILQ_INIT(&service->questions);
	TAILQ_INIT(&service->unrecorded);
	decisions_init(service);
	TAILQ_INIT(&service->care);
	TAILQ_INIT(&service->awaited);
	if (hash_key_make(&service->key) < 0) {
		free(service);
		return -EIO;
	}
	*ret = service;
	return 0;
}

void service_free(struct service *service)
{
	struct sandbox *sandbox;

	if (!service)
		return;
	forwards_free(service);
	questions_free(service);
	decisions_free(service);
	restarted_free(service);
	free(service->run_times);
	while ((sandbox = TAILQ_FIRST(&service->all)))
		sandbox_drop(service, sandbox);
	for (struct table_node *n = table_walk(&service->sessions, NULL), *next; n; n = next) {
		next = table_walk(&service->sessions, n);
		free(container_of(n, struct session, node));
	}
	table_clear(&service->sessions);
	table_clear(&service->sandboxes_by_id);
	table_clear(&service->sandboxes_by_cgroup);
	free(service);
}

int service_kernel_rung(struct service *service, uint64_t cgroup_id, struct np_rung *ret)
{
	const struct gate *gate = &service->config.gate;

	return gate->read ? gate->read(gate->ctx, cgroup_id, ret) : -EOPNOTSUPP;
}

struct store *service_store(struct service *service)
{
	store_catch_up(service->config.store); /* what fails shows in what is asked of it */
	return service->config.store;
}

static int level_check(enum level level, struct failure *ret_failure)
{
	if ((unsigned)level < LEVEL_COUNT)
		return 0;
	return service_fail(ret_failure, NP_R_BAD_LEVEL, -EINVAL, NULL);
}

int session_missing(struct service *service, const char *name, bool *ret_remembered, struct failure *ret_failure)
{
	struct np_rung level;
	int r = store_level_get(service->config.store, name, &level);

	if (ret_remembered)
		*ret_remembered = r == 0;
	if (r)
		return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, -ENOENT, "%s", name);
	return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, -ENOENT,
			    "%s was forgotten; should it come back, it starts at %s", name, level_name(level.level));
}

int service_session_show(struct service *service, const char *name, struct session_row *ret,
			 struct failure *ret_failure)
{
	enum np_mode policy;
	struct session_name parsed;
	struct session_row row;
	const struct session *session;
	int r = service_name_read(name, &parsed, ret_failure);

	if (r)
		return r;
	r = store_session_get(service->config.store, parsed.text, &row);
	if (r == -ENOENT)
		return session_missing(service, parsed.text, NULL, ret_failure);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "the record of %s could not be read: %s", parsed.text,
				    sql_strerror(r));
	/* What holds, not what is written: a raise that could not be recorded holds all the same. */
	session = session_find(service, parsed.text);
	if (session)
		row.rung = session->stands;
	policy = service->config.modes.of[row.rung.level];
	if (policy > row.rung.mode)
		row.rung.mode = policy;
	*ret = row;
	return 0;
}

void service_sessions_reserve(struct service *service, unsigned reserve)
{
	service->reserve = reserve;
}

int service_session_create(struct service *service, const char *name, enum level level, bool temporary, const char *who,
			   struct session_row *ret, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct raise_request request = { .level = level, .who = who, .start_ns = service->config.now_ns() };
	struct escalation ignored;
	struct session_name parsed;
	struct session *session;
	int r = service_name_read(name, &parsed, ret_failure);

	if (!r)
		r = level_check(level, ret_failure);
	/* Its level goes with it, so its name is one that nobody comes back to. */
	if (!r && temporary && !session_name_is_temporary(&parsed))
		r = service_fail(ret_failure, NP_R_BAD_NAME, -EINVAL,
				 "a temporary session is called USER/" NP_TEMPORARY_NAME "..., not %s", parsed.text);
	if (!r)
		r = session_load(service, &parsed, level, &session, ret_failure);
	if (r)
		return r;
	if (session->status == SESSION_NEW && temporary)
		session->temporary = true;
	if (temporary && !session->temporary)
		r = service_fail(ret_failure, NP_R_BAD_FIELD, -EEXIST, "there is a session %s, and it is not temporary",
				 parsed.text);
	else
		r = session_raise(service, session, &request, &ignored, ret_failure);
	session_unpin(service, session);
	if (!r)
		r = starter_note(service, &parsed, who, ret_failure);
	return r ? r : service_session_show(service, parsed.text, ret, ret_failure);
}

static int escalation_check(const char *name, enum level level, const char *dataset, const char *text,
			    struct session_name *ret, struct failure *ret_failure)
{
	const char *problem;
	int r = service_name_read(name, ret, ret_failure);

	if (!r)
		r = level_check(level, ret_failure);
	if (r)
		return r;
	if (dataset && text_check(dataset, NP_DATASET_MAX, &problem))
		return service_fail(ret_failure, NP_R_BAD_NAME, -EINVAL, "dataset: %s", problem);
	if (text && text_check(text, NP_REASON_TEXT_MAX, &problem))
		return service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL, "reason: %s", problem);
	return 0;
}

int service_escalate(struct service *service, const char *name, enum level level, const char *dataset, const char *text,
		     bool existing, const char *who, struct escalation *ret, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct raise_request request = {
		.level = level,
		.dataset = dataset,
		.text = text && *text ? text : NULL,
		.who = who,
		.start_ns = service->config.now_ns(),
	};
	struct session_name parsed;
	struct session *session;
	int r = escalation_check(name, level, dataset, request.text, &parsed, ret_failure);

	if (!r)
		r = session_load(service, &parsed, LEVEL_PUBLIC, &session, ret_failure);
	if (r)
		return r;
	if (existing && session->status == SESSION_NEW)
		r = session_missing(service, parsed.text, NULL, ret_failure);
	else
		r = session_raise(service, session, &request, ret, ret_failure);
	if (!r && !ret->raised) {
		struct event event = {
			.reason = NP_R_STANDS,
			.who = who,
			.dataset = dataset,
			.text = request.text,
			.applied_us = ret->applied_us,
		};

		service_emit(service, &event, session, NULL);
	}
	session_unpin(service, session);
	return r;
}

/* Ends every sandbox of a session. Nothing is touched while an adopted one still runs. */
static int sandboxes_end(struct service *service, struct session *session, const char *who, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct sandbox *sandbox, *next;
	int result = 0;

	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = TAILQ_NEXT(sandbox, of_session))
		if (sandbox->pub.adopted && !sandbox->dying && !sandbox_is_gone(service, sandbox) &&
		    gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup))
			return service_fail(ret_failure, NP_R_SANDBOX_BUSY, -EBUSY, "sandbox %s, cgroup %s",
					    sandbox->pub.id, sandbox->pub.cgroup.path);
	for (sandbox = TAILQ_FIRST(&session->sandboxes); sandbox; sandbox = next) {
		int r;

		next = TAILQ_NEXT(sandbox, of_session);
		r = sandbox_end(service, sandbox,
				sandbox->pub.adopted && !sandbox->dying && sandbox_is_gone(service, sandbox), who);
		if (r && !sandbox->dying && !result)
			result = service_fail(ret_failure, NP_R_FAILED, r, "sandbox %s could not be removed: %s",
					      sandbox->pub.id, strerror(-r));
	}
	return result;
}

static int session_end(struct service *service, struct session *session, const char *who, struct failure *ret_failure)
{
	struct event event = { .reason = NP_R_SESSION_ENDED, .who = who };
	bool due;
	int r;

	if (session->status == SESSION_NEW)
		return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, -ENOENT, "%s", session->name.text);
	r = sandboxes_end(service, session, who, ret_failure);
	if (r || session->status == SESSION_ENDED)
		return r;
	r = session_record_rise(service, session, "daemon"); /* a raise that is still to be recorded */
	due = service->config.lifetime.at_end != WORKSPACE_KEEP && !session->temporary;
	if (!r)
		r = session->temporary
			    ? store_temporary_end(service->config.store, session->name.text, service->config.wall_us())
			    : store_session_end(service->config.store, session->name.text, due,
						service->config.wall_us());
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "%s: %s", session->name.text, sql_strerror(r));
	session->status = SESSION_ENDED;
	session->workspace_due = due;
	session_unpublish(service, session);
	service_emit(service, &event, session, NULL);
	runs_session_ended(service, session->name.text);
	questions_session_ended(service, session->name.text);
	restarted_forget(service, session->name.text);
	session_workspace_end(service, session);
	return 0;
}

int service_session_end(struct service *service, const char *name, const char *who, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct session *session;
	int r = session_open(service, name, &session, ret_failure);

	if (r)
		return r;
	r = session_end(service, session, who, ret_failure);
	session_unpin(service, session);
	return r;
}

static const struct sandbox_info *sandbox_counted(struct service *service, struct sandbox *sandbox)
{
	sandbox_count(service, sandbox);
	return &sandbox->pub;
}

const struct sandbox_info *service_sandbox_by_id(struct service *service, const char *id)
{
	struct sandbox *sandbox = sandbox_by_id(service, id);

	return sandbox && !sandbox->dying ? sandbox_counted(service, sandbox) : NULL;
}

const struct sandbox_info *service_sandbox_by_cgroup(struct service *service, uint64_t cgroup_id)
{
	struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup_id);

	return sandbox ? &sandbox->pub : NULL;
}

size_t service_sandboxes_count(const struct service *service)
{
	return service->sandboxes_by_id.count - service->hidden;
}

int service_sandboxes_each(struct service *service, const char *name,
			   int (*fn)(void *data, const struct sandbox_info *info), void *data)
{
	struct session *session = name ? session_find(service, name) : NULL;
	struct sandbox *sandbox;

	if (name && !session)
		return 0;
	sandbox = name ? TAILQ_FIRST(&session->sandboxes) : TAILQ_FIRST(&service->all);
	while (sandbox) {
		struct sandbox *next = name ? TAILQ_NEXT(sandbox, of_session) : TAILQ_NEXT(sandbox, of_all);
		int r = sandbox->dying ? 0 : fn(data, sandbox_counted(service, sandbox));

		if (r < 0)
			return r;
		sandbox = next;
	}
	return 0;
}
