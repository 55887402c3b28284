/* SPDX-License-Identifier: MIT */
#include "control/access.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "control/args.h"
#include "control/body.h"
#include "control/http_status.h"
#include "policy/accounts.h"
#include "policy/decide.h"

#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

/* -- the section --------------------------------------------------------------------------- */

/* One group can own the socket. Where more groups, or single users, are named, everybody may connect, and a peer
 * without a role is turned away before anything is read. */
static void socket_open_to(const struct access *access, const struct policy *policy, const char *path)
{
	gid_t group = 0;
	mode_t mode = 0660;

	for (size_t i = 0; i < policy->n_access; i++) {
		if (!access->callers[i].known)
			continue;
		if (!policy->access[i].is_group || (group && group != access->callers[i].id))
			mode = 0666;
		group = access->callers[i].id;
	}
	/* Less first: in between nobody may connect who may neither before nor after. */
	if (chmod(path, 0600) < 0 || chown(path, (uid_t)-1, mode == 0660 ? group : 0) < 0 || chmod(path, mode) < 0)
		log_warning("%s: its group and mode could not be set: %m", path);
}

static void approvals_open_to(const struct access *access, const char *path)
{
	const bool known = access->callers[0].known;

	if (chmod(path, 0600) < 0 || chown(path, (uid_t)-1, known ? access->callers[0].id : 0) < 0 ||
	    chmod(path, known ? 0660 : 0600) < 0)
		log_warning("%s: its group and mode could not be set: %m", path);
}

/* approve.sock: one group. */
static bool approvals_renew(struct access *access, const struct server_config *config, const struct policy *policy)
{
	const struct access before = *access;
	const struct access_caller group = { .is_group = true, .name = policy->approval.group };

	*access = (struct access){ 0 };
	memcpy(access->hash, policy->hash, sizeof(access->hash));
	access->callers[0].known = group.name && account_find(&group, &access->callers[0].id);
	if (group.name && !access->callers[0].known)
		log_warning("approval: there is no group %s on this host: nobody is meant", group.name);
	approvals_open_to(access, config->socket_path);
	return before.hash[0] &&
	       (before.callers[0].known != access->callers[0].known || before.callers[0].id != access->callers[0].id);
}

bool access_renew(struct access *access, const struct server_config *config)
{
	const struct access before = *access;
	_buf_ struct buf whole = BUF_INIT(NP_POLICY_BYTES);
	struct policy_loaded loaded;

	config->policy_loaded(config->data, &loaded);
	if (!strcmp(access->hash, loaded.policy->hash))
		return false;
	if (config->approvals)
		return approvals_renew(access, config, loaded.policy);
	*access = (struct access){ 0 };
	memcpy(access->hash, loaded.policy->hash, sizeof(access->hash));
	for (size_t i = 0; i < loaded.policy->n_access; i++) {
		const struct access_caller *caller = &loaded.policy->access[i];

		access->callers[i].known = account_find(caller, &access->callers[i].id);
		if (!access->callers[i].known)
			log_warning("access: there is no %s %s on this host: nobody is meant",
				    caller->is_group ? "group" : "user", caller->name);
		buf_printf(&whole, "%d %u %d %u", caller->is_group, caller->roles, access->callers[i].known,
			   access->callers[i].id);
		for (const char *const *glob = caller->sessions; glob && *glob; glob++)
			buf_printf(&whole, " %s", *glob);
		buf_puts(&whole, "\n");
	}
	access->mark = buf_error(&whole) ? 0 : hash_mark(whole.data ? whole.data : "", whole.len);
	socket_open_to(access, loaded.policy, config->socket_path);
	return before.hash[0] && before.mark != access->mark;
}

/* -- the peer ------------------------------------------------------------------------------- */

