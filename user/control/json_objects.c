/* SPDX-License-Identifier: MIT */
#include "control/json_objects.h"

#include "session/registrable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cgroup_usage.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "containers/container_path.h"
#include "vocab/words.h"
#include "control/body.h"
#include "control/reply.h"
#include "vocab/limits.h"

json_t *session_object(const struct session_row *row, json_t *datasets)
{
	return json_pack("{s:o,s:s,s:s,s:I,s:o,s:o,s:o}", "session", json_text(row->name.text), "level",
			 level_name(row->rung.level), "mode", mode_name(row->rung.mode), "generation",
			 (json_int_t)row->rung.generation, "created", json_time(row->created_us), "ended",
			 row->ended ? json_time(row->ended_us) : json_null(), "datasets", datasets);
}

json_t *dataset_object(const struct dataset_row *row)
{
	return json_pack("{s:o,s:s,s:o,s:o*}", "name", json_text(row->name), "level", level_name(row->level), "added",
			 json_time(row->added_us), "reason", row->reason[0] ? json_text(row->reason) : NULL);
}

static int dataset_name_add(void *data, const struct dataset_row *row)
{
	return json_array_append_new(data, json_text(row->name)) < 0 ? -ENOMEM : 0;
}

json_t *dataset_names(struct store *store, const char *session)
{
	json_t *names = json_array();

	store_datasets_each(store, session, dataset_name_add, names);
	return names;
}

static void time_put(struct buf *out, const char *key, uint64_t us)
{
	char text[TIME_TEXT_SIZE];

	time_format(us, text);
	json_put_text(out, key, text, sizeof(text));
}

void counts_put(const struct sandbox_counts *counts, struct buf *out)
{
	json_put_number(out, "requests", counts->requests);
	json_put_number(out, "queries", counts->queries);
	json_put_number(out, "refused", counts->refused);
	json_put_number(out, "sent", counts->sent);
	json_put_number(out, "received", counts->received);
	if (counts->partial)
		json_put_bool(out, "counts_partial", true);
}

void sandbox_put(const struct sandbox_info *sandbox, struct buf *out)
{
	struct container container;
	char cgroup_id[24]; /* 64 bits are more than a JavaScript number holds */

	snprintf(cgroup_id, sizeof(cgroup_id), "%" PRIu64, sandbox->cgroup.id);
	json_open_object(out, NULL);
	json_put_text(out, "sandbox", sandbox->id, SIZE_MAX);
	json_put_text(out, "session", sandbox->session.text, SIZE_MAX);
	json_put_text(out, "cgroup", sandbox->cgroup.path, SIZE_MAX);
	json_put_text(out, "cgroup_id", cgroup_id, sizeof(cgroup_id));
	json_put_text(out, "mode", mode_name(sandbox->rung.mode), SIZE_MAX);
	json_put_number(out, "generation", sandbox->rung.generation);
	json_put_bool(out, "adopted", sandbox->adopted);
	json_put_bool(out, "kept", sandbox->kept);
	json_put_bool(out, "parent", sandbox->parent);
	json_put_bool(out, "born", sandbox->born);
	json_put_text(out, "network",
		      !sandbox->own_network		  ? "shared"
		      : sandbox->adopted || sandbox->born ? "container"
		      : sandbox->way_out		  ? "nat"
							  : "private",
		      SIZE_MAX);
	if ((sandbox->adopted || sandbox->born) && container_of_path(sandbox->cgroup.path, &container)) {
		json_open_object(out, "container");
		json_put_text(out, "id", container.id, sizeof(container.id));
		if (container.engine)
			json_put_text(out, "engine", container.engine, SIZE_MAX);
		json_close_object(out);
	}
	time_put(out, "created", sandbox->created_us);
	time_put(out, "active", sandbox->active_us);
	counts_put(&sandbox->counts, out);
	json_close_object(out);
}

json_t *sandbox_object(const struct sandbox_info *sandbox)
{
	_buf_ struct buf text = BUF_INIT(NP_ANSWER_BYTES);

	sandbox_put(sandbox, &text);
	return buf_error(&text) ? NULL : json_loadb(text.data, text.len, 0, NULL);
}

json_t *netns_object(const struct sandbox_netns *netns)
{
	char inode[24]; /* as text, like all numbers of the kernel */

	snprintf(inode, sizeof(inode), "%" PRIu64, netns->inode);
	return netns->path[0] ? json_pack("{s:s,s:s}", "path", netns->path, "inode", inode) : NULL;
}

/* A result on record. One of an older launcher has the names that its counts had then. */
static json_t *result_object(const char *text)
{
	static const char *const renamed[][2] = { { "denied", "refused" },
						  { "bytes_out", "sent" },
						  { "bytes_in", "received" } };
	json_t *result = text[0] ? json_loads(text, 0, NULL) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++) {
		json_t *count = json_object_get(result, renamed[i][0]);

		if (count && !json_object_get(result, renamed[i][1]))
			json_object_set(result, renamed[i][1], count);
		json_object_del(result, renamed[i][0]);
	}
	return result;
}

json_t *run_object(const struct run_row *row)
{
	json_t *command = json_loads(row->command, 0, NULL);
	json_t *result = result_object(row->result);
	json_t *options = json_loads(row->options, 0, NULL);

	return json_pack("{s:I,s:o,s:o,s:s,s:o,s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "run",
			 (json_int_t)row->id, "session", json_text(row->session.text), "class",
			 row->class == CLASS_OPEN ? json_null() : json_string(class_name(row->class)), "state",
			 run_state_name(row->state), "command", command ? command : json_null(), "options",
			 options ? options : json_null(), "launched", (int)row->launched, "asked_by",
			 json_text(row->who), "approved", row->decided ? json_boolean(row->approved) : json_null(),
			 "decided_by", row->decided ? json_text(row->decider) : json_null(), "reason",
			 row->reason[0] ? json_text(row->reason) : json_null(), "created", json_time(row->created_us),
			 "expires", json_time(row->expires_us), "decided", time_or_null(row->decided_us), "started",
			 time_or_null(row->started_us), "ended", time_or_null(row->ended_us), "sandbox",
			 row->sandbox[0] ? json_text(row->sandbox) : json_null(), "result",
			 result ? result : json_null());
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_text(text) : json_null();
}

