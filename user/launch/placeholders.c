/* SPDX-License-Identifier: MIT */
#include "launch/placeholders.h"

#include <jansson.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/api.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "vocab/limits.h"

#define FILE_MAX (64u << 10)

/* What the daemon says of one. */
struct placeholder_words {
	const char *placeholder, *user;
	const json_t *hosts;
};

typedef void put_host_fn(struct placeholders *p, const struct placeholder_words *words, const char *host);

static void env_add(struct placeholders *p, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *text = ARRAY_RESERVE(p->env, p->size, p->n + 2) < 0 ? NULL : malloc(size);

	if (!text)
		return; /* without it the tool has no credential, which it says */
	snprintf(text, size, "%s=%s", name, value);
	p->env[p->n++] = text;
	p->env[p->n] = NULL;
}

static void put_netrc(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	buf_printf(&p->files[FILE_NETRC], "machine %.*s login %s password %s\n", (int)strcspn(host, ":"), host,
		   words->user, words->placeholder);
}

static void put_npmrc(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	buf_printf(&p->files[FILE_NPMRC], "//%s/:_authToken=%s\n", host, words->placeholder);
}

static void put_pip(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	struct buf *out = &p->files[FILE_PIP];

	buf_printf(out, "%shttps://%s:%s@%s/simple/\n", out->len ? "" : "[global]\nindex-url = ", words->user,
		   words->placeholder, host);
}

static void put_aws(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	struct buf *out = &p->files[FILE_AWS];

	(void)host;
	if (!out->len)
		buf_printf(out, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", words->placeholder,
			   words->placeholder);
}

/* A helper that prints it, for this host alone. Neither word has a quote: see the policy's reader. */
static void put_git(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	_buf_ struct buf name = BUF_INIT(1024), value = BUF_INIT(2 * NP_PLACEHOLDER_MAX);

	buf_printf(&name, "GIT_CONFIG_KEY_%u", p->helpers);
	buf_printf(&value, "credential.https://%s.helper", host);
	env_add(p, name.data ? name.data : "", value.data ? value.data : "");
	buf_clear(&name);
	buf_clear(&value);
	buf_printf(&name, "GIT_CONFIG_VALUE_%u", p->helpers);
	buf_printf(&value, "!f() { test \"$1\" = get && printf 'username=%%s\\npassword=%%s\\n' '%s' '%s'; }; f",
		   words->user, words->placeholder);
	env_add(p, name.data ? name.data : "", value.data ? value.data : "");
	p->helpers++;
}

static void put_docker(struct placeholders *p, const struct placeholder_words *words, const char *host)
{
	struct buf *out = &p->files[FILE_DOCKER];
	json_t *config = out->len ? json_loads(out->data, 0, NULL) : json_pack("{s:{}}", "auths");
	_buf_ struct buf plain = BUF_INIT(2 * NP_PLACEHOLDER_MAX);
	char auth[BASE64_ENCODE_RAW_LENGTH(2 * NP_PLACEHOLDER_MAX) + 1] = "", *text;

	buf_printf(&plain, "%s:%s", words->user, words->placeholder);
	if (config && !buf_error(&plain)) {
		base64_encode_raw(auth, plain.len, (const uint8_t *)plain.data);
		json_object_set_new(json_object_get(config, "auths"), host, json_pack("{s:s}", "auth", auth));
		text = json_dumps(config, JSON_COMPACT);
		buf_clear(out);
		buf_puts(out, text ? text : "");
		free(text);
	}
	json_decref(config);
}

/* Of each tool: the word of the policy, the file that it reads, and the variables that lead it there. */
static const struct {
	const char *word;
	put_host_fn *put;
	int file; /* -1: none */
	const char *path, *variables[2];
} tools[] = {
	{ "netrc", put_netrc, FILE_NETRC, PLACEHOLDERS_DIR "/netrc", { "NETRC" } },
	{ "npmrc", put_npmrc, FILE_NPMRC, PLACEHOLDERS_DIR "/npmrc", { "NPM_CONFIG_USERCONFIG" } },
	{ "pip", put_pip, FILE_PIP, PLACEHOLDERS_DIR "/pip.conf", { "PIP_CONFIG_FILE" } },
	{ "aws", put_aws, FILE_AWS, PLACEHOLDERS_DIR "/aws", { "AWS_SHARED_CREDENTIALS_FILE" } },
	{ "docker",
	  put_docker,
	  FILE_DOCKER,
	  PLACEHOLDERS_DIR "/docker/config.json",
	  { "REGISTRY_AUTH_FILE", "DOCKER_CONFIG" } },
	{ "git", put_git, -1, NULL, { NULL } },
};

const char *placeholders_path(enum placeholders_file file)
{
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (tools[i].file == (int)file)
			return tools[i].path;
	return "";
}

static void tool_put(struct placeholders *p, const char *word, const struct placeholder_words *words)
{
	const json_t *entry;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(tools) && strcmp(tools[i].word, word) != 0; i++)
		;
	if (i == ARRAY_SIZE(tools))
		return;
	json_array_foreach(words->hosts, k, entry)
	{
		const char *name = json_string_value(json_object_get(entry, "name"));
		json_int_t port = json_integer_value(json_object_get(entry, "port"));
		_buf_ struct buf host = BUF_INIT(512);

		buf_printf(&host, port == 443 ? "%s" : "%s:%" JSON_INTEGER_FORMAT, name ? name : "", port);
		if (name && !buf_error(&host))
			tools[i].put(p, words, host.data);
	}
}

/* The variables of the files that came to be something. */
static void variables_put(struct placeholders *p)
{
	char count[16];

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (tools[i].file < 0 || !p->files[tools[i].file].len)
			continue;
		env_add(p, tools[i].variables[0], tools[i].path);
		if (tools[i].variables[1]) /* a directory */
			env_add(p, tools[i].variables[1], PLACEHOLDERS_DIR "/docker");
	}
	snprintf(count, sizeof(count), "%u", p->helpers);
	if (p->helpers)
		env_add(p, "GIT_CONFIG_COUNT", count);
}

int placeholders_fetch(const char *socket, const char *session, bool files, struct placeholders *ret)
{
	_free_ char *path = api_session_path(session, "/placeholders");
	_api_answer_ struct api_answer answer = { 0 };
	const json_t *entry;
	size_t i;

	*ret = (struct placeholders){ 0 };
	for (i = 0; i < PLACEHOLDERS_FILES; i++)
		ret->files[i] = BUF_INIT(FILE_MAX);
	if (!path || api_call(socket, session, "GET", path, NULL, &answer) != 0)
		return -1;
	json_array_foreach(json_object_get(answer.json, "placeholders"), i, entry)
	{
		const char *env = json_string_value(json_object_get(entry, "env"));
		const char *file = json_string_value(json_object_get(entry, "file"));
		const char *user = json_string_value(json_object_get(entry, "user"));
		const struct placeholder_words words = {
			.placeholder = json_string_value(json_object_get(entry, "placeholder")),
			.user = user ? user : "x-access-token",
			.hosts = json_object_get(entry, "hosts"),
		};

		if (words.placeholder && env)
			env_add(ret, env, words.placeholder);
		if (words.placeholder && file && files)
			tool_put(ret, file, &words);
	}
	variables_put(ret);
	return 0;
}

void placeholders_free(struct placeholders *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->env[i]);
	free(p->env);
	for (size_t i = 0; i < PLACEHOLDERS_FILES; i++)
		buf_free(&p->files[i]);
	*p = (struct placeholders){ 0 };
}
