/* SPDX-License-Identifier: MIT */
/* metrics: and events: what other systems of the host get. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/loopback.h"
#include "policy/quote.h"
#include "policy/read.h"
#include "wire/url.h"

static bool port_is_among(uint16_t port, const uint16_t *ports, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* A port that sandboxes may use is none for what tells of all sessions: they would read it, or be told it. */
static void port_check(struct reader *reader, const struct node *at, uint16_t port)
{
	const struct policy *policy = reader->policy;

	if (port_is_among(port, policy->host_loopback, policy->n_host_loopback))
		error_at(reader, at, "port %u is in \"host_loopback\": sandboxes reach it", port);
	if (port_is_among(port, policy->inbound, policy->n_inbound))
		error_at(reader, at, "port %u is in \"inbound\": a sandbox may listen there", port);
}

static int read_listen(struct reader *reader, const struct node *key, const char **ret)
{
	const struct node *value = field_scalar(reader, key);
	union sockaddr_inet address;
	struct np_addr ignored;
	uint16_t port = 0;

	if (!value)
		return 0;
	if (strlen(value->text) != value->len || loopback_parse(value->text, &address) < 0 ||
	    !sockaddr_parts(&address, &ignored, &port) || !port) {
		error_at(reader, value, "\"listen\" is a loopback address and a port, as in 127.0.0.1:9464, not %s",
			 QUOTE(value->text, value->len));
		return 0;
	}
	port_check(reader, value, port);
	*ret = arena_text(reader->policy->arena, value->text, value->len);
	return *ret ? 0 : -ENOMEM;
}

static int read_otlp(struct reader *reader, const struct node *key, const char **ret)
{
	struct url url;
	int e = read_loopback_url(reader, key, "http://127.0.0.1:4318", ret);

	if (e == 0 && *ret && url_parse(*ret, &url) == 0)
		port_check(reader, key->next, url.port);
	return e;
}

/* A path, or none: then not under systemd, either. */
static int read_journald(struct reader *reader, const struct node *key, struct exports *exports)
{
	exports->no_journald = key->next->kind == NODE_SCALAR && !strcmp(key->next->text, "none");
	return exports->no_journald ? 0 : read_socket(reader, key, &exports->journald);
}

int read_exports(struct reader *reader, const struct file *file)
{
	const struct node *metrics = file->sections[SECTION_METRICS], *events = file->sections[SECTION_EVENTS];
	const struct node *fields[METRICS_KEYS], *of_events[EVENTS_KEYS], *map;
	struct exports *exports = &reader->policy->exports;
	int e = 0;

	if (metrics && (map = section_map(reader, metrics, "\"listen\""))) {
		map_fields(reader, map, &keys_metrics, fields);
		if (fields[METRICS_LISTEN])
			e = read_listen(reader, fields[METRICS_LISTEN], &exports->metrics);
	}
	if (e == 0 && events && (map = section_map(reader, events, "\"otlp\" and \"journald\""))) {
		map_fields(reader, map, &keys_events, of_events);
		if (of_events[EVENTS_OTLP])
			e = read_otlp(reader, of_events[EVENTS_OTLP], &exports->otlp);
		if (e == 0 && of_events[EVENTS_JOURNALD])
			e = read_journald(reader, of_events[EVENTS_JOURNALD], exports);
	}
	return e;
}
