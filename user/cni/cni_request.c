/* SPDX-License-Identifier: MIT */
#include "cni/cni_request.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"

const char *const cni_versions[] = { "0.3.0", "0.3.1", "0.4.0", CNI_VERSION_NEWEST, NULL };

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

void cni_request_free(struct cni_request *request)
{
	json_decref(request->result);
	request->result = NULL;
}

static int request_bad(struct cni_problem *ret, enum cni_code code, const char *text)
{
	*ret = (struct cni_problem){ code, text };
	return -EINVAL;
}

/* -- the environment ------------------------------------------------------------------------- */

static int command_read(const char *word, enum cni_command *ret)
{
	static const char *const words[] = { "ADD", "CHECK", "DEL", "VERSION" };

	return WORD_PARSE(words, word, ret);
}

/* A file name to runtimes and, in "cgroup", to us: letters, digits and a few more, and the first is none of those. */
static bool id_copy(char *to, size_t size, const char *from, size_t len)
{
	if (!len || len >= size || !isalnum((unsigned char)from[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)from[i]) && !strchr("_.-", from[i]))
			return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

struct pod {
	char namespace[64], name[254]; /* as Kubernetes bounds them, with a NUL */
};

/* KEY=VALUE;KEY=VALUE */
static int args_read(const char *args, struct pod *pod, struct cni_request *request, struct cni_problem *ret_problem)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} known[] = {
		{ "K8S_POD_NAMESPACE", pod->namespace, sizeof(pod->namespace) },
		{ "K8S_POD_NAME", pod->name, sizeof(pod->name) },
		{ "K8S_POD_UID", request->pod_uid, sizeof(request->pod_uid) },
	};

	for (const char *at = args, *end; at && *at; at = *end ? end + 1 : end) {
		const char *equals = strchr(at, '=');

		end = at + strcspn(at, ";");
		if (!equals || equals > end)
			return request_bad(ret_problem, CNI_BAD_ENVIRONMENT, "CNI_ARGS is not KEY=VALUE;KEY=VALUE");
		for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
			const size_t len = strlen(known[i].key);

			if ((size_t)(equals - at) != len || memcmp(at, known[i].key, len) != 0)
				continue;
			if (known[i].to[0] ||
			    !id_copy(known[i].to, known[i].size, equals + 1, (size_t)(end - equals - 1)))
				return request_bad(ret_problem, CNI_BAD_ENVIRONMENT,
						   "CNI_ARGS names the pod in no way that Kubernetes does");
		}
	}
	return 0;
}

static int environment_read(const struct cni_environment *env, struct pod *pod, struct cni_request *request,
			    struct cni_problem *ret_problem)
{
	if (command_read(env->command, &request->command) < 0)
		return request_bad(ret_problem, CNI_BAD_ENVIRONMENT,
				   "CNI_COMMAND is none of ADD, CHECK, DEL and VERSION");
	if (request->command == CNI_VERSION)
		return 0;
	if (!env->container ||
	    !id_copy(request->container, sizeof(request->container), env->container, strlen(env->container)))
		return request_bad(ret_problem, CNI_BAD_ENVIRONMENT, "CNI_CONTAINERID names no container");
	if (request->command != CNI_DEL && (!env->netns || env->netns[0] != '/'))
		return request_bad(ret_problem, CNI_BAD_ENVIRONMENT, "CNI_NETNS is no path");
	return args_read(env->args, pod, request, ret_problem);
}

/* -- the configuration -------------------------------------------------------------------------- */

struct word {
	const char *name, *value;
};

/* Puts values in the place of {name}. False: one that is not known, or empty, or no room. */
static bool template_fill(const char *text, const struct word *words, size_t n, char *to, size_t size)
{
	size_t len = 0;

	while (*text) {
		const char *piece = text;
		size_t more = 1, i = 0;

		if (*text == '{') {
			size_t name = strcspn(text + 1, "}");

			while (i < n && (strlen(words[i].name) != name || memcmp(words[i].name, text + 1, name) != 0))
				i++;
			if (i == n || !words[i].value[0] || text[1 + name] != '}')
				return false;
			piece = words[i].value;
			more = strlen(piece);
			text += name + 2;
		} else {
			text++;
		}
		if (len + more >= size)
			return false;
		memcpy(to + len, piece, more);
		len += more;
	}
	to[len] = '\0';
	return true;
}

/* Below the root, and nowhere else. */
static bool is_cgroup_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && path[1] && path[len - 1] != '/' && !strstr(path, "//") && !strstr(path, "/./") &&
	       !strstr(path, "/../") && strcmp(path + len - 2, "/.") != 0 &&
	       (len < 3 || strcmp(path + len - 3, "/..") != 0);
}

struct own {
	const char *session, *level, *socket, *cgroup; /* NULL: not there */
};

