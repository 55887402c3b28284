/* SPDX-License-Identifier: MIT */
/*
 * Numbers for monitoring systems: Prometheus' text format, version 0.0.4. A family (metric_family) comes before its numbers, once.
 * Labels are pairs of names and values behind the number, and NULL at the end.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

#define EXPOSITION_TYPE	 "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Does an Accept header (NULL: there was none) name OpenMetrics, and not refuse it? */
bool exposition_wants_open(const char *accept);
/* A whole exposition as OpenMetrics 1.0 has it: the family of a counter is named without "_total", units are named, it has an end. */
void exposition_to_open(const char *text, size_t len, struct buf *out);

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

void metric_family(struct buf *out, const char *name, enum metric_type type, const char *help);
void metric_put_labelled(struct buf *out, const char *name, uint64_t value, const char *const *labels);
void metric_put_labelled_seconds(struct buf *out, const char *name, uint64_t ns, const char *const *labels);
#define metric_put(out, name, value, ...) \
	metric_put_labelled((out), (name), (value), (const char *const[]){ __VA_ARGS__ })
#define metric_put_seconds(out, name, ns, ...) \
	metric_put_labelled_seconds((out), (name), (ns), (const char *const[]){ __VA_ARGS__ })

/* How long something took, by classes: each has what took no longer than its bound, and the last one the rest. */
#define HISTOGRAM_BOUNDS 12
struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1];
	uint64_t sum_us;
};
/* In microseconds, ascending; what is not used is 0. */
typedef const uint64_t histogram_bounds[HISTOGRAM_BOUNDS];

void histogram_note(struct histogram *histogram, histogram_bounds bounds, uint64_t us);
/* label and value: one pair, or NULL. */
void metric_put_histogram(struct buf *out, const char *name, const struct histogram *histogram, histogram_bounds bounds,
			  const char *label, const char *value);
