/* SPDX-License-Identifier: MIT */
/* Values of credentials that were about to leave, on their way to the session service. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/secret_message.h"
#include "supervisor/supervisor_internal.h"

/* It may come in the middle of a verb, and waits until that is over. The same need not wait twice. */
int leaks_learn(struct process *from, const char *data, size_t len)
{
	struct supervisor *w = from->supervisor;
	const struct ledger_entry *entry;
	struct link_leak message;
	struct leaked *leak;

	if (len != sizeof(message))
		return -EPROTO;
	memcpy(&message, data, sizeof(message));
	if (!message.name[0] || !memchr(message.name, '\0', sizeof(message.name)))
		return -EPROTO;
	for (unsigned i = 0; i < w->n_leaks; i++)
		if (w->leaks[i].cgroup_id == message.cgroup_id && strcmp(w->leaks[i].credential, message.name) == 0)
			return 0;
	/* As many in the time of one verb come from an inspector that is not itself any more: it is ended. */
	if (w->n_leaks == NP_LEAKS_WAITING)
		return -EPROTO;
	entry = ledgers_find(w->ledgers, message.cgroup_id);
	leak = &w->leaks[w->n_leaks++];
	leak->cgroup_id = message.cgroup_id;
	/* The verb may be the end of this sandbox, and its session is to be raised all the same. */
	snprintf(leak->session, sizeof(leak->session), "%.*s", (int)sizeof(leak->session) - 1,
		 entry ? entry->session : "");
	memcpy(leak->credential, message.name, strlen(message.name) + 1);
	return 0;
}

void leaks_receive(struct supervisor *w)
{
	while (w->n_leaks) {
		const struct leaked leak = w->leaks[--w->n_leaks];

		w->config.on_leak(w->config.data, leak.cgroup_id, leak.session, leak.credential);
	}
}