static int own_take(const json_t *object, struct own *ret, struct cni_problem *ret_problem)
{
	const struct {
		const char *key;
		const char **to;
	} keys[] = {
		{ "session", &ret->session },
		{ "level", &ret->level },
		{ "socket", &ret->socket },
		{ "cgroup", &ret->cgroup },
	};
	const char *key;
	json_t *value;

	if (object && !json_is_object(object))
		return request_bad(ret_problem, CNI_BAD_CONFIG, "\"netpawl\" is no object");
	json_object_foreach((json_t *)object, key, value)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(keys) && strcmp(keys[i].key, key) != 0)
			i++;
		if (i == ARRAY_SIZE(keys) || !json_is_string(value))
			return request_bad(ret_problem, CNI_BAD_CONFIG,
					   "\"netpawl\" has texts: session, level, socket, cgroup; and nothing else");
		*keys[i].to = json_string_value(value);
	}
	return 0;
}

static int own_read(const json_t *object, const struct pod *pod, struct cni_request *request,
		    struct cni_problem *ret_problem)
{
	const struct word ids[] = { { "id", request->container }, { "uid", request->pod_uid } };
	const struct word names[] = { { "namespace", pod->namespace }, { "pod", pod->name } };
	char session[NP_CNI_TEXT_MAX + 1];
	struct own own = { 0 };
	int r = own_take(object, &own, ret_problem);

	if (r < 0)
		return r;
	if (own.socket && !template_fill(own.socket, ids, 0, request->socket, sizeof(request->socket)))
		return request_bad(ret_problem, CNI_BAD_CONFIG, "\"socket\" is no path");
	if (own.cgroup && (!template_fill(own.cgroup, ids, ARRAY_SIZE(ids), request->cgroup, sizeof(request->cgroup)) ||
			   !is_cgroup_path(request->cgroup)))
		return request_bad(
			ret_problem, CNI_BAD_CONFIG,
			"\"cgroup\" is a path from the root of the cgroups, with {id} or {uid} if those are told");
	if (request->command == CNI_DEL) /* what it should have asked for does not keep a pod from going */
		return 0;
	if (own.level && level_parse(own.level, &request->least) < 0)
		return request_bad(ret_problem, CNI_BAD_CONFIG,
				   "\"level\" is none of PUBLIC, INTERNAL, CONFIDENTIAL and SECRET");
	request->has_least = own.level;
	if (!own.session || request->wish.session.text[0])
		return 0;
	if (!template_fill(own.session, names, ARRAY_SIZE(names), session, sizeof(session)))
		return request_bad(ret_problem, CNI_BAD_CONFIG,
				   "\"session\" is USER/SESSION, with {namespace} or {pod} if those are told");
	ret_problem->code = CNI_BAD_CONFIG;
	return session_name_parse(session, &request->wish.session, &ret_problem->text) < 0 ? -EINVAL : 0;
}

static int version_read(const json_t *version, struct cni_request *request, struct cni_problem *ret_problem)
{
	const char *text = json_is_string(version) ? json_string_value(version) : "";

	for (size_t i = 0; cni_versions[i]; i++)
		if (!strcmp(text, cni_versions[i])) {
			strcpy(request->version, text);
			return 0;
		}
	return request_bad(ret_problem, CNI_BAD_VERSION, "\"cniVersion\" is none that this plugin knows");
}

static int config_read(json_t *root, const struct pod *pod, struct cni_request *request,
		       struct cni_problem *ret_problem)
{
	const json_t *runtime = json_object_get(root, "runtimeConfig");
	json_t *result = json_object_get(root, "prevResult");
	int r;

	if (request->command != CNI_DEL) {
		ret_problem->code = CNI_BAD_CONFIG;
		r = annotations_read(json_object_get(runtime, CNI_ANNOTATIONS), &request->wish, &ret_problem->text);
		if (r < 0)
			return r;
	}
	r = own_read(json_object_get(root, "netpawl"), pod, request, ret_problem);
	if (r < 0 || request->command != CNI_ADD)
		return r;
	if (!json_is_object(result))
		return request_bad(ret_problem, CNI_BAD_CONFIG,
				   "there is no \"prevResult\": this plugin stands behind one that makes the network");
	if (json_object_set_new(result, "cniVersion", json_string(request->version)) < 0)
		return request_bad(ret_problem, CNI_TRY_LATER, "out of memory");
	request->result = json_incref(result);
	return 0;
}

int cni_request_read(const struct cni_environment *env, const char *data, size_t len, struct cni_request *ret,
		     struct cni_problem *ret_problem)
{
	cleanup(cleanup_json) json_t *root = NULL;
	struct cni_request request = { 0 };
	struct pod pod = { 0 };
	int r = environment_read(env, &pod, &request, ret_problem);

	if (r < 0)
		return r;
	root = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(root))
		return request_bad(ret_problem, CNI_BAD_JSON, "the configuration is no JSON object");
	if (request.command != CNI_VERSION) {
		r = version_read(json_object_get(root, "cniVersion"), &request, ret_problem);
		if (r == 0)
			r = config_read(root, &pod, &request, ret_problem);
	}
	if (r < 0)
		return r;
	*ret = request;
	return 0;
}
