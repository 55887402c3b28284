/* SPDX-License-Identifier: MIT */
/* What the daemon's parts have counted, for monitoring. */
#include "base/exposition.h"
#include "daemon/daemon.h"

/* Refusals of all layers in one family: kernel_metrics() goes on with the gate's. */
static void refusals_put(const struct tally *tally, struct buf *out)
{
	metric_family(
		out, "netpawl_refusals_total", METRIC_COUNTER,
		"What was refused, by layer: gate (the kernel, since it was attached), request and dns (inspectors).");
	for (unsigned reason = 0; reason < NP_REASON_COUNT; reason++) {
		if (NP_REASON_REFUSES(reason) && tally->requests[reason])
			metric_put(out, "netpawl_refusals_total", tally->requests[reason], "layer", "request", "reason",
				   reason_token(reason), NULL);
		if (NP_REASON_REFUSES(reason) && tally->queries[reason])
			metric_put(out, "netpawl_refusals_total", tally->queries[reason], "layer", "dns", "reason",
				   reason_token(reason), NULL);
	}
}

/* From the ledgers: with what was only counted, and never reported. */
static void totals_put(const struct ledger_slot *total, uint64_t cut, struct buf *out)
{
	metric_family(out, "netpawl_bytes_total", METRIC_COUNTER,
		      "Bytes of bodies and tunnels: given to origins (out), come from there (in).");
	metric_put(out, "netpawl_bytes_total", total->sent, "direction", "out", NULL);
	metric_put(out, "netpawl_bytes_total", total->received, "direction", "in", NULL);
	metric_family(
		out, "netpawl_inspected_requests_total", METRIC_COUNTER,
		"Requests and tunnels that inspectors have judged, with those that were not reported one by one.");
	metric_put(out, "netpawl_inspected_requests_total", total->requests, NULL);
	metric_family(out, "netpawl_inspected_queries_total", METRIC_COUNTER, "DNS queries that came to the DNS gate.");
	metric_put(out, "netpawl_inspected_queries_total", total->queries, NULL);
	metric_family(out, "netpawl_requests_ended_total", METRIC_COUNTER,
		      "Requests and tunnels that a new level or policy has ended at the inspectors.");
	metric_put(out, "netpawl_requests_ended_total", cut, NULL);
}

void daemon_metrics(void *data, struct buf *out)
{
	struct daemon *d = data;
	struct event_log_stats stats;
	struct ledger_slot total;

	event_log_stats(d->events, &stats);
	ledgers_total(supervisor_ledgers(d->supervisor), &total);
	metric_family(out, "netpawl_inspectors_up", METRIC_GAUGE, "Inspectors that are ready.");
	metric_put(out, "netpawl_inspectors_up", supervisor_ready(d->supervisor), NULL);
	metric_family(out, "netpawl_events_written_total", METRIC_COUNTER, "Events that were written.");
	metric_put(out, "netpawl_events_written_total", stats.written, NULL);
	metric_family(out, "netpawl_event_errors_total", METRIC_COUNTER, "Events that the disk did not take.");
	metric_put(out, "netpawl_event_errors_total", stats.journal_errors, "file", "journal", NULL);
	metric_put(out, "netpawl_event_errors_total", stats.history_errors, "file", "history", NULL);
	totals_put(&total, ledgers_cut(supervisor_ledgers(d->supervisor)), out);
	tally_describe(&d->tally, out);
	deciders_metrics(d->deciders, out);
	exporters_metrics(d->exporters, out);
	refusals_put(&d->tally, out);
	kernel_metrics(d->kernel, out);
}
