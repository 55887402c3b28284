/* SPDX-License-Identifier: MIT */
/* What sandboxes did, as the gate and the inspectors report it: one event each, and counts that do not depend on which
 * events are kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/daemon.h"
#include "session/trail.h"
#include "daemon/translate.h"

#define LATE_NS 60000000000ull /* a report of a running inspector is not older than this, whatever it says */

/* -- the gate ------------------------------------------------------------------ */

/* glibc looks for its name cache (nscd) whenever it resolves a name or a user, and goes on without it. That is
 * refused as everything else is, but not reported: it would be most of all reports. */
static bool is_everyday(const struct np_event *raw)
{
	static const char nscd[] = "/var/run/nscd/socket";

	const size_t len = sizeof(nscd) - 1;

	return raw->family == AF_UNIX && NP_REASON_REFUSES(raw->reason) && raw->unix_len >= len &&
	       !memcmp(raw->unix_path, nscd, len) && (raw->unix_len == len || !raw->unix_path[len]);
}

/* Somebody else tried something with the sandbox. */
static bool raw_is_call(const struct np_event *raw)
{
	return raw->hook == NP_HOOK_INGRESS || raw->hook == NP_HOOK_SK_LOOKUP;
}

/* Marks events that the gate has suppressed as reported; total: how many it has suppressed in all. */
static uint32_t gate_suppressed(struct daemon *d, uint64_t cgroup_id, uint64_t total)
{
	struct ledger_entry *entry = ledgers_find(supervisor_ledgers(d->supervisor), cgroup_id);
	uint32_t news = flood_note(d->flood, cgroup_id, total);

	if (entry)
		entry->gate_reported += news;
	return news;
}

void on_kernel_event(void *data, const struct np_event *raw)
{
	struct daemon *d = data;
	struct translated t;
	const struct sandbox_info *sandbox = service_sandbox_by_cgroup(d->service, raw->cgroup_id);

	if (is_everyday(raw)) {
		struct ledger_entry *entry = ledgers_find(supervisor_ledgers(d->supervisor), raw->cgroup_id);

		if (entry)
			entry->everyday++;
		return;
	}
	translate_event(raw, sandbox, &d->policy, loop_now_ns(), loop_wall_us(), &t);
	t.event.suppressed = gate_suppressed(d, raw->cgroup_id, raw->suppressed);
	event_emit(d, &t.event);
	/* What it tries is use of it; what others try with it is not. */
	if (NP_REASON_REFUSES(raw->reason) && !raw_is_call(raw))
		service_sandbox_active(d->service, raw->cgroup_id);
}

static int flood_total(void *data, uint64_t cgroup_id, uint64_t *ret_total)
{
	struct daemon *d = data;
	struct np_meter meter;
	int r = kernel_meter(d->kernel, cgroup_id, &meter);

	if (r == 0)
		*ret_total = meter.suppressed;
	return r;
}

static void flood_report(void *data, uint64_t cgroup_id, uint32_t suppressed)
{
	struct daemon *d = data;
	const struct sandbox_info *sandbox = service_sandbox_by_cgroup(d->service, cgroup_id);
	struct event event = { .reason = NP_R_SUPPRESSED, .suppressed = suppressed, .who = "daemon" };

	if (sandbox) {
		event.session = sandbox->session.text;
		event.sandbox = sandbox->id;
		event.rung = sandbox->rung;
	}
	event_emit(d, &event);
}

static void flood_swept(void *data, uint64_t cgroup_id, uint32_t suppressed)
{
	struct daemon *d = data;
	struct ledger_entry *entry = ledgers_find(supervisor_ledgers(d->supervisor), cgroup_id);

	if (entry)
		entry->gate_reported += suppressed;
	flood_report(d, cgroup_id, suppressed);
}

