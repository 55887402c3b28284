/* SPDX-License-Identifier: MIT */
#include "cli/ocsf.h"

#include <stdint.h>
#include <string.h>

#include "api_client/message.h"
#include "base/chars.h"
#include "base/json.h"
#include "cli/event_facts.h"
#include "vocab/words.h"

/* Of https://schema.ocsf.io, 1.6.0. */
enum ocsf_class {
	OCSF_DETECTION_FINDING = 2004,
	OCSF_NETWORK_ACTIVITY = 4001,
	OCSF_HTTP_ACTIVITY = 4002,
	OCSF_DNS_ACTIVITY = 4003,
	OCSF_CONFIG_STATE_CHANGE = 5019, /* device_config_state_change */
	OCSF_API_ACTIVITY = 6003,
};
#define ACTIVITY_OTHER 99 /* what it is is then said by its name */
enum { SEVERITY_INFORMATIONAL = 1, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };

/* What people have to look at: these are findings, whatever else they are. */
static bool reason_is_finding(const char *reason)
{
	static const char *const findings[] = {
		"placed_sockets", "not_whole", "not_recorded",	 "not_applied",		 "degraded",
		"requests_lost",  "lost",      "secret_leaving", "credential_elsewhere", "container_outside"
	};

	return WORD_IS_ONE_OF(reason, findings);
}

static enum ocsf_class class_of(const char *kind, const char *reason, const char *verdict)
{
	static const char *const configuration[] = { "raised",	 "policy_loaded", "policy_refused",
						     "upgraded", "mended",	  "reconciled" };

	if (reason_is_finding(reason))
		return OCSF_DETECTION_FINDING;
	if (!strcmp(kind, "request"))
		return OCSF_HTTP_ACTIVITY;
	if (!strcmp(kind, "dns"))
		return OCSF_DNS_ACTIVITY;
	if (strcmp(verdict, "allowed") == 0 || strcmp(verdict, "refused") == 0)
		return OCSF_NETWORK_ACTIVITY;
	return WORD_IS_ONE_OF(reason, configuration) ? OCSF_CONFIG_STATE_CHANGE : OCSF_API_ACTIVITY;
}

/* Of HTTP its method; of the gate and tunnels Open or Refuse; of DNS Query; of a finding Create; of a state Log; else Other. */
static unsigned activity_of(enum ocsf_class class, const json_t *event, bool refused)
{
	static const char *const methods[] = { "CONNECT", "DELETE", "GET",   "HEAD", "OPTIONS",
					       "POST",	  "PUT",    "TRACE", "PATCH" };
	const char *method = member_text(event, "method") ?: "";

	if (class == OCSF_HTTP_ACTIVITY) {
		int i = word_index(methods, ARRAY_SIZE(methods), method);

		return i < 0 ? ACTIVITY_OTHER : (unsigned)i + 1;
	}
	if (class == OCSF_NETWORK_ACTIVITY)
		return refused ? 5 : 1;
	return class == OCSF_API_ACTIVITY ? ACTIVITY_OTHER : 1;
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	if (text && *text)
		json_put_text(out, key, text, SIZE_MAX);
}

static void put_named(struct buf *out, const char *key, const json_t *event, const char *name)
{
	put_text(out, key, member_text(event, name));
}

/* Of a finding it says how far people are with it: it is new. Else success or failure. */
static unsigned status_of(enum ocsf_class class, const char *kind, bool refused)
{
	return class != OCSF_DETECTION_FINDING && (refused || !strcmp(kind, "error")) ? 2 : 1;
}

