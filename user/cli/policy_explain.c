/* SPDX-License-Identifier: MIT */
/* netpawl policy explain FILE --url URL | --connect HOST:PORT | --lookup NAME --type TYPE */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "cli/explain_asked.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "policy/credential_fate.h"
#include "policy/near_miss.h"
#include "policy/parse_attempt.h"
#include "policy/outcome.h"
#include "vocab/limits.h"

static const char policy_explain_help[] =
	"Usage: netpawl policy explain FILE --url URL [OPTIONS]\n"
	"       netpawl policy explain FILE --connect HOST:PORT[/udp] [OPTIONS]\n"
	"       netpawl policy explain FILE --lookup NAME --type TYPE [OPTIONS]\n"
	"       netpawl policy explain --live U/S --url URL [OPTIONS]\n\n"
	"Says what a sandbox meets, by which rule and why, and why the rules before it were passed over; of what a\n"
	"person or a decider is asked about, who that is, for how long, and whether to try again; and which\n"
	"credential would go with it, in which places, or why it would not. Addresses of\n"
	"this host count as such. With --live it is the policy that the daemon runs, for a session as it\n"
	"stands, with its questions and answers; else it needs no daemon.\n\n"
	"Options:\n"
	"  --url URL        the request's URL\n"
	"  --method NAME    its method (GET)\n"
	"  --header NAMES   headers it has, by name: x-api-key,content-type\n"
	"  --body SIZE      length of its body: 1234, 500kB, 20MiB\n"
	"  --websocket      it asks for a websocket\n"
	"  --connect DEST   a connection of which no request is known: HOST:PORT or HOST:PORT/udp\n"
	"  --lookup NAME    a lookup of records of this name\n"
	"  --type TYPE      their type: MX, SRV or TXT\n"
	"  --resolving ADDR the address that the name resolves to\n"
	"  --alias NAMES    names that it is an alias of on the way there (CNAME)\n"
	"  --level LEVEL    the session's level (CONFIDENTIAL)\n"
	"  --class read_only\n"
	"                   for a run that may only read\n"
	"  --live U/S       for this session as it stands, by the policy that the daemon runs; no FILE then\n"
	"  --session U/S    the session, for rules that are for some sessions only\n"
	"  --all            list rules for other destinations too\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy explain policy.yaml --method POST --url https://api.github.com/repos/a/b\n\n"
	"Exit codes: 0 explained, whatever the verdict; 1 the policy has errors; 2 wrong usage; 3 no daemon.\n";

struct question {
	const char *url, *method, *headers, *body, *connect, *query, *type, *resolving, *aliases, *level, *class,
		*session, *running;
	bool websocket, all;
};

static const char *question_word(const struct question *q)
{
	return q->query ? q->query : q->connect ? q->connect : q->url;
}

/* What is known of the attempt, from the options. OPTIONS_GO_ON or an exit code, all said. */
static int question_read(const struct question *q, const char *command, struct arena *arena, struct facts *facts)
{
	const char *problem = "", *word = question_word(q);
	enum level level = LEVEL_CONFIDENTIAL;
	int e;

	if (!!q->url + !!q->connect + !!q->query != 1)
		return usage_error(command, "it takes --url, --connect or --lookup, one of them");
	if (!q->url && q->method)
		return usage_error(command, "--method goes with --url");
	if (!q->query != !q->type)
		return usage_error(command, "--lookup and --type go together");
	if (q->running && (q->level || q->session))
		return usage_error(command, "--live takes level and session from the daemon");
	if (q->level && level_parse(q->level, &level) < 0)
		return usage_error(command, "there is no level '%s'", q->level);
	if (q->class && strcmp(q->class, "read_only") != 0)
		return usage_error(command, "a policy speaks of class read_only, and not of '%s'", q->class);
	*facts = (struct facts){ .rung = { .level = (uint8_t)level, .flags = q->class ? NP_READ_ONLY : 0 },
				 .session = q->running ? q->running : q->session };
	e = q->query	 ? attempt_query(arena, q->type, q->query, facts, &problem)
	    : q->connect ? attempt_connect(arena, q->connect, facts, &problem)
			 : attempt_request(arena, q->method ? q->method : "GET", q->url, facts, &problem);
	if (e == -EINVAL && q->query && !facts->query)
		word = q->type;
	if (e == 0 && q->headers)
		e = attempt_headers(arena, word = q->headers, facts, &problem);
	if (e == 0 && q->body)
		e = attempt_body(word = q->body, facts, &problem);
	if (e == 0 && q->resolving)
		e = attempt_resolving(word = q->resolving, facts, &problem);
	if (e == 0 && q->aliases)
		e = attempt_aliases(arena, word = q->aliases, facts, &problem);
	if (e == 0 && q->websocket)
		e = attempt_websocket(facts, &problem);
	if (e == -EINVAL)
		return usage_error(command, "'%s': %s", word, problem);
	if (e < 0) {
		error_print(NULL, NP_R_FAILED, strerror(-e));
		return CLI_REFUSED;
	}
	return OPTIONS_GO_ON;
}

