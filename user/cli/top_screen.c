/* SPDX-License-Identifier: MIT */
#include "cli/top_screen.h"

#include <curses.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api_client/message.h"

#define ESCAPE_MS 50 /* a key that sends several bytes has sent them by then, also over ssh */

enum colour { COLOUR_GOOD = 1, COLOUR_BAD, COLOUR_CHANGE, COLOUR_QUESTION };

static SCREEN *screen_of_terminal;
static bool colours;

/* -- the terminal ------------------------------------------------------------------------------------- */

static int terminal_fail(const char *why)
{
	fprintf(stderr, "netpawl: top: %s; `netpawl events --follow` and `netpawl questions --follow` work anywhere\n",
		why);
	return CLI_REFUSED;
}

int top_screen_open(void)
{
	const char *term = getenv("TERM");
	const char *no_colour = getenv("NO_COLOR");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return terminal_fail("it needs a terminal");
	if (!term || !*term || !strcmp(term, "dumb"))
		return terminal_fail("this terminal cannot be drawn on (TERM)");
	screen_of_terminal = newterm(NULL, stdout, stdin);
	if (!screen_of_terminal)
		return terminal_fail("this terminal is not known (TERM)");
	if ((intptr_t)tigetstr((char *)"cup") <= 0) {
		top_screen_close();
		return terminal_fail("this terminal cannot be drawn on (TERM)");
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	colours = has_colors() && !(no_colour && *no_colour);
	if (colours) {
		start_color();
		use_default_colors();
		init_pair(COLOUR_GOOD, COLOR_GREEN, -1);
		init_pair(COLOUR_BAD, COLOR_RED, -1);
		init_pair(COLOUR_CHANGE, COLOR_YELLOW, -1);
		init_pair(COLOUR_QUESTION, COLOR_CYAN, -1);
	}
	return CLI_OK;
}

void top_screen_close(void)
{
	if (!screen_of_terminal)
		return;
	endwin();
	delscreen(screen_of_terminal);
	screen_of_terminal = NULL;
}

int top_screen_key(void)
{
	return getch();
}

/* -- lines --------------------------------------------------------------------------------------------- */

static void attributes_set(attr_t attributes, enum colour colour)
{
	attrset(attributes);
	if (colours && colour)
		attron(COLOR_PAIR(colour));
}

/* One line, cut at the edge. All of it is ASCII: what a stranger chose cannot draw. */
static void line_put(int y, attr_t attributes, enum colour colour, const char *text)
{
	char clean[1024];

	if (y < 0 || y >= LINES)
		return;
	top_clean(clean, sizeof(clean), text);
	attributes_set(attributes, colour);
	move(y, 0);
	clrtoeol();
	addnstr(clean, COLS > 1 ? COLS - (y == LINES - 1) : 0); /* the last cell would scroll */
	if (attributes & A_REVERSE)
		for (int x = (int)strlen(clean); x < COLS - (y == LINES - 1); x++)
			addch(' ');
	attrset(A_NORMAL);
}

static void lines_clear(int from, int to)
{
	for (; from < to; from++) {
		move(from, 0);
		clrtoeol();
	}
}

/* The first of a list that is shown, so that the selected one is. */
static size_t first_shown(size_t selected, int room)
{
	return room > 0 && selected >= (size_t)room ? selected - (size_t)room + 1 : 0;
}

/* -- traffic -------------------------------------------------------------------------------------------- */

static void traffic_line(int y, const struct top_row *row, bool selected)
{
	const char *time = member_text(row->event, "time"), *kind = member_text(row->event, "kind") ?: "";
	const bool refused = !strcmp(kind, "refuse"), allowed = !strcmp(kind, "allow");
	char what[512], line[1024], session[20], count[16] = "";

	top_what(row->event, what, sizeof(what));
	top_clean(session, sizeof(session), member_text(row->event, "session") ?: "-");
	if (row->count > 1)
		snprintf(count, sizeof(count), "x%u ", row->count);
	snprintf(line, sizeof(line), "%.8s %-18.18s %-7s %s%s%s%s", time && strlen(time) > 19 ? time + 11 : "-",
		 session,
		 allowed   ? "allowed"
		 : refused ? "REFUSED"
			   : kind,
		 count, what, refused ? "  " : "", refused ? member_text(row->event, "reason") ?: "" : "");
	line_put(y,
		 selected  ? A_REVERSE
		 : refused ? A_BOLD
			   : A_NORMAL,
		 refused   ? COLOUR_BAD
		 : allowed ? COLOUR_GOOD
			   : COLOUR_CHANGE,
		 line);
}

static void traffic_draw(const struct top_screen *screen, const struct top_model *model, int from, int to)
{
	const size_t first = first_shown(screen->selected, to - from);

	for (int y = from; y < to; y++) {
		const size_t index = first + (size_t)(y - from);
		const struct top_row *row = top_visible(model, index);

		if (!row) {
			lines_clear(y, to);
			return;
		}
		traffic_line(y, row, index == screen->selected);
	}
}

/* All members of the selected row, one a line. */
static void detail_draw(const json_t *object, int from, int to)
{
	const char *name;
	json_t *value;
	int y = from;

	json_object_foreach((json_t *)object, name, value)
	{
		char line[1024], *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
		const char *shown = json_is_string(value) ? json_string_value(value) : text;

		if (y < to && shown) {
			snprintf(line, sizeof(line), "%-16s %s", name, shown);
			line_put(y++, A_NORMAL, 0, line);
		}
		free(text);
	}
	lines_clear(y, to);
}

/* -- sessions, questions, help --------------------------------------------------------------------------- */

static void sessions_draw(const struct top_screen *screen, const struct top_model *model, int from, int to)
{
	const size_t first = first_shown(screen->selected, to - from - 1);

	line_put(from++, A_BOLD, 0, "SESSION                        LEVEL         MODE     DATASETS  SINCE");
	for (int y = from; y < to; y++) {
		const size_t index = first + (size_t)(y - from);
		const json_t *session = json_array_get(model->sessions, index);
		char line[256];

		if (!session) {
			lines_clear(y, to);
			return;
		}
		snprintf(line, sizeof(line), "%-30.30s %-13s %-8s %8lld  %.19s", member_text(session, "session") ?: "-",
			 member_text(session, "level") ?: "-", member_text(session, "mode") ?: "-",
			 member_number(session, "datasets"), member_text(session, "created") ?: "-");
		line_put(y, index == screen->selected ? A_REVERSE : A_NORMAL, 0, line);
	}
}

/* "to run sh -c ...", cut where it is long. */
static void command_format(const json_t *command, char *ret, size_t size)
{
	const json_t *word;
	size_t i;

	snprintf(ret, size, "to run");
	json_array_foreach(command, i, word)
		snprintf(ret + strlen(ret), size - strlen(ret), " %s", json_string_value(word) ?: "?");
}

static void question_format(const json_t *question, unsigned long long now_us, char *ret, size_t size)
{
	const long long left = top_left(question, now_us);
	const char *method = member_text(question, "method"), *id = member_text(question, "id") ?: "?";
	char what[512];

	if (json_object_get(question, "run"))
		command_format(json_object_get(question, "command"), what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s %s", method && *method ? method : "to connect to",
			 member_text(question, "url") ?: "?");
	snprintf(ret, size, "%s %s wants %s  (%llds left)", id, member_text(question, "session") ?: "?", what, left);
}

static void questions_draw(const struct top_screen *screen, const struct top_model *model, unsigned long long now_us,
			   int from, int to)
{
	const size_t first = first_shown(screen->selected, (to - from) / 2);
	int y = from;

	if (!json_array_size(model->questions))
		line_put(y++, A_NORMAL, 0, "Nothing waits for a person.");
	for (size_t i = first; i < json_array_size(model->questions) && y < to; i++) {
		const json_t *question = json_array_get(model->questions, i), *warning;
		char line[1024], notes[512] = "";
		size_t n;

		question_format(question, now_us, line, sizeof(line));
		line_put(y++, i == screen->selected ? A_REVERSE : A_BOLD, COLOUR_QUESTION, line);
		json_array_foreach(json_object_get(question, "warnings"), n, warning)
			snprintf(notes + strlen(notes), sizeof(notes) - strlen(notes), "; %s",
				 json_is_string(warning) ? json_string_value(warning) : member_text(warning, "text") ?: "?");
		snprintf(line, sizeof(line), "    at %s%s%s%s", member_text(question, "level") ?: "?",
			 member_text(question, "rule") ? ", rule " : "", member_text(question, "rule") ?: "", notes);
		if (y < to)
			line_put(y++, A_NORMAL, 0, line);
	}
	lines_clear(y, to);
}

/* By name: a value is in no answer of the daemon. */
static void credentials_draw(const struct top_screen *screen, const struct top_model *model, int from, int to)
{
	const size_t first = first_shown(screen->selected, to - from - 1);

	line_put(from++, A_BOLD, 0,
		 "CREDENTIAL               STATE     SOURCE    USES  TOKENS  LAST USED            PROBLEM");
	for (int y = from; y < to; y++) {
		const size_t index = first + (size_t)(y - from);
		const json_t *credential = json_array_get(model->credentials, index);
		const char *state = member_text(credential, "state") ?: "-";
		char line[512], tokens[24] = "-"; /* none are captured for it */

		if (!credential) {
			lines_clear(y, to);
			return;
		}
		if (json_is_true(json_object_get(credential, "captures")))
			snprintf(tokens, sizeof(tokens), "%lld", member_number(credential, "tokens"));
		snprintf(line, sizeof(line), "%-24.24s %-9.9s %-7.7s %6lld  %6s  %-19.19s  %s",
			 member_text(credential, "name") ?: "-", state, member_text(credential, "source") ?: "-",
			 member_number(credential, "uses"), tokens, member_text(credential, "used") ?: "never",
			 member_text(credential, "problem") ?: "");
		line_put(y, index == screen->selected ? A_REVERSE : A_NORMAL,
			 !strcmp(state, "missing") ? COLOUR_BAD : 0, line);
	}
}

static void help_draw(int from, int to)
{
	static const char *const lines[] = {
		"1 2 3 4   traffic, sessions, questions, credentials; Tab: the next",
		"j k       down and up, as the arrows do; g G: the first, the last",
		"Enter     all of the selected row; again, or Escape: back",
		"/         a filter: host:github.com verdict:refused -llm session:alice/*",
		"          Enter takes it, Escape leaves it as it was; empty: everything",
		"l         hide calls to models, and show them again",
		"r         only what was refused, and all again",
		"space     pause; what comes meanwhile is not lost",
		"",
		"of the selected question, or of a run that waits:",
		"d         deny; the program is told. A run never starts",
		"o         allow this one request; start the run",
		"h         allow this session, host and port, as long as it holds",
		"m         and all hosts of its domain",
		"A         always: written into the policy's grants",
		"",
		"q         quit",
	};
	int y = from;

	for (size_t i = 0; i < ARRAY_SIZE(lines) && y < to; i++)
		line_put(y++, A_NORMAL, 0, lines[i]);
	lines_clear(y, to);
}

/* -- all ------------------------------------------------------------------------------------------------- */

static void heading_draw(const struct top_screen *screen, const struct top_model *model)
{
	static const char *const views[] = { "traffic", "sessions", "questions", "credentials", "help" };
	char line[1024], bytes[16];

	top_bytes(model->sent, bytes);
	snprintf(line, sizeof(line), "netpawl %-9s %llu allowed, %llu refused, %zu pending, %s out, %zu sessions%s%s",
		 views[screen->view], model->allowed, model->refused, json_array_size(model->questions), bytes,
		 json_array_size(model->sessions), model->paused ? "  PAUSED" : "",
		 model->connected ? "" : "  NO DAEMON: trying again");
	line_put(0, A_REVERSE | (model->connected ? 0 : A_BOLD), 0, line);
}

static void footing_draw(const struct top_screen *screen, const struct top_model *model, unsigned long long now_us)
{
	char line[1200];

	if (LINES < 4)
		return;
	if (json_array_size(model->questions) && screen->view != TOP_QUESTIONS) {
		strcpy(line, "3: ");
		question_format(json_array_get(model->questions, 0), now_us, line + 3, sizeof(line) - 3);
	} else {
		snprintf(line, sizeof(line), "%s", model->message);
	}
	line_put(LINES - 2, A_BOLD, COLOUR_QUESTION, line);
	if (screen->typing || screen->problem[0])
		snprintf(line, sizeof(line), "/%s%s%s%s", screen->filter, screen->typing ? "_" : "",
			 screen->problem[0] ? "   " : "", screen->problem);
	else if (screen->view == TOP_QUESTIONS)
		strcpy(line, "d deny  o once  h host  m domain  A always  j k select  1 traffic  ? help");
	else
		snprintf(line, sizeof(line),
			 "%s%s1-4 views  / filter  l llm  r refused  space pause  Enter all  ? help  q quit",
			 screen->filter[0] ? screen->filter : "", screen->filter[0] ? " | " : "");
	line_put(LINES - 1, A_REVERSE, 0, line);
}

static const json_t *list_of(const struct top_screen *screen, const struct top_model *model)
{
	return screen->view == TOP_SESSIONS	 ? model->sessions
	       : screen->view == TOP_QUESTIONS	 ? model->questions
	       : screen->view == TOP_CREDENTIALS ? model->credentials
						 : NULL;
}

void top_screen_draw(const struct top_screen *screen, const struct top_model *model, unsigned long long now_us)
{
	const int from = 1, to = LINES - 2;
	const struct top_row *row = screen->view == TOP_TRAFFIC ? top_visible(model, screen->selected) : NULL;
	const json_t *list = list_of(screen, model);

	heading_draw(screen, model);
	if (screen->detail && row)
		detail_draw(row->event, from, to);
	else if (screen->detail && json_array_get(list, screen->selected))
		detail_draw(json_array_get(list, screen->selected), from, to);
	else if (screen->view == TOP_TRAFFIC)
		traffic_draw(screen, model, from, to);
	else if (screen->view == TOP_SESSIONS)
		sessions_draw(screen, model, from, to);
	else if (screen->view == TOP_QUESTIONS)
		questions_draw(screen, model, now_us, from, to);
	else if (screen->view == TOP_CREDENTIALS)
		credentials_draw(screen, model, from, to);
	else
		help_draw(from, to);
	footing_draw(screen, model, now_us);
	refresh();
}

size_t top_screen_rows(const struct top_screen *screen, const struct top_model *model)
{
	if (screen->view == TOP_TRAFFIC)
		return top_visible_count(model);
	return json_array_size(list_of(screen, model));
}