static void put_ids(struct buf *out, enum ocsf_class class, unsigned activity, const json_t *event, bool refused)
{
	const char *kind = member_text(event, "kind") ?: "";
	uint64_t us = 0;

	time_parse(member_text(event, "time") ?: "", &us);
	json_put_number(out, "time", us / 1000);
	json_put_number(out, "category_uid", class / 1000);
	json_put_number(out, "class_uid", class);
	json_put_number(out, "activity_id", activity);
	if (activity == ACTIVITY_OTHER)
		json_put_text(
			out, "activity_name",
			(class == OCSF_HTTP_ACTIVITY ? member_text(event, "method") : member_text(event, "reason"))
				?: "?",
			SIZE_MAX);
	json_put_number(out, "type_uid", class * 100u + activity);
	json_put_number(out, "severity_id",
			class == OCSF_DETECTION_FINDING ? SEVERITY_HIGH
			: !strcmp(kind, "error")	? SEVERITY_MEDIUM
			: refused			? SEVERITY_LOW
							: SEVERITY_INFORMATIONAL);
	json_put_number(out, "status_id", status_of(class, kind, refused));
	put_named(out, "status_code", event, "reason");
	put_named(out, "status_detail", event, "text");
	put_named(out, "message", event, "message");
}

/* Attributes that a class has by a profile alone: who did it (host), and what a rule said to it (security_control). */
static void put_profiles(struct buf *out, enum ocsf_class class)
{
	json_open_array(out, "profiles");
	json_put_text(out, NULL, "host", SIZE_MAX);
	if (class / 1000 == 4)
		json_put_text(out, NULL, "security_control", SIZE_MAX);
	json_close_array(out);
}

static void put_metadata(struct buf *out, enum ocsf_class class, const json_t *event)
{
	char uid[24];

	snprintf(uid, sizeof(uid), "%lld", member_number(event, "seq"));
	json_open_object(out, "metadata");
	json_put_text(out, "version", "1.6.0", SIZE_MAX);
	put_profiles(out, class);
	json_open_object(out, "product");
	json_put_text(out, "name", "netpawl", SIZE_MAX);
	json_put_text(out, "vendor_name", "netpawl", SIZE_MAX);
	json_put_text(out, "version", NETPAWL_VERSION, SIZE_MAX);
	json_close_object(out);
	put_text(out, "uid", member_number(event, "seq") ? uid : NULL);
	put_named(out, "event_code", event, "reason");
	put_named(out, "original_time", event, "time");
	put_named(out, "correlation_uid", event, "session");
	json_close_object(out);
}

/* Of a call of the API it must be there: what nobody asked for was done by the daemon. */
static void put_actor(struct buf *out, enum ocsf_class class, const json_t *event)
{
	const bool known = member_number(event, "pid") || member_text(event, "who");

	if (!known && class != OCSF_API_ACTIVITY)
		return;
	json_open_object(out, "actor");
	if (!known)
		json_put_text(out, "app_name", "netpawld", SIZE_MAX);
	if (member_number(event, "pid")) {
		json_open_object(out, "process");
		json_put_number(out, "pid", (uint64_t)member_number(event, "pid"));
		put_named(out, "name", event, "comm");
		json_close_object(out);
	}
	if (member_text(event, "who")) {
		json_open_object(out, "user");
		put_named(out, "name", event, "who");
		json_close_object(out);
	}
	json_close_object(out);
}

/* Where it came from, and what was changed: this host. */
static void put_host(struct buf *out, enum ocsf_class class, const char *host)
{
	if (class / 1000 == 4 || class == OCSF_API_ACTIVITY) {
		json_open_object(out, "src_endpoint");
		put_text(out, "hostname", host);
		json_close_object(out);
	}
	json_open_object(out, "device");
	json_put_number(out, "type_id", 0); /* unknown */
	put_text(out, "hostname", host);
	json_close_object(out);
}

static void put_endpoint(struct buf *out, const json_t *event, const char *host)
{
	const char *address = member_text(event, "address");
	const bool is_path = address && (*address == '/' || *address == '@');

	if (!address && !host) /* a socket that was not made, a name that was asked for */
		return;
	json_open_object(out, "dst_endpoint");
	put_text(out, "hostname", host);
	put_text(out, is_path ? "name" : "ip", address);
	if (member_number(event, "port"))
		json_put_number(out, "port", (uint64_t)member_number(event, "port"));
	json_close_object(out);
}

