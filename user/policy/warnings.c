/* SPDX-License-Identifier: MIT */
#include "policy/warnings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/look_alike.h"
#include "vocab/limits.h"

#define BODY_LARGE (1u << 20)
#define RUN_LONG   64  /* letters and digits in one piece that no person types */
#define RUN_KINDS  8   /* and so many different ones: not a line of dashes */
#define RUN_NOISE  32  /* likewise, if they are as mixed as what a machine makes: */
#define URL_NOISE  4.4 /* bits a character. Words of any language have 4.1 at most in a piece of this length */
#define URL_LONG   512
#define BODY_SEEN  96  /* bytes that say something about the rest */
#define BODY_NOISE 5.5 /* bits a byte: text has 5 at most, base64 nearly 6, what is compressed or encrypted 7 */
#define LABEL_LONG 40  /* of a name: longer than those that people give */

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

/* Bits that each byte says about the next: Shannon's entropy of what is there. */
static double data_entropy(const char *data, size_t len)
{
	unsigned counts[256] = { 0 };
	double bits = 0;

	for (size_t i = 0; i < len; i++)
		counts[(unsigned char)data[i]]++;
	for (unsigned i = 0; i < 256; i++)
		if (counts[i])
			bits -= (double)counts[i] / (double)len * log2((double)counts[i] / (double)len);
	return bits;
}

/* A piece of letters and digits. Its length, if no person has typed it. */
static size_t piece_data(const char *piece, size_t len)
{
	bool seen[128] = { false }, upper = false, lower = false, digit = false;
	size_t kinds = 0;

	for (size_t i = 0; i < len; i++) {
		kinds += !seen[piece[i] & 127];
		seen[piece[i] & 127] = true;
		upper |= isupper((unsigned char)piece[i]);
		lower |= islower((unsigned char)piece[i]);
		digit |= isdigit((unsigned char)piece[i]);
	}
	if (len >= RUN_LONG && kinds >= RUN_KINDS)
		return len;
	return len >= RUN_NOISE && upper && lower && digit && data_entropy(piece, len) >= URL_NOISE ? len : 0;
}

/* The longest of them. */
static size_t data_longest(const char *url)
{
	size_t longest = 0;

	while (*url) {
		size_t len = 0, data;

		while (isalnum((unsigned char)url[len]) || (url[len] && strchr("+_=-%", url[len])))
			len++;
		data = piece_data(url, len);
		longest = data > longest ? data : longest;
		url += len ? len : 1;
	}
	return longest;
}

static void body_warn(const struct warning_facts *facts, struct warnings *ret)
{
	if (facts->body == UINT64_MAX)
		warning_add(ret, "nobody knows how long its body is");
	else if (facts->body >= BODY_LARGE)
		warning_add(ret, "its body has %llu bytes", (unsigned long long)facts->body);
	if (facts->preview_len >= BODY_SEEN && data_entropy(facts->preview, facts->preview_len) >= BODY_NOISE)
		warning_add(ret, "its body is no text that can be read: compressed, encrypted or encoded");
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
	body_warn(facts, ret);
	if (data)
		warning_add(ret, "the URL has %zu characters in one piece: it may carry data", data);
	else if (facts->method[0] && strlen(facts->url) >= URL_LONG)
		warning_add(ret, "the URL has %zu characters: it may carry data", strlen(facts->url));
	if (!facts->asked_before)
		warning_add(ret, "the session was never asked about this host before");
}