/* Is it an address of the host that this runs on? */
static bool addr_is_here(const struct np_addr *addr)
{
	struct np_addr carried = np_addr_carried(addr), own;
	struct ifaddrs *list = NULL;
	bool here = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *i = list; i && !here; i = i->ifa_next) {
		if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			own = np_addr_v4(((const struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr);
		else
			memcpy(&own, &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, sizeof(own));
		here = !memcmp(&own, &carried, sizeof(own));
	}
	freeifaddrs(list);
	return here;
}

/* One value an option: a second --header would make the first one go unnoticed. */
static bool given_twice(int argc, char **argv, const char *option)
{
	size_t len = strlen(option);
	int n = 0;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		n += !strncmp(argv[i], option, len) && (!argv[i][len] || argv[i][len] == '=');
	return n > 1;
}

/* -- the rules that did not decide ----------------------------------------- */

struct passed {
	const struct policy *policy;
	const struct facts *facts;
	const struct rule *rules;
	size_t n; /* rules[0] to rules[n - 1] were passed over */
	uint8_t *trace;
};

static void passed_free(struct passed *p)
{
	free(p->trace);
}

/* n is 0, too, when there is no memory for more. */
static struct passed passed_over(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	struct passed p = { .policy = policy, .facts = facts };

	if (facts->rung.mode == NP_NONE || outcome_is_beside_rules(verdict->reason))
		return p;
	p.rules = facts->rung.mode == NP_FULL ? policy->full : policy->rules;
	p.n = facts->rung.mode == NP_FULL ? policy->n_full : policy->n_rules;
	p.trace = calloc(p.n + 1, 1);
	if (p.trace)
		policy_trace(policy, facts, p.trace);
	if (verdict->rule || !p.trace)
		p.n = p.trace ? verdict->rule->number : 0;
	return p;
}

/* Why a rule was passed over, as far as it concerns this destination at all; NULL when it does not. */
static const char *passed_why(const struct passed *p, const struct rule *rule, bool all)
{
	enum misfit misfit = trace_misfit(p->trace, rule, p->facts);

	if (p->trace[rule->number] == MISFIT_DESTINATION && !all)
		return NULL;
	if (misfit == MISFIT_NONE)
		return "it opens the metadata address, and the name needs a rule of its own";
	return misfit_sentence(misfit);
}

/* -- grants that it misses by little ------------------------------------------ */

static void near_print(const struct policy *policy, const struct facts *facts)
{
	struct near_miss near[NEAR_MISSES_MAX];
	size_t n = policy_near_misses(policy, facts, true, near);
	_table_ struct table table = { .columns = 3 };

	for (size_t i = 0; i < n; i++) {
		char place[PLACE_TEXT_SIZE], text[NEAR_TEXT_SIZE];

		place_format(policy, &near[i].rule->at, place);
		near_miss_text(&near[i], facts->name, text);
		table_add(&table, place, near[i].rule->text, text);
	}
	if (n)
		puts("\nNear misses:");
	table_print(&table, stdout);
}

static json_t *near_json(const struct policy *policy, const struct facts *facts)
{
	struct near_miss near[NEAR_MISSES_MAX];
	size_t n = policy_near_misses(policy, facts, true, near);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *one = rule_json(policy, near[i].rule);
		char text[NEAR_TEXT_SIZE];

		near_miss_text(&near[i], facts->name, text);
		json_object_set_new(one, "why", text_json(text));
		json_array_append_new(list, one);
	}
	return list;
}

