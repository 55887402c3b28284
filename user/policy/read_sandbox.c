/* SPDX-License-Identifier: MIT */
/* sandbox: what `netpawl run` may give to a command. */
#include "policy/read.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "policy/quote.h"
#include "vocab/limits.h"

static void read_bytes(struct reader *reader, const struct node *key, uint64_t least, uint64_t *ret)
{
	const struct node *value = field_scalar(reader, key);
	uint64_t bytes;

	if (!value)
		return;
	if (!size_parse(value->text, &bytes) || bytes < least || bytes > INT64_MAX)
		error_at(reader, value, "%s is no size for \"%s\"; write a number of bytes, or 512MiB",
			 QUOTE(value->text, value->len), key->text);
	else
		*ret = bytes;
}

static void read_pids(struct reader *reader, const struct node *key, uint64_t *ret)
{
	const struct node *value = field_scalar(reader, key);

	if (value && !count_parse(value->text, NP_LIMIT_PIDS, ret))
		error_at(reader, value, "%s is no number of processes; there are 1 to %d",
			 QUOTE(value->text, value->len), NP_LIMIT_PIDS);
}

static void read_cpus(struct reader *reader, const struct node *key, uint64_t *ret)
{
	const struct node *value = field_scalar(reader, key);

	if (value && !milli_parse(value->text, NP_LIMIT_CPUS, ret))
		error_at(reader, value, "%s is no number of CPUs; write 2, or 0.5", QUOTE(value->text, value->len));
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

void read_sandbox(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "what sandboxes may have"), *fields[SANDBOX_KEYS], *entry;
	struct sandbox_policy *sandbox = &reader->policy->sandbox;

	if (!map)
		return;
	map_fields(reader, map, &keys_sandbox, fields);
	reader->read_only = fields[SANDBOX_READ_ONLY]; /* read_read_only(): it may name lists */
	if (fields[SANDBOX_BINDS] && field_entries(reader, fields[SANDBOX_BINDS], &entry))
		for (; entry; entry = entry->next)
			if (entry_is_text(reader, fields[SANDBOX_BINDS], entry))
				read_bind(reader, entry);
	if (fields[SANDBOX_MEMORY])
		read_bytes(reader, fields[SANDBOX_MEMORY], NP_LIMIT_BYTES_MIN, &sandbox->memory);
	if (fields[SANDBOX_OUTPUT])
		read_bytes(reader, fields[SANDBOX_OUTPUT], 1, &sandbox->output);
	if (fields[SANDBOX_DISK])
		read_bytes(reader, fields[SANDBOX_DISK], NP_LIMIT_BYTES_MIN, &sandbox->disk);
	if (fields[SANDBOX_CPUS])
		read_cpus(reader, fields[SANDBOX_CPUS], &sandbox->cpus_milli);
	if (fields[SANDBOX_PIDS])
		read_pids(reader, fields[SANDBOX_PIDS], &sandbox->pids);
	if (fields[SANDBOX_TIMEOUT])
		field_duration(reader, fields[SANDBOX_TIMEOUT], &sandbox->timeout_ms);
	if (fields[SANDBOX_IDLE])
		field_duration(reader, fields[SANDBOX_IDLE], &sandbox->idle_ms);
}
