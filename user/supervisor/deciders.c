/* SPDX-License-Identifier: MIT */
/* What deciders are asked, and what came of it. */
#include "supervisor/deciders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "supervisor/deciders_internal.h"

static histogram_bounds latency_bounds = { 1000,   5000,    10000,   50000,   100000,	250000,
					   500000, 1000000, 2500000, 5000000, 15000000, 60000000 };

#define LINK_MS 0 /* a reader that does not take a question at once does not read: nothing waits for it */

/* -- what is waited for ---------------------------------------------------------------------- */

static struct asked *asked_find(const struct deciders *deciders, uint64_t id)
{
	for (struct table_node *n = table_first(&deciders->asked, hash_number(&deciders->key, id)); n;
	     n = table_next(n))
		if (container_of(n, struct asked, node)->id == id)
			return container_of(n, struct asked, node);
	return NULL;
}

static void asked_drop(struct deciders *deciders, struct asked *asked)
{
	TAILQ_REMOVE(&asked->of->asked, asked, next);
	asked->of->n_asked--;
	table_remove(&deciders->asked, &asked->node);
	free(asked);
}

/* There is no answer. The struct is freed before the callback: that may ask again. */
static void asked_fail(struct deciders *deciders, struct asked *asked, const char *why)
{
	struct decision none = { .id = asked->id, .kind = DECISION_NONE };

	snprintf(none.words, sizeof(none.words), "the decider %s %s", asked->of->name, why);
	asked_drop(deciders, asked);
	deciders->config.on_decision(deciders->config.data, &none);
}

void line_end(struct decider_line *line, const char *why)
{
	struct asked *asked;

	if (why)
		log_warning("the channel to the decider %s is closed: %s", line->name, why);
	line_drop(line);
	line->failures++;
	line->start_ns = loop_now_ns();
	if (!TAILQ_EMPTY(&line->asked))
		breaker_fail(&line->breaker, line->start_ns);
	while ((asked = TAILQ_FIRST(&line->asked))) {
		line->lost++;
		asked_fail(line->deciders, asked, "is gone, and has not answered");
	}
}

/* -- answers ------------------------------------------------------------------------------------ */

static int decision_take(struct decider_line *line, const struct decision *decision)
{
	struct deciders *deciders = line->deciders;
	struct asked *asked = asked_find(deciders, decision->id);
	uint64_t us;

	if (!asked || asked->of != line) /* nobody waits for it any more */
		return 0;
	if (decision->kind == DECISION_NEED_BODY) { /* its time goes on */
		if (asked->needs_body)
			return -EPROTO;
		asked->needs_body = true;
		deciders->config.on_decision(deciders->config.data, decision);
		return 0;
	}
	us = (loop_now_ns() - asked->since_ns) / 1000;
	breaker_succeed(&line->breaker);
	line->failures = 0; /* it can be spoken with: if the channel ends, the next one need not wait for long */
	line->answers[decision->kind]++;
	line->sum_us += us;
	histogram_note(&line->latency, latency_bounds, us);
	line->max_us = us > line->max_us ? us : line->max_us;
	asked_drop(deciders, asked);
	deciders->config.on_decision(deciders->config.data, decision);
	return 0;
}

int line_receive(struct decider_line *line)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct decision decision;
	enum link_type type;
	size_t len;
	int r = link_receive(line->link, &type, data, &len, NULL);

	if (r < 0)
		return r;
	if (type == LINK_READY) {
		line->ready = true;
		log_info("the decider %s is there", line->name);
		return 0;
	}
	if (type != LINK_DECIDED || len != sizeof(decision))
		return -EPROTO;
	memcpy(&decision, data, sizeof(decision));
	if (!decision_is_valid(&decision) || decision.kind == DECISION_NONE)
		return -EPROTO;
	return decision_take(line, &decision);
}

/* -- asking ---------------------------------------------------------------------------------------- */

static struct decider_line *line_find(const struct deciders *deciders, const char *name)
{
	struct decider_line *line;

	TAILQ_FOREACH(line, &deciders->lines, next)
		if (line->wanted && !strcmp(line->name, name))
			return line;
	return NULL;
}

static int line_send(const struct decider_line *line, enum link_type type, uint64_t id, const char *text, size_t len)
{
	static char data[LINK_BYTES_MAX];
	struct link_decide head = { .id = id };

	if (len > sizeof(data) - sizeof(head))
		return -E2BIG;
	memcpy(data, &head, sizeof(head));
	memcpy(data + sizeof(head), text, len);
	return link_send_patiently(line->link, type, data, sizeof(head) + len, -1, LINK_MS);
}

static const char *line_unfit(const struct decider_line *line)
{
	if (!line || !line->ready)
		return "the decider cannot be reached";
	if (breaker_is_open(&line->breaker, loop_now_ns()))
		return "the decider has failed several times, and is left alone for a moment";
	return line->n_asked >= NP_DECIDER_OPEN ? "the decider has too much to answer" : NULL;
}

