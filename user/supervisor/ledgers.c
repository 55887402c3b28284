/* SPDX-License-Identifier: MIT */
#include "supervisor/ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/hash.h"
#include "base/table.h"
#include "vocab/limits.h"

#define INDEX_VERSION 2u
#define TICK_SLOTS    4096 /* that one tick looks at */
#define CHUNK	      256  /* slots whose memory is reserved at a time: a full file system is no SIGBUS later */

/* The daemon's alone. */
struct index {
	uint32_t version, entry_size;
	uint32_t reserved; /* slots that have memory */
	uint32_t pad1;
	/* Of each ledger: bytes that were taken from the ring, and the seq of the event that the report there becomes: if
	 * the log has it, a daemon died between writing it and moving on. */
	uint64_t read[NP_WORKERS_MAX], seq[NP_WORKERS_MAX];
	uint64_t pad2[510 - 2 * NP_WORKERS_MAX];
	struct ledger_entry entries[NP_SANDBOXES_MAX];
};
_Static_assert(offsetof(struct index, entries) == 4096, "a page");

struct ledgers {
	struct ledgers_config config;
	struct index *index;
	struct ledger *ledgers[NP_WORKERS_MAX]; /* NULL: there is none */
	int index_fd, fds[NP_WORKERS_MAX];
	struct table by_cgroup;
	struct table_node *nodes; /* of each slot */
	bool fresh;		  /* the index is: what ledgers hold is nobody's */
	bool wiped;		  /* what a ledger of another version had counted is lost */
	uint32_t reserved;	  /* slots that have memory in every file */
	uint32_t free_from;	  /* no slot below it is free */
	uint32_t used_to;	  /* none from it on is used */
	uint32_t turn;		  /* where the next tick begins */
};

/* -- files ------------------------------------------------------------------------- */

/* Opens or makes a file of that size; *ret_fresh: there is nothing in it. */
static int file_open(const char *dir, const char *name, size_t size, size_t reserve, bool make, int *ret,
		     bool *ret_fresh)
{
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	struct stat st;
	int r = fs_path(path, "%s/%s", dir, name);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_fresh = st.st_size != (off_t)size;
	if (*ret_fresh && (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)size) < 0))
		return -errno;
	r = posix_fallocate(fd, 0, (off_t)reserve);
	if (r)
		return -r;
	*ret = take_fd(fd);
	return 0;
}

static int ledger_open(struct ledgers *l, unsigned i)
{
	char name[16];
	struct ledger *ledger = NULL;
	bool fresh = true;
	int r;

	snprintf(name, sizeof(name), "%u", i);
	r = file_open(l->config.dir, name, sizeof(*ledger), offsetof(struct ledger, slots), i < l->config.count,
		      &l->fds[i], &fresh);
	if (r == -ENOENT && i >= l->config.count)
		return 0;
	if (r == 0)
		r = ledger_map(l->fds[i], &ledger);
	if (r < 0 || !ledger)
		return r;
	if (l->fresh || ledger->version != LEDGER_VERSION || ledger->report_size != sizeof(struct link_request)) {
		/* Of another build, or new. Its old bytes go, so that its counts begin at 0. */
		if (!fresh && ledger->version) {
			log_warning("%s/%u was left by another version: its last reports are lost", l->config.dir, i);
			l->wiped = true;
		}
		if (!fresh && (ftruncate(l->fds[i], 0) < 0 || ftruncate(l->fds[i], sizeof(*ledger)) < 0 ||
			       posix_fallocate(l->fds[i], 0, offsetof(struct ledger, slots)) != 0))
			r = -ENOSPC;
		l->index->read[i] = l->index->seq[i] = 0;
		if (r == 0) {
			ledger->version = LEDGER_VERSION;
			ledger->report_size = sizeof(struct link_request);
		}
	}
	l->ledgers[i] = ledger;
	return r;
}

static int index_open(struct ledgers *l)
{
	bool fresh;
	void *p;
	int r = file_open(l->config.dir, "index", sizeof(struct index), offsetof(struct index, entries), true,
			  &l->index_fd, &fresh);

	if (r < 0)
		return r;
	p = mmap(NULL, sizeof(struct index), PROT_READ | PROT_WRITE, MAP_SHARED, l->index_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	l->index = p;
	if (l->index->version == INDEX_VERSION && l->index->entry_size == sizeof(struct ledger_entry))
		return 0;
	l->fresh = true;
	if (ftruncate(l->index_fd, 0) < 0 || ftruncate(l->index_fd, sizeof(struct index)) < 0)
		return -errno;
	r = -posix_fallocate(l->index_fd, 0, offsetof(struct index, entries));
	if (r == 0) {
		l->index->version = INDEX_VERSION;
		l->index->entry_size = sizeof(struct ledger_entry);
	}
	return r;
}

/* Memory for one more chunk of slots, in every file. */
static int chunk_reserve(struct ledgers *l)
{
	uint32_t from = l->reserved;
	int r;

	if (from >= NP_SANDBOXES_MAX)
		return -ENOSPC;
	r = posix_fallocate(l->index_fd, (off_t)offsetof(struct index, entries[from]),
			    CHUNK * sizeof(struct ledger_entry));
	for (unsigned i = 0; r == 0 && i < NP_WORKERS_MAX; i++)
		if (l->ledgers[i])
			r = posix_fallocate(l->fds[i], (off_t)offsetof(struct ledger, slots[from]),
					    CHUNK * sizeof(struct ledger_slot));
	if (r)
		return -r;
	l->reserved += CHUNK;
	if (l->index->reserved < l->reserved)
		l->index->reserved = l->reserved;
	return 0;
}

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

void ledgers_leave(struct ledgers *l, uint64_t cgroup_id)
{
	struct ledger_entry *entry = ledgers_find(l, cgroup_id);
	uint32_t slot;

	if (!entry)
		return;
	suppressed_report(l, entry);
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
		ret->bytes_out += ledger_get(&s->bytes_out);
		ret->bytes_in += ledger_get(&s->bytes_in);
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

int ledgers_drain(struct ledgers *l, unsigned i)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct ledger *ledger = l->ledgers[i];
	struct index *index = l->index;
	const uint64_t from = index->read[i];
	uint64_t next;
	ssize_t n = 0;

	/* Once around at the most: a worker that floods us has to wait like everybody. */
	while (index->read[i] - from < NP_LEDGER_RING && (n = ledger_next(ledger, index->read[i], data, &next)) > 0) {
		index->seq[i] = l->config.last_seq(l->config.data) + 1;
		report_take(l, i, data, (size_t)n, false);
		__atomic_store_n(&index->read[i], next, __ATOMIC_RELEASE);
		index->seq[i] = 0;
		__atomic_store_n(&ledger->read, next, __ATOMIC_RELEASE);
		/* Before the next look: whoever wrote meanwhile, and saw that we had not come so far, does not wake us. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return n < 0 ? (int)n : 0;
}

/* Those that were judged and neither reported nor suppressed: they were open when their inspector died. */
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

	if (ledgers_drain(l, i) < 0)
		log_warning("reports of inspector %u cannot be read: they are lost", i);
	lost_report(l, i);
	ledger->read = ledger->written = l->index->read[i];
}

/* The daemon before this one died when it had written the event, and before it moved on. */
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
