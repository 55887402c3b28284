/* SPDX-License-Identifier: MIT */
/* The sections that are no lists of rules. */
#include "policy/read.h"

#include <errno.h>
#include <string.h>

#include "wire/url.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "policy/notice_text.h"
#include "policy/quote.h"
#include "policy/suggest.h"
#include "vocab/limits.h"
#include "vocab/session_name.h"

static bool version_is_ours(struct reader *reader, const struct node *root)
{
	const struct node *key = root->first, *value;

	while (key && strcmp(key->text, "version") != 0)
		key = key->next->next;
	if (!key) {
		error_at(reader, root, "\"version: 1\" is missing");
		return false;
	}
	if (node_is_null(key->next)) {
		error_at(reader, key, "\"version\" has no value");
		return false;
	}
	value = field_scalar(reader, key);
	if (value && strcmp(value->text, "1") != 0) {
		error_at(reader, value, "version %s is not known; this netpawl reads version 1",
			 QUOTE(value->text, value->len));
		return false;
	}
	return value != NULL;
}

bool file_open(struct reader *reader, struct file *file, const struct node *root)
{
	if (root->kind != NODE_MAP) {
		error_at(reader, root, "a policy file is a mapping that starts with \"version: 1\"");
		return false;
	}
	if (!version_is_ours(reader, root))
		return false;
	map_fields(reader, root, &keys_file, file->sections);
	for (unsigned i = SECTION_LEVELS; file->at && i < SECTION_COUNT; i++) {
		if (file->sections[i])
			error_at(reader, file->sections[i], "\"%s\" belongs in the first file, not in an included one",
				 keys_file.keys[i].name);
		file->sections[i] = NULL;
	}
	return true;
}

const struct node *section_map(struct reader *reader, const struct node *key, const char *of)
{
	if (key->next->kind == NODE_MAP)
		return key->next;
	error_at(reader, key->next, "\"%s\" takes a mapping of %s", key->text, of);
	return NULL;
}

/* -- levels ---------------------------------------------------------------- */

static void check_levels(struct reader *reader, const struct node *map, const struct node *const *written)
{
	const struct level_modes *modes = &reader->policy->modes;

	for (unsigned i = 1; i < LEVEL_COUNT; i++) {
		const struct node *at = written[i] ? written[i] : written[i - 1];

		if (modes->of[i] < modes->of[i - 1])
			error_at(reader, at ? at->next : map,
				 "level %s may not mean a looser mode (%s) than level %s below it (%s)", level_name(i),
				 mode_name(modes->of[i]), level_name(i - 1), mode_name(modes->of[i - 1]));
	}
}

static void read_levels(struct reader *reader, const struct node *key)
{
	static const char *const modes[] = { "full", "proxied", "none" };
	const struct node *map = section_map(reader, key, "levels to modes"), *written[LEVEL_COUNT];
	bool good;

	if (!map)
		return;
	good = map_fields(reader, map, &keys_levels, written);
	for (unsigned i = 0; i < LEVEL_COUNT; i++) {
		const struct node *value = written[i] ? field_scalar(reader, written[i]) : NULL;
		unsigned mode = value ? mode_parse(value->text) : 0;
		const char *near = value && !mode ? suggest_word(value->text, modes, ARRAY_SIZE(modes)) : NULL;

		if (mode)
			reader->policy->modes.of[i] = (enum np_mode)mode;
		else if (near)
			error_at(reader, value, "no mode %s; did you mean \"%s\"?", QUOTE(value->text, value->len),
				 near);
		else if (value)
			error_at(reader, value, "no mode %s; there are full, proxied and none",
				 QUOTE(value->text, value->len));
		good = good && (!written[i] || mode);
	}
	if (good)
		check_levels(reader, map, written);
}

/* -- default, ports, approval ------------------------------------------------- */

static bool default_read(struct reader *reader, const struct node *key, struct fallback *ret)
{
	static const enum action actions[] = { ACTION_DENY, ACTION_ASK, ACTION_ALLOW };
	const struct node *value = field_scalar(reader, key);

	for (size_t i = 0; value && i < ARRAY_SIZE(actions); i++)
		if (!strcmp(value->text, action_name(actions[i]))) {
			*ret = (struct fallback){ actions[i], node_place(key) };
			return true;
		}
	if (value)
		error_at(reader, value, "%s is no default; there are deny, ask and allow",
			 QUOTE(value->text, value->len));
	return false;
}

/* From the strictest to the loosest. */
static unsigned action_looseness(enum action action)
{
	return action == ACTION_ALLOW ? 2 : action == ACTION_ASK;
}

/* A level that is left out is as strict as the next one above it that is written. */
static void read_defaults(struct reader *reader, const struct node *map)
{
	struct fallback *of = reader->policy->fallback, above = { .action = ACTION_DENY };
	const struct node *fields[LEVEL_COUNT];

	map_fields(reader, map, &keys_defaults, fields);
	for (unsigned level = LEVEL_COUNT; level--;) {
		of[level] = above;
		if (!fields[level] || !default_read(reader, fields[level], &of[level]))
			continue;
		if (action_looseness(of[level].action) < action_looseness(above.action))
			error_at(reader, fields[level]->next,
				 "level %s may not have a stricter default (%s) than a level above it (%s)",
				 level_name(level), action_name(of[level].action), action_name(above.action));
		if (reader->policy->modes.of[level] == NP_NONE && of[level].action != ACTION_DENY)
			warn_at(reader, fields[level], "never used: the mode of level %s is none", level_name(level));
		above = of[level];
	}
}

