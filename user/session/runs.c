/* SPDX-License-Identifier: MIT */
/* Runs: asked for, decided, started, ended. The store keeps that a run of class write is approved first. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "session/run_times.h"
#include "session/service_internal.h"
#include "vocab/kept_files.h"
#include "vocab/limits.h"

/* The options, as an event has them: of variables the names, for events are read, shipped and kept by many. They are JSON of
 * ours (compact), so "env":[ is the member, and not part of a string: there its quotes would be escaped. */
static void options_redact(char *options)
{
	static const char member[] = "\"env\":[";
	char *from = strstr(options, member), *to;
	bool in_string = false, value = false;

	if (!from)
		return;
	for (to = from += strlen(member); *from && (in_string || *from != ']'); from++) {
		if (in_string && *from == '\\' && from[1]) {
			if (!value)
				*to++ = *from;
			from++;
		} else if (*from == '"') {
			in_string = !in_string;
			value = false;
		} else if (in_string && *from == '=') {
			value = true;
		}
		if (!value)
			*to++ = *from;
	}
	memmove(to, from, strlen(from) + 1);
}

static void run_event(struct service *service, unsigned reason, const struct run_row *run, const char *who,
		      const char *more)
{
	char text[NP_EVENT_STRING_MAX], options[sizeof(run->options)];
	struct event event = {
		.reason = reason,
		.session = run->session.text,
		.sandbox = run->sandbox[0] ? run->sandbox : NULL,
		.run = run->id,
		.who = who,
		.text = text,
	};

	snprintf(options, sizeof(options), "%s", run->options);
	options_redact(options);
	snprintf(text, sizeof(text), "run %llu%s%s: %s%s%.400s%s%.200s", (unsigned long long)run->id,
		 run->class == CLASS_OPEN ? "" : ", class ", class_name(run->class), more ? more : "", more ? "; " : "",
		 run->command, strcmp(options, "{}") ? " with " : "", strcmp(options, "{}") ? options : "");
	service_emit(service, &event, NULL, NULL);
}

/* The store's answer in words. */
static int run_fail(struct failure *ret_failure, int r, uint64_t id)
{
	unsigned long long n = id;

	if (r == -ENOENT)
		return service_fail(ret_failure, NP_R_NO_SUCH_RUN, r, "%llu", n);
	if (r == -EALREADY)
		return service_fail(ret_failure, NP_R_RUN_OVER, r, "run %llu", n);
	if (r == -EPERM)
		return service_fail(ret_failure, NP_R_NOT_APPROVED, r, "run %llu", n);
	return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "run %llu: %s", n, sql_strerror(r));
}

int service_run_request(struct service *service, const struct run_request *asked, const char *who, struct run_row *ret,
			struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct run_row row = {
		.class = asked->class,
		.launched = asked->launched,
		.created_us = service->config.wall_us(),
		.expires_us = asked->expires_us,
	};
	struct session_row made;
	uint64_t id;
	int r;

	/* Never cut: somebody approves what is written there. */
	if (strlen(asked->command) > NP_RUN_COMMAND || strlen(asked->options) > NP_RUN_OPTIONS)
		return service_fail(ret_failure, NP_R_TOO_LARGE, -E2BIG, "the command or its options are too long");
	r = service_session_create(service, asked->session, LEVEL_PUBLIC, false, who, &made, ret_failure);
	if (r)
		return r;
	row.session = made.name;
	snprintf(row.command, sizeof(row.command), "%s", asked->command);
	snprintf(row.options, sizeof(row.options), "%s", asked->options);
	snprintf(row.who, sizeof(row.who), "%s", who);
	r = store_run_put(service->config.store, &row, &id);
	if (r == -E2BIG)
		return service_fail(ret_failure, NP_R_TOO_MANY, r, "%d runs wait already", NP_RUNS_PENDING);
	if (r == -EDQUOT)
		return service_fail(ret_failure, NP_R_TOO_MANY, r, "%d runs that %s has asked for wait already",
				    NP_RUNS_PER_USER, who);
	if (!r)
		r = store_run_get(service->config.store, id, ret);
	if (!r)
		(void)run_is_over(service, ret); /* its time begins */
	if (r)
		return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "a run of %s: %s", asked->session,
				    sql_strerror(r));
	if (asked->class == CLASS_WRITE)
		run_event(service, NP_R_RUN_ASKED, ret, who, NULL);
	return 0;
}

int service_run_show(struct service *service, uint64_t id, struct run_row *ret, struct failure *ret_failure)
{
	int r = store_run_get(service->config.store, id, ret);

	return r ? run_fail(ret_failure, r, id) : 0;
}

