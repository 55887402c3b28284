/* SPDX-License-Identifier: MIT */
#include "cli/project_files.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/problem.h"
#include "policy/yaml.h"
#include "wire/url.h"

#define DEPTH_MAX 32 /* of JSON: deeper than any configuration */

const struct project_file project_files[] = {
	{ ".mcp.json", PROJECT_JSON, PROJECT_API },
	{ "mcp.json", PROJECT_JSON, PROJECT_API },
	{ ".cursor/mcp.json", PROJECT_JSON, PROJECT_API },
	{ ".vscode/mcp.json", PROJECT_JSON, PROJECT_API },
	{ ".roo/mcp.json", PROJECT_JSON, PROJECT_API },
	{ ".amazonq/mcp.json", PROJECT_JSON, PROJECT_API },
	{ ".gemini/settings.json", PROJECT_JSON, PROJECT_API },
	{ "claude_desktop_config.json", PROJECT_JSON, PROJECT_API },
	{ "opencode.json", PROJECT_JSON, PROJECT_API },
	{ ".codex/config.toml", PROJECT_LINES, PROJECT_API },
	{ "litellm_config.yaml", PROJECT_YAML, PROJECT_API },
	{ "litellm.yaml", PROJECT_YAML, PROJECT_API },
	{ ".env", PROJECT_LINES, PROJECT_API },
	{ ".npmrc", PROJECT_LINES, PROJECT_PACKAGES },
	{ "pip.conf", PROJECT_LINES, PROJECT_PACKAGES },
	{ ".config/pip/pip.conf", PROJECT_LINES, PROJECT_PACKAGES },
	{ ".git/config", PROJECT_LINES, PROJECT_GIT },
	{ ".gitmodules", PROJECT_LINES, PROJECT_GIT },
	{ "docker-compose.yml", PROJECT_YAML, PROJECT_API },
	{ "docker-compose.yaml", PROJECT_YAML, PROJECT_API },
	{ "compose.yml", PROJECT_YAML, PROJECT_API },
	{ "compose.yaml", PROJECT_YAML, PROJECT_API },
};
const size_t n_project_files = ARRAY_SIZE(project_files);

static const struct scheme {
	const char *name;
	uint16_t port;
	bool http, websocket;
} schemes[] = {
	{ "https", 443, true, false },	    { "http", 80, true, false },	  { "wss", 443, true, true },
	{ "ws", 80, true, true },	    { "ssh", 22, false, false },	  { "git", 9418, false, false },
	{ "postgres", 5432, false, false }, { "postgresql", 5432, false, false }, { "mysql", 3306, false, false },
	{ "redis", 6379, false, false },    { "rediss", 6379, false, false },	  { "amqp", 5672, false, false },
	{ "mongodb", 27017, false, false },
};

struct reading {
	const struct project_file *file;
	struct project *project;
	char where[128]; /* behind the file's name: ":3", ", mcpServers.x.url" */
};

/* -- one host --------------------------------------------------------------------- */

static bool is_known(const struct project *project, const struct project_found *found)
{
	for (size_t i = 0; i < project->n; i++) {
		const struct project_found *other = &project->found[i];

		if (other->kind == found->kind && other->port == found->port && other->websocket == found->websocket &&
		    other->host.is_addr == found->host.is_addr &&
		    (found->host.is_addr ? !memcmp(&other->host.addr, &found->host.addr, sizeof(found->host.addr))
					 : !strcmp(other->host.name, found->host.name)))
			return true;
	}
	return false;
}

/* Names without a dot are those of the project's own containers, and loopback is nobody's to allow here. */
static bool is_elsewhere(const struct host *host)
{
	if (host->is_addr)
		return !np_addr_is_loopback(&host->addr) && !np_addr_is_any(&host->addr);
	return strchr(host->name, '.') && !name_is_localhost(host->name);
}

/* host or host:port, without a user. 0 or -EINVAL. */
static int found_parse(const char *text, size_t len, const struct scheme *scheme, struct project_found *ret)
{
	char url[NAME_SIZE + 32];
	struct url parsed;

	if (len > NAME_SIZE)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && (text[i] >= 0) && (!text[i] || !strchr("-_.:[]", text[i])))
			return -EINVAL;
	snprintf(url, sizeof(url), "https://%.*s/", (int)len, text);
	if (url_parse(url, &parsed) < 0 || !is_elsewhere(&parsed.host))
		return -EINVAL;
	ret->host = parsed.host;
	ret->port = parsed.has_port ? parsed.port : scheme->port;
	return 0;
}

static void host_take(const struct reading *r, const char *text, size_t len, const struct scheme *scheme)
{
	struct project *project = r->project;
	struct project_found found = { .kind = scheme->http ? r->file->kind : PROJECT_TCP,
				       .websocket = scheme->websocket };

	if (found_parse(text, len, scheme, &found) < 0) {
		project->left_out++;
		return;
	}
	snprintf(found.where, sizeof(found.where), "%s%s", r->file->path, r->where);
	if (is_known(project, &found))
		return;
	if (project->n == NP_PROJECT_HOSTS)
		project->left_out++;
	else
		project->found[project->n++] = found;
}

/* What stands behind "://": a user and a password are skipped. */
static void url_take(const struct reading *r, const char *text, size_t len, const struct scheme *scheme)
{
	const char *at;
	size_t n = 0;

	while (n < len && text[n] && !strchr("/?#\"'` \t\r\n,;|<>(){}\\", text[n]))
		n++;
	at = memrchr(text, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	host_take(r, text, n, scheme);
}

/* The scheme that ends before "://" at end. */
static const struct scheme *scheme_before(const char *text, size_t end)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t len = strlen(schemes[i].name);

		if (end >= len && !memcmp(text + end - len, schemes[i].name, len) &&
		    (end == len || !isalnum((unsigned char)text[end - len - 1])))
			return &schemes[i];
	}
	return NULL;
}