static int calls_ask(void *ctx, const char *decider, uint64_t id, const char *text, size_t len, const char **ret_why)
{
	struct deciders *deciders = ctx;
	struct decider_line *line = line_find(deciders, decider);
	struct asked *asked;
	int r = 0;

	*ret_why = line_unfit(line);
	if (*ret_why) {
		if (line)
			line->turned_away++;
		return -EAGAIN;
	}
	asked = table_reserve(&deciders->asked) == 0 ? calloc(1, sizeof(*asked)) : NULL;
	if (asked)
		r = line_send(line, LINK_DECIDE, id, text, len);
	if (!asked || r < 0) {
		free(asked);
		line->turned_away++;
		*ret_why = "the decider could not be asked";
		return r ? r : -ENOMEM;
	}
	*asked = (struct asked){ .of = line, .id = id, .since_ns = loop_now_ns() };
	TAILQ_INSERT_TAIL(&line->asked, asked, next);
	line->n_asked++;
	table_add(&deciders->asked, &asked->node, hash_number(&deciders->key, id));
	return 0;
}

static int calls_show(void *ctx, uint64_t id, const char *text, size_t len)
{
	const struct asked *asked = asked_find(ctx, id);

	return asked && asked->needs_body ? line_send(asked->of, LINK_DECIDE_BODY, id, text, len) : -ESRCH;
}

static void line_withdraw(struct decider_line *line, uint64_t id)
{
	struct link_decide head = { .id = id };

	if (line->reader)
		link_send(line->link, LINK_WITHDRAW, &head, sizeof(head), -1); /* a courtesy */
}

static void calls_withdraw(void *ctx, uint64_t id)
{
	struct asked *asked = asked_find(ctx, id);

	if (!asked)
		return;
	line_withdraw(asked->of, id);
	asked_drop(ctx, asked);
}

struct decider_calls deciders_calls(struct deciders *deciders)
{
	return (struct decider_calls){
		.ctx = deciders, .ask = calls_ask, .show = calls_show, .withdraw = calls_withdraw
	};
}

/* -- all of them ------------------------------------------------------------------------------------ */

static void line_tick(struct decider_line *line)
{
	uint64_t now = loop_now_ns();
	struct asked *asked;

	while ((asked = TAILQ_FIRST(&line->asked)) && now - asked->since_ns > line->is.timeout_ms * 1000000) {
		line->late++;
		breaker_fail(&line->breaker, now);
		line_withdraw(line, asked->id);
		asked_fail(line->deciders, asked, "did not answer in time");
	}
	line_reap(line);
	if (line->wanted)
		line_start(line);
}

