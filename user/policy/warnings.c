/* SPDX-License-Identifier: MIT */
#include "policy/warnings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/suggest.h"
#include "vocab/limits.h"

#define BODY_LARGE (1u << 20)
#define RUN_LONG   64 /* letters and digits in one piece that no person types */
#define RUN_KINDS  20 /* and so many different ones: not a line of dashes */
#define LABEL_LONG 40 /* of a name: longer than those that people give */
#define NAME_TEXT  256
#define NAME_SHORT 6 /* any short name is near to any other */

/* Targets of look-alikes, beside what the policy allows. */
static const char *const well_known[] = {
	"amazonaws.com", "anthropic.com", "apple.com",	    "azure.com",     "cloudflare.com", "github.com",
	"gitlab.com",	 "google.com",	  "googleapis.com", "microsoft.com", "openai.com",     "slack.com",
};

static __attribute__((format(printf, 2, 3))) void warning_add(struct warnings *warnings, const char *fmt, ...)
{
	va_list ap;

	if (warnings->n == WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(warnings->text[warnings->n++], WARNING_SIZE, fmt, ap);
	va_end(ap);
}

static unsigned labels_count(const char *name)
{
	unsigned n = 1;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

/* As much of the end of the host as the name has labels; NULL: it has fewer. */
static const char *host_tail(const char *host, unsigned labels)
{
	unsigned have = labels_count(host);

	for (; have > labels; have--)
		host = strchr(host, '.') + 1;
	return have == labels ? host : NULL;
}

/* What looks the same in many typefaces becomes the same. */
static void name_skeleton(const char *name, char to[static NAME_TEXT])
{
	size_t n = 0;

	for (; *name && n + 1 < NAME_TEXT; name++) {
		if (name[0] == 'r' && name[1] == 'n')
			to[n++] = 'm', name++;
		else if (name[0] == 'v' && name[1] == 'v')
			to[n++] = 'w', name++;
		else
			to[n++] = *name == '0' ? 'o' : *name == '1' || *name == 'i' ? 'l' : *name == '5' ? 's' : *name;
	}
	to[n] = '\0';
}

static bool name_looks_alike(const char *host, const char *name)
{
	const char *tail = host_tail(host, labels_count(name));
	char a[NAME_TEXT], b[NAME_TEXT];
	const size_t len = strlen(name);
	const unsigned slips = len < 2 * NAME_SHORT ? 1 : 2;

	/* "github.com.other.example" begins with it and is another's. */
	if (!strncmp(host, name, len) && host[len] == '.' && strchr(name, '.'))
		return true;
	if (!tail || !strcmp(tail, name) || len < NAME_SHORT || !strchr(name, '.'))
		return false;
	name_skeleton(tail, a);
	name_skeleton(name, b);
	return !strcmp(a, b) || edit_distance(tail, name, slips) <= slips;
}

static void alike_find(const struct policy *policy, const char *host, struct warnings *ret)
{
	const char *alike = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(well_known) && !alike; i++)
		alike = name_looks_alike(host, well_known[i]) ? well_known[i] : NULL;
	for (size_t i = 0; i < policy->n_patterns && i < NP_WARNING_PATTERNS && !alike; i++) {
		const struct pattern *pattern = &policy->patterns[i];
		const char *name = pattern->kind == PATTERN_NAME ? pattern->name : NULL;

		while (name && (*name == '*' || *name == '.'))
			name++;
		if (name && pattern->rule < policy->n_rules && policy->rules[pattern->rule].action == ACTION_ALLOW &&
		    name_looks_alike(host, name))
			alike = name;
	}
	if (alike)
		warning_add(ret, "the name looks like %.100s, and is another", alike);
}

static bool host_is_address(const char *host)
{
	unsigned char bytes[16];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static void host_warn(const struct policy *policy, const char *host, struct warnings *ret)
{
	if (host_is_address(host)) {
		warning_add(ret, "it goes to an address, not to a name");
		return;
	}
	alike_find(policy, host, ret);
	if (!strncmp(host, "xn--", 4) || strstr(host, ".xn--"))
		warning_add(ret, "the name has letters of other scripts (xn--), which may look like others");
	for (const char *label = host; label; label = strchr(label, '.') ? strchr(label, '.') + 1 : NULL)
		if (strcspn(label, ".") >= LABEL_LONG) {
			warning_add(ret, "a part of the name has %zu characters: it may carry data",
				    strcspn(label, "."));
			break;
		}
}

/* The longest piece of letters and digits, with many different ones. */
static size_t data_longest(const char *url)
{
	size_t longest = 0;

	while (*url) {
		bool seen[128] = { false };
		size_t len = 0, kinds = 0;

		for (; isalnum((unsigned char)url[len]) || (url[len] && strchr("+_=-%", url[len])); len++) {
			kinds += !seen[url[len] & 127];
			seen[url[len] & 127] = true;
		}
		if (len > longest && kinds >= RUN_KINDS)
			longest = len;
		url += len ? len : 1;
	}
	return longest;
}

void warnings_find(const struct policy *policy, const struct warning_facts *facts, struct warnings *ret)
{
	size_t data = facts->method[0] ? data_longest(facts->url) : 0;

	ret->n = 0;
	host_warn(policy, facts->host, ret);
	if (!facts->method[0])
		warning_add(ret, "nothing of the connection will be seen: data may go both ways");
	else if (facts->write)
		warning_add(ret, "it may send data: %.32s", facts->method);
	if (facts->body == UINT64_MAX)
		warning_add(ret, "nobody knows how long its body is");
	else if (facts->body >= BODY_LARGE)
		warning_add(ret, "its body has %llu bytes", (unsigned long long)facts->body);
	if (data >= RUN_LONG)
		warning_add(ret, "the URL has %zu characters in one piece: it may carry data", data);
	if (!facts->asked_before)
		warning_add(ret, "the session was never asked about this host before");
}