/* What a predecessor's log has already told is not news. */
int flood_start(void *data, const struct gate_sandbox *sandbox)
{
	struct daemon *d = data;
	struct ledger_entry *entry = ledgers_find(supervisor_ledgers(d->supervisor), sandbox->cgroup_id);
	uint64_t total = 0;

	if (flood_total(d, sandbox->cgroup_id, &total) < 0)
		return 0;
	if (entry && kernel_is_upgrade(d->kernel)) {
		entry->partial = 1;
		entry->everyday = entry->gate_reported = 0; /* were of the older gate's counts */
	}
	if (entry && entry->partial && !entry->gate_reported)
		entry->gate_reported = total; /* nobody knows what was told before it was counted */
	if (entry ? entry->gate_reported : total)
		flood_note(d->flood, sandbox->cgroup_id, entry ? entry->gate_reported : total);
	return 0;
}

/* The gate is about to forget what it has counted. */
void before_retire(void *data, uint64_t cgroup_id)
{
	struct daemon *d = data;
	uint64_t total = 0;
	uint32_t news;

	kernel_drain(d->kernel);
	if (flood_total(d, cgroup_id, &total) < 0)
		return;
	news = gate_suppressed(d, cgroup_id, total);
	if (news)
		flood_report(d, cgroup_id, news);
}

/* -- the inspectors ------------------------------------------------------------ */

/* What waits in the kernel and in the ledgers finds its sandbox by the cgroup, which is another one's in a moment. */
void before_handover(void *data, uint64_t cgroup_id)
{
	struct daemon *d = data;

	before_retire(d, cgroup_id);
	supervisor_report(d->supervisor);
}

/* The one that the entry is of: the cgroup may be another's by now. */
static const struct sandbox_info *sandbox_known(struct daemon *d, const struct ledger_entry *entry)
{
	const struct sandbox_info *sandbox =
		d->service ? service_sandbox_by_cgroup(d->service, entry->cgroup_id) : NULL;

	return sandbox && strcmp(sandbox->id, entry->sandbox) == 0 ? sandbox : NULL;
}

/* The sandbox itself, or as much of it as an event needs when it is gone, or not known yet. */
static const struct sandbox_info *sandbox_of(struct daemon *d, const struct ledger_entry *entry)
{
	static struct sandbox_info gone;
	const struct sandbox_info *sandbox = sandbox_known(d, entry);

	if (sandbox)
		return sandbox;
	memset(&gone, 0, sizeof(gone));
	memcpy(gone.id, entry->sandbox, strnlen(entry->sandbox, sizeof(gone.id) - 1));
	memcpy(gone.session.text, entry->session, strnlen(entry->session, sizeof(gone.session.text) - 1));
	gone.rung = entry->rung;
	return &gone;
}

