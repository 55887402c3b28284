/* SPDX-License-Identifier: MIT */
/* netpawl run: what is asked of the daemon around a sandbox, from its facts to the end of what was made. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "api_client/api.h"
#include "launch/run.h"
#include "reason.h"
#include "vocab/words.h"

/* What nobody in a sandbox may see: the record, other workspaces, the pins and the control socket. */
static void hidden_note(struct run *run)
{
	static const char *const members[] = { "data_dir", "run_dir", "state_dir", "pin_dir" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const char *path = member_text(run->facts, members[i]);

		if (path)
			run->hidden[n++] = strdup(path);
		if (i == 0 && n)
			run->data_dir = run->hidden[0];
	}
}

/* The gate looks at sockets in one network namespace: a sandbox elsewhere would be a promise not kept. */
static int netns_check(const struct run *run)
{
	const char *theirs = member_text(run->facts, "netns");
	char ours[32];
	struct stat st;

	if (stat("/proc/self/ns/net", &st) < 0 || !theirs || !*theirs) {
		error_print("run", NP_R_FAILED,
			    theirs && *theirs ? "/proc/self/ns/net cannot be read"
					      : "the daemon does not tell its network namespace");
		return CLI_REFUSED;
	}
	snprintf(ours, sizeof(ours), "%llu", (unsigned long long)st.st_ino);
	if (strcmp(ours, theirs) != 0) {
		complain_text("run", "netpawl and the daemon live in different network namespaces", "foreign_netns",
			      "start netpawl with nsenter --net, or in the daemon's namespace");
		return CLI_REFUSED;
	}
	return CLI_OK;
}

int run_facts_take(struct run *run, json_t *facts)
{
	json_decref(run->facts);
	run->facts = json_incref(facts);
	if (!run->hidden[0])
		hidden_note(run);
	run->inspected = json_integer_value(json_object_get(run->facts, "inspectors")) > 0;
	return netns_check(run);
}

int run_facts_get(struct run *run)
{
	_api_answer_ struct api_answer answer;
	int code = api_call(run->socket, "run", "GET", "/v1/launch", NULL, &answer);

	return code == CLI_OK ? run_facts_take(run, answer.json) : code;
}

int run_post(struct run *run, const char *path, json_t *packed, struct api_answer *ret)
{
	json_t *body;
	int code = api_body(run->session, packed, &body);

	*ret = (struct api_answer){ 0 };
	if (code == CLI_OK)
		code = api_call(run->socket, run->session, "POST", path, body, ret);
	if (code != CLI_OK)
		run_refused_note(run, ret);
	if (ret->status == 403 && strstr(ret->text, reason_token(NP_R_NO_ROLE)) && run->session == run->own_session)
		fputs("netpawl: run: without --session it runs in one of $USER's: name one that you may use\n", stderr);
	return code;
}

static int purpose_put(struct run *run)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = api_session_path(run->session, "/context");
	json_t *body;
	int code =
		path ? api_body(run->session, json_pack("{s:s}", "purpose", run->options.purpose), &body) : CLI_REFUSED;

	if (code == CLI_OK)
		code = api_call(run->socket, run->session, "PUT", path, body, &answer);
	if (code != CLI_OK)
		run_refused_note(run, &answer);
	return code;
}

int session_make(struct run *run)
{
	_api_answer_ struct api_answer made = { 0 }, raised = { 0 };
	_free_ char *path = api_session_path(run->session, "/datasets");
	int code;

	if (!path)
		return CLI_REFUSED;
	run->session_ours = run->session == run->own_session;
	if (!run->options.level && !run->options.class && !run->options.purpose)
		return CLI_OK;
	/* Only root's is one that is forgotten: session_name_make(). Others' are sessions like any, which we end all the same. */
	code = run_post(
		run, "/v1/sessions",
		json_pack("{s:s,s:b}", "session", run->session, "temporary", run->session_ours && geteuid() == 0),
		&made);
	if (code == CLI_NO_DAEMON)
		run->session_ours = false; /* said once; what it may have made is temporary, and swept */
	if (code == CLI_OK && run->options.purpose)
		code = purpose_put(run);
	if (code != CLI_OK || !run->options.level)
		return code;
	return run_post(run, path, json_pack("{s:s}", "level", run->options.level), &raised);
}

/* Without --session nobody could come back for the files: they stay in memory. */
int sandbox_make(struct run *run)
{
	const char *workspace = run->session_ours || !run->isolated ? "none" : NULL;
	_api_answer_ struct api_answer answer;
	int code = run_post(run, "/v1/sandboxes",
			    json_pack("{s:s,s:s*,s:s*,s:b,s:b,s:b}", "session", run->session, "workspace", workspace,
				      "run", run->id[0] ? run->id : NULL, "clean", 1, "temporary",
				      (int)run->session_ours, "enters_network", (int)run->isolated),
			    &answer);

	if (code == CLI_NO_DAEMON)
		run->session_ours = false; /* said once; what it may have made is temporary, and swept */
	if (code == CLI_OK)
		code = sandbox_take(run, answer.json);
	if (code == CLI_OK) {
		code = run_facts_take(run, json_object_get(answer.json, "launch"));
		if (code != CLI_OK)
			sandbox_remove(run);
	}
	return code;
}

