/* SPDX-License-Identifier: MIT */
/* netpawl ask [USER/SESSION]: one question after the other, answered by a key. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#include "api_client/api.h"
#include "base/array.h"
#include "cli/ask_screen.h"
#include "cli/ask_stream.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/questions.h"
#include "vocab/limits.h"
#include "vocab/words.h"

static const char ask_help[] =
	"Usage: netpawl ask [USER/SESSION] [OPTIONS]\n\n"
	"Shows what waits for a person (`netpawl questions`), one after the other, and takes answers by a key:\n"
	"d deny, o once, h host, m its domain, a always; of a run a approve, d reject; then a reason, which may be\n"
	"empty, and Enter. n is the next one, Esc goes back, q ends. Sessions take turns. What was answered by\n"
	"somebody else, or is over, is said; when the level or the policy has changed it is shown anew. Needs a\n"
	"terminal; a script uses `netpawl questions --follow --json` and `netpawl answer`.\n\n"
	"Options:\n"
	"  --no-bell        no sound when a question comes\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl ask\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage, or no terminal; 3 no daemon at the start.\n";

#define MESSAGE_SIZE 256
#define SEEN_MS	     700 /* before that nobody has read it: a key was meant for the one before */
#define LOOK_S	     2	 /* how often it is looked at how many wait for what is shown */

enum stage {
	STAGE_LOOK,   /* at a question, or at none */
	STAGE_REASON, /* a key was pressed: nothing is taken away until it is sent or left */
};

struct ask {
	const struct cli *cli;
	struct ask_stream stream;
	struct buf in;	/* of the stream: the beginning of a line */
	json_t **items; /* that wait, in the order they came */
	size_t n, size;
	json_t *shown;	/* NULL: nothing waits */
	char last[160]; /* session of the one before */
	enum stage stage;
	const char *answer; /* that was chosen */
	char reason[NP_REASON_TEXT_MAX];
	size_t reason_len;
	char message[MESSAGE_SIZE], clock[MESSAGE_SIZE];
	bool away; /* the daemon is not there */
	bool bell, rung;
	bool over; /* q */
	int code;
	time_t looked;
	uint64_t replaced_ms; /* when another question took the place of the one that was shown, by itself */
};

static volatile sig_atomic_t ended;

static void on_signal(int signo)
{
	if (signo != SIGWINCH) /* that only interrupts: what follows is drawn for the new size */
		ended = signo;
}

/* -- what waits ---------------------------------------------------------------------------------- */

static const char *ask_id(const json_t *question)
{
	return member_text(question, "id") ?: "";
}

static bool is_run(const json_t *question)
{
	return json_object_get(question, "run");
}

static size_t item_find(const struct ask *ask, const char *id)
{
	size_t i = 0;

	while (i < ask->n && strcmp(ask_id(ask->items[i]), id) != 0)
		i++;
	return i;
}

static void item_remove(struct ask *ask, size_t at)
{
	json_decref(ask->items[at]);
	memmove(ask->items + at, ask->items + at + 1, (--ask->n - at) * sizeof(*ask->items));
}

static void shown_set(struct ask *ask, json_t *question)
{
	json_decref(ask->shown);
	ask->shown = json_incref(question);
	ask->stage = STAGE_LOOK;
	ask->reason_len = 0;
	ask->reason[0] = '\0';
	ask->looked = 0;
}

/* Another session's, if one waits; skip: not the one that is shown. */
static void shown_next(struct ask *ask, bool skip)
{
	json_t *next = NULL;
	size_t from = skip && ask->shown ? item_find(ask, ask_id(ask->shown)) + 1 : 0;

	if (ask->shown)
		snprintf(ask->last, sizeof(ask->last), "%s", member_text(ask->shown, "session") ?: "");
	for (size_t i = 0; i < ask->n && !next; i++) {
		json_t *item = ask->items[(from + i) % ask->n];

		if (strcmp(member_text(item, "session") ?: "", ask->last) != 0)
			next = item;
	}
	if (!next && ask->n)
		next = ask->items[from % ask->n];
	shown_set(ask, next);
}

__attribute__((format(printf, 2, 3))) static void message_set(struct ask *ask, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ask->message, sizeof(ask->message), fmt, ap);
	va_end(ap);
}

