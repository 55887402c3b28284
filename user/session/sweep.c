/* SPDX-License-Identifier: MIT */
/* What is due later: the sweep of each second, and a cgroup that has changed. */
#include "session/questions_internal.h"
#include "session/service_internal.h"

/* What a sandbox waits for: its end, or to be as tight as its session, or that its connections are cut. */
static void sandbox_attend(struct service *service, struct sandbox *sandbox)
{
	struct session *session = sandbox->session;
	struct event event = { .reason = NP_R_CUT, .has_cut = 1 };

	if (sandbox->dying) {
		sandbox_end(service, sandbox, false, "daemon");
		return;
	}
	session->pins++;
	session_apply(service, session, NULL);
	session_cut(service, session, &event.cut, NULL);
	if (event.cut)
		service_emit(service, &event, session, NULL);
	/* The kernel may have turned out to be stricter. */
	if (session->status == SESSION_OPEN && !np_rung_equal(&session->stands, &session->recorded)) {
		session_record_rise(service, session, "daemon");
		questions_raised(service, session);
	}
	session_unpin(service, session);
}

void service_sweep(struct service *service)
{
	_verb_ struct service *verb = verb_begin(service);
	size_t n = service->care_count;
	struct sandbox *sandbox;

	if (n > SWEEP_BATCH)
		n = SWEEP_BATCH;
	sandboxes_look(service);
	/* Each is put at the end first, so that those that stay do not keep the sweep from the others. */
	for (size_t i = 0; i < n && (sandbox = TAILQ_FIRST(&service->care)); i++) {
		TAILQ_REMOVE(&service->care, sandbox, of_care);
		TAILQ_INSERT_TAIL(&service->care, sandbox, of_care);
		sandbox_attend(service, sandbox);
	}
	for (int i = 0; i < SWEEP_BATCH; i++) {
		sandbox = service->cursor ? service->cursor : TAILQ_FIRST(&service->all);
		if (!sandbox)
			break;
		service->cursor = TAILQ_NEXT(sandbox, of_all); /* sandbox_drop() keeps it right */
		if (!sandbox->dying)
			sandbox_check(service, sandbox);
		if (!service->cursor)
			break; /* once around is enough */
	}
	restarted_look(service, true);
	runs_sweep(service);
	questions_sweep(service);
	forwards_sweep(service);
	lifetime_sweep(service);
	store_tend(service->config.store);
	store_sync(
		service->config
			.store); /* if that fails the log is full one day, and each raise waits for the database again */
}

void service_sandbox_changed(struct service *service, uint64_t cgroup_id)
{
	_verb_ struct service *verb = verb_begin(service);
	struct sandbox *sandbox = sandbox_by_cgroup(service, cgroup_id);

	if (!sandbox) {
		restarted_look(service, false); /* made where one was that is awaited */
		return;
	}
	/* The file says something new only when a process came or the last one went. Events that came and went together
	 * are one: a command can be over before we look. */
	sandbox->pub.ever_populated = true;
	sandbox_check(service, sandbox);
}