static void read_default(struct reader *reader, const struct node *key)
{
	struct fallback fallback;

	if (key->next->kind == NODE_MAP) {
		read_defaults(reader, key->next);
		return;
	}
	if (default_read(reader, key, &fallback))
		for (unsigned level = 0; level < LEVEL_COUNT; level++)
			reader->policy->fallback[level] = fallback;
}

static void read_ports(struct reader *reader, enum section section, const struct node *key, uint16_t *ports, size_t max,
		       size_t *ret_n)
{
	const struct node *entry = key->next->first;
	size_t n = 0;

	if (key->next->kind != NODE_LIST) {
		error_at(reader, key->next, "\"%s\" takes a list of ports", key->text);
		return;
	}
	for (; entry; entry = entry->next) {
		uint16_t port = 0;
		size_t i = 0;

		if (!entry_is_text(reader, key, entry))
			continue;
		port_parse(entry->text, strlen(entry->text), &port);
		while (i < n && ports[i] != port)
			i++;
		if (!port) {
			error_at(reader, entry, "%s is no port; ports are 1 to 65535", QUOTE(entry->text, entry->len));
		} else if (i < n) {
			error_at(reader, entry, "port %u is in \"%s\" twice", port, key->text);
		} else if (section == SECTION_INSPECT_PORTS && port == 53) {
			error_at(reader, entry, "port 53 belongs to the DNS gate and cannot be inspected as HTTP");
		} else if (n == max) {
			error_at(reader, entry, "more than %zu ports in \"%s\"", max, key->text);
			break;
		} else {
			ports[n++] = port;
			if (section == SECTION_HOST_LOOPBACK && port == 53)
				warn_at(reader, entry,
					"port 53 belongs to the DNS gate: this opens nothing in PROXIED");
		}
	}
	*ret_n = n;
}

static int read_approval(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "\"timeout\", \"hold\" and \"remember\""),
			  *fields[APPROVAL_KEYS], *value;
	struct approval *approval = &reader->policy->approval;

	if (!map)
		return 0;
	map_fields(reader, map, &keys_approval, fields);
	approval->at = node_place(key);
	if (fields[APPROVAL_TIMEOUT])
		field_duration(reader, fields[APPROVAL_TIMEOUT], &approval->timeout_ms);
	if (fields[APPROVAL_HOLD])
		field_duration(reader, fields[APPROVAL_HOLD], &approval->hold_ms);
	if (approval->hold_ms > NP_HOLD_MAX_MS)
		error_at(reader, fields[APPROVAL_HOLD], "no client waits for longer than %u minutes",
			 NP_HOLD_MAX_MS / 60000);
	value = fields[APPROVAL_GRANTS] ? field_scalar(reader, fields[APPROVAL_GRANTS]) : NULL;
	if (value && (node_is_null(value) || strchr(value->text, '/') || value->text[0] == '.'))
		error_at(reader, value, "\"grants\" takes the name of a file beside this one, not %s",
			 QUOTE(value->text, value->len));
	else
		reader->grants_at = value;
	if (fields[APPROVAL_NOTIFY] && read_notify(reader, fields[APPROVAL_NOTIFY], &approval->notify) < 0)
		return -ENOMEM;
	if (fields[APPROVAL_FOUR_EYES])
		field_flag(reader, fields[APPROVAL_FOUR_EYES], &approval->four_eyes);
	value = fields[APPROVAL_GROUP] ? field_scalar(reader, fields[APPROVAL_GROUP]) : NULL;
	if (value) {
		approval->group = arena_text(reader->policy->arena, value->text, value->len);
		if (!approval->group)
			return -ENOMEM;
	}
	value = fields[APPROVAL_REMEMBER] ? field_scalar(reader, fields[APPROVAL_REMEMBER]) : NULL;
	if (!value)
		return 0;
	approval->once = !strcmp(value->text, "once");
	if (!approval->once && strcmp(value->text, "session") != 0)
		error_at(reader, value, "%s cannot be remembered; there are once and session",
			 QUOTE(value->text, value->len));
	return 0;
}

static void read_dns_section(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "\"refused\""), *fields[DNS_KEYS], *value;

	if (!map)
		return;
	map_fields(reader, map, &keys_dns, fields);
	value = fields[DNS_REFUSED] ? field_scalar(reader, fields[DNS_REFUSED]) : NULL;
	if (!value)
		return;
	reader->policy->refused_synthetic = !strcmp(value->text, "synthetic");
	if (!reader->policy->refused_synthetic && strcmp(value->text, "nxdomain") != 0)
		error_at(reader, value, "%s is no answer to a query; there are nxdomain and synthetic",
			 QUOTE(value->text, value->len));
}

