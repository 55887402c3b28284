/* SPDX-License-Identifier: MIT */
/* netpawl questions [USER/SESSION], netpawl answer ID deny|once|host|domain|always */
#include <string.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

static const char questions_help[] =
	"Usage: netpawl questions [USER/SESSION] [OPTIONS]\n\n"
	"Lists what waits for a person: requests and connections that a rule asks about (ask:, default: ask).\n\n"
	"Options:\n"
	"  --state STATE    pending (unless given), allowed, denied, expired, void or all\n"
	"  --follow         go on with those that come\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl questions --follow\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static const char answer_help[] =
	"Usage: netpawl answer ID deny|once|host|domain|always [OPTIONS]\n"
	"       netpawl answer ID --revoke [OPTIONS]\n\n"
	"Answers a question (`netpawl questions`), once. deny: what waits is refused, and so is what comes.\n"
	"once: one request goes on, the one that has waited longest or the next that comes. host: all of this\n"
	"session to this host and port go on, by the same rule and of the same kind (reading, writing,\n"
	"connections). domain: likewise, all hosts of its registrable domain, by the public suffix list. deny,\n"
	"host and domain hold until the session rises or ends, or a reload removes or changes the rule; then what\n"
	"they opened is cut. always: as host, for all sessions of the user, at this level and below, and for good:\n"
	"it is written into the file that the policy names (approval: grants); not where a decider has you asked.\n"
	"once holds until it is used, at most as long as approval: timeout.\n\n"
	"Options:\n"
	"  --revoke         take back an answer that holds; what it opened is cut, and asked about anew\n"
	"  --for TIME       no longer than this: 30m, 8h; then what it opened is cut\n"
	"  --reason TEXT    why, for the record; of a deny the program is told\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl answer 7 host --for 30m\n\n"
	"Exit codes: 0 answered; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static long long question_id(const json_t *question)
{
	return (long long)json_integer_value(json_object_get(question, "question"));
}

/* What the session has seen is what an answer may let out. --json has all of them. */
static void datasets_print(const json_t *datasets)
{
	enum { SHOWN = 8 };
	size_t count = json_array_size(datasets);

	for (size_t i = 0; i < count && i < SHOWN; i++)
		output_clean_line(stdout, "    the session holds %s",
				  json_string_value(json_array_get(datasets, i)) ?: "?");
	if (count > SHOWN)
		output_clean_line(stdout, "    the session holds %zu more (--json)", count - SHOWN);
}

/* Everything that a stranger may have written goes through output_clean_line(). */
static void question_print(const json_t *question)
{
	const json_t *before = json_object_get(question, "before"), *warning;
	_free_ char *waiting = scalar_text(json_object_get(question, "waiting"));
	_free_ char *body = scalar_text(json_object_get(question, "body"));
	const char *method = member_text(question, "method"), *answer = member_text(question, "answer");
	const char *until = member_text(question, "over") ? NULL : member_text(question, "until");
	const char *reason = member_text(question, "reason"), *domain = member_text(question, "domain");
	size_t i;

	output_clean_line(stdout, "%lld  %s  %s  %s %s", question_id(question), member_text(question, "state") ?: "?",
			  member_text(question, "session") ?: "?", method ?: "connect to",
			  member_text(question, "url") ?: "?");
	output_clean_line(stdout, "    rule %s, level %s, body %s bytes, until %s, %s waiting",
			  member_text(question, "rule") ?: "?", member_text(question, "level") ?: "?", body ?: "?",
			  member_text(question, "expires") ?: "?", waiting ?: "?");
	if (json_integer_value(json_object_get(before, "allowed")) ||
	    json_integer_value(json_object_get(before, "denied")))
		output_clean_line(stdout, "    this host before: %lld allowed, %lld denied",
				  (long long)json_integer_value(json_object_get(before, "allowed")),
				  (long long)json_integer_value(json_object_get(before, "denied")));
	if (domain && !answer)
		output_clean_line(stdout, "    its domain is %s", domain);
	datasets_print(json_object_get(question, "datasets"));
	json_array_foreach(json_object_get(question, "warnings"), i, warning)
	{
		output_clean_line(stdout, "    ! %s", json_string_value(warning) ?: "?");
	}
	if (answer)
		output_clean_line(stdout, "    answered %s%s%s by %s%s%s%s%s", answer,
				  !strcmp(answer, "domain") ? " " : "", !strcmp(answer, "domain") ? domain ?: "?" : "",
				  member_text(question, "answered_by") ?: "?", until ? ", holds until " : "",
				  until ?: "", reason ? ": " : "", reason ?: "");
	if (member_text(question, "revoked_by"))
		output_clean_line(stdout, "    taken back by %s", member_text(question, "revoked_by"));
}

