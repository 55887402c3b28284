/* SPDX-License-Identifier: MIT */
/* /v1/credentials and /v1/sessions/USER/SESSION/placeholders: everything of credentials but their values. */
#include <errno.h>
#include <string.h>

#include "control/json_objects.h"
#include "control/reply.h"
#include "policy/credential.h"

static json_t *slots_array(const struct credential *credential)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < credential->n_slots; i++)
		json_array_append_new(array, json_string(slot_name(credential->slots[i].kind)));
	return array;
}

static json_t *words_array(const char *const *words)
{
	json_t *array = words ? json_array() : json_null();

	for (; words && array && *words; words++)
		json_array_append_new(array, json_text(*words));
	return array;
}

static json_t *levels_array(unsigned levels)
{
	json_t *array = json_array();

	for (unsigned i = 0; array && i < LEVEL_COUNT; i++)
		if (levels & 1u << i)
			json_array_append_new(array, json_string(level_name(i)));
	return array;
}

/* Is there a value, does somebody fetch one, or is something wrong? */
static const char *state_word(const struct credential_state *state)
{
	return state->has_value ? "ready" : state->busy ? "fetching" : "missing";
}

static json_t *credential_object(const struct policy *policy, const struct credential_state *state)
{
	static const char *const sources[] = { "systemd", "file", "command", "env" };
	const struct credential *credential = state->credential;
	char place[PLACE_TEXT_SIZE];

	place_format(policy, &credential->at, place);
	return json_pack("{s:s,s:o,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:o,s:I,s:o,s:b,s:I}", "name",
			 credential->name, "at", json_text(place), "source", sources[credential->source.kind], "state",
			 state_word(state), "problem", state->problem[0] ? json_text(state->problem) : json_null(),
			 "for", patterns_array(policy, &credential->hosts), "as", slots_array(credential), "levels",
			 levels_array(credential->levels), "sessions", words_array(credential->sessions), "always",
			 credential->always, "fetching", state->busy, "fetched", time_or_null(state->fetched_us),
			 "expires", time_or_null(state->expires_us), "used", time_or_null(state->used_us), "uses",
			 (json_int_t)state->uses, "env", credential->env ? json_text(credential->env) : json_null(),
			 "captures", credential->capture != NULL, "tokens", (json_int_t)state->tokens);
}

int credentials_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	struct policy_loaded loaded;
	json_t *array = json_array();

	config->policy_loaded(config->data, &loaded);
	for (size_t i = 0; array && i < config->credentials.count(config->data); i++) {
		struct credential_state state;

		config->credentials.describe(config->data, i, &state);
		json_array_append_new(array, credential_object(loaded.policy, &state));
	}
	return answer_json(ret, 200, array ? json_pack("{s:o}", "credentials", array) : NULL, ret_failure);
}

/* 202: its command runs; what became of it is in the list. */
int credential_refresh(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	struct credential_state state;
	struct policy_loaded loaded;
	int r = config->credentials.refresh(config->data, rq->args[0]);

	if (r == -ENOENT)
		return failure_put(ret_failure, r, NP_R_NO_SUCH_CREDENTIAL, "%s", rq->args[0]);
	config->policy_loaded(config->data, &loaded);
	for (size_t i = 0; i < config->credentials.count(config->data); i++) {
		config->credentials.describe(config->data, i, &state);
		if (!strcmp(state.credential->name, rq->args[0]))
			return answer_json(ret, r == -EINPROGRESS ? 202 : 200, credential_object(loaded.policy, &state),
					   ret_failure);
	}
	return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_CREDENTIAL, "%s", rq->args[0]);
}

/* Whole names alone: a file of a tool can have no others. */
static json_t *hosts_array(const struct policy *policy, const struct credential *credential)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < credential->hosts.n; i++) {
		const struct pattern *pattern = &policy->patterns[credential->hosts.first + i];

		if (pattern_is_wide(pattern))
			continue;
		json_array_append_new(array,
				      json_pack("{s:s,s:i}", "name", pattern->name, "port", pattern->first_port));
	}
	return array;
}

static const char *user_of(const struct credential *credential)
{
	for (size_t i = 0; i < credential->n_slots; i++)
		if (credential->slots[i].kind == SLOT_BASIC)
			return credential->slots[i].name;
	return NULL;
}

static json_t *placeholder_object(const struct request *rq, const struct policy *policy,
				  const struct credential *credential)
{
	const struct server_config *config = rq->config;
	char text[NP_PLACEHOLDER_MAX + 1];
	const char *user = user_of(credential);

	config->credentials.placeholder(config->data, rq->session.text, credential, text);
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "name", credential->name, "placeholder", text, "env",
			 credential->env ? json_text(credential->env) : json_null(), "file",
			 credential->file ? json_string(placeholder_file_name(credential->file)) : json_null(), "user",
			 user ? json_text(user) : json_null(), "hosts", hosts_array(policy, credential));
}

int placeholders_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct server_config *config = rq->config;
	struct policy_loaded loaded;
	struct session_row row;
	json_t *array;
	int r = service_session_show(config->service, rq->session.text, &row, ret_failure);

	if (r < 0)
		return r;
	config->policy_loaded(config->data, &loaded);
	array = json_array();
	for (size_t i = 0; array && i < loaded.policy->n_credentials; i++) {
		const struct credential *credential = &loaded.policy->credentials[i];

		if (credential_is_offered(credential, rq->session.text, &row.rung))
			json_array_append_new(array, placeholder_object(rq, loaded.policy, credential));
	}
	return answer_json(ret, 200, array ? json_pack("{s:o}", "placeholders", array) : NULL, ret_failure);
}
