/* SPDX-License-Identifier: MIT */
/* netpawl questions [USER/SESSION], netpawl answer ID deny|once|host|domain|always */
#include <errno.h>
#include <string.h>

#include "base/chars.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/questions.h"

static const char questions_help[] =
	"Usage: netpawl questions [USER/SESSION] [OPTIONS]\n\n"
	"Lists what waits for a person: requests and connections that a rule asks about (ask:, default: ask), and\n"
	"runs of class write, whose ids are run-1 and so on. Sessions take turns: each one's oldest, then each\n"
	"one's second. `netpawl ask` shows one after the other and takes answers by a key.\n\n"
	"Options:\n"
	"  --state STATE    pending (unless given), allowed, denied, expired, void or all\n"
	"  --follow         what waits now, then each that is asked, answered, expired or void (unless --state\n"
	"                   says which), until interrupted\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl questions --follow\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static const char answer_help[] =
	"Usage: netpawl answer ID deny|once|host|domain|always [OPTIONS]\n"
	"       netpawl answer ID --revoke [OPTIONS]\n\n"
	"Answers a question (`netpawl questions`), once. deny: what waits is refused, and so is what comes.\n"
	"once: one request goes on that is the one shown, in all that is shown of it: it waits, or comes again.\n"
	"host: all of this session to this host and port go on, by the same rule and of the same kind (reading,\n"
	"writing, connections). domain: likewise, all hosts of its registrable domain, by the public suffix list.\n"
	"deny, host and domain hold until the session rises or ends, or a reload removes or changes the rule;\n"
	"then what they opened is cut. always: as host, for all sessions of the user, at this level and below,\n"
	"and for good: it is written into the file that the policy names (approval: grants); not where a decider\n"
	"has you asked. once holds until it is used, at most as long as approval: timeout.\n\n"
	"A run that waits (run-3) is answered once, as `netpawl approve 3` does, or deny, as `netpawl reject 3`.\n\n"
	"Options:\n"
	"  --revoke         take back an answer that holds; what it opened is cut, and asked about anew\n"
	"  --for TIME       no longer than this: 30m, 8h; then what it opened is cut\n"
	"  --reason TEXT    why, for the record; of a deny the program is told\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl answer 7 host --for 30m\n\n"
	"Exit codes: 0 answered; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

/* What the session has seen is what an answer may let out. --json has all of them. */
static void datasets_print(FILE *to, const json_t *datasets)
{
	enum { SHOWN = 8 };
	size_t count = json_array_size(datasets);

	for (size_t i = 0; i < count && i < SHOWN; i++)
		output_clean_line(to, "    the session holds %s",
				  json_string_value(json_array_get(datasets, i)) ?: "?");
	if (count > SHOWN)
		output_clean_line(to, "    the session holds %zu more (--json)", count - SHOWN);
}

static void warnings_print(FILE *to, const json_t *question)
{
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(question, "warnings"), i, warning)
	{
		output_clean_line(to, "    ! %s", json_string_value(warning) ?: "?");
	}
}

static void run_print(FILE *to, const json_t *run)
{
	_free_ char *command = json_dumps(json_object_get(run, "command"), JSON_COMPACT);
	_free_ char *options = json_dumps(json_object_get(run, "options"), JSON_COMPACT);
	const char *answer = member_text(run, "answer"), *reason = member_text(run, "reason");

	output_clean_line(to, "%s  %s  %s  run %s", member_text(run, "id") ?: "?", member_text(run, "state") ?: "?",
			  member_text(run, "session") ?: "?", command ?: "?");
	output_clean_line(to, "    class write, asked for by %s, level %s, until %s",
			  member_text(run, "asked_by") ?: "?", member_text(run, "level") ?: "?",
			  member_text(run, "expires") ?: "?");
	if (options && strcmp(options, "{}") != 0)
		output_clean_line(to, "    with %s", options);
	datasets_print(to, json_object_get(run, "datasets"));
	warnings_print(to, run);
	if (answer)
		output_clean_line(to, "    %s by %s%s%s", !strcmp(answer, "deny") ? "rejected" : "approved",
				  member_text(run, "answered_by") ?: "?", reason ? ": " : "", reason ?: "");
}

static void headers_print(FILE *to, const json_t *headers)
{
	const json_t *header;
	size_t i;

	json_array_foreach(headers, i, header)
	{
		output_clean_line(to, "    %s: %s", json_string_value(json_array_get(header, 0)) ?: "?",
				  json_string_value(json_array_get(header, 1)) ?: "?");
	}
}

