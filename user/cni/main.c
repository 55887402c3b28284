/* SPDX-License-Identifier: MIT */
/*
 * netpawl-cni: a CNI plugin that stands behind one that makes a pod's network, and changes nothing in it. At ADD the pod's network
 * namespace and its cgroup are there, and no container is: kubelet makes that cgroup first, and every container of the pod is born
 * below it. So the pod is made a sandbox as a whole, before anybody is in it; if the gate cannot be put up, ADD fails, and with it the
 * pod's start. It keeps no state.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_client/api.h"
#include "api_client/container.h"
#include "base/cgroup_mount.h"
#include "base/fs.h"
#include "cni/cni_request.h"
#include "containers/pod_find.h"
#include "reason.h"

#define USAGE                                                                                             \
	"Usage: netpawl-cni\n\n"                                                                          \
	"A CNI plugin, for the end of a list of plugins: container runtimes call it with CNI_COMMAND\n"   \
	"and others in the environment, and the network's configuration on standard input. It makes a\n"  \
	"sandbox of the pod, in the session that its annotation " ANNOTATION_SESSION " names, at least\n" \
	"at the level of " ANNOTATION_LEVEL ". See docs/kubernetes.md.\n"

struct plugin {
	struct cni_request request;
	const char *socket, *netns;
	char cgroup[FS_PATH_SIZE]; /* of the pod; empty: it has none */
};

/* The error object goes to standard output. What was printed on the way is its details. */
static int plugin_fail(const struct plugin *plugin, enum cni_code code, const char *msg, const char *details)
{
	_json_ json_t *error = json_pack("{s:s,s:i,s:s}", "cniVersion",
					 plugin->request.version[0] ? plugin->request.version : CNI_VERSION_NEWEST,
					 "code", (int)code, "msg", msg);

	if (details && *details)
		json_object_set_new(error, "details", json_stringn(details, strcspn(details, "\n")));
	json_dumpf(error, stdout, JSON_COMPACT);
	fputc('\n', stdout);
	output_finish(CLI_OK);
	return CLI_REFUSED;
}

static int version_answer(void)
{
	_json_ json_t *answer = json_pack("{s:s,s:[]}", "cniVersion", CNI_VERSION_NEWEST, "supportedVersions");

	for (size_t i = 0; cni_versions[i]; i++)
		json_array_append_new(json_object_get(answer, "supportedVersions"), json_string(cni_versions[i]));
	json_dumpf(answer, stdout, JSON_COMPACT);
	return output_finish(CLI_OK);
}

/* -- the pod's cgroup ---------------------------------------------------------------------------- */

/* make: one that the configuration names and that the runtime has yet to make is made now, so that it is a sandbox before. */
static int cgroup_find(struct plugin *plugin, bool make)
{
	const struct cni_request *request = &plugin->request;
	char mount[FS_PATH_SIZE];
	struct stat st;
	int r = cgroup_mount_find(mount);

	if (r == 0 && request->cgroup[0]) {
		r = fs_path(plugin->cgroup, "%s%s", mount, request->cgroup);
		if (r == 0 && make)
			r = fs_mkdir_all(plugin->cgroup, 0755);
		else if (r == 0 && stat(plugin->cgroup, &st) < 0)
			r = -errno;
	} else if (r == 0) {
		r = request->pod_uid[0] ? pod_find(request->pod_uid, plugin->cgroup) : -EDESTADDRREQ;
	}
	if (r < 0)
		plugin->cgroup[0] = '\0';
	if (r == -EDESTADDRREQ)
		error_print(request->container, NP_R_BAD_CGROUP,
			    "the runtime does not tell the pod's uid (K8S_POD_UID), and \"netpawl\" has no \"cgroup\"");
	else if (r < 0)
		error_print(request->container, NP_R_BAD_CGROUP,
			    r == -ENOENT     ? "there is no cgroup v2 of the pod"
			    : r == -ENOTUNIQ ? "there are several cgroups of that pod"
					     : strerror(-r));
	return r < 0 ? CLI_REFUSED : CLI_OK;
}

/* Its sandbox, in a list that is freed with answer; NULL: it is none. */
static const json_t *sandbox_find(const struct plugin *plugin, struct api_answer *answer, int *ret_code)
{
	const json_t *sandbox;
	size_t i;

	*ret_code = api_call(plugin->socket, plugin->request.container, "GET", "/v1/sandboxes", NULL, answer);
	json_array_foreach(json_object_get(answer->json, "sandboxes"), i, sandbox)
	{
		const char *cgroup = member_text(sandbox, "cgroup");

		if (cgroup && plugin->cgroup[0] && !strcmp(cgroup, plugin->cgroup))
			return sandbox;
	}
	return NULL;
}

/* -- what a runtime asks for ------------------------------------------------------------------------ */

/* The file is named by a descriptor of ours: the daemon may see other mounts than we do, and sees the same processes. */
static int sandbox_ask(const struct plugin *plugin)
{
	_close_ int fd = open(plugin->netns, O_RDONLY | O_CLOEXEC);
	const char *container = plugin->request.container;
	_api_answer_ struct api_answer answer = { 0 };
	const char *network;
	char netns[64];
	int code;

	if (fd < 0) {
		error_print(container, NP_R_FOREIGN_NETNS, strerror(errno));
		return CLI_REFUSED;
	}
	snprintf(netns, sizeof(netns), "/proc/%d/fd/%d", (int)getpid(), fd);
	code = api_call(plugin->socket, container, "POST", "/v1/sandboxes",
			json_pack("{s:s,s:s,s:s}", "session", plugin->request.wish.session.text, "cgroup",
				  plugin->cgroup, "netns", netns),
			&answer);
	network = member_text(answer.json, "network");
	if (code == CLI_OK && (!network || strcmp(network, "container") != 0)) {
		error_print(container, NP_R_FOREIGN_NETNS, "the daemon did not take the pod's network namespace");
		code = CLI_REFUSED;
	}
	return code;
}

