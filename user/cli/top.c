/* SPDX-License-Identifier: MIT */
/* netpawl top */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api_client/api.h"
#include "cli/event_facts.h"
#include "cli/options.h"
#include "cli/top_feeds.h"
#include "cli/top_screen.h"
#include "launch/run.h" /* wall_us() */
#include "reason.h"
#include "vocab/words.h"

#define DRAW_MS	   100 /* the screen is drawn no more often than that */
#define KEY_ESCAPE 27
#define CALM_MS \
	700 /* after another question took the place of the selected one: what is typed then was not meant for it */

static const char top_help[] =
	"Usage: netpawl top [OPTIONS]\n\n"
	"Shows sessions, requests and refusals as they happen, and the questions that wait, on a terminal: keys "
	"answer\n"
	"them, filter, pause and show all of an event. ? shows the keys, q quits.\n\n"
	"Options:\n"
	"  --session U/S    events of this session only\n"
	"  --since WHEN     begin with all from then on: 90s, 10m, 2h or 3d ago, a date, or a time as events have it;\n"
	"                   else with the newest 200\n"
	"  --filter TEXT    begin with this filter: 'host:github.com verdict:refused -llm'\n" OPTIONS_NO_JSON
	"\nExample:\n"
	"  netpawl top --filter verdict:refused\n\n"
	"Exit codes: 0 it was quit; 1 this is no terminal, or none that can be drawn on; 2 wrong usage.\n";

enum { FEED_EVENTS, FEED_LISTS, FEED_ANSWER, FEEDS };

struct top {
	const struct cli *cli;
	struct top_model model;
	struct top_screen screen;
	char before[FILTER_TEXT_MAX + 1]; /* the filter that holds while another one is typed */
	struct top_feed feeds[FEEDS];
	char asked[64];		    /* id of the selected question; "": none */
	unsigned long long calm_ms; /* until then no key answers */
	bool stale;		    /* the screen */
	bool over;
};

static volatile sig_atomic_t ended; /* by a signal */

static void on_end(int signo)
{
	ended = signo;
}

static unsigned long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

/* What waits has changed: the selected one stays selected. Where it is gone, another is in its place, which nobody has looked at. */
static void questions_settle(struct top *top)
{
	const size_t at = top_question_find(&top->model, top->asked), n = json_array_size(top->model.questions);

	if (top->screen.view != TOP_QUESTIONS)
		return;
	if (*top->asked && at < n) {
		top->screen.selected = at;
		return;
	}
	if (top->screen.selected >= n)
		top->screen.selected = n ? n - 1 : 0;
	snprintf(top->asked, sizeof(top->asked), "%s", top_question_id(&top->model, top->screen.selected));
	top->screen.detail = false;
	top->calm_ms = now_ms() + CALM_MS;
}

static void lists_take(struct top *top, const char *text)
{
	top_take_lists(&top->model, text);
	questions_settle(top);
}

static void on_line(void *data, char kind, char *text)
{
	struct top *top = data;
	struct top_model *model = &top->model;

	if (kind == TOP_LINE_EVENT)
		top_take_event(model, text);
	else if (kind == TOP_LINE_LIST)
		lists_take(top, text);
	else if (kind == TOP_LINE_UP)
		model->connected = true;
	else
		snprintf(model->message, sizeof(model->message), "%s", text);
	if (kind == TOP_LINE_DOWN)
		model->connected = false;
	top->stale = true;
}

/* -- keys ------------------------------------------------------------------------------------------ */

/* What was typed holds, if it can be understood. */
static void filter_apply(struct top *top)
{
	struct event_filter filter;

	top->screen.problem[0] = '\0';
	if (event_filter_parse(top->screen.filter, &filter, top->screen.problem) < 0)
		return;
	top->model.filter = filter;
	top->screen.typing = false;
	top->screen.selected = 0;
}

static void filter_key(struct top *top, int key)
{
	char *text = top->screen.filter;
	const size_t len = strlen(text);

	if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		filter_apply(top);
	} else if (key == KEY_ESCAPE) {
		strcpy(text, top->before);
		filter_apply(top);
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (len)
			text[len - 1] = '\0';
	} else if (key == 21) { /* Ctrl-U */
		text[0] = '\0';
	} else if (key >= ' ' && key < 127 && len < FILTER_TEXT_MAX) {
		text[len] = (char)key;
		text[len + 1] = '\0';
	}
}

