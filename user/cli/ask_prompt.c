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
#include "cli/ask_answer.h"
#include "cli/ask_model.h"
#include "cli/ask_screen.h"
#include "cli/ask_stream.h"
#include "cli/options.h"
#include "cli/questions.h"
#include "reason.h"

#define SCRIPTS "a script uses netpawl questions --follow --json, and netpawl answer"

static const char ask_help[] =
	"Usage: netpawl ask [USER/SESSION] [OPTIONS]\n\n"
	"Shows what waits for a person (`netpawl questions`), one after the other, and takes answers by a key:\n"
	"d deny, o once, h host, m its domain, a always; of a run a approve, d reject; then a reason, which may be\n"
	"empty, and Enter. n is the next one, Esc goes back, q ends. Sessions take turns. What was answered by\n"
	"somebody else, or is over, is said; when the level or the policy has changed it is shown anew. Needs a\n"
	"terminal; a script uses `netpawl questions --follow --json` and `netpawl answer`.\n\n"
	"Options:\n"
	"  --no-bell        no sound when a question comes\n" OPTIONS_NO_JSON "\nExample:\n"
	"  netpawl ask\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage, or no terminal; 3 no daemon at the start.\n";

#define SEEN_MS 700 /* before that nobody has read it: a key was meant for the one before */
#define LOOK_S	2   /* how often it is looked at how many wait for what is shown */

struct ask_prompt {
	const struct cli *cli;
	struct ask_stream stream;
	struct buf in; /* of the stream: the beginning of a line */
	struct ask_model model;
	bool bell;
	uint64_t replaced_ms; /* when another question took the place of the one that was shown, by itself */
};

static volatile sig_atomic_t ended;

static void on_signal(int signo)
{
	if (signo != SIGWINCH) /* that only interrupts: what follows is drawn for the new size */
		ended = signo;
}

