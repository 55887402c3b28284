/* SPDX-License-Identifier: MIT */
/* Sandboxes come and go: make, remove. adoption.c adopts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/sql.h"
#include "session/questions_internal.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

/* USER.SESSION.xxxxxxxx. The random part also keeps a.b/c and a/b.c apart. */
int sandbox_id_choose(struct service *service, const struct session_name *name, char id[static NP_SANDBOX_ID_MAX + 1])
{
	uint32_t number;

	for (int i = 0; i < 16; i++) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(id, NP_SANDBOX_ID_MAX + 1, "%.*s.%s.%08x", (int)name->user_len, name->text,
			 name->text + name->user_len + 1, number);
		if (!sandbox_by_id(service, id))
			return 0;
	}
	return -EEXIST;
}

static int bounds_check(const struct service *service, const struct session *session, struct failure *ret_failure)
{
	if (service->sandboxes_by_id.count >= NP_SANDBOXES_MAX)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "there are %zu sandboxes already",
				    service->sandboxes_by_id.count);
	if (session->sandbox_count >= NP_SANDBOXES_PER_SESSION)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%s has %u sandboxes already",
				    session->name.text, session->sandbox_count);
	return 0;
}

int session_enter(struct service *service, const char *name, const char *who, struct session **ret,
		  struct failure *ret_failure)
{
	struct session *session;
	int r = session_open(service, name, &session, ret_failure);

	if (r)
		return r;
	r = bounds_check(service, session, ret_failure);
	if (!r)
		r = session_settle(service, session, who, ret_failure);
	if (r) {
		session_unpin(service, session);
		return r;
	}
	*ret = session;
	return 0;
}

int sandbox_record(struct service *service, struct sandbox *sandbox)
{
	struct sandbox_row row = {
		.session = sandbox->pub.session,
		.cgroup_id = sandbox->pub.cgroup.id,
		.adopted = sandbox->pub.adopted,
		.class = sandbox->pub.class,
		.created_us = sandbox->pub.created_us,
	};
	int r;

	if (sandbox->recorded)
		return 0;
	memcpy(row.id, sandbox->pub.id, sizeof(row.id));
	strcpy(row.path, sandbox->pub.cgroup.path);
	r = store_sandbox_put(service->config.store, &row);
	sandbox->recorded = !r;
	return r;
}

int session_follow(struct service *service, struct session *session, const char *who, struct failure *ret_failure)
{
	struct event event = { .reason = NP_R_NOT_RECORDED, .who = who };
	int r;

	if (np_rung_equal(&session->stands, &session->recorded))
		return 0;
	r = session_record_rise(service, session, who);
	questions_raised(service, session);
	if (!r)
		return 0;
	event.text = sql_strerror(r);
	service_emit(service, &event, session, NULL);
	return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "%s: %s", session->name.text, event.text);
}

/* Records and raises what cgroup_make() made. On failure the sandbox is abandoned. */
static int make_finish(struct service *service, struct sandbox *sandbox, const char *who, struct failure *ret_failure)
{
	struct session *session = sandbox->session;
	char id[NP_SANDBOX_ID_MAX + 1];
	int r = sandbox_record(service, sandbox);

	if (r) {
		sandbox_abandon(service, sandbox);
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "a new sandbox of %s: %s", session->name.text,
				    sql_strerror(r));
	}
	memcpy(id, sandbox->pub.id, sizeof(id));
	r = session_apply(service, session, ret_failure);
	if (!r)
		r = session_follow(service, session, who, ret_failure);
	if (!r)
		return 0;
	/* session_apply() may have ended it: it is looked up again. */
	sandbox = sandbox_by_id(service, id);
	if (sandbox)
		sandbox_abandon(service, sandbox);
	return r;
}

/*
 * First the cgroup, then the record (which needs the cgroup's id), then the raise, which opens it to its session's mode. A
 * cgroup below the slice that is not registered is NONE. So a crash after the first step leaves an empty cgroup that nobody was
 * told of and that has no network, and recovery removes it; a crash after the second leaves a record, and recovery raises it or
 * forgets it. At no time is there a cgroup with a network that no record knows.
 */