/* What an answer for the domain would be for, or is. */
static json_t *domain_or_null(const struct question_row *row)
{
	char domain[QUESTION_HOST_SIZE];

	return registrable_domain(row->host, domain) == 0 ? json_text(domain) : json_null();
}

/* "name: value" lines become pairs, in their order, for names may come twice. */
static json_t *headers_array(const char *text)
{
	json_t *array = json_array();
	const char *end;

	for (; array && (end = strchr(text, '\n')); text = end + 1) {
		const char *colon = memchr(text, ':', (size_t)(end - text));

		if (colon && end - colon >= 2)
			json_array_append_new(array, json_pack("[s%,s%]", text, (size_t)(colon - text), colon + 2,
							       (size_t)(end - colon) - 2));
	}
	return array;
}

/* What can be read of it: a line of ASCII. */
static json_t *preview_or_null(const struct question_row *row)
{
	char text[NP_QUESTION_PREVIEW];

	for (size_t i = 0; i < row->preview_len; i++) {
		char c = row->preview[i];

		text[i] = c == '\n' || c == '\r' || c == '\t' ? ' ' : c < ' ' || c > '~' ? '?' : c;
	}
	return row->preview_len ? json_stringn(text, row->preview_len) : json_null();
}

/* Who asked, and more of what. */
static json_t *client_object(const struct question_row *row)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o}", "pid", row->pid ? json_integer(row->pid) : json_null(), "comm",
			 text_or_null(row->comm), "program", text_or_null(row->program), "headers",
			 headers_array(row->headers), "body_start", preview_or_null(row));
}

json_t *question_object(const struct question_row *row)
{
	json_t *client = client_object(row), *object;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, row->id);
	object = json_pack(
		"{s:s,s:I,s:o,s:s,s:o,s:o,s:i,s:s,s:b,s:o,s:o,s:o,s:o,s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,"
		"s:o,s:o,s:o}",
		"id", id, "question", (json_int_t)row->id, "session", json_text(row->session.text), "state",
		question_state_name(row->state), "sandbox", text_or_null(row->sandbox), "host", json_text(row->host),
		"port", (int)row->port, "kind",
		!row->method[0] ? "connect"
		: row->write	? "write"
				: "read",
		"tls", row->tls, "method", text_or_null(row->method), "url", json_text(row->url), "body",
		row->body == UINT64_MAX ? json_null() : json_integer((json_int_t)row->body), "rule",
		json_text(row->place), "level", level_name(row->rung.level), "mode", mode_name(row->rung.mode),
		"generation", (json_int_t)row->rung.generation, "policy", json_text(row->policy), "answer",
		text_or_null(question_answer_name(row->answer)), "answered_by", text_or_null(row->who), "reason",
		text_or_null(row->reason), "created", json_time(row->created_us), "expires", json_time(row->expires_us),
		"answered", time_or_null(row->answered_us), "until", time_or_null(row->until_us), "over",
		time_or_null(row->over_us), "revoked_by", text_or_null(row->ended_by), "domain", domain_or_null(row));

	if (!object || !client || json_object_update(object, client) < 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(client);
	return object;
}

json_t *escalation_object(const struct escalation *escalation)
{
	return json_pack("{s:o,s:s,s:s,s:I,s:I,s:I,s:b,s:b}", "session", json_text(escalation->session.text), "level",
			 level_name(escalation->rung.level), "mode", mode_name(escalation->rung.mode), "generation",
			 (json_int_t)escalation->rung.generation, "cut", (json_int_t)escalation->cut, "applied_us",
			 (json_int_t)escalation->applied_us, "raised", (int)escalation->raised, "created",
			 (int)escalation->created);
}

int array_add(json_t *array, json_t *item)
{
	if (json_array_size(array) >= NP_LIST_MAX) {
		json_decref(item);
		return -E2BIG;
	}
	return json_array_append_new(array, item) < 0 ? -ENOMEM : 0;
}

json_t *sandbox_object_used(const struct sandbox_info *sandbox)
{
	json_t *object = sandbox_object(sandbox);
	struct cgroup_usage usage;

	cgroup_usage_read(sandbox->cgroup.path, &usage);
	if (object)
		json_object_set_new(object, "usage",
				    json_pack("{s:I,s:I,s:I}", "cpu_us", (json_int_t)usage.cpu_us, "memory",
					      (json_int_t)usage.memory, "processes", (json_int_t)usage.processes));
	return object;
}

/* What the first ones use is looked up, as many as somebody reads. */
static int sandbox_add(void *data, const struct sandbox_info *sandbox)
{
	return array_add(data, json_array_size(data) < NP_USAGE_SANDBOXES ? sandbox_object_used(sandbox)
									  : sandbox_object(sandbox));
}

json_t *sandboxes_array(struct service *service, const char *session, bool *ret_cut_short)
{
	_json_ json_t *array = json_array();
	int r;

	if (!array)
		return NULL;
	r = service_sandboxes_each(service, session, sandbox_add, array);
	if (r < 0 && r != -E2BIG)
		return NULL;
	*ret_cut_short = r == -E2BIG;
	return take_ptr(array);
}