/* What became of it, when it was not by us. */
static void over_report(struct ask *ask, const json_t *question)
{
	const char *state = member_text(question, "state") ?: "?", *by = member_text(question, "answered_by");

	if (by)
		message_set(ask, "%s was answered %s by %s", ask_id(question), member_text(question, "answer") ?: "?",
			    by);
	else
		message_set(ask, "%s is over: %s", ask_id(question),
			    !strcmp(state, "expired") ? "nobody answered in time" : state);
}

/* A line of the stream says how one of them stands. */
static void question_take(struct ask *ask, json_t *question)
{
	const char *id = ask_id(question), *state = member_text(question, "state") ?: "";
	size_t at = item_find(ask, id);
	const bool is_shown = ask->shown && !strcmp(ask_id(ask->shown), id);

	if (!strcmp(state, "pending")) {
		if (at < ask->n) {
			json_decref(ask->items[at]);
			ask->items[at] = json_incref(question);
		} else if (ARRAY_RESERVE(ask->items, ask->size, ask->n + 1) == 0) {
			ask->items[ask->n++] = json_incref(question);
			ask->rung = true;
		}
		if (!ask->shown)
			shown_next(ask, false);
		return;
	}
	if (at < ask->n)
		item_remove(ask, at);
	if (is_shown && ask->stage == STAGE_LOOK) { /* what is being answered stays: sending it says the same */
		over_report(ask, question);
		shown_next(ask, false);
	}
}

static void line_take(struct ask *ask, const char *line)
{
	_json_ json_t *question = *line == '{' ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (question) {
		ask->away = false;
		question_take(ask, question);
	} else if (*line == '+') { /* if it is not back, that follows at once */
		ask->away = false;
		while (ask->n)
			item_remove(ask, ask->n - 1);
	} else if (*line == '-') {
		ask->away = true;
		message_set(ask, "the daemon went away (%s); trying again", line + 1);
	} else if (*line == '!') {
		ask->over = true;
		ask->code = CLI_REFUSED;
		message_set(ask, "%s", line + 1);
	}
}

static void stream_read(struct ask *ask)
{
	char bytes[16384], *end;
	ssize_t n;

	while ((n = read(ask->stream.fd, bytes, sizeof(bytes))) > 0)
		buf_append(&ask->in, bytes, (size_t)n);
	if (n == 0)
		ask->over = true;
	while (ask->in.len && (end = memchr(ask->in.data, '\n', ask->in.len))) {
		*end = '\0';
		line_take(ask, ask->in.data);
		buf_drop(&ask->in, (size_t)(end - ask->in.data) + 1);
	}
	if (buf_error(&ask->in))
		ask->over = true;
}

/* -- calls --------------------------------------------------------------------------------------- */

/* Its object, or NULL and *ret_error is the daemon's, or NULL. */
static json_t *ask_call(struct ask *ask, const char *suffix, const json_t *body, json_t **ret_error)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	_buf_ struct buf path = BUF_INIT(4096);
	json_t *json;

	*ret_error = NULL;
	buf_puts(&path, "/v1/questions/");
	api_escape(&path, ask_id(ask->shown));
	buf_puts(&path, suffix);
	if (buf_error(&path) || client_call(ask->cli->socket, body ? "POST" : "GET", path.data, text, &answer) < 0)
		return NULL;
	json = json_loads(answer.body.data ? answer.body.data : "", JSON_REJECT_DUPLICATES, NULL);
	if (answer.status == 200)
		return json;
	*ret_error = json;
	return NULL;
}

/* How it stands now. */
static void shown_renew(struct ask *ask)
{
	_json_ json_t *error = NULL;
	_json_ json_t *now = ask_call(ask, "", NULL, &error);

	if (now)
		question_take(ask, now);
	if (now && ask->shown && !strcmp(ask_id(ask->shown), ask_id(now))) {
		json_decref(ask->shown);
		ask->shown = json_incref(now);
	}
}

