/* SPDX-License-Identifier: MIT */
/* Credentials that go further than their author thinks, or nowhere. */
#include <string.h>

#include "base/cleanup.h"
#include "policy/compile.h"
#include "policy/credential.h"
#include "policy/decide.h"
#include "policy/name_reachable.h"

/* Hosts where anybody can publish: a sandbox that may write there could have a value show up where an attacker reads
 * it. Names below these count, too. */
static bool takes_uploads(const char *name)
{
	static const char *const names[] = { "gist.github.com",
					     "pastebin.com",
					     "paste.ee",
					     "transfer.sh",
					     "webhook.site",
					     "requestbin.com",
					     "httpbin.org",
					     "file.io",
					     "0x0.st",
					     "dpaste.org",
					     "s3.amazonaws.com",
					     "ngrok.io",
					     "storage.googleapis.com" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]), len = strlen(name);

		if (len >= n && !strcmp(name + len - n, names[i]) && (len == n || name[len - n - 1] == '.'))
			return true;
	}
	return false;
}

/* Is there a level at which a rule could allow a request to the name, and the credential be used? */
static bool is_reachable(const struct policy *policy, const struct credential *credential, const char *name)
{
	for (unsigned level = 0; level < LEVEL_COUNT; level++) {
		const struct np_rung rung = { .mode = policy->modes.of[level], .level = (uint8_t)level };

		if (credential->levels & 1u << level && rung.mode == NP_PROXIED &&
		    policy_may_name(policy, &rung, NULL, name) & MAY_HTTP)
			return true;
	}
	return false;
}

static void host_warn(const struct policy *policy, const struct credential *credential, const struct pattern *pattern,
		      const char *words, struct problems *problems)
{
	problem_add(problems, true, policy->files[pattern->at.file], pattern->at.line, pattern->at.column,
		    "credential \"%s\" for \"%s\": %s", credential->name, pattern->name, words);
}

/* What is odd about a host that gets a value, whoever says that it does; NULL: nothing. */
static const char *host_problem(const struct pattern *pattern)
{
	if (pattern_is_wide(pattern))
		return "it goes to whoever runs a host of such a name; write whole names";
	if (pattern->first_port == 80)
		return "at port 80 HTTP goes without TLS as a rule, and then it is never put in";
	return takes_uploads(pattern->name) ? "the host takes uploads from anyone, and shows them to others" : NULL;
}

static void host_check(const struct policy *policy, const struct credential *credential, const struct pattern *pattern,
		       struct problems *problems)
{
	const char *words = host_problem(pattern);

	if (words)
		host_warn(policy, credential, pattern, words, problems);
	if (pattern_is_wide(pattern) || pattern->first_port == 80)
		return; /* all is said */
	if (!policy_inspects(policy, pattern->first_port))
		host_warn(policy, credential, pattern, "the port is not one of inspect_ports, so nobody puts it in",
			  problems);
	else if (!is_reachable(policy, credential, pattern->name))
		host_warn(policy, credential, pattern,
			  "at none of its levels is the mode PROXIED and the host allowed by a rule", problems);
}

/* A rule that names one gives it to all the hosts that it allows. */
static void rule_check(const struct policy *policy, const struct rule *rule, struct problems *problems)
{
	for (uint32_t i = 0; i < rule->n_patterns && problems->warnings < NP_POLICY_PROBLEMS; i++) {
		const struct pattern *pattern = &policy->patterns[rule->pattern + i];
		const char *words = pattern->kind == PATTERN_NAME ? host_problem(pattern) : NULL;

		if (words)
			host_warn(policy, rule->credential, pattern, words, problems);
	}
}

static bool is_named(const struct policy *policy, const struct credential *credential)
{
	for (size_t i = 0; i < policy->n_rules; i++)
		if (policy->rules[i].credential == credential)
			return true;
	return false;
}

static void hosts_check(const struct policy *policy, const struct credential *credential,
			const struct pattern_run *hosts, struct problems *problems)
{
	for (uint32_t i = 0; i < hosts->n && problems->warnings < NP_POLICY_PROBLEMS; i++)
		host_check(policy, credential, &policy->patterns[hosts->first + i], problems);
}

/* What is captured from has to be JSON, or it is refused. */
static void capture_check(const struct policy *policy, const struct credential *credential, struct problems *problems)
{
	const struct credential_capture *capture = credential->capture;

	hosts_check(policy, credential, &capture->hosts, problems);
	if (capture->json && !capture->paths && !credential->paths)
		problem_add(
			problems, true, policy->files[credential->at.file], credential->at.line, credential->at.column,
			"credential \"%s\": its hosts can answer with nothing but JSON, so that no token is missed; "
			"say by \"paths\" of \"capture\" which of their responses have tokens",
			credential->name);
}

void policy_check_credentials(const struct policy *policy, struct problems *problems)
{
	for (size_t i = 0; i < policy->n_credentials && problems->warnings < NP_POLICY_PROBLEMS; i++) {
		const struct credential *credential = &policy->credentials[i];

		if (!credential->hosts.n && !is_named(policy, credential))
			problem_add(problems, true, policy->files[credential->at.file], credential->at.line,
				    credential->at.column,
				    "nothing gets the credential \"%s\": it has no \"for\", and no rule names it",
				    credential->name);
		hosts_check(policy, credential, &credential->hosts, problems);
		if (credential->capture)
			capture_check(policy, credential, problems);
	}
	for (size_t i = 0; i < policy->n_rules; i++)
		if (policy->rules[i].credential)
			rule_check(policy, &policy->rules[i], problems);
}