int sandbox_take(struct run *run, const json_t *answer)
{
	const char *id = member_text(answer, "sandbox"), *cgroup = member_text(answer, "cgroup");
	const char *workspace = member_text(answer, "workspace"), *notices = member_text(answer, "notices");
	const char *ca = member_text(answer, "ca");
	const json_t *uid = json_object_get(answer, "uid"), *own = json_object_get(answer, "netns");
	const char *netns = member_text(own, "path"), *inode = member_text(own, "inode");

	if (!id || !cgroup || !json_is_integer(uid)) {
		error_print(run->session, NP_R_FAILED, "the daemon's answer names no sandbox");
		return CLI_REFUSED;
	}
	run->sandbox = strdup(id);
	run->cgroup = strdup(cgroup);
	run->workspace = workspace ? strdup(workspace) : NULL;
	run->ca = ca ? strdup(ca) : NULL;
	run->netns = netns && inode ? strdup(netns) : NULL;
	run->way_out = member_text(answer, "network") && !strcmp(member_text(answer, "network"), "nat");
	run->netns_inode = inode ? strtoull(inode, NULL, 10) : 0;
	/* A convenience: the daemon may have failed to make it, and that is no reason not to run. */
	if (notices && strrchr(notices, '/') && access(notices, R_OK) == 0)
		run->notices = strndup(notices, (size_t)(strrchr(notices, '/') - notices));
	run->identity.root = (uid_t)json_integer_value(uid);
	if (!run->options.user && run->isolated) {
		run->has_identity = true;
		run->identity.uid = run->identity.gid = run->identity.groups[0] = (uid_t)json_integer_value(uid);
		run->identity.ngroups = 1;
	}
	return run->sandbox && run->cgroup && !workspace == !run->workspace && !own == !run->netns ? CLI_OK
												   : CLI_REFUSED;
}

void sandbox_forget(struct run *run)
{
	char **words[] = { &run->sandbox, &run->cgroup, &run->workspace, &run->notices, &run->ca, &run->netns };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		free(*words[i]);
		*words[i] = NULL;
	}
}

static void sandbox_path(const struct run *run, const char *query, struct buf *out)
{
	buf_puts(out, "/v1/sandboxes/");
	api_escape(out, run->sandbox);
	buf_puts(out, query);
}

/* The daemon may have been first: what is gone already is no failure. */
static void remove_at(const struct run *run, const char *path, const char *what)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int err = client_call(run->socket, "DELETE", path, NULL, &answer);

	if (err < 0)
		api_unreachable(run->socket, what, err);
	else if (answer.status != 200 && answer.status != 404)
		api_refused(what, answer.status, answer.body.data);
}

void sandbox_remove(struct run *run)
{
	_buf_ struct buf path = BUF_INIT(4096);

	if (!run->sandbox)
		return;
	sandbox_path(run, "", &path);
	if (!buf_error(&path))
		remove_at(run, path.data, run->sandbox);
	sandbox_forget(run);
}

bool sandbox_renew(struct run *run)
{
	if (run->id[0])
		return false;
	sandbox_remove(run);
	return sandbox_make(run) == CLI_OK && run_plan_again(run) == CLI_OK;
}

static void session_end(const struct run *run)
{
	_free_ char *path = api_session_path(run->session, "");

	if (path)
		remove_at(run, path, run->session);
}

/* An emptied sandbox is swept by the daemon at once, and a session takes its sandboxes with it. */
void run_clean_up(struct run *run, bool emptied)
{
	if (run->session_ours)
		session_end(run);
	else if (!emptied)
		sandbox_remove(run);
}

/* What the sandbox did, when somebody wants to know. One that was removed meanwhile is known for a while. */
static void counts_ask(struct run *run)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_buf_ struct buf path = BUF_INIT(4096);

	if (!run->json && !run->id[0])
		return;
	sandbox_path(run, "?settled=1&ended=1", &path);
	if (!buf_error(&path) && client_call(run->socket, "GET", path.data, NULL, &answer) == 0 && answer.status == 200)
		run->counts = json_loads(answer.body.data, JSON_REJECT_DUPLICATES, NULL);
}

void run_on_ended(void *data)
{
	struct run *run = data;

	run->completed_us = wall_us();
	counts_ask(run);
}

/* The sandbox is gone, and the daemon takes a run that nobody tells of for one that was lost. */
void run_on_slow_reader(void *data)
{
	run_ended(data);
	run_report(data);
}

void run_ended(struct run *run)
{
	if (!run->completed_us)
		run->completed_us = wall_us();
	if (run->result.started && !run->counts)
		counts_ask(run);
	run->has_ended = true;
}
