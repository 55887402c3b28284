/* SPDX-License-Identifier: MIT */
#include "exporter/otlp.h"

#include <stdio.h>
#include <string.h>

#include "api_client/message.h"
#include "base/json.h"
#include "exporter/event_member.h"
#include "vocab/words.h"

/* Members that OpenTelemetry's semantic conventions have a name for; all others are netpawl's own. */
static const char *attribute_name(const char *member, char room[static 64])
{
	static const char *const known[][2] = {
		{ "url", "url.full" },
		{ "method", "http.request.method" },
		{ "status", "http.response.status_code" },
		{ "sent", "http.request.body.size" },
		{ "received", "http.response.body.size" },
		{ "address", "network.peer.address" },
		{ "port", "network.peer.port" },
		{ "lookup", "dns.question.name" },
		{ "pid", "process.pid" },
		{ "comm", "process.executable.name" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(member, known[i][0]))
			return known[i][1];
	snprintf(room, 64, "netpawl.%.50s", member);
	return room;
}

/* {"key": name, "value": {"stringValue": ...}}; 64-bit integers are text in protobuf's JSON. */
static void attribute_put(struct buf *out, const char *name, const json_t *value)
{
	char number[24];

	json_open_object(out, NULL);
	json_put_text(out, "key", name, SIZE_MAX);
	json_open_object(out, "value");
	if (json_is_boolean(value)) {
		json_put_bool(out, "boolValue", json_is_true(value));
	} else if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		json_put_text(out, "intValue", number, SIZE_MAX);
	} else {
		json_put_bytes(out, "stringValue", json_string_value(value), member_text_length(value));
	}
	json_close_object(out);
	json_close_object(out);
}

static void text_attribute_put(struct buf *out, const char *name, const char *text)
{
	json_open_object(out, NULL);
	json_put_text(out, "key", name, SIZE_MAX);
	json_open_object(out, "value");
	json_put_text(out, "stringValue", text, SIZE_MAX);
	json_close_object(out);
	json_close_object(out);
}

static void severity_put(struct buf *out, const char *kind)
{
	const bool error = !strcmp(kind, "error"), refused = !strcmp(kind, "refuse");

	json_put_number(out, "severityNumber", error ? 17 : refused ? 13 : 9);
	json_put_text(out, "severityText", error ? "ERROR" : refused ? "WARN" : "INFO", SIZE_MAX);
}

static void record_put(struct buf *out, json_t *event)
{
	char time[32], room[64];
	const char *name;
	json_t *value;
	uint64_t us = 0;

	time_parse(member_text(event, "time") ?: "", &us);
	snprintf(time, sizeof(time), "%llu000", (unsigned long long)us);
	json_open_object(out, NULL);
	json_put_text(out, "timeUnixNano", time, SIZE_MAX);
	json_put_text(out, "observedTimeUnixNano", time, SIZE_MAX);
	severity_put(out, member_text(event, "kind") ?: "");
	json_open_object(out, "body");
	json_put_text(out, "stringValue", member_text(event, "message") ?: "", NP_EXPORT_STRING);
	json_close_object(out);
	json_open_array(out, "attributes");
	json_object_foreach(event, name, value)
	{
		if (strcmp(name, "time") != 0 && strcmp(name, "message") != 0 && member_is_sent(name, value))
			attribute_put(out, attribute_name(name, room), value);
	}
	json_close_array(out);
	json_close_object(out);
}

void otlp_put(json_t *const *events, size_t n, const char *host, struct buf *out)
{
	json_open_object(out, NULL);
	json_open_array(out, "resourceLogs");
	json_open_object(out, NULL);
	json_open_object(out, "resource");
	json_open_array(out, "attributes");
	text_attribute_put(out, "service.name", "netpawl");
	text_attribute_put(out, "service.version", NETPAWL_VERSION);
	text_attribute_put(out, "host.name", host);
	json_close_array(out);
	json_close_object(out);
	json_open_array(out, "scopeLogs");
	json_open_object(out, NULL);
	json_open_object(out, "scope");
	json_put_text(out, "name", "netpawl.events", SIZE_MAX);
	json_put_text(out, "version", NETPAWL_VERSION, SIZE_MAX);
	json_close_object(out);
	json_open_array(out, "logRecords");
	for (size_t i = 0; i < n; i++)
		record_put(out, events[i]);
	json_close_array(out);
	json_close_object(out);
	json_close_array(out);
	json_close_object(out);
	json_close_array(out);
	json_close_object(out);
}
