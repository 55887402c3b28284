/* SPDX-License-Identifier: MIT */
#include "events/tally.h"

#include <string.h>

static histogram_bounds apply_bounds = { 10, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 100000, 1000000, 10000000 };
static histogram_bounds wait_bounds = { 1000000,   2500000,   5000000,	 10000000,   25000000,	 60000000,
					120000000, 300000000, 600000000, 1800000000, 3600000000, 86400000000 };
static histogram_bounds duration_bounds = { 1000,   5000,   10000,   25000,   50000,	100000,
					    250000, 500000, 1000000, 5000000, 30000000, 300000000 };

static void request_note(struct tally *tally, const struct event *event)
{
	const uint64_t us =
		(uint64_t)event->dns_us + event->connect_us + event->tls_us + event->wait_us + event->receive_us;

	if (event->query) {
		tally->queries[event->reason]++;
		return;
	}
	tally->requests[event->reason]++;
	if (NP_REASON_ALLOWS(event->reason) && event->method && event->status)
		histogram_note(&tally->duration, duration_bounds, us);
}

static void question_note(struct tally *tally, const struct event *event)
{
	if (event->reason == NP_R_QUESTION_ASKED) {
		tally->asked++;
		return;
	}
	if (!event->waited_us) /* an answer that held is over: the question was counted when it was given */
		return;
	tally->questions[event->reason == NP_R_QUESTION_ENDED		   ? TALLY_UNANSWERED
			 : event->answer && !strcmp(event->answer, "deny") ? TALLY_DENIED
									   : TALLY_ALLOWED]++;
	histogram_note(&tally->wait, wait_bounds, event->waited_us);
}

static void change_note(struct tally *tally, const struct event *event)
{
	tally->changes[event->reason]++;
	/* The event "cut" beside it says it once more. */
	if (event->has_cut && event->reason != NP_R_RAISED)
		tally->cut += event->cut;
	if (event->reason == NP_R_RAISED && event->rung.level < NP_LEVELS) {
		tally->raised[event->rung.level]++;
		histogram_note(&tally->apply, apply_bounds, event->applied_us);
	} else if (event->reason == NP_R_QUESTION_ASKED || event->reason == NP_R_QUESTION_ANSWERED ||
		   event->reason == NP_R_QUESTION_ENDED) {
		question_note(tally, event);
	}
}

void tally_note(struct tally *tally, const struct event *event)
{
	if (event->reason >= NP_REASON_COUNT)
		return;
	if (event->reason == NP_R_LOST || event->reason == NP_R_REQUESTS_LOST)
		tally->lost += event->suppressed;
	else
		tally->suppressed += event->suppressed;
	if (!NP_REASON_ALLOWS(event->reason) && !NP_REASON_REFUSES(event->reason))
		change_note(tally, event);
	else if (!event->hook) /* what the gate refused is its own to count */
		request_note(tally, event);
}

/* -- in words -------------------------------------------------------------------------------- */

static void by_reason(struct buf *out, const char *name, const uint64_t counts[NP_REASON_COUNT])
{
	for (unsigned reason = 0; reason < NP_REASON_COUNT; reason++)
		if (counts[reason])
			metric_put(out, name, counts[reason], "verdict", event_kind(reason), "reason",
				   reason_token(reason), NULL);
}

static void changes_describe(const struct tally *tally, struct buf *out)
{
	metric_family(out, "netpawl_changes_total", METRIC_COUNTER,
		      "Changes and errors, by reason: raises, sandboxes, runs, policies.");
	for (unsigned reason = 0; reason < NP_REASON_COUNT; reason++)
		if (tally->changes[reason])
			metric_put(out, "netpawl_changes_total", tally->changes[reason], "kind", event_kind(reason),
				   "reason", reason_token(reason), NULL);
	metric_family(out, "netpawl_raises_total", METRIC_COUNTER,
		      "Raises of sessions, by the level that they rose to.");
	for (unsigned level = 0; level < NP_LEVELS; level++)
		metric_put(out, "netpawl_raises_total", tally->raised[level], "level", level_name(level), NULL);
	metric_family(out, "netpawl_raise_apply_seconds", METRIC_HISTOGRAM,
		      "From the call that raises a session to the kernel tightened.");
	metric_put_histogram(out, "netpawl_raise_apply_seconds", &tally->apply, apply_bounds, NULL, NULL);
	metric_family(out, "netpawl_connections_cut_total", METRIC_COUNTER,
		      "Open connections that raises, reloads and adoptions have ended.");
	metric_put(out, "netpawl_connections_cut_total", tally->cut, NULL);
}

static void questions_describe(const struct tally *tally, struct buf *out)
{
	static const char *const words[] = { "allowed", "denied", "unanswered" };

	metric_family(out, "netpawl_questions_asked_total", METRIC_COUNTER, "Questions that people were asked.");
	metric_put(out, "netpawl_questions_asked_total", tally->asked, NULL);
	metric_family(out, "netpawl_questions_total", METRIC_COUNTER,
		      "Questions that are over: answered, or without an answer (expired or void).");
	for (unsigned i = 0; i < TALLY_QUESTIONS; i++)
		metric_put(out, "netpawl_questions_total", tally->questions[i], "outcome", words[i], NULL);
	metric_family(out, "netpawl_question_wait_seconds", METRIC_HISTOGRAM,
		      "How long a question waited until it was over.");
	metric_put_histogram(out, "netpawl_question_wait_seconds", &tally->wait, wait_bounds, NULL, NULL);
}

void tally_describe(const struct tally *tally, struct buf *out)
{
	metric_family(out, "netpawl_requests_total", METRIC_COUNTER,
		      "Requests, tunnels and connections that inspectors reported, by verdict and reason.");
	by_reason(out, "netpawl_requests_total", tally->requests);
	metric_family(
		out, "netpawl_dns_queries_total", METRIC_COUNTER,
		"DNS queries that were reported, by verdict and reason; allowed ones are not reported one by one.");
	by_reason(out, "netpawl_dns_queries_total", tally->queries);
	metric_family(out, "netpawl_request_duration_seconds", METRIC_HISTOGRAM,
		      "Allowed requests, from the resolution of the name to the end of the response.");
	metric_put_histogram(out, "netpawl_request_duration_seconds", &tally->duration, duration_bounds, NULL, NULL);
	changes_describe(tally, out);
	questions_describe(tally, out);
	metric_family(out, "netpawl_events_suppressed_total", METRIC_COUNTER,
		      "Events that were counted and not written: over a sandbox's rate.");
	metric_put(out, "netpawl_events_suppressed_total", tally->suppressed, NULL);
	metric_family(out, "netpawl_events_lost_total", METRIC_COUNTER,
		      "Events that were lost on their way to the daemon, and requests whose inspector ended.");
	metric_put(out, "netpawl_events_lost_total", tally->lost, NULL);
}
