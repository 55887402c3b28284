/* SPDX-License-Identifier: MIT */
/*
 * A policy is hostile until it has been read. Any bytes give a policy that holds its promises, or at least one error
 * with its file and place; never both, and never a message that does more than say something.
 *
 * The input is up to four files, divided by a NUL byte: p.yaml, a.yaml, sub/b.yaml, c.yaml.
 */
#include "policy/include.c"
#include "policy/load.c"
#include "policy/pattern.c"
#include "policy/pattern_name.c"
#include "policy/problem.c"
#include "policy/quote.c"
#include "policy/read.c"
#include "policy/read_conditions.c"
#include "policy/read_deciders.c"
#include "policy/read_destinations.c"
#include "policy/read_lists.c"
#include "policy/read_rules.c"
#include "policy/read_sandbox.c"
#include "policy/read_sections.c"
#include "policy/shipped.c"
#include "policy/suggest.c"
#include "policy/yaml.c"
#include "policy/yaml_text.c"

#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "p.yaml", "a.yaml", "sub/b.yaml", "c.yaml" };

struct part {
	const char *text;
	size_t len;
	uint32_t lines;
};

static int part_read(void *ctx, const char *name, char **ret_text, size_t *ret_len)
{
	const struct part *parts = ctx;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) != 0 || !parts[i].text)
			continue;
		/* Of its own size, so that ASan sees every read beyond it. */
		*ret_text = malloc(parts[i].len ? parts[i].len : 1);
		check(*ret_text);
		memcpy(*ret_text, parts[i].text, parts[i].len);
		*ret_len = parts[i].len;
		return 0;
	}
	return -ENOENT;
}

/* -- what is told -------------------------------------------------------------- */

static void check_text(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0, n; i < len; i += n) {
		uint32_t c = 0;

		n = char_decode(text + i, len - i, &c);
		check(n && char_is_printable(c));
	}
}

static void check_problem(const struct problem *problem, const struct part *parts)
{
	char line[PROBLEM_LINE_SIZE];
	size_t i = 0;

	problem_format(problem, line);
	check_text(line);
	check(problem->text[0] && strlen(line) < sizeof(line) - 1);
	check(!strncmp(problem->file, "etc/", 4));
	while (i < ARRAY_SIZE(names) && strcmp(problem->file + 4, names[i]) != 0)
		i++;
	check(i < ARRAY_SIZE(names) && parts[i].text);
	check(problem->line && problem->line <= parts[i].lines + 1 && problem->column);
	check(!problem->other_line == !problem->other_file[0]);
}

/* -- what a policy promises ------------------------------------------------------ */

static void check_place(const struct policy *policy, const struct place *at, const struct part *parts)
{
	char text[PLACE_TEXT_SIZE];
	size_t i = 0;

	check(at->file < policy->n_files && at->line && at->column);
	while (i < ARRAY_SIZE(names) && strcmp(policy->files[at->file] + 4, names[i]) != 0)
		i++;
	if (strcmp(policy->files[at->file], SHIPPED_FILE) != 0)
		check(i < ARRAY_SIZE(names) && at->line <= parts[i].lines);
	place_format(policy, at, text);
	check(strchr(text, ':'));
}

static void check_pattern(const struct pattern *p, bool full, enum action action)
{
	char canonical[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];
	struct np_addr masked;

	check(p->protocols && !(p->protocols & ~(PATTERN_TCP | PATTERN_UDP)));
	if (p->inspected)
		check(!p->first_port && !p->last_port && p->protocols == PATTERN_TCP && !full && action != ACTION_DENY);
	else
		check(p->first_port && p->first_port <= p->last_port);
	if (!full && action != ACTION_DENY)
		check(p->first_port != 53 || p->last_port != 53);
	if (p->kind == PATTERN_NAME) {
		check(!full && p->name);
		check(pattern_name(p->name, strlen(p->name), canonical, problem) == 0);
		check(!strcmp(canonical, p->name));
		return;
	}
	check(p->kind == PATTERN_NET && !p->name && p->bits <= 128);
	masked = net_mask(&p->addr, p->bits);
	check(!memcmp(&masked, &p->addr, sizeof(masked)));
	check(p->v4 == (np_addr_is_v4(&p->addr) && p->bits >= 96));
	if (p->bits == 128)
		check(!np_addr_is_any(&p->addr) && !np_addr_is_loopback(&p->addr) && !np_addr_is_many(&p->addr));
}

static void check_words(const char *const *words, const char *refused)
{
	size_t n = 0;

	if (!words)
		return;
	for (; words[n]; n++) {
		check_text(words[n]);
		check(words[n][0] && !strpbrk(words[n], refused));
	}
	check(n && n <= NP_RULE_WORDS);
}

static void check_decider(const struct policy *policy, const struct rule *rule)
{
	bool found = false;

	for (size_t i = 0; i < policy->n_deciders; i++)
		found = found || policy->deciders[i].name == rule->by;
	check(rule->action == ACTION_DECIDE ? found : !rule->by);
}