/* Adds a word to the filter, or takes it out. */
static void filter_toggle(struct top *top, const char *word)
{
	char *text = top->screen.filter, *at = strstr(text, word);
	const size_t len = strlen(word);

	if (at && (at == text || at[-1] == ' ') && (!at[len] || at[len] == ' ')) {
		const size_t cut = len + (at[len] == ' ' ? 1 : 0);

		memmove(at, at + cut, strlen(at + cut) + 1);
	} else if (strlen(text) + len + 1 < FILTER_TEXT_MAX) {
		snprintf(text + strlen(text), FILTER_TEXT_MAX + 1 - strlen(text), "%s%s",
			 *text && text[strlen(text) - 1] != ' ' ? " " : "", word);
	}
	filter_apply(top);
}

/* As it was shown: who answers what has changed since is told so. */
static void question_send(struct top *top, const char *answer)
{
	const json_t *question = json_array_get(top->model.questions, top->screen.selected);
	const bool run = json_object_get(question, "run");
	_json_ json_t *body =
		json_pack("{s:s,s:O*,s:O*}", "answer", answer, "policy", json_object_get(question, "policy"),
			  "generation", json_object_get(question, "generation"));
	_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char name[64];

	if (top->screen.view != TOP_QUESTIONS || !question || !text || top->feeds[FEED_ANSWER].pid)
		return; /* one at a time: the answer before is on its way */
	top_question_name(top->asked, name);
	if (now_ms() < top->calm_ms)
		snprintf(top->model.message, sizeof(top->model.message), "NOT SENT: %s has only just come", name);
	else if (run && strcmp(answer, "deny") != 0 && strcmp(answer, "once") != 0)
		snprintf(top->model.message, sizeof(top->model.message), "a run is started with o, or denied with d");
	else if (top_feed_answer(&top->feeds[FEED_ANSWER], top->cli->socket, top->asked, text) < 0)
		snprintf(top->model.message, sizeof(top->model.message), "%s could not be answered", name);
	else
		snprintf(top->model.message, sizeof(top->model.message), "%s: %s ...", name, answer);
}

static void selection_key(struct top *top, int key)
{
	const size_t n = top_screen_rows(&top->screen, &top->model);
	size_t *at = &top->screen.selected;

	if (key == 'g' || key == KEY_HOME)
		*at = 0;
	else if (key == 'G' || key == KEY_END)
		*at = n ? n - 1 : 0;
	else if (key == 'j' || key == KEY_DOWN)
		*at += 1;
	else if (key == KEY_NPAGE)
		*at += 10;
	else if (key == 'k' || key == KEY_UP)
		*at -= *at > 0;
	else if (key == KEY_PPAGE)
		*at -= *at > 10 ? 10 : *at;
	if (*at >= n)
		*at = n ? n - 1 : 0;
}

static void view_set(struct top *top, enum top_view view)
{
	top->screen.view = view;
	top->screen.selected = 0;
	top->screen.detail = false;
}

static void command_key(struct top *top, int key)
{
	static const struct {
		int key;
		const char *answer;
	} answers[] = { { 'd', "deny" }, { 'o', "once" }, { 'h', "host" }, { 'm', "domain" }, { 'A', "always" } };

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (key == answers[i].key)
			question_send(top, answers[i].answer);
	if (key >= '1' && key <= '4')
		view_set(top, (enum top_view)(key - '1'));
	else if (key == '\t')
		view_set(top, (enum top_view)((top->screen.view + 1) % TOP_HELP));
	else if (key == '?')
		view_set(top, TOP_HELP);
	else if (key == '\r' || key == '\n' || key == KEY_ENTER)
		top->screen.detail = !top->screen.detail;
	else if (key == KEY_ESCAPE)
		top->screen.detail = false;
	else if (key == ' ' || key == 'p')
		top_pause(&top->model, !top->model.paused);
	else if (key == 'l')
		filter_toggle(top, "-llm");
	else if (key == 'r')
		filter_toggle(top, "verdict:refused");
	else if (key == 'q')
		top->over = true;
	else
		selection_key(top, key);
}