/* -- containers ------------------------------------------------------------------ */

static int read_containers(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "\"unknown\""), *fields[CONTAINERS_KEYS], *value;
	struct policy *policy = reader->policy;
	struct session_name name;
	const char *problem;

	if (!map)
		return 0;
	map_fields(reader, map, &keys_containers, fields);
	value = fields[CONTAINERS_UNKNOWN] ? field_scalar(reader, fields[CONTAINERS_UNKNOWN]) : NULL;
	if (!value)
		return 0;
	if (strcmp(value->text, UNKNOWN_IGNORE) != 0 && strcmp(value->text, UNKNOWN_REFUSE) != 0 &&
	    (strlen(value->text) != value->len || session_name_parse(value->text, &name, &problem)))
		error_at(reader, value, "%s for \"unknown\": there are ignore, refuse, and a session as USER/SESSION",
			 QUOTE(value->text, value->len));
	policy->unknown_containers = arena_text(policy->arena, value->text, value->len);
	return policy->unknown_containers ? 0 : -ENOMEM;
}

/* -- notices ------------------------------------------------------------------- */

static int read_notices(struct reader *reader, const struct node *key)
{
	static const enum np_mode modes[NOTICE_KEYS] = { [NOTICE_PROXIED] = NP_PROXIED, [NOTICE_NONE] = NP_NONE };
	const struct node *map = section_map(reader, key, "modes to texts"), *fields[NOTICE_KEYS];
	struct policy *policy = reader->policy;

	if (!map)
		return 0;
	map_fields(reader, map, &keys_notices, fields);
	for (size_t i = 0; i < NOTICE_KEYS; i++) {
		const struct node *value = fields[i] ? field_scalar(reader, fields[i]) : NULL;
		char problem[NOTICE_PROBLEM_SIZE];

		if (!value)
			continue;
		if (notice_template_check(value->text, value->len, problem))
			error_at(reader, value, "%s", problem);
		policy->notices[modes[i]] = arena_text(policy->arena, value->text, value->len);
		if (!policy->notices[modes[i]])
			return -ENOMEM;
	}
	return 0;
}

/* What the one section says and the other takes back. */
static void network_warn(struct reader *reader, const struct node *const *sections)
{
	const struct policy *policy = reader->policy;

	if (policy->sandbox.network != NETWORK_NAT)
		return;
	if (policy->n_host_loopback)
		warn_at(reader, sections[SECTION_HOST_LOOPBACK],
			"network: nat gives no way out where ports of the host's loopback are named: sandboxes that "
			"start in "
			"FULL share the host's network");
	else if (policy->n_inbound)
		warn_at(reader, sections[SECTION_INBOUND],
			"nobody calls sandboxes with network: nat: use netpawl forward, or network: private");
}

int read_settings(struct reader *reader, const struct file *file)
{
	const struct node *const *sections = file->sections;
	struct policy *policy = reader->policy;

	if (sections[SECTION_LEVELS])
		read_levels(reader, sections[SECTION_LEVELS]);
	if (sections[SECTION_DEFAULT])
		read_default(reader, sections[SECTION_DEFAULT]);
	if (sections[SECTION_INSPECT_PORTS])
		read_ports(reader, SECTION_INSPECT_PORTS, sections[SECTION_INSPECT_PORTS], policy->inspect_ports,
			   NP_INSPECT_PORTS_MAX, &policy->n_inspect_ports);
	if (sections[SECTION_HOST_LOOPBACK])
		read_ports(reader, SECTION_HOST_LOOPBACK, sections[SECTION_HOST_LOOPBACK], policy->host_loopback,
			   NP_HOST_PORTS_MAX, &policy->n_host_loopback);
	if (sections[SECTION_INBOUND])
		read_ports(reader, SECTION_INBOUND, sections[SECTION_INBOUND], policy->inbound, NP_INBOUND_MAX,
			   &policy->n_inbound);
	if (sections[SECTION_APPROVAL] && read_approval(reader, sections[SECTION_APPROVAL]) < 0)
		return -ENOMEM;
	if (sections[SECTION_DNS])
		read_dns_section(reader, sections[SECTION_DNS]);
	if (sections[SECTION_SANDBOX])
		read_sandbox(reader, sections[SECTION_SANDBOX]);
	network_warn(reader, sections);
	read_lifetime(reader, sections[SECTION_SESSIONS], sections[SECTION_WORKSPACES]);
	if (sections[SECTION_ACCESS]) {
		int e = read_access(reader, sections[SECTION_ACCESS]);

		if (e)
			return e;
	}
	if (sections[SECTION_METRICS] || sections[SECTION_EVENTS]) {
		int e = read_exports(reader, file);

		if (e < 0)
			return e;
	}
	if (sections[SECTION_CONTAINERS]) {
		int e = read_containers(reader, sections[SECTION_CONTAINERS]);

		if (e)
			return e;
	}
	return sections[SECTION_NOTICES] ? read_notices(reader, sections[SECTION_NOTICES]) : 0;
}