static uint32_t event_number(uint64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

bool on_report(void *data, const struct ledger_entry *of, const struct link_request *report,
	       const char *const tails[LINK_TAILS])
{
	struct daemon *d = data;
	struct ledgers *ledgers = d->supervisor ? supervisor_ledgers(d->supervisor) : NULL;
	struct ledger_entry *entry = ledgers ? ledgers_find(ledgers, of->cgroup_id) : NULL;
	const uint64_t now = loop_now_ns();
	uint64_t age = now > report->time_ns ? now - report->time_ns : 0;
	struct requested r;

	if (!translate_request(report, tails, sandbox_of(d, of), &r))
		return false;
	if (ledgers && age > LATE_NS) /* else it was left to us, and may be as old as it likes */
		age = LATE_NS;
	r.event.wall_us = loop_wall_us() - age / 1000;
	if (entry)
		r.event.suppressed = event_number(ledgers_suppressed(ledgers, entry));
	if (r.event.credential && NP_REASON_ALLOWS(r.event.reason))
		vault_note_use(d->vault, r.event.credential);
	if (r.event.captured)
		vault_note_tokens(d->vault, r.event.captured, r.event.tokens);
	event_emit(d, &r.event);
	if (d->service && r.event.url && r.event.session)
		service_request_note(d->service, &(struct trail_request){ .session = r.event.session,
									  .method = r.event.method,
									  .url = r.event.url,
									  .reason = r.event.reason,
									  .status = report->status,
									  .sent = report->sent });
	if (sandbox_known(d, of))
		service_sandbox_active(d->service, of->cgroup_id);
	return true;
}

void on_ask(void *data, const struct question_waiter *from, const struct link_ask *message)
{
	struct daemon *d = data;
	struct question_ask ask = {
		.cgroup_id = message->cgroup_id,
		.rung = message->rung,
		.policy = message->policy,
		.rule = message->rule,
		.place = message->place,
		.host = message->host,
		.port = message->port,
		.write = message->write,
		.tls = message->tls,
		.method = message->method,
		.url = message->url,
		.body = message->body,
		.decider = message->decider,
		.headers = link_ask_headers(message),
		.headers_len = message->headers,
		.preview = link_ask_preview(message),
		.preview_len = message->preview,
		.pid = (pid_t)message->pid,
	};

	if (!d->service)
		return;
	if (message->taken) {
		service_question_taken(d->service, from);
		return;
	}
	if (message->gone) {
		service_question_leave(d->service, from);
		return;
	}
	if (message->shows) {
		service_question_body(d->service, from, link_ask_preview(message), message->preview, message->whole);
		return;
	}
	service_question_ask(d->service, &ask, from);
	service_sandbox_active(d->service, message->cgroup_id);
}

void on_decision(void *data, const struct decision *decision)
{
	struct daemon *d = data;

	if (d->service)
		service_decision(d->service, decision);
}

void on_leak(void *data, uint64_t cgroup_id, const char *session, const char *credential)
{
	struct daemon *d = data;

	if (d->service)
		service_leak(d->service, cgroup_id, session, credential);
}

void on_asks_lost(void *data, unsigned inspector)
{
	struct daemon *d = data;

	if (d->service)
		service_question_lost(d->service, inspector);
}

static void entry_event(struct daemon *d, const struct ledger_entry *of, unsigned reason, uint64_t count,
			const char *text)
{
	const struct sandbox_info *sandbox = sandbox_of(d, of);

	event_emit(d, &(struct event){ .reason = reason,
				       .session = sandbox->session.text,
				       .sandbox = sandbox->id,
				       .rung = sandbox->rung,
				       .suppressed = event_number(count),
				       .text = text,
				       .who = "daemon" });
}

void on_lost(void *data, const struct ledger_entry *of, uint64_t count)
{
	char text[64];

	snprintf(text, sizeof(text),
		 count == 1 ? "1 request's event was lost" : "the events of %" PRIu64 " requests were lost", count);
	entry_event(data, of, NP_R_REQUESTS_LOST, count, text);
}

void on_suppressed(void *data, const struct ledger_entry *of, uint64_t count)
{
	entry_event(data, of, NP_R_SUPPRESSED, count, NULL);
}

uint64_t last_seq(void *data)
{
	const struct daemon *d = data;

	return event_log_last_seq(d->events);
}

/* -- both ---------------------------------------------------------------------- */

void sandbox_counts_read(void *data, uint64_t cgroup_id, struct sandbox_counts *ret)
{
	struct daemon *d = data;
	struct ledgers *ledgers = supervisor_ledgers(d->supervisor);
	const struct ledger_entry *entry = ledgers_find(ledgers, cgroup_id);
	struct ledger_slot sum = { 0 };
	struct np_meter meter = { 0 };

	kernel_drain(d->kernel); /* so that what is everyday is known */
	kernel_meter(d->kernel, cgroup_id, &meter);
	if (entry)
		ledgers_sum(ledgers, entry, &sum);
	*ret = (struct sandbox_counts){
		.requests = sum.requests,
		.queries = sum.queries,
		.refused =
			sum.refused + meter.refused - (entry && entry->everyday <= meter.refused ? entry->everyday : 0),
		.sent = sum.sent,
		.received = sum.received,
		.partial = !entry || entry->partial,
	};
}

void records_second(struct daemon *d)
{
	flood_sweep(d->flood, flood_total, flood_swept, d);
	ledgers_tick(supervisor_ledgers(d->supervisor));
}
