/* SPDX-License-Identifier: MIT */
/* The people that approval: notify: names are notified of each question when it is asked, and once more of those
 * that still wait when the daemon starts. */
#include "base/log.h"
#include "daemon/daemon.h"
#include "session/notification.h"

static int question_send(void *data, const struct question_row *row)
{
	struct daemon *d = data;
	struct notification news;

	if (row->state != QUESTION_PENDING)
		return 0;
	notification_of_question(row, &news);
	notifier_put(d->notifier, row->session.text, news.id, news.summary);
	return 0;
}

static int run_send(void *data, const struct run_row *row)
{
	struct daemon *d = data;
	struct notification news;

	if (row->state != RUN_PENDING || row->class != CLASS_WRITE || row->decided)
		return 0;
	notification_of_run(row, &news);
	notifier_put(d->notifier, row->session.text, news.id, news.summary);
	return 0;
}

void question_notify(struct daemon *d, const struct event *event)
{
	struct question_row question;
	struct failure ignored;
	struct run_row run;

	if (event->reason == NP_R_QUESTION_ASKED &&
	    service_question_show(d->service, event->question, &question, &ignored) == 0)
		question_send(d, &question);
	else if (event->reason == NP_R_RUN_ASKED && service_run_show(d->service, event->run, &run, &ignored) == 0)
		run_send(d, &run);
}

/* The daemon before may have died before it told anybody, or while it did: twice is better than never, and the id is the same. */
void questions_notify(struct daemon *d)
{
	struct store *store = service_store(d->service);

	if (store_questions_each(store, NULL, true, question_send, d) < 0 ||
	    store_runs_open_each(store, run_send, d) < 0)
		log_warning("approval: notify: what still waits could not be read, and nobody is told of it again");
}
