/* SPDX-License-Identifier: MIT */
/* /v1/policy */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "control/body.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "policy/describe.h"
#include "policy/grant.h"
#include "policy/reach_summary.h"
#include "policy/snapshot.h"

#define PROXY_HOSTS_MAX 20 /* of one upstream proxy in the listing */
#define CONDITIONS_MAX \
	600 /* bytes of a rule's conditions in the listing, so that the whole of it fits into an answer */

static json_t *ports_array(const uint16_t *ports, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < n; i++)
		json_array_append_new(array, json_integer(ports[i]));
	return array;
}

static json_t *levels_object(const struct level_modes *modes)
{
	json_t *object = json_object();

	for (unsigned level = 0; object && level < LEVEL_COUNT; level++)
		json_object_set_new(object, level_name(level), json_string(mode_name(modes->of[level])));
	return object;
}

static json_t *defaults_object(const struct policy *policy)
{
	json_t *object = json_object();

	for (unsigned level = 0; object && level < LEVEL_COUNT; level++)
		json_object_set_new(object, level_name(level),
				    json_string(action_name(policy->fallback[level].action)));
	return object;
}

static const char *default_word(const struct policy *policy)
{
	for (unsigned level = 1; level < LEVEL_COUNT; level++)
		if (policy->fallback[level].action != policy->fallback[0].action)
			return "by_level";
	return action_name(policy->fallback[0].action);
}

static json_t *warnings_array(const struct problems *problems)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < problems->count; i++) {
		char line[PROBLEM_LINE_SIZE];

		if (!problems->items[i].warning)
			continue;
		problem_format(&problems->items[i], line);
		json_array_append_new(array, json_text(line));
	}
	return array;
}

static json_t *rule_object(const struct policy *policy, const struct rule *rule)
{
	_buf_ struct buf conditions = BUF_INIT(CONDITIONS_MAX);
	char place[PLACE_TEXT_SIZE];

	place_format(policy, &rule->at, place);
	if (rule != &policy->read_only) /* that is a list of addresses, and no rule */
		rule_describe(rule, &conditions);
	if (buf_error(&conditions)) {
		buf_clear(&conditions);
		buf_puts(&conditions, "more than fit here: see the file");
	}
	return json_pack("{s:o,s:o,s:o*}", "rule", json_text(place), "text", json_text(rule->text), "conditions",
			 conditions.len ? json_text(conditions.data) : NULL);
}

static json_t *grants_array(const struct policy *policy, bool *truncated)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < policy->n_grants; i++) {
		if (array_add(array, rule_object(policy, &policy->grants[i].rule)) < 0) {
			*truncated = true;
			break;
		}
	}
	return array;
}

static json_t *listing_array(const struct policy *policy, const struct rule *rules, size_t n, bool *truncated)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < n; i++) {
		if (array_add(array, rule_object(policy, &rules[i])) < 0) {
			*truncated = true;
			break;
		}
	}
	return array;
}

json_t *patterns_array(const struct policy *policy, const struct pattern_run *run)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < run->n && i < PROXY_HOSTS_MAX; i++) {
		_buf_ struct buf text = BUF_INIT(NP_WHY_WHERE * 4);

		pattern_put(&text, &policy->patterns[run->first + i]);
		json_array_append_new(array, json_text(text.data ? text.data : "?"));
	}
	if (array && run->n > PROXY_HOSTS_MAX)
		json_array_append_new(array, json_string("..."));
	return array;
}

/* Of credentials that there are some, and no more. */
static json_t *proxies_array(const struct policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < policy->n_proxies; i++) {
		const struct upstream_proxy *proxy = &policy->proxies[i];
		char place[PLACE_TEXT_SIZE];

		place_format(policy, &proxy->at, place);
		json_array_append_new(array,
				      json_pack("{s:s,s:o,s:o*,s:o,s:b}", "url", proxy->url ? proxy->url : "direct",
						"at", json_text(place), "hosts",
						proxy->all ? NULL : patterns_array(policy, &proxy->hosts), "except",
						patterns_array(policy, &proxy->except), "credentials",
						proxy->credentials != NULL));
	}
	return array;
}