static void answer_refused(struct ask *ask, const json_t *error)
{
	const char *token = member_text(error, "error"), *detail = member_text(error, "detail");
	char why[MESSAGE_SIZE];

	ask->stage = STAGE_LOOK;
	if (!error) {
		message_set(ask, "the daemon did not answer: it is not known whether it took this");
		return;
	}
	snprintf(why, sizeof(why), "%s%s%s", member_text(error, "message") ?: "?", detail ? ": " : "", detail ?: "");
	if (token && !strcmp(token, "question_changed")) {
		shown_renew(ask);
		message_set(ask, "NOT SENT: the level or the policy has changed; this is how it stands now");
	} else if (token && (!strcmp(token, "question_over") || !strcmp(token, "run_over"))) {
		_json_ json_t *ignored = NULL;
		_json_ json_t *now = ask_call(ask, "", NULL, &ignored);
		char what[MESSAGE_SIZE];

		if (item_find(ask, ask_id(ask->shown)) < ask->n)
			item_remove(ask, item_find(ask, ask_id(ask->shown)));
		if (now)
			over_report(ask, now);
		snprintf(what, sizeof(what), "%s", now ? ask->message : why);
		shown_next(ask, false);
		message_set(ask, "TOO LATE: %.230s", what);
	} else {
		message_set(ask, "NOT TAKEN: %.230s", why);
	}
}

static void answer_post(struct ask *ask)
{
	_json_ json_t *body = json_pack(
		"{s:s,s:s*,s:O*,s:O*}", "answer", ask->answer, "reason", ask->reason_len ? ask->reason : NULL, "policy",
		json_object_get(ask->shown, "policy"), "generation", json_object_get(ask->shown, "generation"));
	_json_ json_t *error = NULL;
	_json_ json_t *done = body ? ask_call(ask, "/answer", body, &error) : NULL;

	if (!body) {
		message_set(ask, "the reason is not UTF-8");
		ask->stage = STAGE_LOOK;
		return;
	}
	if (!done) {
		answer_refused(ask, error);
		return;
	}
	if (item_find(ask, ask_id(done)) < ask->n)
		item_remove(ask, item_find(ask, ask_id(done)));
	shown_next(ask, false);
	message_set(ask, "%s: %s", ask_id(done), member_text(done, "answer") ?: "?");
}

/* -- keys ----------------------------------------------------------------------------------------- */

static void answer_choose(struct ask *ask, const char *answer)
{
	ask->answer = answer;
	ask->stage = STAGE_REASON;
	ask->message[0] = '\0';
}

static void key_look(struct ask *ask, char key)
{
	const bool run = ask->shown && is_run(ask->shown);

	if (key == 'q' || key == 3 || key == 4) {
		ask->over = true;
		return;
	}
	if (!ask->shown)
		return;
	if (key == 'n' || key == '\t')
		shown_next(ask, true);
	else if (key == 'd' || (run && key == 'r'))
		answer_choose(ask, "deny");
	else if (key == 'o' || (run && key == 'a'))
		answer_choose(ask, "once");
	else if (!run && key == 'h')
		answer_choose(ask, "host");
	else if (!run && key == 'm' && !member_text(ask->shown, "domain"))
		message_set(ask, "its host has no domain that is known to be one owner's; h is for the host");
	else if (!run && key == 'm')
		answer_choose(ask, "domain");
	else if (!run && key == 'a')
		answer_choose(ask, "always");
}

static void key_reason(struct ask *ask, char key)
{
	if (key == '\r' || key == '\n') {
		answer_post(ask);
	} else if (key == 27) { /* what happened to it meanwhile is said now */
		ask->stage = STAGE_LOOK;
		ask->reason[ask->reason_len = 0] = '\0';
		shown_renew(ask);
	} else if (key == 3) {
		ask->over = true;
	} else if ((key == 127 || key == 8) && ask->reason_len) {
		ask->reason[--ask->reason_len] = '\0';
	} else if (key >= ' ' && key <= '~' && ask->reason_len + 1 < sizeof(ask->reason)) {
		ask->reason[ask->reason_len++] = key;
		ask->reason[ask->reason_len] = '\0';
	}
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* What was meant for a question that has just gone from the screen by itself is no answer to the next. */
static void keys_read(struct ask *ask)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		ask->over = true;   /* the terminal is gone */
	if (n > 1 && keys[0] == 27) /* a key with a name: an arrow */
		return;
	if (n > 0 && ask->replaced_ms && now_ms() - ask->replaced_ms < SEEN_MS) {
		message_set(ask, "another question has taken the place of the one before: the key was not taken");
		return;
	}
	for (ssize_t i = 0; i < n && !ask->over; i++)
		(ask->stage == STAGE_REASON ? key_reason : key_look)(ask, keys[i]);
}

