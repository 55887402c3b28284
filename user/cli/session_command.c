/* SPDX-License-Identifier: MIT */
#include "cli/session_command.h"

#include <string.h>

#include "base/cleanup.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "policy/suggest.h"
#include "reason.h"
#include "vocab/limits.h"
#include "vocab/words.h"

#define PAGE	   "1000"
#define NEAR_PAGES 10 /* of sessions that are looked through for one that was meant */

int session_pages(const struct cli *cli, bool ended, unsigned max, int (*fn)(void *data, const json_t *sessions),
		  void *data)
{
	char after[NP_SESSION_MAX + 1] = "";
	int code = CLI_OK;

	for (unsigned i = 0; i < max && code == CLI_OK; i++) {
		_buf_ struct buf path = BUF_INIT(4096);
		_api_answer_ struct api_answer answer = { 0 };
		const char *next;

		buf_printf(&path, "/v1/sessions?limit=" PAGE "&ended=%d", ended);
		api_query(&path, "after", *after ? after : NULL);
		code = api_call(cli->socket, NULL, "GET", path.data, NULL, &answer);
		if (code != CLI_OK || fn(data, json_object_get(answer.json, "sessions")))
			break;
		next = member_text(answer.json, "next");
		if (!next || strlen(next) >= sizeof(after))
			break;
		strcpy(after, next);
	}
	return code;
}

/* -- did you mean ...? ------------------------------------------------------------- */

struct near {
	const char *name;
	char best[NP_SESSION_MAX + 1];
	unsigned distance;
};

static int near_look(void *data, const json_t *sessions)
{
	struct near *near = data;
	const json_t *session;
	size_t i;

	json_array_foreach(sessions, i, session)
	{
		const char *name = member_text(session, "session");
		unsigned distance = name ? edit_distance(near->name, name, near->distance - 1) : near->distance;

		if (distance < near->distance && strlen(name) < sizeof(near->best)) {
			near->distance = distance;
			strcpy(near->best, name);
		}
	}
	return 0;
}

static void near_print(const struct cli *cli, const char *session)
{
	struct near near = { .name = session, .distance = 3 }; /* fewer letters than that are a slip */

	session_pages(cli, true, NEAR_PAGES, near_look, &near);
	if (*near.best)
		output_clean_line(stderr, "netpawl: did you mean %s?", near.best);
}

static void near_offer(const struct cli *cli, const char *session, const struct api_answer *answer)
{
	if (answer->status == 404 && answer->text && strstr(answer->text, reason_token(NP_R_NO_SUCH_SESSION)))
		near_print(cli, session);
}

int session_show(const struct cli *cli, const char *session, const char *method, const char *path, json_t *body,
		 void (*print)(const json_t *answer))
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = api_call(cli->socket, session, method, path, body, &answer);

	if (code == CLI_OK && !cli->json)
		print(answer.json);
	else if (cli->json && answer.text)
		json_text_print(answer.text);
	near_offer(cli, session, &answer);
	return code;
}

int session_find(const struct cli *cli, const char *session)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = api_session_path(session, "");
	int code = path ? api_call(cli->socket, session, "GET", path, NULL, &answer) : CLI_REFUSED;

	if (code != CLI_OK && cli->json && answer.text)
		json_text_print(answer.text);
	near_offer(cli, session, &answer);
	return code;
}

int session_operand(const struct options *options, struct cli *cli, int argc, char **argv, const char *suffix,
		    int *ret_next, char **ret_path)
{
	int code = command_parse(options, cli, argc, argv, ret_next);

	if (code == OPTIONS_GO_ON)
		*ret_path = api_session_path(argv[*ret_next], suffix);
	return code == OPTIONS_GO_ON && !*ret_path ? CLI_REFUSED : code;
}

int session_command(struct cli *cli, int argc, char **argv, const char *help, const char *method,
		    void (*print)(const json_t *answer))
{
	const struct options options = { argv[0], help, NULL, 0, .operands = ONE_SESSION };
	_free_ char *path = NULL;
	int next, code = session_operand(&options, cli, argc, argv, "", &next, &path);

	return code != OPTIONS_GO_ON ? code : session_show(cli, argv[next], method, path, NULL, print);
}
