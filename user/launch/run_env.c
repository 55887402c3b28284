/* SPDX-License-Identifier: MIT */
/* The variables that --env and --env-file name. Values stay out of our own environment and command line: the one would change
 * what we do as root (LD_PRELOAD), the other is everybody's to read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/message.h"
#include "base/cleanup.h"
#include "launch/run.h"

static int env_bad(const char *word, const char *wrong)
{
	/* Not the value: it may be a secret, and this goes to a log. */
	return usage_error("run", "--env '%.*s': %s", (int)strcspn(word, "="), word, wrong);
}

static int env_add(struct run *run, size_t *n, const char *word)
{
	const char *wrong = env_check(word, !run->launched), *value = strchr(word, '=') ? "" : getenv(word);
	size_t size;

	if (!wrong && !value)
		wrong = "the caller has no such variable";
	if (wrong)
		return env_bad(word, wrong);
	if (*n == ARRAY_SIZE(run->env) - 1)
		return usage_error("run", "more than %zu variables", *n);
	size = strlen(word) + strlen(value) + 2;
	run->env[*n] = malloc(size);
	if (!run->env[*n])
		return CLI_REFUSED;
	snprintf(run->env[(*n)++], size, "%s%s%s", word, strchr(word, '=') ? "" : "=", value);
	return CLI_OK;
}

/* Lines, or with a NUL behind each where there is one: values may have newlines then. */
static int env_file_read(struct run *run, size_t *n)
{
	_close_ int fd = open(run->options.env_file, O_RDONLY | O_CLOEXEC);
	_buf_ struct buf text = BUF_INIT(NP_ENV_FILE);
	int r = fd < 0 ? -errno : fs_read_fd(fd, &text), code = CLI_OK;
	char end;

	if (r < 0)
		return usage_error("run", "--env-file %s: %s", run->options.env_file, strerror(-r));
	end = memchr(text.data ? text.data : "", '\0', text.len) ? '\0' : '\n';
	buf_append(&text, &end, 1);
	for (char *at = text.data, *next; code == CLI_OK && at < text.data + text.len; at = next + 1) {
		next = memchr(at, end, text.len - (size_t)(at - text.data));
		*next = '\0';
		if (*at && (end == '\0' || *at != '#'))
			code = strchr(at, '=') ? env_add(run, n, at) : env_bad(at, "a file has lines NAME=VALUE");
	}
	return buf_error(&text) ? usage_error("run", "--env-file %s: it is too long", run->options.env_file) : code;
}

int run_env_read(struct run *run)
{
	const struct run_texts *words = &run->options.env;
	size_t n = 0;
	int code = run->options.env_file ? env_file_read(run, &n) : CLI_OK;

	run->n_env_file = n;
	for (size_t i = 0; code == CLI_OK && i < words->n; i++)
		code = env_add(run, &n, words->items[i]);
	return code;
}
