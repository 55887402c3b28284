/* SPDX-License-Identifier: MIT */
/* /v1/launch: what `netpawl run` has to know of the daemon, in one answer and without a look at the disk. */

#include "control/reply.h"

static json_t *binds_array(const struct sandbox_policy *sandbox)
{
	json_t *binds = json_array();

	for (size_t i = 0; binds && i < sandbox->n_binds; i++)
		json_array_append_new(binds, json_pack("{s:o,s:b}", "path", json_text(sandbox->binds[i].path),
						       "readonly", (int)sandbox->binds[i].readonly));
	return binds;
}

static json_t *devices_array(const struct sandbox_policy *sandbox)
{
	json_t *devices = json_array();

	for (size_t i = 0; devices && i < sandbox->n_devices; i++)
		json_array_append_new(devices, json_text(sandbox->devices[i]));
	return devices;
}

/* The policy's sandbox: section. */
static json_t *section_object(const struct sandbox_policy *sandbox)
{
	const struct run_option *idle = run_option_find("timeout", RUN_CLI); /* is written as that is */
	json_t *object = json_pack("{s:o,s:o}", "binds", binds_array(sandbox), "devices", devices_array(sandbox));
	struct limits limits = sandbox->limits;
	char text[LIMIT_TEXT_SIZE];

	for (const struct run_option *l = run_limits; object && l < run_limits + RUN_N_LIMITS; l++) {
		uint64_t limit = *run_limit_of(l, &limits);

		json_object_set_new(object, l->name, limit ? json_string(limit_format(l, limit, text)) : json_null());
	}
	json_object_set_new(object, "idle", json_string(limit_format(idle, sandbox->idle_ms, text)));
	return object;
}

json_t *launch_object(const struct server_config *config)
{
	struct daemon_facts facts = { 0 };
	struct policy_loaded loaded;

	config->policy_loaded(config->data, &loaded);
	config->facts(config->data, &facts);
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:o,s:I}", "netns", json_text(facts.netns), "run_dir",
			 json_text(facts.run_dir), "state_dir", json_text(facts.state_dir), "data_dir",
			 json_text(facts.data_dir), "pin_dir", json_text(facts.pin_dir), "inspectors",
			 (json_int_t)facts.inspectors, "sandbox", section_object(&loaded.policy->sandbox),
			 "unknown_containers", json_text(loaded.policy->unknown_containers), "credentials",
			 (json_int_t)loaded.policy->n_credentials);
}

int launch_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	return answer_json(ret, 200, launch_object(rq->config), ret_failure);
}
