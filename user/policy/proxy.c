/* SPDX-License-Identifier: MIT */
#include "policy/proxy.h"

#include <string.h>

#include "addr.h"
#include "base/chars.h"
#include "base/cleanup.h"
#include "policy/net.h"
#include "policy/policy.h"

/* Label by label from the right: "*" is one label, "**" in front one or more, "." in front none or more. */
static bool name_fits(const char *pattern, const char *name)
{
	size_t p = strlen(pattern), n = strlen(name);

	if (pattern[0] == '.' && n + 1 == p)
		return !strcmp(pattern + 1, name);
	if (pattern[0] == '.')
		return n >= p && !strcmp(name + n - p, pattern);
	while (p && n) {
		const char *dot = memrchr(pattern, '.', p), *name_dot = memrchr(name, '.', n);
		const char *label = dot ? dot + 1 : pattern, *name_label = name_dot ? name_dot + 1 : name;
		size_t len = (size_t)(pattern + p - label), name_len = (size_t)(name + n - name_label);

		if (len == 2 && !memcmp(label, "**", 2))
			return true;
		if (!(len == 1 && *label == '*') && (len != name_len || memcmp(label, name_label, len) != 0))
			return false;
		if (!dot || !name_dot)
			return !dot && !name_dot;
		p = (size_t)(dot - pattern);
		n = (size_t)(name_dot - name);
	}
	return false;
}

static bool pattern_fits(const struct pattern *pattern, const struct host *host, uint16_t port)
{
	struct np_addr addr;

	if (!(pattern->protocols & PATTERN_TCP) || port < pattern->first_port || port > pattern->last_port ||
	    host->is_addr != (pattern->kind == PATTERN_NET))
		return false;
	if (!host->is_addr)
		return name_fits(pattern->name, host->name);
	addr = np_addr_carried(&host->addr);
	return pattern->v4 == np_addr_is_v4(&addr) && net_holds(&pattern->addr, pattern->bits, &addr);
}

bool pattern_run_holds(const struct policy *policy, const struct pattern_run *run, const struct host *host,
		       uint16_t port)
{
	for (uint32_t i = 0; i < run->n; i++)
		if (pattern_fits(&policy->patterns[run->first + i], host, port))
			return true;
	return false;
}

const struct upstream_proxy *policy_proxy(const struct policy *policy, const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < policy->n_proxies; i++) {
		const struct upstream_proxy *proxy = &policy->proxies[i];

		if ((proxy->all || pattern_run_holds(policy, &proxy->hosts, host, port)) &&
		    !pattern_run_holds(policy, &proxy->except, host, port))
			return proxy->url ? proxy : NULL;
	}
	return NULL;
}

bool policy_is_proxy(const struct policy *policy, const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < policy->n_proxies; i++) {
		const struct upstream_proxy *proxy = &policy->proxies[i];

		if (proxy->url && proxy->port == port && host_equal(&proxy->host, host))
			return true;
	}
	return false;
}

bool name_is_proxys_own(const char *name)
{
	static const char *const metadata[] = { "metadata", "metadata.google.internal", "metadata.goog",
						"instance-data", "instance-data.ec2.internal" };

	return WORD_IS_ONE_OF(name, metadata) || name_is_localhost(name);
}
