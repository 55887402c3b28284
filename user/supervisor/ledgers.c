/* SPDX-License-Identifier: MIT */
#include "supervisor/ledgers_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"

#define TICK_SLOTS 4096 /* that one tick looks at */

/* -- sandboxes --------------------------------------------------------------------- */

struct ledger_entry *ledgers_find(struct ledgers *l, uint64_t cgroup_id)
{
	/* A cgroup's id is the kernel's choice: it needs no secret. */
	for (struct table_node *n = table_first(&l->by_cgroup, hash_mark(&cgroup_id, sizeof(cgroup_id))); n;
	     n = table_next(n)) {
		struct ledger_entry *entry = &l->index->entries[n - l->nodes];

		if (entry->cgroup_id == cgroup_id)
			return entry;
	}
	return NULL;
}

static uint32_t slot_of(const struct ledgers *l, const struct ledger_entry *entry)
{
	return (uint32_t)(entry - l->index->entries);
}

static int slot_use(struct ledgers *l, uint32_t slot)
{
	int r = table_reserve(&l->by_cgroup);

	if (r < 0)
		return r;
	table_add(&l->by_cgroup, &l->nodes[slot], hash_mark(&l->index->entries[slot].cgroup_id, sizeof(uint64_t)));
	if (slot >= l->used_to)
		l->used_to = slot + 1;
	return 0;
}

static void slot_clear(struct ledgers *l, uint32_t slot)
{
	for (unsigned i = 0; i < NP_WORKERS_MAX; i++)
		if (l->ledgers[i])
			memset(&l->ledgers[i]->slots[slot], 0, sizeof(struct ledger_slot));
	memset(&l->index->entries[slot], 0, sizeof(struct ledger_entry));
}

static struct ledger_entry *entry_new(struct ledgers *l, uint64_t cgroup_id)
{
	uint32_t slot = l->free_from;

	while (slot < l->reserved && l->index->entries[slot].cgroup_id)
		slot++;
	if (slot == l->reserved && chunk_reserve(l) < 0)
		return NULL;
	slot_clear(l, slot);
	l->index->entries[slot].cgroup_id = cgroup_id;
	if (slot_use(l, slot) < 0) {
		l->index->entries[slot].cgroup_id = 0;
		return NULL;
	}
	l->free_from = slot + 1;
	return &l->index->entries[slot];
}

uint32_t ledgers_enter(struct ledgers *l, uint64_t cgroup_id, const char *sandbox, const char *session,
		       const struct np_rung *rung, bool partial)
{
	struct ledger_entry *entry = ledgers_find(l, cgroup_id);

	if (entry && strcmp(entry->sandbox, sandbox) != 0) { /* the kernel gave the number once more */
		ledgers_leave(l, cgroup_id);
		entry = NULL;
	}
	if (!entry) {
		entry = entry_new(l, cgroup_id);
		if (!entry)
			return 0;
		entry->partial = partial;
		memcpy(entry->sandbox, sandbox, strnlen(sandbox, sizeof(entry->sandbox) - 1));
		memcpy(entry->session, session, strnlen(session, sizeof(entry->session) - 1));
	}
	entry->rung = *rung;
	return slot_of(l, entry) + 1;
}

uint64_t ledgers_suppressed(const struct ledgers *l, struct ledger_entry *entry)
{
	struct ledger_slot sum;
	uint64_t news;

	ledgers_sum(l, entry, &sum);
	news = sum.suppressed > entry->message ? sum.suppressed - entry->message : 0;
	entry->message += news;
	return news;
}

static void suppressed_report(struct ledgers *l, struct ledger_entry *entry)
{
	uint64_t news = ledgers_suppressed(l, entry);

	if (news)
		l->config.on_suppressed(l->config.data, entry, news);
}

void ledgers_tick(struct ledgers *l)
{
	for (uint32_t n = 0; n < TICK_SLOTS && n < l->used_to; n++) {
		l->turn = l->turn + 1 < l->used_to ? l->turn + 1 : 0;
		if (l->index->entries[l->turn].cgroup_id)
			suppressed_report(l, &l->index->entries[l->turn]);
	}
}