/* -- credentials that would go with it ----------------------------------------- */

static void credentials_print(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	struct credential_fate fate;
	bool any = false;

	for (size_t next = 0; credential_fate_next(policy, facts, verdict, &next, &fate); any = true) {
		char places[CREDENTIAL_PLACES_SIZE];

		credential_places(&fate, places);
		output_clean_line(stdout, "  secret  %s%s%s%s", fate.tokens ? "tokens of " : "", fate.credential->name,
				  fate.why ? " does not go with it: " : ": as ", fate.why ? fate.why : places);
	}
	if (!any && facts->method && policy->n_credentials)
		output_clean_line(stdout, "  secret  none: no credential is for this host");
}

static json_t *credentials_json(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	_buf_ struct buf text = BUF_INIT(SIZE_MAX);

	credential_fates_json(policy, facts, verdict, &text);
	return buf_error(&text) ? NULL : json_loadb(text.data, text.len, 0, NULL);
}

/* The first line of a page: what was asked. */
static void attempt_print(const struct question *q, const struct facts *facts, const struct verdict *verdict)
{
	output_clean_line(stdout, "%s  %s%s %s, at %s (mode %s%s)", action_name(verdict->action),
			  q->query     ? "lookup "
			  : q->connect ? "connect"
				       : facts->method,
			  q->query ? q->type : "", question_word(q), level_name(facts->rung.level),
			  mode_name(facts->rung.mode), facts->rung.flags & NP_READ_ONLY ? ", class read_only" : "");
}

static void page_print(const struct policy *policy, const struct question *q, const struct facts *facts,
		       const struct verdict *verdict, const char *message, const json_t *now)
{
	cleanup(passed_free) struct passed p = passed_over(policy, facts, verdict);
	_table_ struct table table = { .columns = 3 };
	const char *proxy = outcome_proxy(policy, facts, verdict);
	char place[PLACE_TEXT_SIZE];
	size_t listed = 0;

	attempt_print(q, facts, verdict);
	if (verdict->rule)
		place_format(policy, &verdict->rule->at, place);
	output_clean_line(stdout, "  rule    %s%s%s", verdict->rule ? place : "none", verdict->rule ? "  " : "",
			  verdict->rule ? verdict->rule->text : "");
	output_clean_line(stdout, "  reason  %s", reason_token(verdict->reason));
	output_clean_line(stdout, "  why     %s", message);
	if (proxy)
		output_clean_line(stdout, "  way     by way of %s, which resolves names", proxy);
	credentials_print(policy, facts, verdict);
	asked_print(policy, facts, verdict, now);
	for (size_t i = 0; i < p.n; i++) {
		const char *why = passed_why(&p, &p.rules[i], q->all);

		if (!why)
			continue;
		place_format(policy, &p.rules[i].at, place);
		table_add(&table, place, p.rules[i].text, why);
		listed++;
	}
	near_print(policy, facts);
	if (!p.n)
		return;
	printf("\nRules passed over: %zu\n", p.n);
	table_print(&table, stdout);
	if (listed < p.n)
		printf("%s%zu for other destinations (--all lists them)\n", listed ? "and " : "", p.n - listed);
}

