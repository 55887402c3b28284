/* SPDX-License-Identifier: MIT */
#include "inspect/ask.h"

#include <string.h>

#include "base/chars.h"
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/tunnel.h"
#include "link/ask_message.h"
#include "policy/asked.h"
#include "vocab/limits.h"
#include "vocab/words.h"

#define DECIDER_SLACK_MS 5000 /* beyond a decider's own time: for the way to it and back, on a busy machine */
#define ASK_MS		 100  /* a daemon that does not take a question for so long is not asked */

bool ask_covers(const struct ask *ask, const struct client *client, const struct verdict *verdict)
{
	const struct np_rung *rung = &client->sandbox->rung;

	return ask && ask->state == ASK_GRANTED && ask->rung.level == rung->level && ask->rung.mode == rung->mode &&
	       ask->rung.flags == rung->flags && ask->rule == asked_rule(verdict);
}

void ask_want(struct ask *ask, const struct client *client, const struct host *host, uint16_t port,
	      const struct head *head, const struct buf *came, const enum request_state *request, bool tls)
{
	*ask = (struct ask){ .state = ASK_WANTED,
			     .client = client,
			     .host = host,
			     .port = port,
			     .tls = tls,
			     .head = head,
			     .came = came,
			     .request = request };
}

void ask_move(struct ask *to, struct ask *from, const struct host *host, const struct head *head)
{
	*to = *from;
	to->host = host;
	to->head = head;
	to->came = NULL;
	to->request = NULL;
	from->state = ASK_WANTED;
}

/* -- asking ------------------------------------------------------------------------------ */

static void ask_again(struct ask *ask, struct hold *hold);
static bool body_show(struct ask *ask, struct hold *hold, const struct piece *piece);

/* Tells the daemon that the request no longer waits: it is gone, or (taken) it goes on by an answer that was for
 * this one alone. */
static void waiter_report(const struct worker *worker, uint64_t number, bool taken)
{
	struct link_ask message = { .number = number, .gone = !taken, .taken = taken };

	link_send(worker->link, LINK_ASK, &message, sizeof(message), -1);
}

/* Its time is over, or nobody is there for it any more: the question stays. */
static void ask_over(struct hold *hold)
{
	struct ask *ask = hold->terms.ctx;

	if (ask->state == ASK_OPEN) {
		waiter_report(hold->worker, hold->number, false);
		ask->state = ASK_WANTED;
	}
	ask->look = 0;
	ask->shows = false;
}

/* How long it is held from now on: for a person, or, unless decider is NULL, for a decider. The daemon keeps the
 * decider's time, which ends before ours. */
static void terms_set(const struct worker *worker, const struct decider *decider, struct hold_terms *terms)
{
	terms->ms = (uint32_t)(decider ? decider->timeout_ms + DECIDER_SLACK_MS : worker->policy->approval.hold_ms);
	terms->late = decider ? NP_R_NEEDS_DECIDER : NP_R_NEEDS_APPROVAL;
	terms->words = decider ? "there was no answer in time" : "the question is still open";
}

static void terms_renew(const struct decider *decider, struct hold *hold)
{
	struct hold_terms terms = hold->terms;

	terms_set(hold->worker, decider, &terms);
	hold_renew(hold, &terms);
}

/* The decider that a verdict asks; NULL: a person. */
static const struct decider *verdict_decider(const struct worker *worker, const struct verdict *verdict)
{
	for (size_t i = 0; verdict->action == ACTION_DECIDE && i < worker->policy->n_deciders; i++)
		if (worker->policy->deciders[i].name == verdict->rule->by)
			return &worker->policy->deciders[i];
	return NULL;
}

/* The first bytes of its body did not come in time, or are not needed any more. */
static void ask_wake(struct hold *hold)
{
	struct ask *ask = hold->terms.ctx;

	if (!ask->look)
		return;
	if (ask->shows) {
		body_show(ask, hold, NULL);
		return;
	}
	ask->look = 0;
	ask_again(ask, hold);
}

/* So many of its body, if it has as many. */
static size_t body_bytes(const struct head *head, size_t max)
{
	return head->has_length && head->length < max ? (size_t)head->length : max;
}

struct hold_terms ask_terms(struct ask *ask, bool look)
{
	struct hold_terms terms = { .over = ask_over, .ctx = ask };

	terms_set(ask->client->worker, NULL, &terms); /* ask_send() knows better */
	if (look && ask->head->has_body) {
		ask->look = body_bytes(ask->head, NP_QUESTION_PREVIEW);
		terms.body = ask->look;
		terms.wake = ask_wake;
		terms.wake_ms = NP_PREVIEW_MS;
	}
	return terms;
}

/* Where the request goes, and not what it calls that: a person reads this, and a request need not spell out its
 * port. */