static void slot_add(struct ledger_slot *to, const struct ledger_slot *slot)
{
	to->requests += slot->requests;
	to->refused += slot->refused;
	to->sent += slot->sent;
	to->received += slot->received;
	to->suppressed += slot->suppressed;
	to->queries += slot->queries;
}

void ledgers_total(const struct ledgers *l, struct ledger_slot *ret)
{
	struct ledger_slot sum;

	*ret = l->gone;
	for (uint32_t slot = 0; slot < l->used_to; slot++)
		if (l->index->entries[slot].cgroup_id) {
			ledgers_sum(l, &l->index->entries[slot], &sum);
			slot_add(ret, &sum);
		}
}

void ledgers_leave(struct ledgers *l, uint64_t cgroup_id)
{
	struct ledger_entry *entry = ledgers_find(l, cgroup_id);
	struct ledger_slot sum;
	uint32_t slot;

	if (!entry)
		return;
	suppressed_report(l, entry);
	ledgers_sum(l, entry, &sum);
	slot_add(&l->gone, &sum);
	slot = slot_of(l, entry);
	table_remove(&l->by_cgroup, &l->nodes[slot]);
	slot_clear(l, slot);
	if (slot < l->free_from)
		l->free_from = slot;
}

void ledgers_sweep(struct ledgers *l, bool (*is_used)(void *data, uint64_t cgroup_id), void *data)
{
	for (uint32_t slot = 0; slot < l->used_to; slot++) {
		uint64_t cgroup_id = l->index->entries[slot].cgroup_id;

		if (cgroup_id && !is_used(data, cgroup_id))
			ledgers_leave(l, cgroup_id);
	}
}

void ledgers_sum(const struct ledgers *l, const struct ledger_entry *entry, struct ledger_slot *ret)
{
	*ret = (struct ledger_slot){ 0 };
	for (unsigned i = 0; i < NP_WORKERS_MAX; i++) {
		const struct ledger_slot *s = l->ledgers[i] ? &l->ledgers[i]->slots[slot_of(l, entry)] : NULL;

		if (!s)
			continue;
		ret->requests += ledger_get(&s->requests);
		ret->refused += ledger_get(&s->refused);
		ret->sent += ledger_get(&s->sent);
		ret->received += ledger_get(&s->received);
		ret->suppressed += ledger_get(&s->suppressed);
		ret->queries += ledger_get(&s->queries);
	}
}

uint64_t ledgers_unread(const struct ledgers *l, unsigned index)
{
	const struct ledger *ledger = l->ledgers[index];
	uint64_t unread = ledger ? __atomic_load_n(&ledger->written, __ATOMIC_RELAXED) - l->index->read[index] : 0;

	return unread <= NP_LEDGER_RING ? unread : NP_LEDGER_RING; /* its writer is not believed */
}

uint64_t ledgers_cut(const struct ledgers *l)
{
	uint64_t cut = 0;

	for (unsigned i = 0; i < NP_WORKERS_MAX; i++)
		cut += l->ledgers[i] ? ledger_get(&l->ledgers[i]->cut) : 0;
	return cut;
}

/* -- reports ----------------------------------------------------------------------- */

int ledgers_fd(const struct ledgers *l, unsigned i)
{
	return l->fds[i];
}

static void report_take(struct ledgers *l, unsigned i, const char *data, size_t len, bool is_reported)
{
	const char *tails[LINK_TAILS];
	struct link_request report;
	struct ledger_entry *entry;

	if (link_request_next(data, len, &report, tails) != (ssize_t)len)
		return; /* it will be among the lost ones */
	entry = ledgers_find(l, report.cgroup_id);
	if (entry && (is_reported || l->config.on_report(l->config.data, entry, &report, tails)))
		ledger_add(&l->ledgers[i]->slots[slot_of(l, entry)].taken, 1);
}

