/* SPDX-License-Identifier: MIT */
#include "control/clients.h"

#include <errno.h>
#include <stdlib.h>

#include "vocab/limits.h"

static struct client_process *process_find(const struct clients *set, uid_t uid, pid_t pid)
{
	struct client_process *p = set->processes;

	while (p && (p->uid != uid || p->pid != pid))
		p = p->next;
	return p;
}

/* Among whom somebody has to go. */
struct scope {
	const struct client_process *process; /* NULL: of any */
	bool one_user;
	uid_t uid;
	bool others; /* not of root */
};

static bool scope_has(const struct scope *scope, const struct client_process *process)
{
	if (scope->process)
		return process == scope->process;
	return (!scope->one_user || process->uid == scope->uid) && (!scope->others || process->uid != 0);
}

/* The process with the most clients loses one: a process that has few keeps them, whatever others do. */
static unsigned scope_most(const struct clients *set, const struct scope *scope)
{
	unsigned most = 0;

	for (const struct client_process *p = set->processes; p; p = p->next)
		if (scope_has(scope, p) && p->clients > most)
			most = p->clients;
	return most;
}

static struct client *scope_pick(const struct clients *set, const struct scope *scope)
{
	unsigned most = scope_most(set, scope);
	struct client *pick = NULL;

	for (struct client *c = set->first; c; c = c->next) {
		if (!c->process || c->process->clients < most || !scope_has(scope, c->process))
			continue;
		if (!pick || c->state < pick->state || (c->state == pick->state && c->since_ns <= pick->since_ns))
			pick = c;
	}
	return pick;
}

static unsigned user_clients(const struct clients *set, uid_t uid)
{
	unsigned n = 0;

	for (const struct client_process *p = set->processes; p; p = p->next)
		if (p->uid == uid)
			n += p->clients;
	return n;
}

int clients_place(const struct clients *set, uid_t uid, pid_t pid, struct client **ret_leaves)
{
	const struct client_process *process = process_find(set, uid, pid);
	struct scope scope = { .others = uid != 0 };
	struct client *pick;

	if (process && process->clients >= NP_CLIENTS_PER_PROCESS) {
		scope.process = process;
	} else if (uid != 0 && user_clients(set, uid) >= NP_CLIENTS_PER_USER) {
		scope.one_user = true;
		scope.uid = uid;
	} else if (set->count < NP_CLIENTS_MAX && (uid == 0 || set->others < NP_CLIENTS_MAX - NP_CLIENTS_RESERVE)) {
		*ret_leaves = NULL;
		return 0;
	}
	pick = scope_pick(set, &scope);
	if (!pick)
		return -EUSERS;
	*ret_leaves = pick;
	return 0;
}

int clients_join(struct clients *set, uid_t uid, pid_t pid, struct client **ret)
{
	struct client_process *process = process_find(set, uid, pid);
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process) {
			free(c);
			return -ENOMEM;
		}
		*process = (struct client_process){ .next = set->processes, .uid = uid, .pid = pid };
		set->processes = process;
	}
	process->clients++;
	set->count++;
	set->others += uid != 0;
	*c = (struct client){ .next = set->first, .link = &set->first, .process = process, .fd = -1 };
	if (c->next)
		c->next->link = &c->next;
	set->first = c;
	*ret = c;
	return 0;
}

void clients_leave(struct clients *set, struct client *client)
{
	struct client_process *process = client->process;

	if (!process)
		return;
	client->process = NULL;
	set->count--;
	set->others -= process->uid != 0;
	if (--process->clients > 0)
		return;
	for (struct client_process **p = &set->processes; *p; p = &(*p)->next)
		if (*p == process) {
			*p = process->next;
			break;
		}
	free(process);
}

void clients_remove(struct clients *set, struct client *client)
{
	clients_leave(set, client);
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	free(client);
}
