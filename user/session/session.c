/* SPDX-License-Identifier: MIT */
/* Sessions in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

bool session_absorb(struct session *session, const struct sandbox *sandbox)
{
	struct np_rung kernel = sandbox->pub.rung, before = session->stands;

	/* What its class alone asks for says nothing of the session. */
	kernel.flags = 0;
	if (kernel.mode <= class_mode(sandbox->pub.class))
		kernel.mode = before.mode;
	session->stands = np_rung_join(before, kernel);
	return !np_rung_equal(&before, &session->stands);
}

struct session *session_find(struct service *service, const char *name)
{
	return TABLE_FIND(&service->sessions, hash_text(&service->key, name), struct session, node, session,
			  !strcmp(session->name.text, name));
}

/* What a session that is not on record starts from: one that was forgotten comes back as high as it went. */
static int session_start(struct service *service, enum level level, struct session *session,
			 struct failure *ret_failure)
{
	struct store *store = service->config.store;
	struct np_rung remembered = { 0 };
	int r = store_level_get(store, session->name.text, &remembered);

	if (r && r != -ENOENT)
		return service_fail(ret_failure, NP_R_FAILED, r, "the level of %s could not be read: %s",
				    session->name.text, sql_strerror(r));
	if (store_sessions_count(store) >= NP_SESSIONS_MAX - service->reserve && !sessions_make_room(service))
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG,
				    "there are %u sessions already; end some, or forget some that have ended",
				    store_sessions_count(store));
	session->status = SESSION_NEW;
	session->stands = np_rung_join(
		(struct np_rung){ .level = level, .mode = service->config.modes.of[level], .generation = 1 },
		remembered);
	session->recorded = session->stands;
	return 0;
}

/* What the store knows of it, or what a new session starts from. */
static int session_load_row(struct service *service, const struct session_name *name, enum level level,
			    struct session *session, struct failure *ret_failure)
{
	struct session_row row;
	int r = store_session_get(service->config.store, name->text, &row);

	session->name = *name;
	if (r == -ENOENT)
		return session_start(service, level, session, ret_failure);
	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "the record of %s could not be read: %s", name->text,
				    sql_strerror(r));
	session->status = row.ended ? SESSION_ENDED : SESSION_OPEN;
	session->stands = session->recorded = row.rung;
	session->temporary = row.temporary;
	session->workspace_due = row.workspace_due;
	return 0;
}

int session_load(struct service *service, const struct session_name *name, enum level level, struct session **ret,
		 struct failure *ret_failure)
{
	struct session *session = session_find(service, name->text);
	int r;

	if (session) {
		session->pins++;
		*ret = session;
		return 0;
	}
	/* With a broken disk, raises that could not be recorded pile up here. */
	if (service->sessions.count >= NP_SESSIONS_HELD)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%zu sessions are in use already",
				    service->sessions.count);
	session = calloc(1, sizeof(*session));
	if (!session || table_reserve(&service->sessions)) {
		free(session);
		return service_fail(ret_failure, NP_R_FAILED, -ENOMEM, "out of memory");
	}
	r = session_load_row(service, name, level, session, ret_failure);
	if (r) {
		free(session);
		return r;
	}
	TAILQ_INIT(&session->sandboxes);
	session->pins = 1;
	table_add(&service->sessions, &session->node, hash_text(&service->key, name->text));
	*ret = session;
	return 0;
}

int session_open(struct service *service, const char *name, struct session **ret, struct failure *ret_failure)
{
	struct session_name parsed;
	int r = service_name_read(name, &parsed, ret_failure);

	return r ? r : session_load(service, &parsed, LEVEL_PUBLIC, ret, ret_failure);
}

void sessions_each(struct service *service, void (*fn)(struct service *service, struct session *session, void *data),
		   void *data)
{
	for (size_t i = 0; i < service->sessions.size; i++) {
		struct table_node *node = service->sessions.buckets[i];

		while (node) {
			struct session *session = container_of(node, struct session, node);

			session->pins++;
			fn(service, session, data);
			node = node->next;
			session_unpin(service, session);
		}
	}
}

void session_unpin(struct service *service, struct session *session)
{
	session->pins--;
	session_release(service, session);
}

void session_release(struct service *service, struct session *session)
{
	if (session->pins || session->sandbox_count || session->dirty ||
	    !np_rung_equal(&session->stands, &session->recorded))
		return;
	table_remove(&service->sessions, &session->node);
	free(session);
}
