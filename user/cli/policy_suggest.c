/* SPDX-License-Identifier: MIT */
/*
 * netpawl policy suggest --from-refusals USER/SESSION: rules that would have let pass what no rule allowed, and nothing else.
 * Whole names, ports, methods and paths as they were refused: whoever wants more widens them by hand. What a sandbox asked
 * for is its own choice, so none of it goes out unread: a name is one that the policy's reader takes, a path is plain ASCII.
 */
#include <errno.h>
#include <string.h>

#include "api_client/api.h"
#include "base/arena.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "policy/parse_attempt.h"
#include "reason.h"
#include "vocab/limits.h"
#include "vocab/words.h"
#include "wire/hostname.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

static const char policy_suggest_help[] =
	"Usage: netpawl policy suggest --from-refusals U/S [OPTIONS]\n"
	"       netpawl policy suggest DIR [OPTIONS]\n\n"
	"Prints rules that allow what a session was refused for want of a rule, and the lines of a .case file that\n"
	"go with them: to be read, narrowed and put into a policy by a person. Names, ports, methods and paths are\n"
	"those that were refused, never a wildcard. Of a name that was only looked up it suggests to read from\n"
	"port 443. Warns of hosts that take uploads from anybody.\n\n"
	"Of a directory, rules for the hosts that a project's files there name: MCP servers (.mcp.json and those of\n"
	"common clients), base URLs of models (LiteLLM, .env), .npmrc, pip.conf, git remotes, docker-compose. Each "
	"has\n"
	"a comment where it is from. No link is followed, and nothing of a URL but host and port is shown.\n\n"
	"Options:\n"
	"  --from-refusals U/S\n"
	"                   the session whose refusals are on record\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy suggest --from-refusals alice/demo\n"
	"  netpawl policy suggest ~/project\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon.\n";

struct suggestions {
	struct arena *arena;
	json_t *rules;	   /* by destination and method, in order: the paths; null: every path */
	json_t *cases;	   /* by the level that something was refused at: lines */
	const char *level; /* of the session, for events that have none */
	size_t left_out;
};

bool host_takes_uploads(const char *name)
{
	static const char *const domains[] = { "github.com",
					       "gist.github.com",
					       "storage.googleapis.com",
					       "amazonaws.com",
					       "blob.core.windows.net",
					       "githubusercontent.com",
					       "digitaloceanspaces.com" };
	size_t len = name ? strlen(name) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		size_t n = strlen(domains[i]);

		if (len >= n && !strcmp(name + len - n, domains[i]) && (len == n || name[len - n - 1] == '.'))
			return true;
	}
	return false;
}

/* As a glob it must stand for itself, and as a word in two files for nothing else. */
static bool path_is_plain(const char *path)
{
	if (*path != '/' || strlen(path) > NP_GLOB_MAX / 2)
		return false;
	for (; *path; path++)
		if (*path <= ' ' || *path >= 0x7f || strchr("*\"\\", *path))
			return false;
	return true;
}

/* What was tried, as the policy sees it: 0, or -EINVAL when it is not one for a rule. */
static int refusal_read(struct arena *arena, const json_t *refusal, struct facts *facts)
{
	const char *method = member_text(refusal, "method"), *url = member_text(refusal, "url");
	const char *query = member_text(refusal, "lookup"), *address = member_text(refusal, "address"), *problem;
	json_int_t port = json_integer_value(json_object_get(refusal, "port"));
	_buf_ struct buf text = BUF_INIT(1024);

	if (method && url)
		return attempt_request(arena, method, url, facts, &problem);
	if (query)
		buf_printf(&text, "%s:443", query);
	else if (url)
		buf_puts(&text, url);
	else if (address && port)
		buf_printf(&text, strchr(address, ':') ? "[%s]:%d/%s" : "%s:%d/%s", address, (int)port,
			   member_text(refusal, "protocol") ?: "");
	return buf_error(&text) ? -EINVAL : attempt_connect(arena, text.data ? text.data : "", facts, &problem);
}

/* "api.example:443", "[2001:db8::1]:53/udp" */
static void destination_put(const struct facts *facts, struct buf *out)
{
	char addr[ADDR_TEXT_SIZE] = "";

	if (!facts->name)
		addr_format(&facts->addr, addr);
	buf_printf(out, facts->name || !strchr(addr, ':') ? "%s:%u%s" : "[%s]:%u%s", facts->name ? facts->name : addr,
		   facts->port, facts->protocol == PATTERN_UDP ? "/udp" : "");
}

static void paths_add(json_t *paths, const char *path)
{
	const json_t *known;
	size_t i;

	json_array_foreach(paths, i, known) if (!strcmp(json_string_value(known), path)) return;
	json_array_append_new(paths, json_string(path));
}

static void rule_add(struct suggestions *s, const struct facts *facts, const char *methods, const char *path)
{
	_buf_ struct buf key = BUF_INIT(1024);
	json_t *paths;

	destination_put(facts, &key);
	buf_printf(&key, "\t%s", methods);
	if (buf_error(&key))
		return;
	paths = json_object_get(s->rules, key.data);
	if (!paths) {
		paths = json_array();
		json_object_set_new(s->rules, key.data, paths);
	}
	if (path)
		paths_add(paths, path);
}