static bool text_take(const struct reading *r, const char *text, size_t len)
{
	bool any = false;

	for (size_t i = 0; i + 3 <= len; i++) {
		const struct scheme *scheme = memcmp(text + i, "://", 3) ? NULL : scheme_before(text, i);

		if (!scheme)
			continue;
		any = true;
		url_take(r, text + i + 3, len - i - 3, scheme);
	}
	return any;
}

/* -- formats ------------------------------------------------------------------------ */

/* A key as it may be shown. */
static void key_plain(char *to, size_t size, const char *key)
{
	size_t n = 0;

	for (; *key && n + 1 < size && n < 40; key++)
		to[n++] = isalnum((unsigned char)*key) || strchr("_-.", *key) ? *key : '?';
	to[n] = '\0';
}

static void json_walk(struct reading *r, const json_t *value, const char *path, unsigned depth)
{
	char below[128], plain[48];
	const char *key;
	json_t *item;
	size_t i;

	if (depth > DEPTH_MAX)
		return;
	if (json_is_string(value)) {
		snprintf(r->where, sizeof(r->where), "%s", path);
		text_take(r, json_string_value(value), json_string_length(value));
	}
	json_array_foreach(value, i, item) json_walk(r, item, path, depth + 1);
	json_object_foreach((json_t *)value, key, item)
	{
		if (*key == '$') /* "$schema" */
			continue;
		key_plain(plain, sizeof(plain), key);
		snprintf(below, sizeof(below), "%.70s%s%s", path, *path ? "." : ", ", plain);
		json_walk(r, item, below, depth + 1);
	}
}

static int json_take(struct reading *r, const char *text, size_t len)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	if (!root)
		return -EINVAL;
	json_walk(r, root, "", 0);
	json_decref(root);
	return 0;
}

/* registry.example/team/image:tag; an image without a host is the engine's business. */
static void image_take(const struct reading *r, const char *text)
{
	static const struct scheme https = { "https", 443, true, false };
	struct project_file file = { r->file->path, r->file->format, PROJECT_PACKAGES };
	struct reading image = *r;
	size_t len = strcspn(text, "/");

	image.file = &file;
	if (text[len] && memchr(text, '.', len))
		host_take(&image, text, len, &https);
}

/* Trees are no deeper than yaml.c lets them be. */
static void yaml_walk(struct reading *r, const struct node *node, const char *key)
{
	snprintf(r->where, sizeof(r->where), ":%u", node->line);
	if (node->kind == NODE_SCALAR) {
		if (!text_take(r, node->text, node->len) && !strcmp(key, "image"))
			image_take(r, node->text);
		return;
	}
	for (const struct node *below = node->first; below; below = below->next) {
		const char *name = key;

		if (node->kind == NODE_MAP) {
			name = below->text;
			below = below->next;
		}
		yaml_walk(r, below, name);
	}
}

static int yaml_take(struct reading *r, const char *text, size_t len)
{
	_problems_ struct problems problems = { 0 };
	_arena_ struct arena *arena = NULL;
	const struct node *root = NULL;
	size_t nodes = 0;
	int e = arena_new(NP_PROJECT_MEMORY, &arena);

	if (e == 0)
		e = yaml_read(arena, text, len, r->file->path, 0, &nodes, &problems, &root);
	if (e == 0 && root)
		yaml_walk(r, root, "");
	return e;
}

/* "url = git@git.example:team/project.git" */
static void remote_take(const struct reading *r, const char *text, size_t len)
{
	static const struct scheme ssh = { "ssh", 22, false, false };
	const char *end = text + len, *equals = memchr(text, '=', len), *colon, *at;

	if (!equals || len < 3 || memcmp(text, "url", 3))
		return;
	for (text = equals + 1; text < end && (*text == ' ' || *text == '\t');)
		text++;
	colon = memchr(text, ':', (size_t)(end - text));
	if (!colon || memchr(text, '/', (size_t)(colon - text)))
		return;
	at = memrchr(text, '@', (size_t)(colon - text));
	text = at ? at + 1 : text;
	host_take(r, text, (size_t)(colon - text), &ssh);
}

static void line_take(struct reading *r, const char *line, size_t len)
{
	static const struct scheme https = { "https", 443, true, false };

	while (len && isspace((unsigned char)*line))
		line++, len--;
	if (!len || *line == '#' || *line == ';')
		return;
	if (text_take(r, line, len))
		return;
	if (r->file->kind == PROJECT_PACKAGES && len > 2 && !memcmp(line, "//", 2)) /* .npmrc: //host/:_authToken=... */
		url_take(r, line + 2, len - 2, &https);
	if (r->file->kind == PROJECT_GIT)
		remote_take(r, line, len);
}

static void lines_take(struct reading *r, const char *text, size_t len)
{
	unsigned number = 0;

	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		snprintf(r->where, sizeof(r->where), ":%u", ++number);
		line_take(r, text, n);
		n += end != NULL;
		text += n;
		len -= n;
	}
}

int project_read(const struct project_file *file, const char *text, size_t len, struct project *project)
{
	struct reading r = { file, project, "" };

	if (file->format == PROJECT_JSON)
		return json_take(&r, text, len);
	if (file->format == PROJECT_YAML)
		return yaml_take(&r, text, len);
	lines_take(&r, text, len);
	return 0;
}
