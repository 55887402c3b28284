/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "control/access.h"
#include "control/body.h"
#include "control/args.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "reason.h"
#include "vocab/exit_codes.h"
#include "vocab/limits.h"

/* Where a made sandbox lives, and as whom. */
static int workspace_find(const struct request *rq, const struct sandbox_info *sandbox, bool alone,
			  struct workspace *ret, struct failure *ret_failure)
{
	struct workspaces *workspaces = rq->config->workspaces;
	int r = alone || sandbox->temporary
			? workspaces_enter_alone(workspaces, sandbox->cgroup.id, sandbox->cgroup.path, ret)
			: workspaces_enter(workspaces, &sandbox->session, ret);

	if (r == -ENOSPC)
		return failure_put(ret_failure, r, NP_R_TOO_MANY, "there is no user left for a sandbox");
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the workspace of %s: %s", sandbox->session.text,
				   r == -EEXIST ? "something else is in its place" : strerror(-r));
	return 0;
}

/* null: no inspector has made it yet, or there is none. */
static json_t *ca_text(struct request *rq, const char *session)
{
	_buf_ struct buf pem = BUF_INIT(NP_ANSWER_BYTES);

	return rq->config->session_ca(rq->config->data, session, &pem) == 0 ? json_stringn(pem.data, pem.len)
									    : json_null();
}

/* What a launcher needs to know beside, so that it asks once. */
static int launch_describe(const struct request *rq, const struct sandbox_info *sandbox, bool keep, json_t *object)
{
	char path[FS_PATH_SIZE];

	if (keep && service_kept_path(rq->config->service, sandbox, path) < 0)
		return -ENOENT;
	return (keep && json_object_set_new(object, "directory", json_text(path)) < 0) ||
			       json_object_set_new(object, "launch", launch_object(rq->config)) < 0
		       ? -ENOMEM
		       : 0;
}

/* What whoever starts its first process has to enter. */
static int network_describe(const struct request *rq, const struct sandbox_info *sandbox, bool fresh, json_t *object,
			    struct failure *ret_failure)
{
	struct sandbox_netns netns = { 0 };
	int r = service_sandbox_netns(rq->config->service, sandbox, fresh, &netns, ret_failure);

	if (r < 0 || !sandbox->own_network)
		return r;
	return json_object_set_new(object, "network", json_string(sandbox->way_out ? "nat" : "private")) < 0 ||
			       json_object_set_new(object, "netns", netns_object(&netns)) < 0
		       ? failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory")
		       : 0;
}

/* What its sandbox lacks ends a run that has started: nobody who could tell of it will run anything there. */
static void run_fails(struct request *rq, uint64_t id, const struct failure *failure)
{
	_json_ json_t *object =
		json_pack("{s:i,s:o}", "exit_code", LAUNCH_FAILED, "problem",
			  json_text(failure->text[0] ? failure->text : reason_sentence(failure->reason)));
	_free_ char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	struct failure ignored;
	struct run_row row;

	service_run_end(rq->config->service, id, RUN_FAILED, text ? text : "{}", rq->peer.who, &row, &ignored);
}

/* run NULL: for none, so the session's mode is all that holds. clean: whoever asks starts processes that bring nothing
 * along, as the launcher does; so do those of runs and of kept sandboxes. enters: and start them in the sandbox's own network
 * namespace, if it has one. */