/* -- the screen ----------------------------------------------------------------------------------- */

static long long seconds_left(const json_t *question, const char *member)
{
	const char *text = member_text(question, member);
	uint64_t us;

	return text && time_parse(text, &us) ? (long long)(us / 1000000) - (long long)time(NULL) : 0;
}

/* Stands still while somebody answers. */
static void clock_write(struct ask *ask)
{
	const long long left = ask->shown ? seconds_left(ask->shown, "expires") : 0,
			held = ask->shown ? seconds_left(ask->shown, "held_until") : 0;
	const long long waiting = ask->shown ? member_number(ask->shown, "waiting") : 0;
	char who[128];

	if (ask->stage == STAGE_REASON)
		return;
	if (!ask->shown) {
		ask->clock[0] = '\0';
		return;
	}
	if (is_run(ask->shown))
		snprintf(who, sizeof(who), "the run waits");
	else if (!waiting)
		snprintf(who, sizeof(who), "nobody waits now; a retry meets the answer");
	else if (held > 0)
		snprintf(who, sizeof(who), "%lld wait%s, the first for %lld s more", waiting, waiting == 1 ? "s" : "",
			 held);
	else
		snprintf(who, sizeof(who), "%lld wait%s", waiting, waiting == 1 ? "s" : "");
	snprintf(ask->clock, sizeof(ask->clock), "%lld:%02lld left to answer; %s", (left > 0 ? left : 0) / 60,
		 (left > 0 ? left : 0) % 60, who);
}

static void prompt_write(const struct ask *ask, char *out, size_t size, size_t columns)
{
	char begin[96];
	size_t room;

	snprintf(begin, sizeof(begin), "%s %s; reason, if any: ", ask->answer, ask_id(ask->shown));
	room = columns > strlen(begin) + 2 ? columns - strlen(begin) - 2 : 8;
	snprintf(out, size, "%s%s", begin, ask->reason + (ask->reason_len > room ? ask->reason_len - room : 0));
}

static void ask_draw(struct ask *ask)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	_buf_ struct buf out = BUF_INIT(1u << 20);
	_free_ char *text = NULL;
	char head[MESSAGE_SIZE], prompt[1024] = "";
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	if (memory && ask->shown)
		question_write(memory, ask->shown);
	if (memory)
		fclose(memory);
	clock_write(ask);
	if (ask->stage == STAGE_REASON)
		prompt_write(ask, prompt, sizeof(prompt), size.ws_col);
	snprintf(head, sizeof(head), " netpawl ask  %s%s", ask->away ? "NO DAEMON  " : "",
		 ask->shown ? "" : "nothing waits ");
	if (ask->n > 1)
		snprintf(head + strlen(head), sizeof(head) - strlen(head), "%zu more wait%s ", ask->n - 1,
			 ask->n == 2 ? "s" : "");
	ask_screen_draw(
		&(struct ask_screen){ .rows = size.ws_row,
				      .columns = size.ws_col,
				      .head = head,
				      .text = text,
				      .clock = ask->clock,
				      .message = ask->message,
				      .keys = ask->stage == STAGE_REASON ? "Enter sends it, Esc goes back"
					      : !ask->shown		 ? "q ends"
					      : is_run(ask->shown)
						      ? "a approve, d reject; n next, q ends"
						      : "d deny, o once, h host, m domain, a always; n next, q ends",
				      .prompt = prompt },
		&out);
	if (ask->bell && ask->rung)
		buf_puts(&out, "\a");
	ask->rung = false;
	if (buf_error(&out) || write(STDOUT_FILENO, out.data, out.len) < 0)
		ask->over = errno != EINTR && errno != EAGAIN;
}

/* -- the terminal --------------------------------------------------------------------------------- */