int service_run_decide(struct service *service, uint64_t id, bool approved, const char *reason, const char *who,
		       struct run_row *ret, struct failure *ret_failure)
{
	struct store *store = service->config.store;
	int r = store_run_get(store, id, ret);

	if (!r && (ret->state != RUN_PENDING || run_is_over(service, ret)))
		r = -EALREADY;
	if (!r && starter_check(service, &ret->session, false, who, ret_failure))
		return -EACCES;
	if (!r)
		r = store_run_decide(store, id, approved, who, reason, run_wall_us(service, ret));
	if (!r)
		r = store_run_get(store, id, ret);
	if (!r && approved)
		run_time_begin(service, id, ret->expires_us, NP_RUN_START_S * 1000000ull);
	if (r)
		return run_fail(ret_failure, r, id);
	run_event(service, approved ? NP_R_RUN_APPROVED : NP_R_RUN_REJECTED, ret, who, reason[0] ? reason : NULL);
	return 0;
}

int service_run_withdraw(struct service *service, uint64_t id, const char *reason, const char *who, struct run_row *ret,
			 struct failure *ret_failure)
{
	struct store *store = service->config.store;
	int r = store_run_get(store, id, ret);

	if (!r && ret->state != RUN_PENDING)
		r = -EALREADY;
	if (!r)
		r = store_run_withdraw(store, id, who, reason, service->config.wall_us());
	if (!r)
		r = store_run_get(store, id, ret);
	if (r)
		return run_fail(ret_failure, r, id);
	run_event(service, NP_R_RUN_REJECTED, ret, who, reason);
	return 0;
}

/* The session's kept one. A class is a run's alone, so it has none. */
static const struct sandbox_info *run_enter(struct service *service, const struct run_row *run, int *ret_error,
					    struct failure *ret_failure)
{
	const struct sandbox *sandbox = kept_find(service, run->session.text);

	if (run->class != CLASS_OPEN)
		*ret_error = service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL,
					  "a run with a class has a sandbox of its own");
	else if (!sandbox)
		*ret_error = service_fail(ret_failure, NP_R_NO_SUCH_SANDBOX, -ENOENT, "%s has no kept one",
					  run->session.text);
	else
		return &sandbox->pub;
	return NULL;
}

int service_run_start(struct service *service, uint64_t id, const char *session, bool keep, const char *who,
		      const struct sandbox_info **ret, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	const struct sandbox_info *sandbox = NULL;
	struct session_row of;
	struct run_row run;
	struct failure ignored;
	int r = store_run_get(service->config.store, id, &run);

	if (!r && strcmp(run.session.text, session) != 0)
		return service_fail(ret_failure, NP_R_NO_SUCH_RUN, -ENOENT, "run %llu is not one of %s",
				    (unsigned long long)id, session);
	/* The store would refuse it, too; but then there would be a sandbox already. */
	if (!r && (run.state != RUN_PENDING || run_is_over(service, &run)))
		r = -EALREADY;
	if (!r && run.class == CLASS_WRITE && !run.approved)
		r = -EPERM;
	if (!r)
		r = store_session_get(service->config.store, session, &of);
	if (r)
		return run_fail(ret_failure, r, id);
	if (of.ended) /* a run does not bring it back */
		return service_fail(ret_failure, NP_R_NO_SUCH_SESSION, -ENOENT, "%s was ended", session);
	if (keep)
		sandbox = run_enter(service, &run, &r, ret_failure);
	else
		r = sandbox_make(service, session, &(struct sandbox_order){ .class = run.class }, who, &sandbox,
				 ret_failure);
	if (!sandbox)
		return r;
	r = store_run_start(service->config.store, id, sandbox->id, run_wall_us(service, &run));
	if (r) {
		if (!keep)
			service_sandbox_remove(service, sandbox->id, "daemon", &ignored);
		return run_fail(ret_failure, r, id);
	}
	memcpy(run.sandbox, sandbox->id, sizeof(run.sandbox));
	run_event(service, NP_R_RUN_STARTED, &run, who, NULL);
	*ret = sandbox;
	return 0;
}

int service_run_end(struct service *service, uint64_t id, enum run_state state, const char *result, const char *who,
		    struct run_row *ret, struct failure *ret_failure)
{
	struct store *store = service->config.store;
	int r = store_run_end(store, id, state, result, service->config.wall_us());

	if (!r)
		r = store_run_get(store, id, ret);
	if (r)
		return run_fail(ret_failure, r, id);
	run_event(service, NP_R_RUN_ENDED, ret, who, run_state_name(state));
	return 0;
}