/* Its groups, at connect(). They are the kernel's word, as its user is. */
static gid_t *peer_groups(const struct peer *peer, size_t *ret_n)
{
	socklen_t len = 64 * sizeof(gid_t);
	gid_t *groups = malloc(len);

	if (groups && getsockopt(peer->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0) {
		free(groups);
		groups = errno == ERANGE && len <= GROUPS_MAX * sizeof(gid_t) ? malloc(len) : NULL;
		if (groups && getsockopt(peer->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0) {
			free(groups);
			groups = NULL;
		}
	}
	*ret_n = groups ? len / sizeof(gid_t) : 0;
	return groups;
}

static bool peer_has_group(const struct peer *peer, const gid_t *groups, size_t n, gid_t group)
{
	for (size_t i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return peer->gid == group;
}

/* One that server_lend() has handed out: the kernel's word of a pair of sockets is who made it, and whoever has called the socket of
 * the API is at an end that has its name. */
static bool peer_is_lent(const struct peer *peer)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	return peer->pid == getpid() && getsockname(peer->fd, (struct sockaddr *)&name, &len) == 0 &&
	       len <= offsetof(struct sockaddr_un, sun_path);
}

void access_find(const struct access *access, const struct server_config *config, struct peer *peer)
{
	_free_ gid_t *groups = NULL;
	struct policy_loaded loaded;
	size_t n = 0;

	peer->roles = peer->uid == 0 ? ROLE_OPERATOR : 0;
	peer->callers = 0;
	if (peer_is_lent(peer)) {
		peer->roles = config->approvals ? 0 : ROLE_READER;
		return;
	}
	config->policy_loaded(config->data, &loaded);
	if (config->approvals) { /* root, too, is no more than that here */
		groups = peer_groups(peer, &n);
		if (peer->uid == 0 || (access->callers[0].known && !strcmp(access->hash, loaded.policy->hash) &&
				       peer_has_group(peer, groups, n, access->callers[0].id)))
			peer->roles = ROLE_INBOX;
		return;
	}
	if (peer->roles || !loaded.policy->n_access || strcmp(access->hash, loaded.policy->hash) != 0)
		return;
	groups = peer_groups(peer, &n);
	for (size_t i = 0; i < loaded.policy->n_access; i++) {
		const struct access_caller *caller = &loaded.policy->access[i];
		unsigned id = access->callers[i].id;

		if (!access->callers[i].known ||
		    !(caller->is_group ? peer_has_group(peer, groups, n, id) : peer->uid == id))
			continue;
		peer->roles |= caller->roles;
		peer->callers |= UINT64_C(1) << i;
	}
}

_Static_assert(NP_ACCESS_CALLERS <= 64, "a bit for each");

/* -- the call ------------------------------------------------------------------------------- */

static bool platform_has(const struct request *rq, const char *session)
{
	struct policy_loaded loaded;

	rq->config->policy_loaded(rq->config->data, &loaded);
	for (size_t i = 0; i < loaded.policy->n_access; i++)
		if ((rq->peer.callers & UINT64_C(1) << i) && loaded.policy->access[i].sessions &&
		    sessions_match(loaded.policy->access[i].sessions, session))
			return true;
	return false;
}

bool access_sees(const struct request *rq, unsigned others, const char *session)
{
	return (rq->peer.roles & (ROLE_OPERATOR | others)) || platform_has(rq, session);
}

static int access_refuse(const struct request *rq, const char *session, struct failure *ret_failure)
{
	if (session)
		return failure_put(ret_failure, -EACCES, NP_R_NO_ROLE, "%s, for the session %.160s", rq->peer.who,
				   session);
	return failure_put(ret_failure, -EACCES, NP_R_NO_ROLE, "%s", rq->peer.who);
}

static int session_check(const struct request *rq, const char *text, struct failure *ret_failure)
{
	struct session_name name;
	int r;

	if (!text) /* about every session */
		return access_refuse(rq, NULL, ret_failure);
	r = name_read(text, &name, ret_failure);
	if (r < 0)
		return r;
	return platform_has(rq, name.text) ? 0 : access_refuse(rq, name.text, ret_failure);
}

/* Read as the handler reads it. What is not to be understood here is not to be understood there. */
static int body_check(const struct request *rq, struct failure *ret_failure)
{
	_json_ json_t *body = rq->body_len ? json_loadb(rq->body, rq->body_len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *session = json_string_value(json_object_get(body, "session"));

	if (!session)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"session\" is missing");
	if (json_is_true(json_object_get(body, "temporary"))) /* its level is forgotten: an operator's to say */
		return access_refuse(rq, session, ret_failure);
	return session_check(rq, session, ret_failure);
}

/* Somebody else's is as one that is not there. */
static int run_check(const struct request *rq, struct failure *ret_failure)
{
	struct run_row run;
	int r = service_run_show(rq->config->service, rq->id, &run, ret_failure);

	if (r == 0 && !platform_has(rq, run.session.text))
		r = failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_RUN, "%llu", (unsigned long long)rq->id);
	return r;
}

static int sandbox_check(const struct request *rq, struct failure *ret_failure)
{
	const struct sandbox_info *sandbox = service_sandbox_by_id(rq->config->service, rq->args[0]);

	if (sandbox && platform_has(rq, sandbox->session.text))
		return 0;
	return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_SANDBOX, "%.200s", rq->args[0]);
}

int access_check(struct request *rq, const struct route *route, struct failure *ret_failure)
{
	const bool every = rq->peer.roles & (ROLE_OPERATOR | route->roles);
	int r;

	if (!every && !(rq->peer.roles & ROLE_PLATFORM))
		return access_refuse(rq, NULL, ret_failure);
	r = args_read(rq, route, ret_failure);
	if (r < 0 || every)
		return r;
	switch (route->platform) {
	case SCOPE_NONE:
		break;
	case SCOPE_ANY:
	case SCOPE_LIST:
		return 0;
	case SCOPE_PATH:
		return session_check(rq, rq->session.text, ret_failure);
	case SCOPE_BODY:
		return body_check(rq, ret_failure);
	case SCOPE_QUERY:
		return session_check(rq, rq->query[0], ret_failure);
	case SCOPE_RUN:
		return run_check(rq, ret_failure);
	case SCOPE_SANDBOX:
		return sandbox_check(rq, ret_failure);
	}
	return access_refuse(rq, NULL, ret_failure);
}