static void case_add(struct suggestions *s, const struct facts *facts, const json_t *refusal, const char *path)
{
	const char *url = member_text(refusal, "url"), *level = member_text(refusal, "level") ?: s->level;
	_buf_ struct buf line = BUF_INIT(4096);

	if (facts->method)
		buf_printf(&line, "%s %s://", facts->method, url && !strncmp(url, "https:", 6) ? "https" : "http");
	else
		buf_puts(&line, "connect ");
	destination_put(facts, &line);
	buf_printf(&line, "%s -> allow", path ? path : "");
	if (buf_error(&line))
		return;
	if (!json_object_get(s->cases, level))
		json_object_set_new(s->cases, level, json_array());
	paths_add(json_object_get(s->cases, level), line.data);
}

static void refusal_take(struct suggestions *s, const json_t *refusal)
{
	const char *path = NULL;
	struct facts facts = { 0 };
	char plain[NP_GLOB_MAX + 1];

	if (refusal_read(s->arena, refusal, &facts) < 0 || facts.port == 53 ||
	    (facts.name && facts.protocol == PATTERN_UDP)) {
		s->left_out++;
		return;
	}
	if (facts.method) {
		snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(facts.path, "?"), facts.path);
		path = plain;
	}
	if (path && !path_is_plain(path)) {
		s->left_out++;
		return;
	}
	/* Of a name that was only looked up, or of whose requests none was seen, nobody knows what for. */
	if (!facts.method && facts.name && (facts.port == 443 || facts.port == 80))
		rule_add(s, &facts, "GET, HEAD", NULL);
	else
		rule_add(s, &facts, facts.method ? facts.method : "", path);
	case_add(s, &facts, refusal, path);
}

static void rule_put(const char *key, const json_t *paths, struct buf *out)
{
	size_t dest = strcspn(key, "\t");
	const char *methods = key + dest + 1;
	const json_t *path;
	char name[NAME_SIZE];
	size_t i;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(key, ":"), key);
	if (host_takes_uploads(name))
		buf_printf(
			out,
			"  # Careful: anybody can upload to %s and fetch it from elsewhere. Keep the paths narrow.\n",
			name);
	buf_printf(out, "  - allow: \"%.*s\"\n", (int)dest, key);
	if (*methods)
		buf_printf(out, "    methods: [%s]\n", methods);
	json_array_foreach(paths, i, path)
		buf_printf(out, "%s\"%s\"", i ? ", " : "    paths: [", json_string_value(path));
	buf_puts(out, json_array_size(paths) ? "]\n" : "");
	if (*methods && !strcmp(methods, "GET, HEAD") && !json_array_size(paths))
		buf_puts(out, "    max_body: 0 # only its lookup or connection is on record: for reading, until you "
			      "know more\n");
}

static int suggestions_print(const struct cli *cli, const struct suggestions *s)
{
	_buf_ struct buf yaml = BUF_INIT(1u << 20), cases = BUF_INIT(1u << 20);
	json_t *paths, *lines, *line;
	const char *key;
	size_t i;

	if (json_object_size(s->rules))
		buf_puts(&yaml, "rules:\n");
	json_object_foreach(s->rules, key, paths) rule_put(key, paths, &yaml);
	json_object_foreach(s->cases, key, lines)
	{
		buf_printf(&cases, "at %s\n", key);
		json_array_foreach(lines, i, line) buf_printf(&cases, "%s\n", json_string_value(line));
	}
	if (buf_error(&yaml) || buf_error(&cases)) {
		error_print(NULL, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	if (cli->json)
		return json_print(json_pack("{s:s,s:s,s:i,s:i}", "yaml", yaml.data ? yaml.data : "", "cases",
					    cases.data ? cases.data : "", "rules", (int)json_object_size(s->rules),
					    "left_out", (int)s->left_out),
				  CLI_OK);
	if (!json_object_size(s->rules))
		puts("# No refusal on record is for want of a rule.");
	fputs(yaml.data ? yaml.data : "", stdout);
	if (cases.len) {
		puts("\n# Lines for a .case file:");
		for (const char *at = cases.data; *at; at += strcspn(at, "\n") + 1)
			printf("#   %.*s\n", (int)strcspn(at, "\n"), at);
	}
	if (s->left_out)
		printf("# %zu refusals are left out: no rule can be written for exactly that.\n", s->left_out);
	return CLI_OK;
}

int command_policy_suggest(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL;
	const struct option_spec specs[] = { { "from-refusals", .value = &session } };
	const struct options options = {
		.command = "policy suggest", .help = policy_suggest_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	_json_ json_t *rules = json_object(), *cases = json_object();
	struct suggestions s = { .rules = rules, .cases = cases };
	_api_answer_ struct api_answer answer = { 0 };
	_arena_ struct arena *arena = NULL;
	_free_ char *path = NULL;
	const json_t *refusal;
	int next, code;
	size_t i;

	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (next + 1 == argc && !session)
		return policy_suggest_dir(cli, argv[next]);
	if (next != argc || !session)
		return usage_error(options.command, "it takes --from-refusals USER/SESSION, or a directory");
	path = api_session_path(session, "/why?last=" STRING(NP_WHY_MAX));
	if (!path || arena_new(NP_CASE_MEMORY, &arena) < 0)
		return CLI_REFUSED;
	code = api_call(cli->socket, session, "GET", path, NULL, &answer);
	if (code != CLI_OK)
		return code;
	s.arena = arena;
	s.level = member_text(answer.json, "level") ?: "";
	json_array_foreach(json_object_get(answer.json, "refused"), i,
			   refusal) if (!strcmp(member_text(refusal, "reason") ?: "", reason_token(NP_R_NOT_IN_POLICY)))
		refusal_take(&s, refusal);
	return suggestions_print(cli, &s);
}