static size_t check_rules(const struct policy *policy, const struct rule *rules, size_t n, bool full,
			  const struct part *parts)
{
	size_t patterns = 0;

	for (size_t i = 0; i < n; i++) {
		const struct rule *rule = &rules[i];

		check(rule->number == i && rule->action >= ACTION_ALLOW && rule->action <= ACTION_DECIDE);
		check(!full || rule->action <= ACTION_DENY);
		check(rule->levels && rule->levels < 1 << LEVEL_COUNT);
		check(rule->text && strlen(rule->text) < 160);
		check_text(rule->text);
		check_place(policy, &rule->at, parts);
		check_words(rule->methods, "abcdefghijklmnopqrstuvwxyz ,:");
		check_words(rule->headers, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ,:");
		check_words(rule->paths, "");
		check(rule->inspect || !rule_asks_request(rule));
		check_decider(policy, rule);
		check(rule->n_patterns && rule->pattern + (size_t)rule->n_patterns <= policy->n_patterns);
		for (size_t j = rule->pattern; j < rule->pattern + rule->n_patterns; j++) {
			check(policy->patterns[j].rule == i);
			check_place(policy, &policy->patterns[j].at, parts);
			check_pattern(&policy->patterns[j], full, rule->action);
		}
		patterns += rule->n_patterns;
	}
	return patterns;
}

/* Addresses alone, with nothing that a rule could say beside them. */
static size_t check_read_only(const struct policy *policy, const struct part *parts)
{
	const struct rule *rule = &policy->read_only;

	check(rule->action == ACTION_ALLOW && !rule->inspect && !rule_asks_request(rule) && !rule->number);
	check(!rule->n_patterns || (rule->text && rule->at.line));
	for (size_t j = rule->pattern; j < rule->pattern + rule->n_patterns; j++) {
		const struct pattern *p = &policy->patterns[j];

		check(p->kind == PATTERN_NET && !p->inspected && !p->rule);
		check_place(policy, &p->at, parts);
		check_pattern(p, false, ACTION_ALLOW);
	}
	return rule->n_patterns;
}

static void check_policy(const struct policy *policy, const struct part *parts)
{
	check(policy->n_files && policy->n_files <= ARRAY_SIZE(names) + 1);
	check(strspn(policy->hash, "0123456789abcdef") == 64 && !policy->hash[64]);
	for (size_t i = 0; i < LEVEL_COUNT; i++)
		check(policy->modes.of[i] >= NP_FULL && policy->modes.of[i] <= NP_NONE &&
		      (!i || policy->modes.of[i] >= policy->modes.of[i - 1]));
	for (size_t i = 0; i < LEVEL_COUNT; i++) {
		enum action is = policy->fallback[i].action, below = policy->fallback[i ? i - 1 : 0].action;

		check(is == ACTION_DENY || is == ACTION_ASK || is == ACTION_ALLOW);
		check(is == ACTION_DENY || is == below || below == ACTION_ALLOW);
	}
	check(policy->n_inspect_ports <= NP_INSPECT_PORTS_MAX && policy->n_host_loopback <= NP_HOST_PORTS_MAX);
	for (size_t i = 0; i < policy->n_inspect_ports; i++)
		check(policy->inspect_ports[i] && policy->inspect_ports[i] != 53);
	for (size_t i = 0; i < policy->n_host_loopback; i++)
		check(policy->host_loopback[i]);
	for (size_t i = 0; i < policy->n_deciders; i++) {
		const struct decider *d = &policy->deciders[i];

		check(!d->command != !d->socket && d->timeout_ms && d->timeout_ms <= DURATION_MAX_MS);
		check(d->command ? d->command[0] && d->command[0][0] == '/' : d->socket[0] == '/');
	}
	check(policy->approval.timeout_ms && policy->approval.timeout_ms <= DURATION_MAX_MS);
	/* Every pattern is some rule's. */
	check(check_rules(policy, policy->rules, policy->n_rules, false, parts) +
		      check_rules(policy, policy->full, policy->n_full, true, parts) + check_read_only(policy, parts) ==
	      policy->n_patterns);
	check(policy->names && policy->nets && policy->full_nets && policy->read_nets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct part parts[ARRAY_SIZE(names)] = { 0 };
	const struct policy_source source = { part_read, parts };
	struct problems problems = { 0 };
	struct policy *policy = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = i + 1 < ARRAY_SIZE(names) ? strnlen((const char *)data, size) : size;

		parts[i] = (struct part){ .text = (const char *)data, .len = len, .lines = 1 };
		for (size_t j = 0; j < len; j++)
			parts[i].lines += data[j] == '\n';
		if (len == size)
			break;
		data += len + 1;
		size -= len + 1;
	}
	r = policy_load(&source, "etc/", names[0], &policy, &problems);
	for (size_t i = 0; i < problems.count; i++)
		check_problem(&problems.items[i], parts);
	check(r == 0 ? policy && !problems.errors : r == -EINVAL && !policy && problems.errors);
	if (policy)
		check_policy(policy, parts);
	policy_free(policy);
	problems_clear(&problems);
	return 0;
}