static json_t *page_json(const struct policy *policy, const struct question *q, const struct facts *facts,
			 const struct verdict *verdict, const char *message, const json_t *now)
{
	cleanup(passed_free) struct passed p = passed_over(policy, facts, verdict);
	json_t *list = json_array();

	for (size_t i = 0; i < p.n; i++) {
		const char *why = passed_why(&p, &p.rules[i], q->all);
		json_t *one;

		if (!why)
			continue;
		one = rule_json(policy, &p.rules[i]);
		json_object_set_new(one, "why", text_json(why));
		json_array_append_new(list, one);
	}
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:s*}", "action",
			 text_json(action_name(verdict->action)), "reason", text_json(reason_token(verdict->reason)),
			 "message", text_json(message), "rule", rule_json(policy, verdict->rule), "mode",
			 text_json(mode_name(facts->rung.mode)), "level", text_json(level_name(facts->rung.level)),
			 "passed_over", list, "passed_over_count", (int)p.n, "near_misses", near_json(policy, facts),
			 "asks", asked_json(policy, facts, verdict, now), "credentials",
			 credentials_json(policy, facts, verdict), "proxy", outcome_proxy(policy, facts, verdict));
}

static int policy_explain_explain(const struct cli *cli, const char *file, const struct question *q,
				  struct facts *facts)
{
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	char message[VERDICT_TEXT_SIZE];
	_json_ json_t *now = NULL;
	struct verdict verdict;
	int code = CLI_OK;

	if (q->running) {
		struct np_rung rung;

		code = policy_running(cli, q->running, &policy, &rung);
		if (code != CLI_OK)
			return code;
		facts->rung.level = rung.level;
		facts->rung.mode = facts->rung.flags & NP_READ_ONLY && rung.mode == NP_FULL ? NP_PROXIED : rung.mode;
	} else if (policy_load_file(file, &policy, &problems) < 0) {
		return policy_broken(cli, &problems);
	} else {
		facts->rung.mode = facts_mode(policy, facts);
	}
	facts->local = facts->has_addr && addr_is_here(&facts->addr);
	verdict = policy_outcome(policy, facts);
	verdict_text(policy, facts, &verdict, message);
	if (q->running)
		code = asked_now(cli, q->running, q->connect, q->url, facts, &verdict, &now);
	if (code != CLI_OK)
		return code;
	if (cli->json)
		return json_print(page_json(policy, q, facts, &verdict, message, now), CLI_OK);
	page_print(policy, q, facts, &verdict, message, now);
	return CLI_OK;
}

int command_policy_explain(struct cli *cli, int argc, char **argv)
{
	struct question q = { 0 };
	const struct option_spec specs[] = {
		{ "url", .value = &q.url },
		{ "method", .value = &q.method },
		{ "header", .value = &q.headers },
		{ "body", .value = &q.body },
		{ "connect", .value = &q.connect },
		{ "resolving", .value = &q.resolving },
		{ "level", .value = &q.level, .complete = COMPLETE_LEVEL },
		{ "websocket", .flag = &q.websocket },
		{ "lookup", .value = &q.query },
		{ "type", .value = &q.type },
		{ "all", .flag = &q.all },
		{ "class", .value = &q.class },
		{ "alias", .value = &q.aliases },
		{ "session", .value = &q.session },
		{ "live", .value = &q.running },
	};
	const struct options options = {
		.command = "policy explain", .help = policy_explain_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	bool twice = given_twice(argc, argv, "--header");
	_arena_ struct arena *arena = NULL;
	struct facts facts = { 0 };
	int next, code = options_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (argc - next != !q.running)
		return usage_error(options.command, q.running ? "it takes no file with --live" : "it takes one file");
	if (twice)
		return usage_error(options.command, "give all headers as one list: --header x-api-key,content-type");
	if (arena_new(NP_CASE_MEMORY, &arena) < 0) {
		error_print(NULL, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	code = question_read(&q, options.command, arena, &facts);
	return code == OPTIONS_GO_ON ? policy_explain_explain(cli, argv[next], &q, &facts) : code;
}