static void url_write(const struct ask *ask, char to[static NP_QUESTION_URL])
{
	const struct head *head = ask->head;
	_buf_ struct buf url = BUF_INIT(NP_QUESTION_URL + 8);
	char where[HOST_PORT_SIZE];

	host_port_text(ask->host, ask->port, where);
	if (!head) {
		text_ascii(to, NP_QUESTION_URL, where);
		return;
	}
	if (ask->port == (ask->tls ? 443 : 80))
		*strrchr(where, ':') = '\0';
	buf_printf(&url, "%s://%s", ask->tls ? "https" : "http", where);
	/* What is too long is cut by text_ascii(), not left out. */
	buf_append(&url, head->target, strnlen(head->target, NP_QUESTION_URL + 7 - url.len));
	text_ascii(to, NP_QUESTION_URL, buf_error(&url) || !url.data ? "?" : url.data);
}

static void message_fill(const struct ask *ask, const struct hold *hold, const struct verdict *verdict,
			 const struct decider *decider, struct link_ask *message)
{
	const struct worker *worker = hold->worker;
	const struct head *head = ask->head;
	char place[PLACE_TEXT_SIZE], host[ADDR_TEXT_SIZE];

	*message = (struct link_ask){ .number = hold->number,
				      .cgroup_id = hold->sandbox->cgroup_id,
				      .rung = hold->sandbox->rung,
				      .port = ask->port,
				      .tls = ask->tls,
				      .pid = ask->client->flow.pid,
				      .rule = asked_rule(verdict),
				      .write = !head || !judge_reads(head) };
	if (head && head->has_body)
		message->body = head->has_length ? head->length : UINT64_MAX;
	if (ask->host->is_addr)
		addr_format(&ask->host->addr, host);
	if (decider)
		message->decider = (uint8_t)(decider - worker->policy->deciders + 1);
	asked_place(worker->policy, hold->sandbox->rung.level, verdict, place);
	text_ascii(message->policy, sizeof(message->policy), worker->policy->hash);
	text_ascii(message->place, sizeof(message->place), place);
	text_ascii(message->host, sizeof(message->host), ask->host->is_addr ? host : ask->host->name);
	text_ascii(message->method, sizeof(message->method), head ? head->method : "");
	url_write(ask, message->url);
}

/* How its body begins: the bytes that came, and those that are at hand (NULL: none). */
static void body_begin(const struct ask *ask, size_t max, const struct piece *piece, struct buf *to)
{
	const size_t came = !ask->came ? 0 : ask->came->len < max ? ask->came->len : max;

	if (came)
		buf_append(to, ask->came->data, came);
	if (piece)
		buf_append(to, piece->data, piece->len < max - came ? piece->len : max - came);
}

static bool ask_send(struct ask *ask, struct hold *hold, const struct verdict *verdict, const struct piece *piece)
{
	const struct decider *decider = verdict_decider(hold->worker, verdict);
	_buf_ struct buf message = BUF_INIT(sizeof(struct link_ask) + NP_DECIDE_HEADERS + NP_QUESTION_PREVIEW);
	_buf_ struct buf headers = BUF_INIT(NP_DECIDE_HEADERS), preview = BUF_INIT(NP_QUESTION_PREVIEW);
	struct link_ask fixed;

	message_fill(ask, hold, verdict, decider, &fixed);
	if (ask->head)
		fields_shown(&ask->head->fields, NP_DECIDE_HEADERS, &headers);
	body_begin(ask, verdict->capture < preview.max ? verdict->capture : preview.max, piece, &preview);
	fixed.headers = (uint16_t)headers.len;
	fixed.preview = (uint16_t)preview.len;
	buf_append(&message, &fixed, sizeof(fixed));
	buf_append(&message, headers.data, headers.len);
	buf_append(&message, preview.data, preview.len);
	terms_renew(decider, hold);
	ask->rule = fixed.rule;
	ask->state = ASK_OPEN;
	ask->look = 0;
	ask->shows = false;
	if (!buf_error(&message) &&
	    link_send_patiently(hold->worker->link, LINK_ASK, message.data, message.len, -1, ASK_MS) == 0)
		return true;
	ask->state = ASK_WANTED;
	hold_refuse(hold, hold->terms.late, "nobody could be asked");
	return false;
}

bool ask_begin(struct ask *ask, struct hold *hold)
{
	struct verdict verdict;

	if (ask->look)
		return true;
	verdict = judge_request(ask->client, ask->host, ask->port, NULL, ask->head, NULL);
	return ask_send(ask, hold, &verdict, NULL);
}

bool ask_see(struct ask *ask, struct hold *hold, const struct piece *piece)
{
	struct verdict verdict;

	if (!ask->look || (ask->came->len + piece->len < ask->look && !piece->end))
		return true;
	if (ask->shows)
		return body_show(ask, hold, piece);
	verdict = judge_request(ask->client, ask->host, ask->port, NULL, ask->head, NULL);
	if (judge_asks(&verdict))
		return ask_send(ask, hold, &verdict, piece);
	hold_wake(hold); /* not from within its body */
	return true;
}

/* -- what a decider wants to see ------------------------------------------------------------ */

static size_t body_there(const struct ask *ask, const struct piece *piece)
{
	return (ask->came ? ask->came->len : 0) + (piece ? piece->len : 0);
}

