/* SPDX-License-Identifier: MIT */
/* The environment of a sandboxed command. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "vocab/limits.h"
#include "launch/plan_internal.h"

struct variables {
	const struct plan_request *request;
	struct arena *arena;
	char **items;
	size_t n, size;
};

static bool name_is(const char *variable, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(variable, name, len) && variable[len] == '=';
}

static const char *variable_get(const struct variables *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (name_is(v->items[i], name))
			return v->items[i] + strlen(name) + 1;
	return NULL;
}

static void variable_unset(struct variables *v, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n; i++)
		if (!name_is(v->items[i], name))
			v->items[kept++] = v->items[i];
	v->n = kept;
}

/* Asked for by its name: then it is not for us to say what it is. */
static bool is_named(const struct variables *v, const char *name)
{
	for (char *const *e = v->request->env; e && *e; e++)
		if (name_is(*e, name))
			return true;
	return false;
}

/* NAME=VALUE; in the place of an older one of that name. */
static int variable_put(struct variables *v, char *variable)
{
	size_t kept = 0, len = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < v->n; i++)
		if (strncmp(v->items[i], variable, len) != 0)
			v->items[kept++] = v->items[i];
	v->n = kept;
	if (ARRAY_RESERVE(v->items, v->size, v->n + 2) < 0)
		return -ENOMEM;
	v->items[v->n++] = variable;
	return 0;
}

static int variable_set(struct variables *v, const char *name, const char *value)
{
	size_t len = strlen(name) + strlen(value) + 1;
	char *text = arena_alloc(v->arena, 1, len + 1);

	if (!text)
		return -ENOMEM;
	snprintf(text, len + 1, "%s=%s", name, value);
	return variable_put(v, text);
}

static int variables_trust(struct variables *v)
{
	_buf_ struct buf java = BUF_INIT(NP_PLAN_MEMORY);
	const char *before = variable_get(v, "JAVA_TOOL_OPTIONS");

	for (size_t i = 0; i < trust_variables(); i++) {
		_buf_ struct buf value = BUF_INIT(4096);
		const char *name;

		trust_variable(i, TRUST_DIR, &name, &value);
		if (is_named(v, name))
			continue;
		if (buf_error(&value) || variable_set(v, name, value.data) < 0)
			return -ENOMEM;
	}
	if (before)
		buf_printf(&java, "%s ", before);
	trust_java(TRUST_DIR, &java);
	return buf_error(&java) ? -ENOMEM : variable_set(v, "JAVA_TOOL_OPTIONS", java.data);
}

/* What is the caller's alone: places that the sandbox does not see. */
static int variables_own(struct variables *v)
{
	static const char *const gone[] = { "TMPDIR", "XDG_RUNTIME_DIR", "OLDPWD" };
	const struct identity *identity = v->request->identity;
	const char *name = identity->name[0] ? identity->name : PLAN_USER;

	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		variable_unset(v, gone[i]);
	return variable_set(v, "HOME", PLAN_WORKSPACE) || variable_set(v, "USER", name) ||
			       variable_set(v, "LOGNAME", name)
		       ? -ENOMEM
		       : 0;
}

/* With no isolation, --user changes what su(1) would. */
static int variables_user(struct variables *v)
{
	const struct identity *identity = v->request->identity;
	int r = 0;

	if (identity && identity->name[0])
		r = variable_set(v, "USER", identity->name) | variable_set(v, "LOGNAME", identity->name);
	if (identity && identity->home[0])
		r |= variable_set(v, "HOME", identity->home);
	return r ? -ENOMEM : 0;
}

/* The files of the session's directory: user/session/notice_file.h. */
static int variables_notices(struct variables *v)
{
	static const struct {
		const char *variable, *file;
	} files[] = { { "NETPAWL_NOTICES", "/notices.ndjson" }, { "NETPAWL_WHY", "/why.txt" } };
	const char *notices = v->request->notices;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
		_buf_ struct buf path = BUF_INIT(8192);

		variable_unset(v, files[i].variable);
		if (!notices)
			continue;
		buf_printf(&path, "%s%s", v->request->isolation == ISOLATION_NONE ? notices : PLAN_NOTICES,
			   files[i].file);
		r = buf_error(&path) ? -ENOMEM : variable_set(v, files[i].variable, path.data);
	}
	return r;
}

/* A secret of the caller must not get into the sandbox: a variable that is named neither here nor by the caller
 * stays out. */
static bool is_plain(const char *variable)
{
	static const char *const names[] = { "PATH", "HOME", "LANG", "TERM", "TZ", "USER", "LOGNAME" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (name_is(variable, names[i]))
			return true;
	return false;
}

static int variables_caller(struct variables *v)
{
	int r = 0;

	for (char *const *e = v->request->environ; *e && r == 0; e++)
		if (strchr(*e, '=') && **e != '=' && (v->request->env_all || is_plain(*e)))
			r = variable_put(v, *e);
	variable_unset(v, "NETPAWL_SOCKET");
	return r;
}

/* After ours, so that they win; but what leads programs to certificates is added to what was asked for. */
static int variables_named(struct variables *v)
{
	int r = 0;

	for (char *const *e = v->request->env; e && *e && r == 0; e++)
		r = variable_put(v, *e);
	return r;
}

int environment_make(const struct plan_request *rq, struct arena *arena, char ***ret)
{
	struct variables v = { .request = rq, .arena = arena };
	int r = ARRAY_RESERVE(v.items, v.size, 1);

	if (r == 0)
		r = variables_caller(&v);
	if (r == 0)
		r = variable_set(&v, "NETPAWL_SESSION", rq->session);
	if (r == 0)
		r = variables_notices(&v);
	if (r == 0)
		r = rq->isolation == ISOLATION_NONE ? variables_user(&v) : variables_own(&v);
	for (size_t i = 0; r == 0 && rq->placeholders && i < rq->placeholders->n; i++)
		r = variable_put(&v, rq->placeholders->env[i]); /* in the place of what the caller has */
	if (r == 0)
		r = variables_named(&v);
	if (r == 0 && rq->trust && rq->isolation != ISOLATION_NONE)
		r = variables_trust(&v);
	if (r < 0) {
		free(v.items);
		return r;
	}
	v.items[v.n] = NULL;
	*ret = v.items;
	return 0;
}