static int sandboxes_make(struct request *rq, const char *session, const char *run, bool alone, bool keep, bool clean,
			  bool enters, json_t **ret, struct failure *ret_failure)
{
	struct service *service = rq->config->service;
	const struct sandbox_info *sandbox;
	struct failure ignored;
	struct workspace workspace;
	char who[RUN_WHO_SIZE];
	bool made = true;
	_json_ json_t *object = NULL;
	uint64_t id = 0;
	int r;

	if (run && url_number(run, INT64_MAX, &id) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_RUN, "%.64s", run);
	r = run ? run_launcher_check(rq, id, true, ret_failure) : 0;
	if (r < 0)
		return r;
	r = run	   ? service_run_start(service, id, session, keep, rq->peer.who, &sandbox, ret_failure)
	    : keep ? service_sandbox_keep(service, session, request_for(rq, who), &sandbox, &made, ret_failure)
		   : service_sandbox_make(service, session, rq->peer.who, &sandbox, ret_failure);
	if (r < 0)
		return r;
	made = made && !(run && keep);
	r = workspace_find(rq, sandbox, alone, &workspace, ret_failure);
	if (r == 0 && !run && !keep && !clean)
		service_sandbox_place(service, sandbox);
	object = r < 0 ? NULL : sandbox_object(sandbox);
	if (object && enters)
		r = network_describe(rq, sandbox, made, object, ret_failure);
	if (r < 0) {
		if (run)
			run_fails(rq, id, ret_failure);
		if (made)
			service_sandbox_remove(service, sandbox->id, rq->peer.who, &ignored);
		return r;
	}
	if (((keep || clean) && launch_describe(rq, sandbox, keep, object) < 0) ||
	    json_object_set_new(object, "uid", json_integer(workspace.uid)) < 0 ||
	    json_object_set_new(object, "ca", ca_text(rq, session)) < 0 ||
	    json_object_set_new(object, "workspace", workspace.path[0] ? json_text(workspace.path) : json_null()) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	*ret = take_ptr(object);
	return 0;
}

static int sandboxes_adopt(struct request *rq, const char *session, const struct adoption *adoption, json_t **ret,
			   struct failure *ret_failure)
{
	const struct sandbox_info *sandbox;
	unsigned cut;
	int r = service_sandbox_adopt(rq->config->service, session, adoption, rq->peer.who, &sandbox, &cut,
				      ret_failure);

	if (r < 0)
		return r;
	*ret = sandbox_object(sandbox);
	if (json_object_set_new(*ret, "cut", json_integer(cut)) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	return 0;
}

/* As engines want it: from the root of the cgroups. */
static const char *cgroup_parent(const struct gate_cgroup *cgroup)
{
	const char *at = cgroup->path + strlen(cgroup->path);

	for (uint32_t i = 0; i < cgroup->depth && at > cgroup->path; i++)
		while (--at > cgroup->path && *at != '/')
			;
	return at;
}

static int sandboxes_parent(struct request *rq, const char *session, bool systemd, json_t **ret,
			    struct failure *ret_failure)
{
	const struct sandbox_info *sandbox;
	int r = service_sandbox_parent(rq->config->service, session, systemd, rq->peer.who, &sandbox, ret_failure);

	if (r < 0)
		return r;
	*ret = sandbox_object(sandbox);
	return json_object_set_new(*ret, "cgroup_parent", json_text(cgroup_parent(&sandbox->cgroup))) == 0
		       ? 0
		       : failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
}

/* With a cgroup it adopts that one, without it makes one. */
int sandboxes_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = "", *cgroup = NULL, *workspace = NULL, *run = NULL, *netns = NULL;
	bool keep = false, clean = false, temporary = false, enters = false, parent = false, systemd = false;
	uint64_t starting = 0;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session },	{ "cgroup", false, .ret_text = &cgroup },
		{ "workspace", false, .ret_text = &workspace }, { "run", false, .ret_text = &run },
		{ "keep", false, .ret_flag = &keep },		{ "clean", false, .ret_flag = &clean },
		{ "temporary", false, .ret_flag = &temporary }, { "enters_network", false, .ret_flag = &enters },
		{ "starting", false, .ret_number = &starting }, { "parent", false, .ret_flag = &parent },
		{ "systemd", false, .ret_flag = &systemd },	{ "netns", false, .ret_text = &netns },
	};
	struct service *service = rq->config->service;
	_json_ json_t *body = NULL, *object = NULL;
	char notices[FS_PATH_SIZE];
	struct session_name name;
	struct session_row row;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r < 0)
		return r;
	r = name_read(session, &name, ret_failure);
	if (r < 0)
		return r;
	if (starting && (!cgroup || starting > INT32_MAX))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"starting\" is a process of a \"cgroup\"");
	if (netns && (!cgroup || netns[0] != '/'))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "\"netns\" is the path of a file, for a \"cgroup\" that nobody is in yet");
	if (systemd && !parent)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"systemd\" is for a parent");
	if (parent && (cgroup || workspace || run || keep || clean || temporary || enters))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "a parent is the session's, and nothing else");
	if (workspace && (cgroup || strcmp(workspace, "none") != 0))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   cgroup ? "an adopted sandbox has no \"workspace\""
					  : "\"workspace\" can be \"none\"");
	if (run && cgroup)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "an adopted sandbox has no \"run\"");
	if (keep && (cgroup || workspace))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "a kept sandbox is made, with a workspace");
	if (enters && cgroup)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "an adopted sandbox has the network that it has");
	if (clean && cgroup)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "an adopted sandbox is looked at in any case");
	if (temporary && (cgroup || keep))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "a temporary session is for one made sandbox that is not kept");
	/* Before the sandbox, which would make it one that stays. */
	r = temporary ? service_session_create(service, name.text, LEVEL_PUBLIC, true, rq->peer.who, &row, ret_failure)
		      : 0;
	if (r < 0)
		return r;
	r = cgroup   ? sandboxes_adopt(rq, name.text, &(struct adoption){ cgroup, (pid_t)starting, netns }, &object,
				       ret_failure)
	    : parent ? sandboxes_parent(rq, name.text, systemd, &object, ret_failure)
		     : sandboxes_make(rq, name.text, run, workspace, keep, clean, enters, &object, ret_failure);
	if (r < 0)
		return r;
	if (service_notices_path(service, name.text, notices) == 0 &&
	    json_object_set_new(object, "notices", json_text(notices)) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	return answer_json(ret, 201, take_ptr(object), ret_failure);
}

