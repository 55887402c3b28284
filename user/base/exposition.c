/* SPDX-License-Identifier: MIT */
#include "base/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void metric_family(struct buf *out, const char *name, enum metric_type type, const char *help)
{
	static const char *const words[] = { "counter", "gauge", "histogram" };

	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, words[type]);
}

static void label_put(struct buf *out, const char *name, const char *value, bool first)
{
	buf_printf(out, "%s%s=\"", first ? "{" : ",", name);
	for (; *value; value++)
		if (*value == '"' || *value == '\\')
			buf_printf(out, "\\%c", *value);
		else if (*value == '\n')
			buf_puts(out, "\\n");
		else
			buf_append(out, value, 1);
	buf_puts(out, "\"");
}

static void labels_put(struct buf *out, const char *const *labels)
{
	for (size_t i = 0; labels[i]; i += 2)
		label_put(out, labels[i], labels[i + 1], i == 0);
	if (labels[0])
		buf_puts(out, "}");
}

void metric_put_labelled(struct buf *out, const char *name, uint64_t value, const char *const *labels)
{
	buf_puts(out, name);
	labels_put(out, labels);
	buf_printf(out, " %" PRIu64 "\n", value);
}

static void seconds_put(struct buf *out, uint64_t ns)
{
	buf_printf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

void metric_put_labelled_seconds(struct buf *out, const char *name, uint64_t ns, const char *const *labels)
{
	buf_puts(out, name);
	labels_put(out, labels);
	buf_puts(out, " ");
	seconds_put(out, ns);
	buf_puts(out, "\n");
}

void histogram_note(struct histogram *histogram, histogram_bounds bounds, uint64_t us)
{
	unsigned i = 0;

	while (i < HISTOGRAM_BOUNDS && bounds[i] && us > bounds[i])
		i++;
	histogram->counts[i < HISTOGRAM_BOUNDS && bounds[i] ? i : HISTOGRAM_BOUNDS]++;
	histogram->sum_us += us;
}

/* A bound as OpenMetrics wants it, and Prometheus shows it: 0.0001, 2.5, 60.0. */
static void bound_format(uint64_t us, char text[static 32])
{
	int len = snprintf(text, 32, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);

	while (text[len - 1] == '0' && text[len - 2] != '.')
		text[--len] = '\0';
}

static void bucket_put(struct buf *out, const char *name, const char *label, const char *value, const char *bound,
		       uint64_t count)
{
	buf_printf(out, "%s_bucket", name);
	if (label)
		label_put(out, label, value, true);
	label_put(out, "le", bound, !label);
	buf_printf(out, "} %" PRIu64 "\n", count);
}

void metric_put_histogram(struct buf *out, const char *name, const struct histogram *histogram, histogram_bounds bounds,
			  const char *label, const char *value)
{
	uint64_t count = 0;
	char text[128];

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS && bounds[i]; i++) {
		count += histogram->counts[i];
		bound_format(bounds[i], text);
		bucket_put(out, name, label, value, text, count);
	}
	count += histogram->counts[HISTOGRAM_BOUNDS];
	bucket_put(out, name, label, value, "+Inf", count);
	snprintf(text, sizeof(text), "%s_sum", name);
	metric_put_seconds(out, text, histogram->sum_us * 1000, label, value, NULL);
	snprintf(text, sizeof(text), "%s_count", name);
	metric_put(out, text, count, label, value, NULL);
}

/* -- OpenMetrics ------------------------------------------------------------------------------- */

bool exposition_wants_open(const char *accept)
{
	static const char type[] = "application/openmetrics-text";

	/* Types are between commas, each with parameters behind semicolons; a quality of 0 refuses it. */
	while (accept && *accept) {
		const char *end = accept + strcspn(accept, ","), *q;

		accept += strspn(accept, " \t");
		if (!strncasecmp(accept, type, sizeof(type) - 1) && strchr(" \t;,", accept[sizeof(type) - 1])) {
			q = strstr(accept, "q=");
			return !q || q > end || strtod(q + 2, NULL) > 0;
		}
		accept = *end ? end + 1 : end;
	}
	return false;
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	const size_t n = strlen(end);

	return len > n && !memcmp(name + len - n, end, n);
}

/* "# HELP name ..." or "# TYPE name kind". */
static void comment_put(const char *line, size_t len, struct buf *out)
{
	static const char *const units[] = { "seconds", "bytes" };
	const char *name = line + strlen("# HELP ");
	size_t name_len = strcspn(name, " \n");
	const char *rest = name + name_len;

	if (ends_with(name, name_len, "_total"))
		name_len -= strlen("_total");
	buf_append(out, line, (size_t)(name - line));
	buf_append(out, name, name_len);
	buf_append(out, rest, len - (size_t)(rest - line));
	if (memcmp(line, "# TYPE ", 7) != 0)
		return;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (ends_with(name, name_len, units[i]))
			buf_printf(out, "# UNIT %.*s %s\n", (int)name_len, name, units[i]);
}

void exposition_to_open(const char *text, size_t len, struct buf *out)
{
	while (len) {
		const char *newline = memchr(text, '\n', len);
		const size_t line = newline ? (size_t)(newline - text) + 1 : len;

		if (line > 8 && text[0] == '#')
			comment_put(text, line, out);
		else
			buf_append(out, text, line);
		text += line;
		len -= line;
	}
	buf_puts(out, "# EOF\n");
}
