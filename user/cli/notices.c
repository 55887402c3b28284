/* SPDX-License-Identifier: MIT */
/* netpawl notices USER/SESSION */
#include <errno.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

static const char notices_help[] =
	"Usage: netpawl notices USER/SESSION [OPTIONS]\n\n"
	"Prints what the agent in a session is told when its network tightens: which data came in, which level\n"
	"and mode it means, what can still be reached and what cannot. Each reader gets each notice once: its\n"
	"place is kept by the daemon, and moved on when the notice was printed. If netpawl dies in between, the\n"
	"notice comes again; none is lost. Inside of a sandbox that netpawl run made, the file that\n"
	"$NETPAWL_NOTICES names has all of them.\n\n"
	"Options:\n"
	"  --reader NAME    whose place counts (default cli)\n"
	"  --all            all of them, and no place is moved\n"
	"  --follow         go on with those that come, until interrupted\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl notices alice/demo --reader my-agent --follow --json\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon, or it went away.\n";

struct notices {
	struct cli *cli;
	const char *session, *reader;
	bool all, follow;
	int code; /* of an acknowledgement that failed */
};

static void notice_print(const json_t *notice)
{
	output_clean_line(stdout, "%s %lld %s %s %s", member_text(notice, "time") ?: "-",
			  member_number(notice, "notice"), member_text(notice, "level") ?: "-",
			  member_text(notice, "mode") ?: "-", member_text(notice, "text") ?: "");
}

/* Only what was written is acknowledged: a notice may come twice, but none is lost. */
static int notices_acknowledge(struct notices *n, json_int_t upto)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = NULL;
	json_t *body;
	int code;

	if (fflush(stdout) != 0)
		return CLI_REFUSED; /* main() tells that standard output is gone */
	if (n->all || upto <= 0)
		return CLI_OK;
	path = api_session_path(n->session, "/notices/ack");
	code = path ? api_body(n->session, json_pack("{s:s,s:I}", "reader", n->reader, "upto", upto), &body)
		    : CLI_REFUSED;
	return code == CLI_OK ? api_call(n->cli->socket, n->session, "POST", path, body, &answer) : code;
}

static int line_print(void *data, char *line)
{
	struct notices *n = data;
	_json_ json_t *notice = json_loads(line, 0, NULL);

	if (!json_is_object(notice))
		return -EPROTO;
	if (n->cli->json)
		puts(line);
	else
		notice_print(notice);
	n->code = notices_acknowledge(n, json_integer_value(json_object_get(notice, "notice")));
	return n->code == CLI_OK ? 0 : 1;
}

static int notices_follow(struct notices *n, const char *path)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int err = client_stream(n->cli->socket, path, line_print, n, &answer);

	if (err > 0)
		return n->code;
	if (err == 0 && answer.status != 200) {
		if (n->cli->json && answer.body.data)
			puts(answer.body.data);
		return api_refused(n->session, answer.status, answer.body.data ? answer.body.data : "");
	}
	return api_unreachable(n->cli->socket, n->session, err < 0 ? err : -ECONNRESET);
}

static int notices_once(struct notices *n, const char *path)
{
	_api_answer_ struct api_answer answer;
	int code = api_call(n->cli->socket, n->session, "GET", path, NULL, &answer);
	const json_t *array = json_object_get(answer.json, "notices");
	json_int_t upto = 0;

	if (n->cli->json && answer.text)
		puts(answer.text);
	for (size_t i = 0; code == CLI_OK && i < json_array_size(array); i++) {
		const json_t *notice = json_array_get(array, i);

		if (!n->cli->json)
			notice_print(notice);
		upto = json_integer_value(json_object_get(notice, "notice"));
	}
	return code == CLI_OK ? notices_acknowledge(n, upto) : code;
}

static char *path_build(const struct notices *n)
{
	cleanup(buf_free) struct buf suffix = BUF_INIT(4096);

	buf_puts(&suffix, "/notices");
	api_query(&suffix, "after", n->all ? "0" : NULL);
	api_query(&suffix, "reader", n->all ? NULL : n->reader);
	api_query(&suffix, "follow", n->follow ? "1" : NULL);
	if (buf_error(&suffix)) {
		usage_error("notices", "the reader's name is too long");
		return NULL;
	}
	return api_session_path(n->session, suffix.data);
}

int command_notices(struct cli *cli, int argc, char **argv)
{
	struct notices n = { .cli = cli };
	const struct option_spec specs[] = {
		{ "reader", .value = &n.reader },
		{ "all", .flag = &n.all },
		{ "follow", .flag = &n.follow },
	};
	const struct options options = { argv[0], notices_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	_free_ char *path = NULL;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (n.all && n.reader)
		return usage_error(argv[0], "--all has no reader");
	if (!n.reader)
		n.reader = "cli";
	n.session = argv[next];
	path = path_build(&n);
	if (!path)
		return CLI_REFUSED;
	return n.follow ? notices_follow(&n, path) : notices_once(&n, path);
}