static void put_traffic(struct buf *out, const json_t *event)
{
	json_open_object(out, "traffic");
	json_put_number(out, "bytes_out", (uint64_t)member_number(event, "sent"));
	json_put_number(out, "bytes_in", (uint64_t)member_number(event, "received"));
	json_close_object(out);
}

static void put_http(struct buf *out, const json_t *event)
{
	json_open_object(out, "http_request");
	put_named(out, "http_method", event, "method");
	put_named(out, "version", event, "http");
	json_open_object(out, "url");
	put_named(out, "url_string", event, "url");
	json_close_object(out);
	json_close_object(out);
	if (member_number(event, "status") <= 0) /* it was not answered */
		return;
	json_open_object(out, "http_response");
	json_put_number(out, "code", (uint64_t)member_number(event, "status"));
	json_close_object(out);
}

static void put_network(struct buf *out, enum ocsf_class class, const json_t *event, const char *host, bool refused)
{
	json_put_number(out, "action_id", refused ? 2 : 1); /* Denied, Allowed */
	json_put_number(out, "disposition_id", refused ? 2 : 1);
	put_endpoint(out, event, class == OCSF_DNS_ACTIVITY ? NULL : host);
	put_traffic(out, event);
	if (class == OCSF_HTTP_ACTIVITY)
		put_http(out, event);
	if (class == OCSF_DNS_ACTIVITY) {
		json_open_object(out, "query");
		put_named(out, "hostname", event, "lookup");
		json_close_object(out);
	}
	if (member_text(event, "rule")) {
		json_open_object(out, "firewall_rule");
		put_named(out, "name", event, "rule");
		put_named(out, "uid", event, "policy");
		json_close_object(out);
	}
}

static void put_finding(struct buf *out, const json_t *event)
{
	char uid[40];

	snprintf(uid, sizeof(uid), "netpawl-%lld", member_number(event, "seq"));
	json_put_bool(out, "is_alert", true);
	json_open_object(out, "finding_info");
	json_put_text(out, "uid", uid, SIZE_MAX);
	json_put_text(out, "title", member_text(event, "message") ?: "?", SIZE_MAX);
	json_close_object(out);
}

/* What makes it netpawl's: where the session stood, and what was done to it. */
static void put_unmapped(struct buf *out, const json_t *event)
{
	static const char *const texts[] = { "kind",	 "session", "sandbox", "level", "mode",	 "hook",
					     "protocol", "list",    "dataset", "proxy", "answer" };
	static const char *const numbers[] = { "generation", "cut",	 "applied_us", "suppressed",
					       "dropped",    "question", "waited_us" };

	json_open_object(out, "unmapped");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		put_named(out, texts[i], event, texts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (member_number(event, numbers[i]) > 0)
			json_put_number(out, numbers[i], (uint64_t)member_number(event, numbers[i]));
	json_close_object(out);
}

void ocsf_put(const json_t *event, const char *host, struct buf *out)
{
	const char *reason = member_text(event, "reason") ?: "unknown";
	const bool refused = !strcmp(member_text(event, "kind") ?: "", "refuse");
	struct event_facts facts;
	enum ocsf_class class;

	event_facts_read(event, &facts);
	class = class_of(facts.facts.of[FILTER_KIND], reason, facts.facts.of[FILTER_VERDICT]);
	json_open_object(out, NULL);
	put_ids(out, class, activity_of(class, event, refused), event, refused);
	put_metadata(out, class, event);
	put_actor(out, class, event);
	put_host(out, class, host);
	if (class / 1000 == 4)
		put_network(out, class, event, member_text(event, "url") ? facts.host : NULL, refused);
	else if (class == OCSF_DETECTION_FINDING)
		put_finding(out, event);
	else if (class == OCSF_API_ACTIVITY) {
		json_open_object(out, "api");
		json_put_text(out, "operation", reason, SIZE_MAX);
		json_close_object(out);
	}
	put_unmapped(out, event);
	json_close_object(out);
}