static int make_in(struct service *service, struct session *session, const struct sandbox_order *order, const char *who,
		   struct sandbox **ret, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	char id[NP_SANDBOX_ID_MAX + 1], parent[PARENT_NAME_SIZE];
	const enum sandbox_kind kind = order->kind;
	struct gate_cgroup cgroup;
	struct sandbox *sandbox;
	int r = kind == SANDBOX_BORN ? 0 : service_whole(service, ret_failure); /* nobody would hold it */

	if (r)
		return r;
	r = session_workspace_renew(service, session);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "%s ended, and its workspace of then does not go: %s",
				    session->name.text, r < 0 ? strerror(-r) : sql_strerror(r));
	r = sandbox_id_choose(service, &session->name, id);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "no id could be made: %s", strerror(-r));
	parent_name(&session->name, order->systemd, parent);
	r = kind == SANDBOX_BORN ? gate->cgroup_find(gate->ctx, order->cgroup, &cgroup)
				 : gate->cgroup_make(gate->ctx, kind == SANDBOX_PARENT ? parent : id, &cgroup);
	if (r == -ESTALE)
		return service_fail(ret_failure, NP_R_NOT_WHOLE, r, "the cgroup of all sandboxes was removed");
	if (r)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "cgroup %s: %s", id, strerror(-r));
	if (sandbox_by_cgroup(service, cgroup.id)) /* a parent's that is about to go */
		return service_fail(ret_failure, NP_R_SANDBOX_BUSY, -EBUSY, "cgroup %s", cgroup.path);
	r = sandbox_new(service, session, id, &cgroup, false, &sandbox);
	if (r) {
		gate->cgroup_remove(gate->ctx, &cgroup);
		return service_fail(ret_failure, NP_R_FAILED, r, "out of memory");
	}
	sandbox->pub.created_us = service->config.wall_us();
	sandbox_touch(service, sandbox);
	sandbox->pub.class = order->class;
	sandbox->pub.kept = kind == SANDBOX_KEPT;
	sandbox->pub.parent = kind == SANDBOX_PARENT;
	sandbox->pub.born = sandbox->placed = kind == SANDBOX_BORN;
	r = make_finish(service, sandbox, who, ret_failure);
	if (r)
		return r;
	r = kind == SANDBOX_KEPT ? kept_make(service, sandbox) : 0;
	if (r) {
		sandbox_abandon(service, sandbox);
		return service_fail(ret_failure, NP_R_FAILED, r, "the directory of a kept sandbox: %s", strerror(-r));
	}
	session_publish(service, session); /* it is there before anybody can look for it */
	sandbox->announced = true;
	sandbox_event(service, NP_R_SANDBOX_MADE, sandbox, who, NULL);
	*ret = sandbox;
	return 0;
}

int sandbox_make(struct service *service, const char *name, const struct sandbox_order *order, const char *who,
		 const struct sandbox_info **ret, struct failure *ret_failure)
{
	struct session *session;
	struct sandbox *sandbox = NULL;
	int r = session_enter(service, name, who, &session, ret_failure);

	if (r)
		return r;
	/* Each who enters would take a user of its own, and a kept one gives none back. */
	if (order->kind != SANDBOX_PLAIN && session->temporary)
		r = service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL, "%s is temporary: no sandbox of it is kept",
				 session->name.text);
	else
		r = make_in(service, session, order, who, &sandbox, ret_failure);
	session_unpin(service, session);
	if (r)
		return r;
	*ret = &sandbox->pub;
	return 0;
}

int service_sandbox_make(struct service *service, const char *session, const char *who, const struct sandbox_info **ret,
			 struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	int r = sandbox_make(service, session, &(struct sandbox_order){ 0 }, who, ret, ret_failure);

	return r ? r : starter_note(service, &(*ret)->session, who, ret_failure);
}

int service_sandbox_remove(struct service *service, const char *id, const char *who, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct sandbox *sandbox = sandbox_by_id(service, id);
	int r;

	if (!sandbox || sandbox->dying)
		return service_fail(ret_failure, NP_R_NO_SUCH_SANDBOX, -ENOENT, "%s", id);
	r = sandbox_end(service, sandbox, sandbox_is_gone(service, sandbox), who);
	/* Killed and not empty yet: as good as removed, the sweep sees to the rest. */
	if (!r || sandbox->dying)
		return 0;
	if (r == -EBUSY)
		return service_fail(ret_failure, NP_R_SANDBOX_BUSY, r, "cgroup %s", sandbox->pub.cgroup.path);
	return service_fail(ret_failure, NP_R_FAILED, r, "sandbox %s could not be removed: %s", id, strerror(-r));
}

void service_sandbox_active(struct service *service, uint64_t cgroup_id)
{
	struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup_id);

	if (sandbox)
		sandbox_touch(service, sandbox);
}
