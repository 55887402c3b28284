/* SPDX-License-Identifier: MIT */
#include "policy/credential.h"

#include <string.h>

#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/policy.h"
#include "wire/url_path.h"

const char *placeholder_file_name(enum placeholder_file file)
{
	static const char *const names[PLACEHOLDER_FILES] = {
		[PLACEHOLDER_NO_FILE] = "",	 [PLACEHOLDER_NETRC] = "netrc", [PLACEHOLDER_NPMRC] = "npmrc",
		[PLACEHOLDER_PIP] = "pip",	 [PLACEHOLDER_GIT] = "git",	[PLACEHOLDER_AWS] = "aws",
		[PLACEHOLDER_DOCKER] = "docker",
	};

	return (unsigned)file < ARRAY_SIZE(names) ? names[file] : "";
}

const char *slot_name(enum slot_kind kind)
{
	static const char *const names[SLOT_KINDS] = {
		[SLOT_BEARER] = "bearer", [SLOT_BASIC] = "basic", [SLOT_HEADER] = "header",
		[SLOT_QUERY] = "query",	  [SLOT_PATH] = "path",	  [SLOT_FORM] = "form",
		[SLOT_JSON] = "json",	  [SLOT_SIGV4] = "sigv4", [SLOT_WEBSOCKET] = "websocket",
	};

	return names[kind];
}

/* May the session use it now, wherever? */
static bool credential_may(const struct credential *credential, const char *session, const struct np_rung *rung)
{
	const uint8_t class = rung->flags & NP_READ_ONLY ? CREDENTIAL_READ_ONLY : CREDENTIAL_WRITE;

	return rung->mode != NP_NONE && credential->levels & 1u << rung->level && credential->classes & class &&
	       (!credential->sessions || sessions_match(credential->sessions, session));
}

bool credential_is_offered(const struct credential *credential, const char *session, const struct np_rung *rung)
{
	return rung->mode != NP_NONE && credential->levels >> rung->level &&
	       (!credential->sessions || sessions_match(credential->sessions, session));
}

/* No globs: any path. */
static bool path_is_bound(const char *const *globs, const char *target)
{
	char path[NP_PATH_MAX + 1];

	if (!globs)
		return true;
	if (path_normalise(target, strlen(target), path) < 0)
		return false;
	for (const char *const *glob = globs; *glob; glob++)
		if (path_matches(*glob, path))
			return true;
	return false;
}

/* In lower case, and without a slash at its end: for origins that do not care. */
static void path_fold(const char *text, size_t size, char *out)
{
	size_t len = 0;

	for (; text[len] && len + 1 < size; len++)
		out[len] = (char)(text[len] >= 'A' && text[len] <= 'Z' ? text[len] | 0x20 : text[len]);
	while (len > 1 && out[len - 1] == '/')
		len--;
	out[len] = '\0';
}

/* What is not captured comes to the sandbox as it is, so this errs the other way than path_is_bound(): a path that origins may take for
 * one of these is one, and so is each that cannot be told. */
static bool path_may_issue(const char *const *globs, const char *target)
{
	char path[NP_PATH_MAX + 1], folded[NP_PATH_MAX + 1], glob[NP_GLOB_MAX + 1];

	if (!globs || path_normalise(target, strlen(target), path) < 0)
		return true;
	path_fold(path, sizeof(folded), folded);
	for (; *globs; globs++) {
		path_fold(*globs, sizeof(glob), glob);
		if (path_matches(*globs, path) || path_matches(glob, folded))
			return true;
	}
	return false;
}

/* What the rule names goes where the rule leads; else the credential itself says where. */
static bool host_is_bound(const struct policy *policy, const struct credential *credential,
			  const struct credential_facts *facts)
{
	if (facts->host->is_addr)
		return false;
	return facts->named == credential || pattern_run_holds(policy, &credential->hosts, facts->host, facts->port);
}

bool credential_is_bound(const struct policy *policy, const struct credential *credential,
			 const struct credential_facts *facts)
{
	return credential_may(credential, facts->session, &facts->rung) && host_is_bound(policy, credential, facts) &&
	       (!facts->method || ((!credential->methods || list_has(credential->methods, facts->method)) &&
				   path_is_bound(credential->paths, facts->path)));
}

bool credential_token_is_bound(const struct policy *policy, const struct credential *credential,
			       const struct credential_facts *facts)
{
	if (!credential->capture)
		return false;
	return credential_is_bound(policy, credential, facts) ||
	       (credential_may(credential, facts->session, &facts->rung) && !facts->host->is_addr &&
		pattern_run_holds(policy, &credential->capture->hosts, facts->host, facts->port));
}

bool credential_captures_cookies(const struct policy *policy, const struct credential *credential,
				 const struct credential_facts *facts)
{
	return credential->capture && credential->capture->cookies &&
	       credential_token_is_bound(policy, credential, facts);
}

bool credential_captures_json(const struct policy *policy, const struct credential *credential,
			      const struct credential_facts *facts)
{
	const struct credential_capture *capture = credential->capture;

	if (!capture || !capture->json || !path_may_issue(capture->paths, facts->path))
		return false;
	return credential_is_bound(policy, credential, facts) ||
	       (capture->paths && credential_token_is_bound(policy, credential, facts));
}

const struct credential *credential_find(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->n_credentials; i++)
		if (!strcmp(policy->credentials[i].name, name))
			return &policy->credentials[i];
	return NULL;
}