/* Has a session: the one that is wished for, or what the policy says of those without. False: it is left alone, or *ret_code. */
static bool session_choose(struct plugin *plugin, int *ret_code)
{
	struct cni_request *request = &plugin->request;
	bool go_on = true;

	*ret_code = CLI_OK;
	if (!request->wish.session.text[0])
		*ret_code = container_unknown(plugin->socket, request->container, &request->wish.session, &go_on);
	return *ret_code == CLI_OK && go_on;
}

static int plugin_add(struct plugin *plugin)
{
	struct cni_request *request = &plugin->request;
	int code;

	if (!session_choose(plugin, &code))
		return code;
	if (request->wish.has_level)
		code = container_raise(plugin->socket, request->container, request->wish.session.text,
				       request->wish.level);
	if (code == CLI_OK && request->has_least)
		code = container_raise(plugin->socket, request->container, request->wish.session.text, request->least);
	if (code == CLI_OK)
		code = cgroup_find(plugin, true);
	return code == CLI_OK ? sandbox_ask(plugin) : code;
}

static int plugin_check(struct plugin *plugin)
{
	struct cni_request *request = &plugin->request;
	_api_answer_ struct api_answer answer = { 0 };
	const char *session, *network;
	const json_t *sandbox;
	int code;

	if (!session_choose(plugin, &code))
		return code;
	code = cgroup_find(plugin, false);
	if (code != CLI_OK)
		return code;
	sandbox = sandbox_find(plugin, &answer, &code);
	if (code != CLI_OK)
		return code;
	session = member_text(sandbox, "session");
	network = member_text(sandbox, "network");
	if (session && !strcmp(session, request->wish.session.text) && network && !strcmp(network, "container"))
		return CLI_OK;
	error_print(request->container, NP_R_NO_SUCH_SANDBOX, request->wish.session.text);
	return CLI_REFUSED;
}

/* The sandbox ends with the pod's cgroup in any case. It goes now, so that the network namespace can: one that somebody is still in
 * stays, and is confined. What is not there is fine, and so is a daemon that does not answer: the pod has to go. */
static int plugin_del(struct plugin *plugin)
{
	_api_answer_ struct api_answer answer = { 0 }, ignored = { 0 };
	_buf_ struct buf path = BUF_INIT(FS_PATH_SIZE);
	const char *id;
	int code;

	if (cgroup_find(plugin, false) != CLI_OK)
		return CLI_OK;
	id = member_text(sandbox_find(plugin, &answer, &code), "sandbox");
	buf_printf(&path, "/v1/sandboxes/");
	api_escape(&path, id ? id : "");
	if (id && !buf_error(&path))
		api_call(plugin->socket, plugin->request.container, "DELETE", path.data, NULL, &ignored);
	if (plugin->request.cgroup[0]) /* ours, unless the runtime has removed it, or somebody is in it */
		rmdir(plugin->cgroup);
	return CLI_OK;
}

static int plugin_run(struct plugin *plugin, const char *const *messages)
{
	static int (*const verbs[])(struct plugin * plugin) = { plugin_add, plugin_check, plugin_del };
	int code = verbs[plugin->request.command](plugin);

	fflush(stderr);
	if (code != CLI_OK)
		return plugin_fail(plugin, code == CLI_NO_DAEMON ? CNI_TRY_LATER : CNI_NOT_CONFINED,
				   "netpawl: the pod cannot be confined", *messages);
	if (plugin->request.result) {
		json_dumpf(plugin->request.result, stdout, JSON_COMPACT);
		fputc('\n', stdout);
	}
	return output_finish(CLI_OK);
}

int main(int argc, char **argv)
{
	const struct cni_environment env = { getenv("CNI_COMMAND"), getenv("CNI_CONTAINERID"), getenv("CNI_NETNS"),
					     getenv("CNI_ARGS") };
	_buf_ struct buf text = BUF_INIT(NP_CNI_CONFIG_MAX);
	struct plugin plugin = { .netns = env.netns };
	struct cni_problem problem = { 0 };
	char *messages = NULL;
	size_t messages_len;
	FILE *details;
	int code;

	(void)argv;
	if (argc > 1 || !env.command) {
		fputs(USAGE, stderr);
		return CLI_USAGE;
	}
	if (fs_read_fd(STDIN_FILENO, &text) < 0)
		return plugin_fail(&plugin, CNI_BAD_JSON, "netpawl: the configuration cannot be read", NULL);
	if (cni_request_read(&env, text.data, text.len, &plugin.request, &problem) < 0)
		return plugin_fail(&plugin, problem.code, problem.text, NULL);
	if (plugin.request.command == CNI_VERSION)
		return version_answer();
	plugin.socket = plugin.request.socket[0] ? plugin.request.socket : CLI_SOCKET;
	details = open_memstream(&messages,
				 &messages_len); /* runtimes show the error object, and not what we write there */
	if (!details)
		return plugin_fail(&plugin, CNI_TRY_LATER, "netpawl: out of memory", NULL);
	stderr = details;
	code = plugin_run(&plugin, (const char *const *)&messages);
	fclose(details);
	free(messages);
	cni_request_free(&plugin.request);
	return code;
}
