/* SPDX-License-Identifier: MIT */
/* Sessions in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/service_internal.h"

bool live_absorb(struct live *live, const struct box *box)
{
	struct np_rung kernel = box->pub.rung, before = live->stands;

	/* What its class alone asks for says nothing of the session. */
	kernel.flags = 0;
	if (kernel.mode <= class_mode(box->pub.class))
		kernel.mode = before.mode;
	live->stands = np_rung_join(before, kernel);
	return !np_rung_equal(&before, &live->stands);
}

struct live *live_find(struct service *service, const char *name)
{
	uint64_t hash = hash_text(service->seed, name);

	for (struct table_node *n = table_first(&service->lives, hash); n; n = table_next(n)) {
		struct live *live = container_of(n, struct live, node);

		if (!strcmp(live->name.text, name))
			return live;
	}
	return NULL;
}

/* What the store knows of it, or what a new session starts from. */
static int live_read(struct service *service, const struct session_name *name, enum level level, struct live *live,
		     struct failure *ret_failure)
{
	struct session_row row;
	int r = store_session_get(service->config.store, name->text, &row);

	live->name = *name;
	if (r == -ENOENT) {
		if (store_sessions_count(service->config.store) >= NP_SESSIONS_MAX)
			return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "there are %u sessions already",
					    store_sessions_count(service->config.store));
		live->status = LIVE_NEW;
		live->stands =
			(struct np_rung){ .level = level, .mode = service->config.modes.of[level], .generation = 1 };
	} else if (r) {
		return service_fail(ret_failure, NP_R_FAILED, r, "the record of %s could not be read: %s", name->text,
				    strerror(-r));
	} else {
		live->status = row.ended ? LIVE_ENDED : LIVE_OPEN;
		live->stands = row.rung;
	}
	live->recorded = live->stands;
	return 0;
}

int live_load(struct service *service, const struct session_name *name, enum level level, struct live **ret,
	      struct failure *ret_failure)
{
	struct live *live = live_find(service, name->text);
	int r;

	if (live) {
		live->pins++;
		*ret = live;
		return 0;
	}
	/* With a broken disk, raises that could not be recorded pile up here; they have the bound
	 * of the record. */
	if (service->lives.count >= NP_SESSIONS_MAX)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%zu sessions are in use already",
				    service->lives.count);
	live = calloc(1, sizeof(*live));
	if (!live || table_reserve(&service->lives)) {
		free(live);
		return service_fail(ret_failure, NP_R_FAILED, -ENOMEM, "out of memory");
	}
	r = live_read(service, name, level, live, ret_failure);
	if (r) {
		free(live);
		return r;
	}
	TAILQ_INIT(&live->boxes);
	live->pins = 1;
	table_add(&service->lives, &live->node, hash_text(service->seed, name->text));
	*ret = live;
	return 0;
}

void live_unpin(struct service *service, struct live *live)
{
	live->pins--;
	live_release(service, live);
}

void live_release(struct service *service, struct live *live)
{
	if (live->pins || live->box_count || live->dirty || !np_rung_equal(&live->stands, &live->recorded))
		return;
	table_remove(&service->lives, &live->node);
	free(live);
}