/* Nothing of its body comes behind what is there. */
static bool body_is_whole(const struct ask *ask, const struct piece *piece)
{
	const struct head *head = ask->head;

	if (!head || !head->has_body)
		return head;
	return (ask->request && *ask->request != REQUEST_COMES) || (piece && piece->end) ||
	       (head->has_length && body_there(ask, piece) >= head->length);
}

static bool body_show(struct ask *ask, struct hold *hold, const struct piece *piece)
{
	const size_t there = body_there(ask, piece);
	_buf_ struct buf message = BUF_INIT(sizeof(struct link_ask) + NP_DECIDE_BODY);
	struct link_ask fixed = { .number = hold->number, .shows = 1 };

	fixed.preview = (uint16_t)(there < ask->look ? there : ask->look);
	fixed.whole = there <= ask->look && body_is_whole(ask, piece);
	buf_append(&message, &fixed, sizeof(fixed));
	body_begin(ask, fixed.preview, piece, &message);
	ask->look = 0;
	ask->shows = false;
	if (!buf_error(&message) &&
	    link_send_patiently(hold->worker->link, LINK_ASK, message.data, message.len, -1, ASK_MS) == 0)
		return true;
	hold_refuse(hold, hold->terms.late, "its body could not be shown");
	return false;
}

static void body_want(struct ask *ask, struct hold *hold, size_t max)
{
	const bool has_body = ask->head && ask->head->has_body;

	ask->look = has_body ? body_bytes(ask->head, max < NP_DECIDE_BODY ? max : NP_DECIDE_BODY) : 0;
	ask->shows = true;
	if (!ask->look || body_there(ask, NULL) >= ask->look || body_is_whole(ask, NULL))
		body_show(ask, hold, NULL);
	else
		hold_read(hold, ask->look, ask_wake, NP_PREVIEW_MS);
}

/* -- the answer ----------------------------------------------------------------------------- */

/* The question is void, or was judged by what does not hold any more. */
static void ask_again(struct ask *ask, struct hold *hold)
{
	struct verdict verdict = judge_request(ask->client, ask->host, ask->port, NULL, ask->head, ask);

	ask->question = 0;
	if (verdict.action == ACTION_ALLOW)
		hold_resume(hold);
	else if (!judge_asks(&verdict))
		hold_refuse(hold, verdict.reason, NULL);
	else if (ask->again++ < NP_ASKS_AGAIN)
		ask_send(ask, hold, &verdict, NULL);
	else
		hold_refuse(hold, hold->terms.late, "the level or the policy does not stay the same");
}

/* Takes back what the question has granted. */
static bool ask_end(struct ask *ask, uint64_t question)
{
	if (ask->state != ASK_GRANTED || ask->question != question)
		return false;
	ask->state = ASK_WANTED;
	return true;
}

static void question_over(struct worker *worker, uint64_t question)
{
	struct sandbox *sandbox;
	struct client *client;
	struct exchange *ex;

	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox)) {
		bool found = false;

		LIST_FOREACH(client, &sandbox->clients, of_sandbox) {
			if (client->tunnel)
				found |= ask_end(tunnel_ask(client->tunnel), question);
			LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
				found |= ask_end(&ex->ask, question);
		}
		if (found)
			sandbox_rejudge(worker, sandbox, NP_R_ENDED_BY_EXPIRY);
	}
}

void asks_answer(struct worker *worker, const struct link_answer *answer)
{
	struct hold *hold = answer->number ? hold_find(worker, answer->number) : NULL;
	struct ask *ask = hold && hold->terms.over == ask_over ? hold->terms.ctx : NULL;
	const char *words = answer->words[0] ? answer->words : NULL;

	if (answer->reply == REPLY_OVER)
		question_over(worker, answer->question);
	if (answer->once && answer->number) /* if it has come too late, the daemon gives it to another */
		waiter_report(worker, answer->number, ask);
	if (!ask) /* it is gone, and the daemon was told */
		return;
	if (answer->reply == REPLY_BODY) {
		body_want(ask, hold, answer->body);
		return;
	}
	ask->question = answer->question;
	if (answer->reply == REPLY_PENDING) { /* a person is asked, whoever was before */
		if (hold->terms.late != NP_R_NEEDS_APPROVAL)
			terms_renew(NULL, hold);
		return;
	}
	ask->state = ASK_WANTED;
	if (answer->reply == REPLY_AGAIN) {
		ask_again(ask, hold);
	} else if (answer->reply == REPLY_ALLOWED) {
		ask->state = ASK_GRANTED;
		ask->allowed = ask->question ? NP_R_APPROVED : NP_R_DECIDER_ALLOWS;
		ask->rung = hold->sandbox->rung;
		hold_resume(hold);
	} else if (answer->reply == REPLY_DENIED) {
		hold_refuse(hold, ask->question ? NP_R_ANSWER_DENIES : NP_R_DECIDER_DENIES, words);
	} else {
		hold_refuse(hold, answer->reason, words);
	}
}
