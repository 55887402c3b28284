/* SPDX-License-Identifier: MIT */
/* The service itself, the verbs on sessions, look-ups and the sweep. */
#include "session/service.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "session/service_internal.h"

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

void service_emit(struct service *service, struct event *event, const struct live *live, const struct box *box)
{
	event->wall_us = service->config.wall_us();
	if (!event->who)
		event->who = "daemon";
	if (live) {
		event->session = live->name.text;
		event->rung = live->stands;
	}
	if (box) {
		event->sandbox = box->pub.id;
		if (box->registered)
			event->rung = box->pub.rung;
	}
	service->config.emit(service->config.emit_data, event);
}

void box_event(struct service *service, unsigned reason, const struct box *box, const char *who, const unsigned *cut)
{
	struct event event = { .reason = reason, .who = who };

	if (cut) {
		event.cut = *cut;
		event.has_cut = 1;
	}
	service_emit(service, &event, box->live, box);
}

int service_new(const struct service_config *config, struct service **ret)
{
	struct service *service = calloc(1, sizeof(*service));

	if (!service)
		return -ENOMEM;
	service->config = *config;
	TAILQ_INIT(&service->all);
	TAILQ_INIT(&service->care);
	if (getrandom(&service->seed, sizeof(service->seed), 0) != sizeof(service->seed)) {
		free(service);
		return -EIO;
	}
	*ret = service;
	return 0;
}

void service_free(struct service *service)
{
	struct box *box;

	if (!service)
		return;
	forwards_free(service);
	while ((box = TAILQ_FIRST(&service->all)))
		box_drop(service, box);
	for (size_t i = 0; i < service->lives.size; i++) {
		struct table_node *node = service->lives.buckets[i];

		while (node) {
			struct table_node *next = node->next;

			free(container_of(node, struct live, node));
			node = next;
		}
	}
	table_clear(&service->lives);
	table_clear(&service->boxes_by_id);
	table_clear(&service->boxes_by_cgroup);
	free(service);
}

struct store *service_store(struct service *service)
{
	return service->config.store;
}

const struct level_modes *service_modes(const struct service *service)
{
	return &service->config.modes;
}

static int level_check(enum level level, struct failure *ret_failure)
{
	if ((unsigned)level < LEVEL_COUNT)
		return 0;
	return service_fail(ret_failure, NP_R_BAD_LEVEL, -EINVAL, NULL);
}

int service_session_show(struct service *service, const char *name, struct session_row *ret,
			 struct failure *ret_failure)
{
	enum np_mode policy;
	struct session_name parsed;
	struct session_row row;
	const struct live *live;
	int r = service_name_read(name, &parsed, ret_failure);

	if (r)
		return r;
	r = store_session_get(service->config.store, parsed.text, &row);
	if (r == -ENOENT)
		return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, r, "%s", parsed.text);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "the record of %s could not be read: %s", parsed.text,
				    strerror(-r));
	/* What holds, not what is written: a raise that could not be recorded holds all the same.
	 */
	live = live_find(service, parsed.text);
	if (live)
		row.rung = live->stands;
	policy = service->config.modes.of[row.rung.level];
	if (policy > row.rung.mode)
		row.rung.mode = policy;
	*ret = row;
	return 0;
}

int service_session_create(struct service *service, const char *name, enum level level, const char *who,
			   struct session_row *ret, struct failure *ret_failure)
{
	struct raise_request request = { .level = level, .who = who, .start_ns = service->config.now_ns() };
	struct escalation ignored;
	struct session_name parsed;
	struct live *live;
	int r = service_name_read(name, &parsed, ret_failure);

	if (!r)
		r = level_check(level, ret_failure);
	if (!r)
		r = live_load(service, &parsed, level, &live, ret_failure);
	if (r)
		return r;
	r = live_raise(service, live, &request, &ignored, ret_failure);
	live_unpin(service, live);
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
		     const char *who, struct escalation *ret, struct failure *ret_failure)
{
	struct raise_request request = {
		.level = level,
		.dataset = dataset,
		.text = text && *text ? text : NULL,
		.who = who,
		.start_ns = service->config.now_ns(),
	};
	struct session_name parsed;
	struct live *live;
	int r = escalation_check(name, level, dataset, request.text, &parsed, ret_failure);

	if (!r)
		r = live_load(service, &parsed, LEVEL_PUBLIC, &live, ret_failure);
	if (r)
		return r;
	r = live_raise(service, live, &request, ret, ret_failure);
	if (!r && !ret->raised) {
		struct event event = {
			.reason = NP_R_STANDS,
			.who = who,
			.dataset = dataset,
			.text = request.text,
			.applied_us = ret->applied_us,
		};

		service_emit(service, &event, live, NULL);
	}
	live_unpin(service, live);
	return r;
}