static bool is_state(const char *word)
{
	static const char *const states[] = { "pending", "allowed", "denied", "expired", "void", "all" };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (!strcmp(word, states[i]))
			return true;
	return false;
}

/* The oldest first. Returns the newest of them. */
static long long list_print(const struct cli *cli, const json_t *answer, long long last)
{
	const json_t *list = json_object_get(answer, "questions");

	for (size_t i = json_array_size(list); i-- > 0;) {
		const json_t *question = json_array_get(list, i);

		if (cli->json) {
			_free_ char *line = json_dumps(question, JSON_COMPACT);

			json_text_print(line ?: "{}");
		} else {
			question_print(question);
		}
		last = question_id(question) > last ? question_id(question) : last;
	}
	fflush(stdout);
	return last;
}

/* Until it is interrupted, or the daemon goes. */
static int questions_follow(const struct cli *cli, const char *path)
{
	long long last = 0;

	for (;;) {
		_api_answer_ struct api_answer answer = { 0 };
		_buf_ struct buf next = BUF_INIT(4096);
		int code;

		buf_printf(&next, "%s&wait=1&after=%lld", path, last);
		if (buf_error(&next))
			return usage_error("questions", "the name is too long");
		code = api_call(cli->socket, NULL, "GET", next.data, NULL, &answer);
		if (code != CLI_OK)
			return code;
		last = list_print(cli, answer.json, last);
	}
}

static void questions_print(const json_t *answer)
{
	static const struct cli people;

	if (!list_print(&people, answer, 0))
		puts("no questions");
}

int command_questions(struct cli *cli, int argc, char **argv)
{
	const char *state = "pending";
	bool follow = false;
	const struct option_spec specs[] = { { "state", .value = &state, .complete = COMPLETE_QUESTION },
					     { "follow", .flag = &follow } };
	const struct options options = { argv[0], questions_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one session at most", true } };
	_buf_ struct buf path = BUF_INIT(4096);
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!is_state(state))
		return usage_error(argv[0],
				   "there is no state '%s'; there are pending, allowed, denied, expired, void and all",
				   state);
	buf_puts(&path, "/v1/questions?");
	if (next < argc) {
		buf_puts(&path, "session=");
		api_escape(&path, argv[next]);
	}
	if (strcmp(state, "all") != 0) {
		buf_puts(&path, next < argc ? "&state=" : "state=");
		api_escape(&path, state);
	}
	if (buf_error(&path))
		return usage_error(argv[0], "the name is too long");
	return follow ? questions_follow(cli, path.data) : api_show(cli, NULL, "GET", path.data, NULL, questions_print);
}

/* What is answered is what stands there now: a change until the answer comes is refused. */
static int answer_send(const struct cli *cli, const char *id, const char *answer, const char *duration,
		       const char *reason)
{
	_api_answer_ struct api_answer shown = { 0 };
	_buf_ struct buf path = BUF_INIT(256);
	json_t *body;
	int code;

	buf_printf(&path, "/v1/questions/%s", id);
	if (buf_error(&path))
		return usage_error("answer", "there is no such id");
	code = api_call(cli->socket, id, "GET", path.data, NULL, &shown);
	if (code != CLI_OK)
		return code;
	code = api_body(id,
			json_pack("{s:s,s:s*,s:s*,s:s*,s:O*}", "answer", answer, "for", duration, "reason", reason,
				  "policy", member_text(shown.json, "policy"), "generation",
				  json_object_get(shown.json, "generation")),
			&body);
	buf_puts(&path, "/answer");
	return code == CLI_OK ? api_show(cli, id, "POST", path.data, body, question_print) : code;
}

static int answer_revoke(const struct cli *cli, const char *id, const char *reason)
{
	_buf_ struct buf path = BUF_INIT(256);
	json_t *body;
	int code;

	buf_printf(&path, "/v1/questions/%s/revoke", id);
	if (buf_error(&path))
		return usage_error("answer", "there is no such id");
	code = api_body(id, json_pack("{s:s*}", "reason", reason), &body);
	return code == CLI_OK ? api_show(cli, id, "POST", path.data, body, question_print) : code;
}

int command_answer(struct cli *cli, int argc, char **argv)
{
	const char *duration = NULL, *reason = NULL;
	bool revoke = false;
	const struct option_spec specs[] = { { "revoke", .flag = &revoke },
					     { "for", .value = &duration },
					     { "reason", .value = &reason } };
	const struct options options = {
		.command = argv[0], .help = answer_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	int next, code = options_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (argc - next != 2 - revoke || !*argv[next] || strspn(argv[next], "0123456789") != strlen(argv[next]))
		return usage_error(argv[0],
				   "it takes the id of a question, a number, and deny, once, host, domain or always");
	if (revoke)
		return answer_revoke(cli, argv[next], reason);
	return answer_send(cli, argv[next], argv[next + 1], duration, reason);
}
