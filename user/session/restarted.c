/* SPDX-License-Identifier: MIT */
/*
 * Containers that were attached and are started again. An engine gives a container that it starts a new cgroup of the same name, and
 * that name has the container's id in it: nobody else's cgroup ever gets it. So a container whose cgroup went is awaited. When there is a
 * cgroup in its place, it is made a sandbox of the same session at once: first the gate is on it, then it is looked at, since
 * its runtime may be half-way through the start. Until the look finds nothing, it is confined all the same.
 *
 * Awaited ones are rows of sandboxes on record whose cgroup is 0, so that the next daemon awaits them as well. They end with
 * their session, or when there are too many: whether a container was removed for good only its engine knows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "containers/container_path.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

struct awaited {
	TAILQ_ENTRY(awaited) next;
	char id[NP_SANDBOX_ID_MAX + 1]; /* of the sandbox that it was, and of its row */
	struct session_name session;
	uint64_t cgroup_id; /* of the one that is in its place, and cannot be made a sandbox so far; 0: there is none */
	uint64_t found_ns;  /* when it was found there: for NP_NEWBORN_MS its runtime may be the cause */
	uint64_t next_ns;   /* when to try again */
	bool reported;	    /* that it is outside, or not whole */
	bool counted;	    /* by awaited_most() */
	bool far;	    /* there is no place for it: what is watched lies above that */
	char path[];
};

static struct awaited *awaited_find(const struct service *service, const char *id)
{
	struct awaited *a;

	TAILQ_FOREACH(a, &service->awaited, next)
		if (!strcmp(a->id, id))
			return a;
	return NULL;
}

bool restarted_is_awaited(const struct service *service, const char *id)
{
	return awaited_find(service, id);
}

static void awaited_drop(struct service *service, struct awaited *a)
{
	store_sandbox_remove(service->config.store, a->id,
			     service->config.wall_us()); /* else the next daemon looks once more */
	TAILQ_REMOVE(&service->awaited, a, next);
	service->awaited_count--;
	free(a);
}

/* Tells at once when something is made where its cgroup was; or, while that is no place, as before an engine's first start after a
 * reboot, on the way there. The sweep finds it all the same, within a second. */
static void awaited_watch(struct service *service, struct awaited *a)
{
	const struct gate *gate = &service->config.gate;

	a->far = gate->way_watch && gate->way_watch(gate->ctx, a->path);
}

/* The oldest of the user who has the most, or of the session that has the most of this user's (NULL: of any). */
static struct awaited *awaited_most(const struct service *service, const struct session_name *user)
{
	struct awaited *most = NULL, *a, *b;
	size_t max = 0;

	TAILQ_FOREACH(a, &service->awaited, next)
		a->counted = user && !session_name_same_user(&a->session, user);
	TAILQ_FOREACH(a, &service->awaited, next) {
		size_t n = 0;

		for (b = a->counted ? NULL : a; b; b = TAILQ_NEXT(b, next)) {
			if (b->counted || (user ? strcmp(a->session.text, b->session.text) != 0
						: !session_name_same_user(&a->session, &b->session)))
				continue;
			b->counted = true;
			n++;
		}
		if (n > max) {
			max = n;
			most = a;
		}
	}
	return most;
}

/* A session that makes new containers all day displaces its own awaited ones, and nobody else's: a container that is
 * not awaited any more starts outside of a sandbox. */
static void awaited_make_room(struct service *service)
{
	struct awaited *oldest = awaited_most(service, &awaited_most(service, NULL)->session);

	log_warning("%s is awaited no longer: %d containers that were stopped are", oldest->path, NP_AWAITED_MAX);
	awaited_drop(service, oldest);
}

static int awaited_add(struct service *service, const char *id, const struct session_name *session, const char *path)
{
	struct awaited *a = awaited_find(service, id);

	if (a)
		return 0;
	a = calloc(1, sizeof(*a) + strlen(path) + 1);
	if (!a)
		return -ENOMEM;
	snprintf(a->id, sizeof(a->id), "%s", id);
	a->session = *session;
	strcpy(a->path, path);
	TAILQ_INSERT_TAIL(&service->awaited, a, next);
	service->awaited_count++;
	if (service->awaited_count > NP_AWAITED_MAX)
		awaited_make_room(service);
	awaited_watch(service, a);
	return 0;
}

