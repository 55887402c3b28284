/* SPDX-License-Identifier: MIT */
/* Values of credentials that were about to leave, on their way to the session service. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/secret_message.h"
#include "supervisor/supervisor_internal.h"

#define LEAKS_AT_ONCE 64 /* each may be a raise, with its wait for the disk: then others have their turn */

/* A value of this credential was about to leave from this sandbox. It came in the middle of a verb, perhaps, and waits until that is over. */
struct leak {
	struct table_node node;
	TAILQ_ENTRY(leak) next;
	uint64_t cgroup_id;
	char session[NP_LABEL_SIZE]; /* its own; "": not known */
	char credential[NP_NAME_MAX + 1];
};

/* Its session is raised, so one of a session's sandboxes stands for all of them. */
static bool is_same(const struct leak *a, const struct leak *b)
{
	return strcmp(a->credential, b->credential) == 0 && strcmp(a->session, b->session) == 0 &&
	       (a->session[0] || a->cgroup_id == b->cgroup_id);
}

static int leak_read(struct supervisor *w, const char *data, size_t len, struct leak *ret)
{
	const struct ledger_entry *entry;
	struct link_leak message;

	if (len != sizeof(message))
		return -EPROTO;
	memcpy(&message, data, sizeof(message));
	if (!message.name[0] || !memchr(message.name, '\0', sizeof(message.name)))
		return -EPROTO;
	entry = ledgers_find(w->ledgers, message.cgroup_id);
	*ret = (struct leak){ .cgroup_id = message.cgroup_id };
	/* The verb may be the end of this sandbox, and its session is to be raised all the same. */
	snprintf(ret->session, sizeof(ret->session), "%.*s", (int)sizeof(ret->session) - 1,
		 entry ? entry->session : "");
	memcpy(ret->credential, message.name, strlen(message.name) + 1);
	return 0;
}

/* The same need not wait twice. */
int leaks_learn(struct process *from, const char *data, size_t len)
{
	struct supervisor *w = from->supervisor;
	struct leak read, *leak;
	int r = leak_read(w, data, len, &read);
	uint64_t hash;

	if (r < 0)
		return r;
	hash = read.session[0] ? hash_text(&w->key, read.session) : hash_number(&w->key, read.cgroup_id);
	hash = hash_mix(hash, hash_text(&w->key, read.credential));
	if (TABLE_FIND(&w->leaks_by_what, hash, struct leak, node, it, is_same(it, &read)))
		return 0;
	/* As many in the time of one verb come from an inspector that is not itself any more: it is ended. */
	if (w->leaks_by_what.count == NP_LEAKS_WAITING)
		return -EPROTO;
	leak = table_reserve(&w->leaks_by_what) == 0 ? malloc(sizeof(*leak)) : NULL;
	if (!leak)
		return -ENOMEM;
	*leak = read;
	table_add(&w->leaks_by_what, &leak->node, hash);
	TAILQ_INSERT_TAIL(&w->leaks, leak, next);
	return 0;
}

static void leak_remove(struct supervisor *w, struct leak *leak)
{
	table_remove(&w->leaks_by_what, &leak->node);
	TAILQ_REMOVE(&w->leaks, leak, next);
}

void leaks_receive(struct supervisor *w)
{
	struct leak *leak;

	/* A raise that one of them is calls this at its end: one of us is enough. */
	if (w->handing_on)
		return;
	w->handing_on = true;
	for (unsigned i = 0; i < LEAKS_AT_ONCE && (leak = TAILQ_FIRST(&w->leaks)); i++) {
		leak_remove(w, leak);
		w->config.on_leak(w->config.data, leak->cgroup_id, leak->session, leak->credential);
		free(leak);
	}
	w->handing_on = false;
	if (!TAILQ_EMPTY(&w->leaks))
		loop_later(w->config.loop, &w->receive);
}

void leaks_clear(struct supervisor *w)
{
	struct leak *leak;

	while ((leak = TAILQ_FIRST(&w->leaks))) {
		leak_remove(w, leak);
		free(leak);
	}
	table_clear(&w->leaks_by_what);
}