/* Ends every sandbox of a session. Nothing is touched while an adopted one still runs. */
static int boxes_end(struct service *service, struct live *live, const char *who, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct box *box, *next;
	int result = 0;

	for (box = TAILQ_FIRST(&live->boxes); box; box = TAILQ_NEXT(box, of_session))
		if (box->pub.adopted && !box->dying && !box_is_gone(service, box) &&
		    gate->cgroup_populated(gate->ctx, &box->pub.cgroup))
			return service_fail(ret_failure, NP_R_SANDBOX_BUSY, -EBUSY, "sandbox %s, cgroup %s",
					    box->pub.id, box->pub.cgroup.path);
	for (box = TAILQ_FIRST(&live->boxes); box; box = next) {
		int r;

		next = TAILQ_NEXT(box, of_session);
		r = box_end(service, box, box->pub.adopted && !box->dying && box_is_gone(service, box), who);
		if (r && !box->dying && !result)
			result = service_fail(ret_failure, NP_R_FAILED, r, "sandbox %s could not be removed: %s",
					      box->pub.id, strerror(-r));
	}
	return result;
}

static int live_end(struct service *service, struct live *live, const char *who, struct failure *ret_failure)
{
	struct event event = { .reason = NP_R_SESSION_ENDED, .who = who };
	bool created;
	int r;

	if (live->status == LIVE_NEW)
		return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, -ENOENT, "%s", live->name.text);
	r = boxes_end(service, live, who, ret_failure);
	if (r || live->status == LIVE_ENDED)
		return r;
	r = live_record(service, live, NULL, &created); /* a raise that is still to be recorded */
	if (!r)
		r = store_session_end(service->config.store, live->name.text, service->config.wall_us());
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "%s: %s", live->name.text, strerror(-r));
	live->status = LIVE_ENDED;
	live_unpublish(service, live);
	service_emit(service, &event, live, NULL);
	runs_session_ended(service, live->name.text);
	return 0;
}

int service_session_end(struct service *service, const char *name, const char *who, struct failure *ret_failure)
{
	struct session_name parsed;
	struct live *live;
	int r = service_name_read(name, &parsed, ret_failure);

	if (!r)
		r = live_load(service, &parsed, LEVEL_PUBLIC, &live, ret_failure);
	if (r)
		return r;
	r = live_end(service, live, who, ret_failure);
	live_unpin(service, live);
	return r;
}

static const struct sandbox *box_counted(struct service *service, struct box *box)
{
	box_count(service, box);
	return &box->pub;
}

const struct sandbox *service_sandbox_by_id(struct service *service, const char *id)
{
	struct box *box = box_by_id(service, id);

	return box && !box->dying ? box_counted(service, box) : NULL;
}

const struct sandbox *service_sandbox_by_cgroup(struct service *service, uint64_t cgroup_id)
{
	struct box *box = box_by_cgroup(service, cgroup_id);

	return box ? &box->pub : NULL;
}

size_t service_sandboxes_count(const struct service *service)
{
	return service->boxes_by_id.count - service->hidden;
}

int service_sandboxes_each(struct service *service, const char *session,
			   int (*fn)(void *data, const struct sandbox *sandbox), void *data)
{
	struct live *live = session ? live_find(service, session) : NULL;
	struct box *box;

	if (session && !live)
		return 0;
	box = session ? TAILQ_FIRST(&live->boxes) : TAILQ_FIRST(&service->all);
	while (box) {
		struct box *next = session ? TAILQ_NEXT(box, of_session) : TAILQ_NEXT(box, of_all);
		int r = box->dying ? 0 : fn(data, box_counted(service, box));

		if (r < 0)
			return r;
		box = next;
	}
	return 0;
}

/* What a box waits for: its end, or to be as tight as its session, or that its connections are cut.
 */
static void box_attend(struct service *service, struct box *box)
{
	struct live *live = box->live;
	struct event event = { .reason = NP_R_CUT, .has_cut = 1 };
	bool created;

	if (box->dying) {
		box_end(service, box, false, "daemon");
		return;
	}
	live->pins++;
	live_apply(service, live, NULL);
	live_cut(service, live, &event.cut, NULL);
	if (event.cut)
		service_emit(service, &event, live, NULL);
	/* The kernel may have turned out to be stricter. */
	if (live->status == LIVE_OPEN && !np_rung_equal(&live->stands, &live->recorded))
		live_record(service, live, NULL, &created);
	live_unpin(service, live);
}

void service_sweep(struct service *service)
{
	size_t n = service->care_count;
	struct box *box;

	if (n > SWEEP_BATCH)
		n = SWEEP_BATCH;
	boxes_look(service);
	/* Each is put at the end first, so that those that stay do not keep the sweep from the
	 * others. */
	for (size_t i = 0; i < n && (box = TAILQ_FIRST(&service->care)); i++) {
		TAILQ_REMOVE(&service->care, box, of_care);
		TAILQ_INSERT_TAIL(&service->care, box, of_care);
		box_attend(service, box);
	}
	for (int i = 0; i < SWEEP_BATCH; i++) {
		box = service->cursor ? service->cursor : TAILQ_FIRST(&service->all);
		if (!box)
			break;
		service->cursor = TAILQ_NEXT(box, of_all); /* box_drop() keeps it right */
		if (!box->dying)
			box_check(service, box);
		if (!service->cursor)
			break; /* once around is enough */
	}
	runs_sweep(service);
	forwards_sweep(service);
}

void service_sandbox_changed(struct service *service, uint64_t cgroup_id)
{
	struct box *box = box_by_cgroup(service, cgroup_id);

	if (!box)
		return;
	/* The file says something new only when a process came or the last one went. Events that came and went together
	 * are one: a command can be over before we look. */
	box->pub.ever_populated = true;
	box_check(service, box);
}
