/* SPDX-License-Identifier: MIT */
/* sandbox: what `netpawl run` may give to a command. */
#include "policy/read.h"

#include <string.h>

#include "base/arena.h"
#include "policy/quote.h"
#include "vocab/limits.h"

static void read_limit(struct reader *reader, const struct node *key, const struct run_option *limit)
{
	uint64_t *ret = run_limit_of(limit, &reader->policy->sandbox.limits), number;
	const struct node *value;
	const char *wrong;

	if (limit->kind == RUN_TIME) {
		field_duration(reader, key, ret);
		return;
	}
	value = field_scalar(reader, key);
	if (!value)
		return;
	wrong = limit_parse(limit->name, value->text, &number);
	if (wrong)
		error_at(reader, value, "%s for \"%s\": %s", QUOTE(value->text, value->len), key->text, wrong);
	else
		*ret = number;
}

/* Absolute, as realpath() would write it: what is compared are words. */
static bool path_is_canonical(const char *path, size_t len)
{
	if (*path != '/' || strlen(path) != len || (len > 1 && path[len - 1] == '/') || strstr(path, "//"))
		return false;
	for (const char *part = path; *part; part += strcspn(part, "/")) {
		size_t n = strcspn(++part, "/");

		if ((n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2)))
			return false;
	}
	return true;
}

static void read_bind(struct reader *reader, const struct node *entry)
{
	struct sandbox_policy *sandbox = &reader->policy->sandbox;
	size_t len = entry->len;
	bool readonly = len > 3 && !strcmp(entry->text + len - 3, ":ro");
	char *path;

	if (readonly)
		len -= 3;
	path = arena_text(reader->policy->arena, entry->text, len);
	if (!path || strlen(entry->text) != entry->len || !path_is_canonical(path, len) || strchr(path, ':')) {
		error_at(reader, entry, "%s is no path for a bind; write /srv/data, or /srv/data:ro",
			 QUOTE(entry->text, entry->len));
	} else if (sandbox->n_binds == NP_BINDS_MAX) {
		error_at(reader, entry, "more than %d binds", NP_BINDS_MAX);
	} else {
		sandbox->binds[sandbox->n_binds].path = path;
		sandbox->binds[sandbox->n_binds++].readonly = readonly;
	}
}

/* What a pattern stands for differs from host to host, and which kinds are fit is looked at when a sandbox is made. */
static void read_device(struct reader *reader, const struct node *entry)
{
	struct sandbox_policy *sandbox = &reader->policy->sandbox;
	const char *path = arena_text(reader->policy->arena, entry->text, entry->len);

	if (!path || !path_is_canonical(path, entry->len) || strncmp(path, "/dev/", 5) != 0)
		error_at(reader, entry, "%s is no device; write /dev/kvm, /dev/nvidia* or /dev/dri",
			 QUOTE(entry->text, entry->len));
	else if (sandbox->n_devices == NP_DEVICES_MAX)
		error_at(reader, entry, "more than %d devices", NP_DEVICES_MAX);
	else
		sandbox->devices[sandbox->n_devices++] = path;
}

static void read_network(struct reader *reader, const struct node *key)
{
	const struct node *value = field_scalar(reader, key);

	if (!value)
		return;
	for (size_t i = 0; keys_networks[i]; i++) {
		if (strcmp(value->text, keys_networks[i]) != 0)
			continue;
		reader->policy->sandbox.network = (enum sandbox_network)i;
		return;
	}
	error_at(reader, value,
		 "%s is no network; there are shared, private (of their own for sandboxes that start in PROXIED or "
		 "NONE; no way "
		 "leads out of it past the inspector, so those that start in FULL share the host's) and nat (of their "
		 "own for "
		 "all; what leaves is forwarded and masqueraded)",
		 QUOTE(value->text, value->len));
}

void read_sandbox(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "what sandboxes may have"), *fields[SANDBOX_KEYS], *entry;
	struct sandbox_policy *sandbox = &reader->policy->sandbox;
	size_t n;

	if (!map)
		return;
	map_fields(reader, map, &keys_sandbox, fields);
	reader->read_only = fields[SANDBOX_READ_ONLY]; /* read_read_only(): it may name lists */
	n = fields[SANDBOX_BINDS] ? field_entries(reader, fields[SANDBOX_BINDS], &entry) : 0;
	for (; n; n--, entry = entry->next)
		if (entry_is_text(reader, fields[SANDBOX_BINDS], entry))
			read_bind(reader, entry);
	n = fields[SANDBOX_DEVICES] ? field_entries(reader, fields[SANDBOX_DEVICES], &entry) : 0;
	for (; n; n--, entry = entry->next)
		if (entry_is_text(reader, fields[SANDBOX_DEVICES], entry))
			read_device(reader, entry);
	for (size_t i = 0; i < RUN_N_LIMITS; i++)
		if (fields[SANDBOX_LIMITS + i])
			read_limit(reader, fields[SANDBOX_LIMITS + i], &run_limits[i]);
	if (fields[SANDBOX_NETWORK])
		read_network(reader, fields[SANDBOX_NETWORK]);
	if (fields[SANDBOX_IDLE])
		field_duration(reader, fields[SANDBOX_IDLE], &sandbox->idle_ms);
}