static void stream_read(struct ask_prompt *prompt)
{
	char bytes[16384], *end;
	ssize_t n;

	while ((n = read(prompt->stream.fd, bytes, sizeof(bytes))) > 0)
		buf_append(&prompt->in, bytes, (size_t)n);
	while (prompt->in.len && (end = memchr(prompt->in.data, '\n', prompt->in.len))) {
		*end = '\0';
		ask_take_line(&prompt->model, prompt->in.data);
		buf_drop(&prompt->in, (size_t)(end - prompt->in.data) + 1);
	}
	if (n == 0 || buf_error(&prompt->in))
		prompt->model.over = true;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* What was meant for a question that has just gone from the screen by itself is no answer to the next. */
static void keys_read(struct ask_prompt *prompt)
{
	struct ask_model *ask = &prompt->model;
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		ask->over = true;   /* the terminal is gone */
	if (n > 1 && keys[0] == 27) /* a key with a name: an arrow */
		return;
	if (n > 0 && prompt->replaced_ms && now_ms() - prompt->replaced_ms < SEEN_MS) {
		ask_message(ask, "another question has taken the place of the one before: the key was not taken");
		return;
	}
	for (ssize_t i = 0; i < n && !ask->over; i++) {
		const enum ask_wish wish = ask_key(ask, keys[i]);

		if (wish == ASK_SEND)
			ask_answer(ask, prompt->cli->socket);
		else if (wish == ASK_RENEW)
			ask_renew(ask, prompt->cli->socket);
	}
}

static const char *keys_text(const struct ask_model *ask)
{
	if (ask->stage == ASK_REASON)
		return "Enter sends it, Esc goes back";
	if (!ask->shown)
		return "q ends";
	return ask_is_run(ask->shown) ? "a approve, d reject; n next, q ends"
				      : "d deny, o once, h host, m domain, a always; n next, q ends";
}

static void ask_draw(struct ask_prompt *prompt)
{
	struct ask_model *ask = &prompt->model;
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	_buf_ struct buf out = BUF_INIT(1u << 20);
	_free_ char *text = NULL;
	char head[ASK_MESSAGE_SIZE], answering[1024] = "";
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	if (memory && ask->shown)
		question_write(memory, ask->shown);
	if (memory)
		fclose(memory);
	ask_set_clock(ask, time(NULL));
	if (ask->stage == ASK_REASON)
		ask_prompt_text(ask, size.ws_col, answering, sizeof(answering));
	snprintf(head, sizeof(head), " netpawl ask  %s%s", ask->away ? "NO DAEMON  " : "",
		 ask->shown ? "" : "nothing waits ");
	if (ask->n > 1)
		snprintf(head + strlen(head), sizeof(head) - strlen(head), "%zu more wait%s ", ask->n - 1,
			 ask->n == 2 ? "s" : "");
	ask_screen_draw(&(struct ask_screen){ .rows = size.ws_row,
					      .columns = size.ws_col,
					      .head = head,
					      .text = text,
					      .clock = ask->clock,
					      .message = ask->message,
					      .keys = keys_text(ask),
					      .prompt = answering },
			&out);
	if (prompt->bell && ask->rung)
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

static void drawn_note(const struct ask_model *ask, char drawn[64])
{
	snprintf(drawn, 64, "%s", ask->shown ? ask_id(ask->shown) : "");
}

/* Has another taken the place of the one that was drawn, without a key? */
static void replaced_note(struct ask_prompt *prompt, const char *drawn)
{
	const json_t *shown = prompt->model.shown;

	if (*drawn && shown && strcmp(drawn, ask_id(shown)) != 0)
		prompt->replaced_ms = now_ms();
}

/* Signals arrive in ppoll() and nowhere else. */
static void ask_loop(struct ask_prompt *prompt, const sigset_t *outside)
{
	const struct timespec second = { .tv_sec = 1 };
	struct ask_model *ask = &prompt->model;
	char drawn[64];

	while (!ask->over && !ended) {
		struct pollfd fds[] = { { STDIN_FILENO, POLLIN, 0 }, { prompt->stream.fd, POLLIN, 0 } };
		int n;

		ask_draw(prompt);
		n = ppoll(fds, 2, &second, outside);
		drawn_note(ask, drawn);
		if (n > 0 && fds[1].revents)
			stream_read(prompt);
		replaced_note(prompt, drawn);
		if (n > 0 && fds[0].revents)
			keys_read(prompt);
		if (ask->shown && !ask->over && ask->stage == ASK_LOOK && time(NULL) - ask->looked >= LOOK_S) {
			const time_t now = time(NULL);

			drawn_note(ask, drawn);
			ask_renew(ask, prompt->cli->socket);
			replaced_note(prompt, drawn);
			ask->looked = now;
		}
	}
}

static int ask_run(struct ask_prompt *prompt, const char *path)
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
	r = ask_stream_start(prompt->cli->socket, path, &prompt->stream);
	if (r == 0)
		r = terminal_begin(&before);
	if (r < 0) {
		ask_stream_end(&prompt->stream);
		error_print("ask", NP_R_FAILED, strerror(-r));
		return CLI_REFUSED;
	}
	ask_loop(prompt, &outside);
	terminal_end(&before);
	ask_stream_end(&prompt->stream);
	if (prompt->model.refused)
		return api_refused("ask", 403, prompt->model.message);
	return ended && ended != SIGINT ? 128 + ended : CLI_OK;
}

int command_ask(struct cli *cli, int argc, char **argv)
{
	bool quiet = false;
	const struct option_spec specs[] = { { "no-bell", .flag = &quiet } };
	const struct options options = { argv[0],
					 ask_help,
					 specs,
					 ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one session at most", true },
					 .no_json = SCRIPTS };
	struct ask_prompt prompt = { .cli = cli, .stream = { .fd = -1 }, .in = BUF_INIT(CLIENT_LINE_MAX * 4) };
	_buf_ struct buf path = BUF_INIT(4096);
	_api_answer_ struct api_answer first = { 0 };
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return usage_error(argv[0], "it needs a terminal; " SCRIPTS);
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
	prompt.bell = !quiet;
	code = buf_error(&path) ? CLI_REFUSED : ask_run(&prompt, path.data);
	ask_model_free(&prompt.model);
	buf_free(&prompt.in);
	return code;
}
