/* SPDX-License-Identifier: MIT */
/* What the daemon says about itself: for launchers, and for the health's answer. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "daemon/daemon.h"

void daemon_facts_read(void *data, struct daemon_facts *ret)
{
	struct daemon *d = data;
	struct stat netns;

	*ret = (struct daemon_facts){
		.run_dir = d->options.run_dir,
		.state_dir = d->options.state_dir,
		.data_dir = d->data_dir,
		.pin_dir = d->options.pin_dir,
		.inspectors = supervisor_ready(d->supervisor),
	};
	if (stat("/proc/self/ns/net", &netns) == 0)
		snprintf(ret->netns, sizeof(ret->netns), "%llu", (unsigned long long)netns.st_ino);
}

/* What the gate refused is its own to count: kernel_describe(). */
static void requests_describe(const struct daemon *d, struct buf *out)
{
	json_open_object(out, "requests_refused");
	for (unsigned reason = 0; reason < NP_REASON_COUNT; reason++)
		if (NP_REASON_REFUSES(reason) && d->tally.requests[reason] + d->tally.queries[reason])
			json_put_number(out, reason_token(reason),
					d->tally.requests[reason] + d->tally.queries[reason]);
	json_close_object(out);
}

void daemon_describe(void *data, struct buf *out)
{
	struct daemon *d = data;
	struct event_log_stats stats;
	struct daemon_facts known;
	const char *lacks = supervisor_way_out_problem(d->supervisor);

	event_log_stats(d->events, &stats);
	daemon_facts_read(d, &known);
	if (known.netns[0])
		json_put_text(out, "netns", known.netns, sizeof(known.netns));
	json_put_text(out, "run_dir", known.run_dir, FS_PATH_SIZE);
	json_put_text(out, "state_dir", known.state_dir, FS_PATH_SIZE);
	json_put_text(out, "data_dir", known.data_dir, FS_PATH_SIZE);
	json_put_text(out, "pin_dir", known.pin_dir, FS_PATH_SIZE);
	parts_describe(&d->parts, out);
	json_put_text(out, "policy", d->policy.policy->hash, SIZE_MAX);
	json_put_number(out, "inspectors", known.inspectors);
	json_put_number(out, "events", stats.written);
	json_put_number(out, "journal_errors", stats.journal_errors);
	json_put_number(out, "history_errors", stats.history_errors);
	requests_describe(d, out);
	deciders_describe(d->deciders, out);
	notifier_describe(d->notifier, out);
	exporters_describe(d->exporters, out);
	kernel_describe(d->kernel, out);
	feature_describe(out, "run directory in memory", supervisor_keeps_cas(d->supervisor),
			 "the CAs of sessions outlive the daemon",
			 "the run directory is on a disk, which keys must not touch: programs that run in PROXIED when "
			 "netpawld ends have to be started again for TLS");
	if (lacks)
		feature_describe(out, "way out of networks of their own", !lacks[0],
				 "sandboxes that start in FULL have one (network: nat)", lacks);
	json_close_array(out);
}

bool daemon_is_degraded(void *data)
{
	const struct daemon *d = data;

	return d->parts.n > 0;
}