int service_run_cancel(struct service *service, uint64_t id, const char *result, const char *who, struct run_row *ret,
		       struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	const struct gate *gate = &service->config.gate;
	const struct sandbox *sandbox;
	struct run_row run;
	char prefix[64];
	int r = store_run_get(service->config.store, id, &run);

	if (!r && run.state != RUN_RUNNING)
		r = -EALREADY;
	if (r)
		return run_fail(ret_failure, r, id);
	sandbox = sandbox_by_id(service, run.sandbox);
	if (sandbox && !sandbox->dying && sandbox->pub.kept) {
		snprintf(prefix, sizeof(prefix), NP_RUN_GROUP "%llu-", (unsigned long long)id);
		r = gate->cgroup_remove_below(gate->ctx, &sandbox->pub.cgroup, prefix);
		if (r && r != -EBUSY) /* busy: they were killed, and take their time */
			return service_fail(ret_failure, NP_R_FAILED, r, "run %llu could not be killed: %s",
					    (unsigned long long)id, strerror(-r));
	} else if (sandbox && !sandbox->dying) {
		r = service_sandbox_remove(service, run.sandbox, who, ret_failure);
		if (r)
			return r;
	}
	return service_run_end(service, id, RUN_FAILED, result, who, ret, ret_failure);
}

/* -- what time does to runs ------------------------------------------------------------- */

static void run_give_up(struct service *service, const struct run_row *run, const char *why)
{
	struct failure ignored;
	struct run_row row;

	service_run_withdraw(service, run->id, why, "daemon", &row, &ignored);
}

/* Whoever started it was killed before a process was there: nothing will ever run, and nobody tells. */
static bool run_is_deserted(struct service *service, const struct sandbox *sandbox)
{
	const struct gate *gate = &service->config.gate;

	return !sandbox->pub.kept && !sandbox->pub.ever_populated &&
	       sandbox_age_us(service, sandbox) > NP_RUN_START_S * 1000000ull &&
	       !gate->cgroup_populated(gate->ctx, &sandbox->pub.cgroup);
}

/* The run's sandbox; NULL: it is gone, or is a kept one and nobody who runs anything there is left. */
static const struct sandbox *run_sandbox(struct service *service, const struct run_row *run)
{
	const struct sandbox *sandbox = sandbox_by_id(service, run->sandbox);

	return sandbox && !sandbox->dying && !(sandbox->pub.kept && !kept_in_use(service, sandbox)) ? sandbox : NULL;
}

/* Whoever runs it has time to report how it ended. */
static void run_lose(struct service *service, const struct run_row *run)
{
	const uint64_t now = service->config.wall_us(), lost_us = NP_RUN_LOST_S * 1000000ull;

	if (!store_run_lose(service->config.store, run->id, now))
		run_time_begin(service, run->id, now + lost_us, lost_us);
}

static int run_attend(void *data, const struct run_row *run)
{
	struct service *service = data;
	const struct sandbox *sandbox;
	struct failure ignored;
	struct run_row ended;

	if (run->state == RUN_PENDING) {
		if (run_is_over(service, run))
			run_give_up(service, run,
				    run->approved ? "approved, but not started in time" : "nobody decided in time");
		return 0;
	}
	sandbox = run_sandbox(service, run);
	if (sandbox && run_is_deserted(service, sandbox))
		service_sandbox_remove(service, run->sandbox, "daemon", &ignored);
	else if (!sandbox && !run->lost_us)
		run_lose(service, run);
	else if (!sandbox && run_is_lost(service, run))
		service_run_end(service, run->id, RUN_FAILED, "{\"problem\":\"nobody told how it ended\"}", "daemon",
				&ended, NULL);
	return 0;
}

/* A failure is tried again a second later. */
void runs_sweep(struct service *service)
{
	run_times_begin(service);
	if (!store_runs_open_each(service->config.store, run_attend, service))
		run_times_end(service);
}

static int run_recover(void *data, const struct run_row *run)
{
	struct service *service = data;

	if (run->state == RUN_PENDING && run->launched)
		run_give_up(data, run, "the daemon that was to start it has ended");
	/* Its launcher could not tell while nobody was there: its time begins anew. */
	if (run->state == RUN_RUNNING && run->lost_us)
		run_lose(service, run);
	return 0;
}

void service_runs_recover(struct service *service)
{
	store_runs_open_each(service->config.store, run_recover, service);
}

struct ending {
	struct service *service;
	const char *session;
};

static int run_withdraw(void *data, const struct run_row *run)
{
	const struct ending *ending = data;

	if (run->state == RUN_PENDING && !strcmp(run->session.text, ending->session))
		run_give_up(ending->service, run, "the session was ended");
	return 0;
}

void runs_session_ended(struct service *service, const char *session)
{
	store_runs_open_each(service->config.store, run_withdraw, &(struct ending){ service, session });
}