static int terminal_begin(struct termios *ret_before)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, ret_before) < 0)
		return -errno;
	raw = *ret_before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return -errno;
	return write(STDOUT_FILENO, "\033[?1049h", 8) < 0 ? -errno
							  : 0; /* a screen of its own: the one before comes back */
}

static void terminal_end(const struct termios *before)
{
	if (write(STDOUT_FILENO, "\033[m\033[?1049l", 11) < 0)
		ended = ended ? ended : SIGHUP;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
}

/* Has another taken the place of the one that was drawn, without a key? */
static void replaced_note(struct ask *ask, const char *drawn)
{
	if (*drawn && ask->shown && strcmp(drawn, ask_id(ask->shown)) != 0)
		ask->replaced_ms = now_ms();
}

/* Signals arrive in ppoll() and nowhere else. */
static void ask_loop(struct ask *ask, const sigset_t *outside)
{
	const struct timespec second = { .tv_sec = 1 };

	while (!ask->over && !ended) {
		struct pollfd fds[] = { { STDIN_FILENO, POLLIN, 0 }, { ask->stream.fd, POLLIN, 0 } };
		char drawn[64];
		int n;

		ask_draw(ask);
		n = ppoll(fds, 2, &second, outside);
		snprintf(drawn, sizeof(drawn), "%s", ask->shown ? ask_id(ask->shown) : "");
		if (n > 0 && fds[1].revents)
			stream_read(ask);
		replaced_note(ask, drawn);
		if (n > 0 && fds[0].revents)
			keys_read(ask);
		if (ask->shown && !ask->over && ask->stage == STAGE_LOOK && time(NULL) - ask->looked >= LOOK_S) {
			const time_t now = time(NULL);

			snprintf(drawn, sizeof(drawn), "%s", ask_id(ask->shown));
			shown_renew(ask);
			replaced_note(ask, drawn);
			ask->looked = now;
		}
	}
}

static int ask_run(struct ask *ask, const char *path)
{
	const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGWINCH };
	struct sigaction action = { .sa_handler = on_signal };
	struct termios before;
	sigset_t block, outside;
	int r;

	sigemptyset(&block);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaddset(&block, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &block, &outside);
	r = ask_stream_start(ask->cli->socket, path, &ask->stream);
	if (r == 0)
		r = terminal_begin(&before);
	if (r < 0) {
		ask_stream_end(&ask->stream);
		error_print("ask", NP_R_FAILED, strerror(-r));
		return CLI_REFUSED;
	}
	ask_loop(ask, &outside);
	terminal_end(&before);
	ask_stream_end(&ask->stream);
	if (ask->code != CLI_OK)
		return api_refused("ask", 403, ask->message);
	return ended && ended != SIGINT ? 128 + ended : CLI_OK;
}

int command_ask(struct cli *cli, int argc, char **argv)
{
	bool quiet = false;
	const struct option_spec specs[] = { { "no-bell", .flag = &quiet } };
	const struct options options = { argv[0], ask_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one session at most", true } };
	struct ask ask = { .cli = cli, .stream = { .fd = -1 }, .in = BUF_INIT(CLIENT_LINE_MAX * 4) };
	_buf_ struct buf path = BUF_INIT(4096);
	_api_answer_ struct api_answer first = { 0 };
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || cli->json)
		return usage_error(argv[0],
				   "it needs a terminal; a script uses netpawl questions --follow --json, and netpawl "
				   "answer");
	buf_puts(&path, "/v1/questions");
	api_query(&path, "session", next < argc ? argv[next] : NULL);
	if (buf_error(&path))
		return usage_error(argv[0], "the name is too long");
	/* Whoever may not, or has no daemon, is told so before the screen is taken. */
	api_query(&path, "state", "void");
	code = api_call(cli->socket, NULL, "GET", path.data, NULL, &first);
	if (code != CLI_OK)
		return code;
	buf_clear(&path);
	buf_puts(&path, "/v1/questions?follow=1");
	api_query(&path, "session", next < argc ? argv[next] : NULL);
	ask.bell = !quiet;
	code = buf_error(&path) ? CLI_REFUSED : ask_run(&ask, path.data);
	while (ask.n)
		item_remove(&ask, ask.n - 1);
	free(ask.items);
	json_decref(ask.shown);
	buf_free(&ask.in);
	return code;
}