int policy_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	bool truncated = false;
	struct policy_loaded loaded;
	const struct policy *policy;
	json_t *object;

	config->policy_loaded(config->data, &loaded);
	policy = loaded.policy;
	object = json_pack("{s:o,s:s,s:o,s:o,s:I,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "file",
			   loaded.file ? json_text(loaded.file) : json_null(), "hash", policy->hash, "loaded",
			   json_time(loaded.loaded_us), "who", json_text(loaded.who), "rules",
			   (json_int_t)policy->n_rules, "levels", levels_object(&policy->modes), "default",
			   default_word(policy), "defaults", defaults_object(policy), "inspect_ports",
			   ports_array(policy->inspect_ports, policy->n_inspect_ports), "host_loopback",
			   ports_array(policy->host_loopback, policy->n_host_loopback), "inbound",
			   ports_array(policy->inbound, policy->n_inbound), "warnings", warnings_array(loaded.problems),
			   "listing", listing_array(policy, policy->rules, policy->n_rules, &truncated), "full",
			   listing_array(policy, policy->full, policy->n_full, &truncated), "read_only",
			   listing_array(policy, &policy->read_only, policy->read_only.n_patterns > 0, &truncated));
	if (object && json_object_set_new(object, "grants", grants_array(policy, &truncated)) < 0)
		json_decref(take_ptr(object));
	if (object)
		json_object_set_new(object, "upstream_proxies", proxies_array(policy));
	if (object && truncated)
		json_object_set_new(object, "truncated", json_true());
	return answer_json(ret, 200, object, ret_failure);
}

static int file_add(void *ctx, const char *name, const char *text, size_t len)
{
	char hash[TEXT_HASH_SIZE];
	json_t *file;

	text_hash(text, len, hash);
	file = json_pack("{s:o,s:o,s:s}", "name", json_text(name), "text", json_stringn(text, len), "sha256", hash);
	if (!file) /* bytes that no JSON holds: a certificate file may have them, a policy has none */
		file = json_pack("{s:o,s:s,s:s}", "name", json_text(name), "text", "", "sha256", hash);
	return json_array_append_new(ctx, file) < 0 ? -ENOMEM : 0;
}

int policy_source_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_json_ json_t *files = json_array();
	const char *shown, *first;
	struct policy_loaded loaded;

	rq->config->policy_loaded(rq->config->data, &loaded);
	if (snapshot_each(loaded.record->data, loaded.record->len, &shown, &first, file_add, files) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the policy's files could not be listed");
	return answer_json(ret, 200,
			   json_pack("{s:s,s:o,s:o,s:O}", "hash", loaded.policy->hash, "shown", json_text(shown),
				     "first", json_text(first), "files", files),
			   ret_failure);
}

static json_t *reloaded_object(const struct server_config *config, const struct policy_reloaded *done)
{
	struct policy_loaded loaded;

	config->policy_loaded(config->data, &loaded);
	return json_pack("{s:s,s:s,s:b,s:I,s:I,s:I,s:o}", "hash", loaded.policy->hash, "previous", done->previous,
			 "changed", strcmp(loaded.policy->hash, done->previous) != 0, "rules",
			 (json_int_t)loaded.policy->n_rules, "cut", (json_int_t)done->cut, "raised",
			 (json_int_t)done->raised, "warnings", warnings_array(loaded.problems));
}

int policy_reload(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	struct policy_reloaded done = { 0 };
	_json_ json_t *body = NULL;
	int r = 0;

	if (rq->body_len) /* a body is not needed; one that says something is not understood */
		r = body_read(rq->body, rq->body_len, NULL, 0, &body, ret_failure);
	if (r == 0)
		r = config->policy_reload(config->data, rq->peer.who, &done, ret_failure);
	if (r < 0)
		return r;
	return answer_json(ret, 200, reloaded_object(config, &done), ret_failure);
}

int policy_file_save(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	struct policy_save save = { .operator= rq->peer.roles & ROLE_OPERATOR };
	const struct body_field fields[] = {
		{ "file", .required = true, .ret_text = &save.file },
		{ "old", .required = true, .ret_text = &save.old },
		{ "text", .required = true, .ret_text = &save.text },
	};
	struct policy_saved done = { 0 };
	_json_ json_t *body = NULL;
	json_t *object;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = config->policy_save(config->data, &save, rq->peer.who, &done, ret_failure);
	if (r < 0)
		return r;
	object = reloaded_object(config, &done.reloaded);
	if (object)
		json_object_set_new(object, "file", json_text(save.file));
	if (object)
		json_object_set_new(object, "sha256", json_string(done.hash));
	return answer_json(ret, 200, object, ret_failure);
}