static void words_free(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

static void line_free(struct decider_line *line)
{
	line_drop(line);
	TAILQ_REMOVE(&line->deciders->lines, line, next);
	words_free(line->words);
	free(line->name);
	free(line->socket);
	free(line);
}

static void on_tick(void *data)
{
	struct deciders *deciders = data;
	struct decider_line *line, *next;

	for (line = TAILQ_FIRST(&deciders->lines); line; line = next) {
		next = TAILQ_NEXT(line, next);
		line_tick(line);
		if (!line->wanted && line_reap(line))
			line_free(line);
	}
}

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

static bool line_is(const struct decider_line *line, const struct decider *decider)
{
	size_t n = words_count(decider->command);

	if (strcmp(line->name, decider->name) != 0 || line->is.timeout_ms != decider->timeout_ms ||
	    line->is.network != decider->network || !line->socket != !decider->socket ||
	    (line->socket && strcmp(line->socket, decider->socket) != 0) ||
	    words_count((const char *const *)line->words) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(line->words[i], decider->command[i]) != 0)
			return false;
	return true;
}

static struct decider_line *line_make(struct deciders *deciders, const struct decider *decider)
{
	size_t n = words_count(decider->command);
	struct decider_line *line = calloc(1, sizeof(*line));
	bool good = line;

	if (!line)
		return NULL;
	*line = (struct decider_line){ .deciders = deciders, .is = *decider, .wanted = true, .link = -1 };
	TAILQ_INIT(&line->asked);
	line->name = strdup(decider->name);
	line->socket = decider->socket ? strdup(decider->socket) : NULL;
	line->words = n ? calloc(n + 1, sizeof(*line->words)) : NULL;
	good = line->name && (line->socket || line->words);
	for (size_t i = 0; good && i < n; i++)
		good = (line->words[i] = strdup(decider->command[i]));
	TAILQ_INSERT_TAIL(&deciders->lines, line, next);
	if (good)
		return line;
	line_free(line);
	return NULL;
}

void deciders_policy(struct deciders *deciders, const struct policy *policy)
{
	struct decider_line *line, *next;

	for (line = TAILQ_FIRST(&deciders->lines); line; line = next) {
		bool stays = false;

		next = TAILQ_NEXT(line, next);
		for (size_t i = 0; i < policy->n_deciders; i++)
			stays |= line->wanted && line_is(line, &policy->deciders[i]);
		if (line->wanted && !stays) {
			line->wanted = false;
			line_end(line, NULL);
		}
	}
	for (size_t i = 0; i < policy->n_deciders; i++) {
		line = line_find(deciders, policy->deciders[i].name);
		if (!line && !(line = line_make(deciders, &policy->deciders[i])))
			log_error("the decider %s cannot be started: out of memory", policy->deciders[i].name);
		if (line)
			line_start(line);
	}
}

int deciders_new(const struct deciders_config *config, struct deciders **ret)
{
	struct deciders *deciders = calloc(1, sizeof(*deciders));
	int r;

	if (!deciders)
		return -ENOMEM;
	deciders->config = *config;
	TAILQ_INIT(&deciders->lines);
	r = fs_beside(deciders->exe, "netpawl-decide");
	if (r == 0)
		r = fs_path(deciders->root, "%s", config->root);
	if (r == 0)
		r = hash_key_make(&deciders->key);
	if (r == 0)
		r = loop_every(config->loop, 50, on_tick, deciders);
	if (r < 0) {
		free(deciders);
		return r;
	}
	*ret = deciders;
	return 0;
}

void deciders_free(struct deciders *deciders)
{
	struct decider_line *line;

	while (deciders && (line = TAILQ_FIRST(&deciders->lines))) {
		while (!TAILQ_EMPTY(&line->asked))
			asked_drop(deciders, TAILQ_FIRST(&line->asked));
		line_free(line);
	}
	if (deciders)
		table_clear(&deciders->asked);
	free(deciders);
}

void deciders_describe(const struct deciders *deciders, struct buf *out)
{
	const struct decider_line *line;
	uint64_t now = loop_now_ns();

	json_open_array(out, "deciders");
	TAILQ_FOREACH(line, &deciders->lines, next) {
		uint64_t answers = 0;

		for (unsigned i = 0; i < DECISION_KINDS; i++)
			answers += line->answers[i];
		if (!line->wanted)
			continue;
		json_open_object(out, NULL);
		json_put_text(out, "decider", line->name, SIZE_MAX);
		json_put_bool(out, "ready", line->ready);
		json_put_bool(out, "paused", breaker_is_open(&line->breaker, now));
		json_put_number(out, "starts", line->starts);
		json_put_number(out, "pauses", line->breaker.trips);
		json_put_number(out, "waiting", line->n_asked);
		json_put_number(out, "allowed", line->answers[DECISION_ALLOW]);
		json_put_number(out, "denied", line->answers[DECISION_DENY]);
		json_put_number(out, "asked", line->answers[DECISION_ASK]);
		json_put_number(out, "raised", line->answers[DECISION_RAISE]);
		json_put_number(out, "late", line->late);
		json_put_number(out, "lost", line->lost);
		json_put_number(out, "turned_away", line->turned_away);
		json_put_number(out, "mean_us", answers ? line->sum_us / answers : 0);
		json_put_number(out, "max_us", line->max_us);
		json_close_object(out);
	}
	json_close_array(out);
}

/* Deciders are the policy's, and few. */
void deciders_metrics(const struct deciders *deciders, struct buf *out)
{
	const struct decider_line *line;

	metric_family(out, "netpawl_decider_up", METRIC_GAUGE, "Whether a decider can be asked.");
	TAILQ_FOREACH(line, &deciders->lines, next)
		if (line->wanted)
			metric_put(out, "netpawl_decider_up",
				   line->ready && !breaker_is_open(&line->breaker, loop_now_ns()), "decider",
				   line->name, NULL);
	metric_family(out, "netpawl_decider_answers_total", METRIC_COUNTER,
		      "What came of asking a decider: its answers, and late, lost and turned_away for none.");
	TAILQ_FOREACH(line, &deciders->lines, next) {
		const struct {
			const char *outcome;
			uint64_t count;
		} all[] = { { "allow", line->answers[DECISION_ALLOW] },
			    { "deny", line->answers[DECISION_DENY] },
			    { "ask", line->answers[DECISION_ASK] },
			    { "raise", line->answers[DECISION_RAISE] },
			    { "late", line->late },
			    { "lost", line->lost },
			    { "turned_away", line->turned_away } };

		for (size_t i = 0; line->wanted && i < ARRAY_SIZE(all); i++)
			metric_put(out, "netpawl_decider_answers_total", all[i].count, "decider", line->name, "outcome",
				   all[i].outcome, NULL);
	}
	metric_family(out, "netpawl_decider_seconds", METRIC_HISTOGRAM, "How long a decider took to answer.");
	TAILQ_FOREACH(line, &deciders->lines, next)
		if (line->wanted)
			metric_put_histogram(out, "netpawl_decider_seconds", &line->latency, latency_bounds, "decider",
					     line->name);
}
