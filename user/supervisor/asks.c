/* SPDX-License-Identifier: MIT */
/* What inspectors ask people and deciders about, on its way to the session service, and what it says to that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/ask_message.h"
#include "supervisor/supervisor_internal.h"

/* One that arrived, perhaps in the middle of a verb: it waits until that is over. */
struct ask {
	TAILQ_ENTRY(ask) next;
	struct question_waiter from;
	struct link_ask message; /* its tail follows */
};

int asks_learn(struct process *from, const char *data, size_t len)
{
	struct supervisor *w = from->supervisor;
	const struct link_ask *message = link_ask_read(data, len);
	struct ask *ask;

	/* An inspector asks once about each thing that it holds, shows its body once, and leaves or is allowed once. */
	if (!message || from->asks >= 3 * NP_HELD_MAX)
		return -EPROTO;
	ask = malloc(sizeof(*ask) + message->headers + message->preview);
	if (!ask)
		return -ENOMEM;
	ask->from = (struct question_waiter){ .inspector = (unsigned)(from - w->processes),
					      .pid = (int)from->pid,
					      .number = message->number };
	memcpy(&ask->message, message, sizeof(*message) + message->headers + message->preview);
	from->asks++;
	TAILQ_INSERT_TAIL(&w->asks, ask, next);
	return 0;
}

void asks_receive(struct supervisor *w)
{
	struct ask *ask;

	while ((ask = TAILQ_FIRST(&w->asks))) {
		struct process *p = &w->processes[ask->from.inspector];

		TAILQ_REMOVE(&w->asks, ask, next);
		p->asks--;
		if ((int)p->pid == ask->from.pid)
			w->config.on_ask(w->config.data, &ask->from, &ask->message);
		free(ask);
	}
}

void asks_lose(struct process *p)
{
	p->supervisor->config.on_asks_lost(p->supervisor->config.data, (unsigned)(p - p->supervisor->processes));
}

/* The cgroup may be another sandbox's when it is their turn. What asked has ended. */
void asks_drop(struct supervisor *w, uint64_t cgroup_id)
{
	struct ask *ask, *next;

	for (ask = TAILQ_FIRST(&w->asks); ask; ask = next) {
		const struct link_ask *message = &ask->message;

		next = TAILQ_NEXT(ask, next);
		if (message->cgroup_id != cgroup_id || message->gone || message->taken || message->shows)
			continue;
		TAILQ_REMOVE(&w->asks, ask, next);
		w->processes[ask->from.inspector].asks--;
		free(ask);
	}
}

void asks_clear(struct supervisor *w)
{
	struct ask *ask;

	while ((ask = TAILQ_FIRST(&w->asks))) {
		TAILQ_REMOVE(&w->asks, ask, next);
		free(ask);
	}
}

void asks_reply(void *ctx, const struct question_waiter *to, const struct question_news *news)
{
	struct supervisor *w = ctx;
	struct link_answer answer = { .question = news->question,
				      .reply = news->reply,
				      .reason = news->reason,
				      .body = news->body,
				      .once = news->once };

	if (news->words)
		snprintf(answer.words, sizeof(answer.words), "%s", news->words);
	if (!to) {
		send_all(w, LINK_ANSWER, &answer, sizeof(answer), -1);
		return;
	}
	answer.number = to->number;
	if (to->inspector < w->config.count && (int)w->processes[to->inspector].pid == to->pid)
		process_send(&w->processes[to->inspector], LINK_ANSWER, &answer, sizeof(answer), -1);
}