struct listing {
	const struct request *rq;
	struct buf *out;
	unsigned left; /* that have room */
};

static int listing_add(void *data, const struct sandbox_info *sandbox)
{
	struct listing *listing = data;

	if (!access_sees(listing->rq, ROLE_READER, sandbox->session.text))
		return 0;
	if (!listing->left--)
		return -E2BIG;
	sandbox_put(sandbox, listing->out);
	return buf_error(listing->out);
}

/* Written as it goes: a tree of ten thousand objects takes ten times as long. */
int sandboxes_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_LIST_BYTES);
	struct listing listing = { rq, &out, NP_LIST_MAX };
	int r;

	json_open_object(&out, NULL);
	json_open_array(&out, "sandboxes");
	r = service_sandboxes_each(rq->config->service, NULL, listing_add, &listing);
	json_close_array(&out);
	if (r == -E2BIG)
		json_put_bool(&out, "truncated", true);
	json_close_object(&out);
	if (buf_error(&out) || (r < 0 && r != -E2BIG))
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the list could not be written");
	return answer_text(ret, "application/json", &out, ret_failure);
}

static int sandbox_ended(const struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	struct sandbox_counts counts;

	if (service_sandbox_ended(rq->config->service, rq->args[0], &counts) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
	json_open_object(&out, NULL);
	json_put_text(&out, "sandbox", rq->args[0], SIZE_MAX);
	json_put_bool(&out, "removed", true);
	counts_put(&counts, &out);
	json_close_object(&out);
	return answer_text(ret, "application/json", &out, ret_failure);
}

int sandbox_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct sandbox_info *sandbox;
	bool settled = false, ended = false;

	if (url_flag(rq->query[0], &settled) < 0 || url_flag(rq->query[1], &ended) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "settled and ended must be 0 or 1");
	if (settled)
		rq->config->settle(rq->config->data);
	sandbox = service_sandbox_by_id(rq->config->service, rq->args[0]);
	if (!sandbox && ended)
		return sandbox_ended(rq, ret, ret_failure);
	if (!sandbox)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
	return answer_json(ret, 200, sandbox_object_used(sandbox), ret_failure);
}

int sandbox_remove(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct sandbox_info *sandbox = service_sandbox_by_id(rq->config->service, rq->args[0]);
	int r;

	if (!sandbox)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
	r = service_sandbox_remove(rq->config->service, rq->args[0], rq->peer.who, ret_failure);
	if (r < 0)
		return r;
	return answer_json(ret, 200, json_pack("{s:o,s:b}", "sandbox", json_text(rq->args[0]), "removed", 1),
			   ret_failure);
}