/* Everything that a stranger may have written goes through output_clean_line(). */
static void request_print(FILE *to, const json_t *question)
{
	const json_t *before = json_object_get(question, "before");
	_free_ char *waiting = scalar_text(json_object_get(question, "waiting"));
	_free_ char *body = json_is_integer(json_object_get(question, "body"))
				    ? scalar_text(json_object_get(question, "body"))
				    : NULL;
	_free_ char *pid = json_is_integer(json_object_get(question, "pid"))
				   ? scalar_text(json_object_get(question, "pid"))
				   : NULL;
	const char *method = member_text(question, "method"), *answer = member_text(question, "answer");
	const char *until = member_text(question, "over") ? NULL : member_text(question, "until");
	const char *reason = member_text(question, "reason"), *domain = member_text(question, "domain");

	output_clean_line(to, "%s  %s  %s  %s %s", member_text(question, "id") ?: "?",
			  member_text(question, "state") ?: "?", member_text(question, "session") ?: "?",
			  method ?: "connect to", member_text(question, "url") ?: "?");
	output_clean_line(to, "    rule %s, level %s%s%s%s", member_text(question, "rule") ?: "?",
			  member_text(question, "level") ?: "?", body ? ", body " : "", body ?: "",
			  body	   ? " bytes"
			  : method ? ", a body of unknown length"
				   : "");
	if (!strcmp(member_text(question, "state") ?: "", "pending"))
		output_clean_line(to, "    to be answered until %s, %s waiting",
				  member_text(question, "expires") ?: "?", waiting ?: "?");
	if (pid)
		output_clean_line(to, "    by %s, pid %s (%s)",
				  member_text(question, "comm") ?: "a process that is gone", pid,
				  member_text(question, "program") ?: "program not known");
	headers_print(to, json_object_get(question, "headers"));
	if (member_text(question, "body_start"))
		output_clean_line(to, "    its body begins: %s", member_text(question, "body_start"));
	if (json_integer_value(json_object_get(before, "allowed")) ||
	    json_integer_value(json_object_get(before, "denied")))
		output_clean_line(to, "    this host before: %lld allowed, %lld denied",
				  (long long)json_integer_value(json_object_get(before, "allowed")),
				  (long long)json_integer_value(json_object_get(before, "denied")));
	if (domain && !answer)
		output_clean_line(to, "    its domain is %s", domain);
	datasets_print(to, json_object_get(question, "datasets"));
	warnings_print(to, question);
	if (answer)
		output_clean_line(to, "    answered %s%s%s by %s%s%s%s%s", answer, !strcmp(answer, "domain") ? " " : "",
				  !strcmp(answer, "domain") ? domain ?: "?" : "",
				  member_text(question, "answered_by") ?: "?", until ? ", holds until " : "",
				  until ?: "", reason ? ": " : "", reason ?: "");
	if (member_text(question, "revoked_by"))
		output_clean_line(to, "    taken back by %s", member_text(question, "revoked_by"));
}

void question_write(FILE *to, const json_t *question)
{
	(json_object_get(question, "run") ? run_print : request_print)(to, question);
}

static void question_print(const json_t *question)
{
	question_write(stdout, question);
}

static bool is_state(const char *word)
{
	static const char *const states[] = { "pending", "allowed", "denied", "expired", "void", "all" };

	return WORD_IS_ONE_OF(word, states);
}

static void questions_print(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "questions");

	for (size_t i = json_array_size(list); i-- > 0;) /* the newest is first, and is read last */
		question_print(json_array_get(list, i));
	if (!json_array_size(list))
		puts("no questions");
}

static int line_print(void *data, char *line)
{
	const struct cli *cli = data;
	_json_ json_t *question = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(question))
		return -EPROTO;
	if (cli->json)
		puts(line);
	else
		question_print(question);
	return fflush(stdout) < 0 ? -EPIPE : 0;
}

/* Until it is interrupted, or the daemon goes. */
static int questions_follow(struct cli *cli, const char *path)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int err = client_stream(cli->socket, path, line_print, cli, &answer);

	if (err == 0 && answer.status != 200)
		return api_refused(NULL, answer.status, answer.body.data ? answer.body.data : "");
	return api_unreachable(cli->socket, NULL, err < 0 ? err : -ECONNRESET);
}

int command_questions(struct cli *cli, int argc, char **argv)
{
	const char *state = NULL;
	bool follow = false;
	const struct option_spec specs[] = { { "state", .value = &state, .complete = COMPLETE_QUESTION },
					     { "follow", .flag = &follow } };
	const struct options options = { argv[0], questions_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one session at most", true } };
	_buf_ struct buf path = BUF_INIT(4096);
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	state = state ? state : follow ? "all" : "pending";
	if (!is_state(state))
		return usage_error(argv[0],
				   "there is no state '%s'; there are pending, allowed, denied, expired, void and all",
				   state);
	buf_puts(&path, "/v1/questions");
	api_query(&path, "session", next < argc ? argv[next] : NULL);
	api_query(&path, "state", strcmp(state, "all") != 0 ? state : NULL);
	api_query(&path, "follow", follow ? "1" : NULL);
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

/* "7", "run-3" */
static bool is_id(const char *text)
{
	const char *number = strncmp(text, "run-", 4) ? text : text + 4;

	return *number && strspn(number, "0123456789") == strlen(number);
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
	if (argc - next != 2 - revoke || !is_id(argv[next]))
		return usage_error(argv[0],
				   "it takes the id of a question, a number or run-1 and so on, and deny, once, "
				   "host, domain or always");
	if (revoke)
		return answer_revoke(cli, argv[next], reason);
	return answer_send(cli, argv[next], argv[next + 1], duration, reason);
}