static void keys_take(struct top *top)
{
	int key;

	while (!top->over && (key = top_screen_key()) != ERR) {
		top->stale = true;
		if (key == KEY_RESIZE)
			continue;
		if (top->screen.typing) {
			filter_key(top, key);
		} else if (key == '/') {
			strcpy(top->before, top->screen.filter);
			top->screen.problem[0] = '\0';
			top->screen.typing = true;
		} else {
			command_key(top, key);
		}
		/* Whoever has chosen it by a key has seen it. */
		snprintf(top->asked, sizeof(top->asked), "%s",
			 top->screen.view == TOP_QUESTIONS ? top_question_id(&top->model, top->screen.selected) : "");
	}
}

/* -- the loop ---------------------------------------------------------------------------------------- */

static void feeds_read(struct top *top, const struct pollfd *fds)
{
	for (size_t i = 0; i < FEEDS; i++)
		if (top->feeds[i].fd >= 0 && fds[i].revents && top_feed_read(&top->feeds[i], on_line, top) < 0)
			top_feed_end(&top->feeds[i]);
}

static void top_loop(struct top *top)
{
	unsigned long long drawn_ms = 0;

	while (!top->over && !ended) {
		struct pollfd fds[FEEDS + 1];
		const unsigned long long now = wall_us() / 1000;

		if (top->stale && now - drawn_ms >= DRAW_MS) {
			selection_key(top, 0); /* rows may be fewer now */
			top_screen_draw(&top->screen, &top->model, wall_us());
			top->stale = false;
			drawn_ms = now;
		}
		for (size_t i = 0; i < FEEDS; i++)
			fds[i] = (struct pollfd){ .fd = top->feeds[i].fd, .events = POLLIN };
		fds[FEEDS] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		if (poll(fds, FEEDS + 1, top->stale ? DRAW_MS : 1000) < 0 && errno != EINTR)
			return;
		if (fds[FEEDS].revents & (POLLHUP | POLLERR | POLLNVAL)) /* the terminal is gone */
			return;
		feeds_read(top, fds);
		keys_take(top);
	}
}

static int top_run(struct top *top, const char *session, const char *since)
{
	const struct sigaction end = { .sa_handler = on_end };
	int code;

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < FEEDS; i++)
		top->feeds[i].fd = -1;
	/* Before there is a screen: they have nothing of it. */
	if (top_feed_events(&top->feeds[FEED_EVENTS], top->cli->socket, session, since) < 0 ||
	    top_feed_lists(&top->feeds[FEED_LISTS], top->cli->socket) < 0) {
		error_print(NULL, NP_R_FAILED, "a process could not be started");
		code = CLI_REFUSED;
	} else {
		code = top_screen_open();
	}
	if (code == CLI_OK) {
		top->stale = true;
		top_loop(top);
		top_screen_close();
	}
	for (size_t i = 0; i < FEEDS; i++)
		top_feed_end(&top->feeds[i]);
	return code;
}

int command_top(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL, *filter = NULL, *since = NULL;
	const struct option_spec specs[] = {
		{ "session", .value = &session, .complete = COMPLETE_SESSION },
		{ "since", .value = &since, .complete = COMPLETE_NOTHING },
		{ "filter", .value = &filter, .complete = COMPLETE_NOTHING },
	};
	const struct options options = {
		.command = argv[0],
		.help = top_help,
		.specs = specs,
		.count = ARRAY_SIZE(specs),
		.no_json = "netpawl events --follow --json and netpawl questions --follow --json are for programs",
	};
	char time[TIME_TEXT_SIZE];
	struct top *top;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	top = calloc(1, sizeof(*top));
	if (!top) {
		error_print(NULL, NP_R_FAILED, "memory ran out");
		return CLI_REFUSED;
	}
	top->cli = cli;
	top_model_init(&top->model);
	code = session ? session_check(argv[0], session) : CLI_OK;
	if (code == CLI_OK && since)
		code = since_check(argv[0], since, time, sizeof(time));
	if (code == CLI_OK)
		code = filter_read(argv[0], filter, &top->model.filter);
	if (code == CLI_OK && filter)
		snprintf(top->screen.filter, sizeof(top->screen.filter), "%s", filter);
	if (code == CLI_OK)
		code = top_run(top, session, since ? time : NULL);
	top_model_free(&top->model);
	free(top);
	return code;
}