void restarted_await(struct service *service, const struct sandbox *sandbox)
{
	const struct sandbox_info *pub = &sandbox->pub;
	struct container container;

	if (!pub->adopted || !sandbox->recorded || sandbox->session->temporary ||
	    sandbox->session->status != SESSION_OPEN || !container_of_path(pub->cgroup.path, &container))
		return;
	if (awaited_add(service, pub->id, &pub->session, pub->cgroup.path) == 0)
		/* If that fails, the next daemon takes it for one that has just gone. */
		store_sandbox_await(service->config.store, pub->id, service->config.wall_us());
	service->newborns_ns = service->config.now_ns() + NP_NEWBORN_MS * 1000000ull;
}

int restarted_recover(struct service *service, const struct sandbox_row *row)
{
	service->newborns_ns = service->config.now_ns() + NP_NEWBORN_MS * 1000000ull;
	return awaited_add(service, row->id, &row->session, row->path);
}

void restarted_forget(struct service *service, const char *session)
{
	struct awaited *a, *next;

	for (a = TAILQ_FIRST(&service->awaited); a; a = next) {
		next = TAILQ_NEXT(a, next);
		if (!session || !strcmp(a->session.text, session))
			awaited_drop(service, a);
	}
}

void restarted_free(struct service *service)
{
	struct awaited *a;

	while ((a = TAILQ_FIRST(&service->awaited))) {
		TAILQ_REMOVE(&service->awaited, a, next);
		free(a);
	}
}

static void awaited_report(struct service *service, struct awaited *a, const struct failure *failure)
{
	struct event event = { .reason = NP_R_CONTAINER_OUTSIDE, .session = a->session.text };
	char text[FS_PATH_SIZE + sizeof(failure->text)];

	a->reported = true;
	snprintf(text, sizeof(text), "%s: %s", a->path,
		 failure->text[0] ? failure->text : reason_sentence(failure->reason));
	event.text = text;
	log_error("a container of %s was started again, and is no sandbox: %s", a->session.text, text);
	service_emit(service, &event, NULL, NULL);
}

/* A look at what the processes of a container hold takes a millisecond or more: the longer it fails, the rarer it is. */
static void awaited_put_off(struct service *service, struct awaited *a, const struct failure *failure)
{
	const uint64_t now = service->config.now_ns(), since = now - a->found_ns;

	a->next_ns = now + since / 4;
	if (since >= NP_NEWBORN_MS * 1000000ull && !a->reported)
		awaited_report(service, a, failure);
}

/* True: it may become one within a moment. place: it may have gone since it is watched. */
static bool awaited_look(struct service *service, struct awaited *a, bool place)
{
	const struct gate *gate = &service->config.gate;
	const uint64_t now = service->config.now_ns();
	struct gate_cgroup cgroup;
	struct failure failure = { 0 };
	struct sandbox *sandbox;

	if (place || a->far) /* first: what is made from now on is told, what was made before is found */
		awaited_watch(service, a);
	if (gate->cgroup_find(gate->ctx, a->path, &cgroup)) {
		a->cgroup_id = 0;
		return false;
	}
	sandbox = sandbox_by_cgroup(service, cgroup.id);
	if (sandbox && !sandbox->unfinished) { /* a hook, or an operator, was faster */
		awaited_drop(service, a);
		return false;
	}
	if (a->cgroup_id != cgroup.id) {
		a->cgroup_id = cgroup.id;
		a->found_ns = a->next_ns = now;
		a->reported = false;
		service->newborns_ns = now + NP_NEWBORN_MS * 1000000ull;
	}
	if (now < a->next_ns)
		return !a->reported;
	if (adopt_again(service, a->session.text, &cgroup, &failure) == 0) {
		awaited_drop(service, a);
		return false;
	}
	awaited_put_off(service, a, &failure);
	return !a->reported;
}

bool restarted_look(struct service *service, bool places)
{
	struct awaited *a, *next;
	bool left = false;

	for (a = TAILQ_FIRST(&service->awaited); a; a = next) {
		next = TAILQ_NEXT(a, next);
		left = awaited_look(service, a, places) || left;
	}
	return left;
}