int ledgers_drain(struct ledgers *l, unsigned i, uint64_t most)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct ledger *ledger = l->ledgers[i];
	struct index *index = l->index;
	const uint64_t from = index->read[i];
	uint64_t next;
	ssize_t n = 0;

	/* A worker that floods us has to wait like everybody. */
	while (index->read[i] - from < most && (n = ledger_next(ledger, index->read[i], data, &next)) > 0) {
		index->seq[i] = l->config.last_seq(l->config.data) + 1;
		report_take(l, i, data, (size_t)n, false);
		__atomic_store_n(&index->read[i], next, __ATOMIC_RELEASE);
		index->seq[i] = 0;
		__atomic_store_n(&ledger->read, next, __ATOMIC_RELEASE);
		/* A full barrier before the next look at the ring: a worker that wrote meanwhile, and still saw the
		 * former position, does not wake us. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return n < 0 ? (int)n : 0;
}

/* Requests that were judged and neither reported nor suppressed: they were open when their inspector died. */
static void lost_report(struct ledgers *l, unsigned i)
{
	for (uint32_t slot = 0; slot < l->used_to; slot++) {
		struct ledger_slot *s = &l->ledgers[i]->slots[slot];
		const struct ledger_entry *entry = &l->index->entries[slot];
		uint64_t received = ledger_get(&s->suppressed) + ledger_get(&s->taken);
		uint64_t all = ledger_get(&s->requests) + ledger_get(&s->query_reports);

		if (!entry->cgroup_id || all == received)
			continue;
		if (all > received)
			l->config.on_lost(l->config.data, entry, all - received);
		s->taken += all - received;
	}
}

void ledgers_reset(struct ledgers *l, unsigned i)
{
	struct ledger *ledger = l->ledgers[i];

	if (ledgers_drain(l, i, NP_LEDGER_RING) < 0)
		log_warning("reports of inspector %u cannot be read: they are lost", i);
	lost_report(l, i);
	ledger->read = ledger->written = l->index->read[i];
}

/* The former daemon died after it had written the event, and before it had moved on in the ring. */
static void skip_reported(struct ledgers *l, unsigned i)
{
	static char data[LINK_BYTES_MAX];
	struct index *index = l->index;
	uint64_t next;
	ssize_t n;

	if (!index->seq[i] || index->seq[i] > l->config.last_seq(l->config.data))
		return;
	n = ledger_next(l->ledgers[i], index->read[i], data, &next);
	if (n <= 0)
		return;
	report_take(l, i, data, (size_t)n, true);
	index->read[i] = next;
	index->seq[i] = 0;
}

/* -- life -------------------------------------------------------------------------- */

static int ledgers_join(struct ledgers *l)
{
	const uint32_t last = l->index->reserved < NP_SANDBOXES_MAX ? l->index->reserved : NP_SANDBOXES_MAX;
	int r = 0;

	while (r == 0 && l->reserved < last)
		r = chunk_reserve(l);
	for (uint32_t slot = 0; r == 0 && slot < last; slot++) {
		struct ledger_entry *entry = &l->index->entries[slot];

		entry->sandbox[sizeof(entry->sandbox) - 1] = entry->session[sizeof(entry->session) - 1] = '\0';
		entry->partial |= l->wiped;
		if (entry->cgroup_id)
			r = slot_use(l, slot);
	}
	for (unsigned i = 0; r == 0 && i < NP_WORKERS_MAX; i++)
		if (l->ledgers[i]) {
			skip_reported(l, i);
			ledgers_reset(l, i);
		}
	return r;
}

int ledgers_new(const struct ledgers_config *config, struct ledgers **ret)
{
	struct ledgers *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->index_fd = -1;
	for (unsigned i = 0; i < NP_WORKERS_MAX; i++)
		l->fds[i] = -1;
	l->nodes = calloc(NP_SANDBOXES_MAX, sizeof(*l->nodes));
	r = l->nodes ? fs_mkdir_all(config->dir, 0700) : -ENOMEM;
	if (r == 0)
		r = index_open(l);
	for (unsigned i = 0; r == 0 && i < NP_WORKERS_MAX; i++)
		r = ledger_open(l, i);
	if (r == 0)
		r = ledgers_join(l);
	if (r < 0) {
		ledgers_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void ledgers_free(struct ledgers *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < NP_WORKERS_MAX; i++) {
		if (l->ledgers[i])
			munmap(l->ledgers[i], sizeof(struct ledger));
		cleanup_close(&l->fds[i]);
	}
	if (l->index)
		munmap(l->index, sizeof(struct index));
	cleanup_close(&l->index_fd);
	table_clear(&l->by_cgroup);
	free(l->nodes);
	free(l);
}
