/* SPDX-License-Identifier: MIT */
/*
 * What the inspectors show of themselves, and what the supervisor knows beside it. One question at a time; each answer is
 * one bounded message (link/debug_page.h), which is checked and kept until the next question. Nobody waits here.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "link/debug_page.h"
#include "supervisor/supervisor_internal.h"
#include "vocab/rung_json.h"

#define COLLECT_MS 1000 /* who asked comes for the answer within that, or does not want it any more */

static bool debug_is_open(const struct supervisor *w)
{
	return w->debug.until_ns && loop_now_ns() < w->debug.until_ns + COLLECT_MS * 1000000ull;
}

void debug_clear(struct supervisor *w)
{
	for (unsigned i = 0; i < NP_WORKERS_MAX; i++) {
		free(w->debug.of[i].page);
		w->debug.of[i] = (struct debug_shown){ 0 };
	}
	w->debug.until_ns = 0;
}

/* What was sent to inspectors by now is what they have to know when they read the question: messages come in order. */
static void briefed_mark(struct supervisor *w)
{
	for (size_t i = 0; i < w->sandboxes.size; i++)
		for (struct table_node *n = w->sandboxes.buckets[i]; n; n = n->next) {
			struct briefed *briefed = container_of(n, struct briefed, node);

			briefed->asked = w->debug.number;
			briefed->asked_rung = briefed->sandbox.rung;
		}
}

static int debug_ask(void *ctx, const char *session, uint32_t after, uint32_t *ret_number)
{
	struct supervisor *w = ctx;
	struct debug_ask ask = { .after = after };

	if (debug_is_open(w))
		return -EBUSY;
	debug_clear(w);
	if (!++w->debug.number)
		w->debug.number = 1;
	ask.number = w->debug.number;
	memcpy(ask.session, session, strnlen(session, sizeof(ask.session) - 1));
	briefed_mark(w);
	for (unsigned i = 0; i < w->config.count; i++) {
		const struct process *p = &w->processes[i];

		/* Without patience: a link that is full belongs to one that does not read. */
		if (p->ready && link_send(p->link, LINK_DEBUG, &ask, sizeof(ask), -1) == 0)
			w->debug.of[i].pid = p->pid;
	}
	w->debug.after = after;
	w->debug.until_ns = loop_now_ns() + NP_DEBUG_MS * 1000000ull;
	*ret_number = w->debug.number;
	return 0;
}

int debug_learn(struct process *from, const char *data, size_t len)
{
	struct supervisor *w = from->supervisor;
	struct debug_shown *shown = &w->debug.of[from - w->processes];
	const struct debug_page *page = debug_page_read(data, len);

	if (!page)
		return -EPROTO;
	/* Late, or never asked for: nobody looks at it. */
	if (!w->debug.until_ns || page->number != w->debug.number || page->after != w->debug.after ||
	    shown->pid != from->pid || shown->page)
		return 0;
	shown->page = malloc(len);
	if (shown->page)
		memcpy(shown->page, data, len);
	w->config.on_debug(w->config.data);
	return 0;
}

static bool debug_done(void *ctx, uint32_t number)
{
	const struct supervisor *w = ctx;

	if (!w->debug.until_ns || number != w->debug.number || loop_now_ns() >= w->debug.until_ns)
		return true;
	for (unsigned i = 0; i < w->config.count; i++) {
		const struct debug_shown *shown = &w->debug.of[i];

		if (shown->pid && !shown->page && w->processes[i].pid == shown->pid)
			return false;
	}
	return true;
}

void debug_tick(struct supervisor *w)
{
	if (!w->debug.until_ns || loop_now_ns() < w->debug.until_ns)
		return;
	if (debug_is_open(w))
		w->config.on_debug(w->config.data);
	else
		debug_clear(w); /* nobody came for it */
}

/* -- as JSON ------------------------------------------------------------------------------------- */

/* A number that an inspector claims: readers of JSON take no more than that. */
static void claim_put(struct buf *out, const char *key, uint64_t number)
{
	json_put_number(out, key, number < INT64_MAX ? number : INT64_MAX);
}

static void host_put(struct buf *out, const struct debug_entry *entry)
{
	json_put_text(out, "host", entry->host, sizeof(entry->host));
	json_put_number(out, "port", entry->port);
}

static void connection_put(struct buf *out, const struct debug_entry *entry)
{
	host_put(out, entry);
	json_put_bool(out, "tls", entry->tls);
	json_put_text(out, "http", entry->h2 ? "2" : "1.1", SIZE_MAX);
	json_put_text(out, "life", debug_life_name(entry->life), SIZE_MAX);
	json_put_number(out, "exchanges", entry->n_exchanges);
	claim_put(out, "unsent", entry->unsent);
}

static void entry_put(struct buf *out, const struct debug_entry *entry)
{
	json_open_object(out, NULL);
	if (entry->kind != DEBUG_SANDBOX)
		json_put_text(out, "state", debug_state_name(entry->kind, entry->state), SIZE_MAX);
	json_put_text(out, "session", entry->session, sizeof(entry->session));
	if (entry->cgroup_id)
		claim_put(out, "cgroup_id", entry->cgroup_id);
	switch ((enum debug_kind)entry->kind) {
	case DEBUG_SANDBOX:
		json_put_rung(out, "rung", &entry->rung);
		json_put_number(out, "connections", entry->n_clients);
		json_put_number(out, "exchanges", entry->n_exchanges);
		json_put_number(out, "queries", entry->n_queries);
		break;
	case DEBUG_CLIENT:
	case DEBUG_ORIGIN:
		connection_put(out, entry);
		break;
	case DEBUG_EXCHANGE:
		host_put(out, entry);
		json_put_bool(out, "tls", entry->tls);
		json_put_number(out, "idle_ms", entry->idle_ms);
		break;
	case DEBUG_QUERY:
		json_put_text(out, "name", entry->host, sizeof(entry->host));
		json_put_number(out, "type", entry->type);
		json_put_number(out, "idle_ms", entry->idle_ms);
		break;
	case DEBUG_KINDS:
		break;
	}
	if (entry->kind != DEBUG_QUERY)
		claim_put(out, "held", entry->held);
	json_close_object(out);
}

static const char *const kinds[DEBUG_KINDS] = { "sandboxes", "connections", "exchanges", "origins", "queries" };

static void page_put(struct buf *out, const struct debug_page *page)
{
	json_put_text(out, "policy", page->policy, sizeof(page->policy));
	json_open_object(out, "counts");
	for (unsigned kind = 0; kind < DEBUG_KINDS; kind++)
		json_put_number(out, kinds[kind], page->sums.count[kind]);
	json_put_number(out, "sessions", page->sums.sessions);
	json_close_object(out);
	json_open_object(out, "connections_by_state");
	for (unsigned state = 0; state < ARRAY_SIZE(page->sums.clients); state++)
		if (page->sums.clients[state])
			json_put_number(out, debug_state_name(DEBUG_CLIENT, state), page->sums.clients[state]);
	json_close_object(out);
	json_open_object(out, "memory");
	claim_put(out, "held", page->sums.held);
	json_put_number(out, "held_max", NP_MEMORY_ALL);
	json_put_number(out, "connections", page->sums.n_clients);
	json_put_number(out, "connections_max", NP_CONNS_MAX);
	json_close_object(out);
	json_put_number(out, "after", page->after);
	json_put_number(out, "shown", page->n);
	json_put_number(out, "left_out", page->left);
	for (unsigned kind = 0; kind < DEBUG_KINDS; kind++) {
		json_open_array(out, kinds[kind]);
		for (uint32_t i = 0; i < page->n; i++)
			if (page->entries[i].kind == kind)
				entry_put(out, &page->entries[i]);
		json_close_array(out);
	}
}

/* The page of an inspector that is still the one that was asked. */
static const struct debug_page *page_of(const struct supervisor *w, uint32_t number, unsigned i)
{
	if (number != w->debug.number)
		return NULL;
	return w->debug.of[i].pid && w->debug.of[i].pid == w->processes[i].pid ? w->debug.of[i].page : NULL;
}

static void debug_inspectors(void *ctx, uint32_t number, struct buf *out)
{
	struct supervisor *w = ctx;

	json_open_array(out, "inspectors");
	for (unsigned i = 0; i < w->config.count; i++) {
		const struct process *p = &w->processes[i];
		const struct debug_page *page = page_of(w, number, i);

		json_open_object(out, NULL);
		json_put_number(out, "pid", (uint64_t)p->pid);
		json_put_bool(out, "ready", p->ready);
		json_put_bool(out, "answered", page != NULL);
		json_put_number(out, "failures", p->failures);
		json_put_number(out, "reports_unread", ledgers_unread(w->ledgers, i));
		if (page)
			page_put(out, page);
		json_close_object(out);
	}
	json_close_array(out);
	if (number == w->debug.number)
		debug_clear(w); /* it was collected */
}

static const struct debug_entry *sandbox_on(const struct debug_page *page, uint64_t cgroup_id)
{
	for (uint32_t i = 0; i < page->n; i++)
		if (page->entries[i].kind == DEBUG_SANDBOX && page->entries[i].cgroup_id == cgroup_id)
			return &page->entries[i];
	return NULL;
}

/* Sandboxes are the first entries: are all of them on this page? */
static bool has_all_sandboxes(const struct debug_page *page)
{
	return page->after == 0 && page->sums.count[DEBUG_SANDBOX] <= page->n;
}

static bool debug_rungs(void *ctx, uint32_t number, uint64_t cgroup_id, const struct np_rung *rung, struct buf *out)
{
	struct supervisor *w = ctx;
	const struct briefed *briefed = known_find(w, cgroup_id);
	bool agree = briefed && np_rung_equal(&briefed->sandbox.rung, rung);

	json_put_rung(out, "supervisor", briefed ? &briefed->sandbox.rung : NULL);
	json_open_array(out, "inspectors");
	for (unsigned i = 0; briefed && i < w->config.count; i++) {
		const struct debug_page *page = page_of(w, number, i);
		const struct debug_entry *entry = page ? sandbox_on(page, cgroup_id) : NULL;

		if (!entry && (!page || !has_all_sandboxes(page)))
			continue;
		/* What was sent when the question was: it may have been raised since. */
		if (briefed->asked == number)
			agree = agree && entry && np_rung_equal(&entry->rung, &briefed->asked_rung);
		json_open_object(out, NULL);
		json_put_number(out, "pid", (uint64_t)w->processes[i].pid);
		json_put_rung(out, "rung", entry ? &entry->rung : NULL);
		json_close_object(out);
	}
	json_close_array(out);
	return agree;
}

/* SHA-256 of the certificate, as other programs show it: an inspector made it, and it may be no certificate at all. */
static bool pem_fingerprint(const char *pem, size_t len, char text[static 3 * SHA256_DIGEST_SIZE])
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
	const char *from = memmem(pem, len, begin, sizeof(begin) - 1), *to;
	uint8_t der[BASE64_DECODE_LENGTH(LINK_CA_BYTES)], digest[SHA256_DIGEST_SIZE];
	struct base64_decode_ctx decode;
	struct sha256_ctx hash;
	size_t n = sizeof(der);

	if (!from)
		return false;
	from += sizeof(begin) - 1;
	to = memmem(from, (size_t)(pem + len - from), end, sizeof(end) - 1);
	base64_decode_init(&decode);
	if (!to || !base64_decode_update(&decode, &n, der, (size_t)(to - from), from) || !base64_decode_final(&decode))
		return false;
	sha256_init(&hash);
	sha256_update(&hash, n, der);
	sha256_digest(&hash, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(text + 3 * i, 4, i + 1 < sizeof(digest) ? "%02X:" : "%02X", digest[i]);
	return true;
}

static void debug_session(void *ctx, const char *name, struct buf *out)
{
	struct supervisor *w = ctx;
	struct session_brief *session = session_brief_find(w, name);
	char fingerprint[3 * SHA256_DIGEST_SIZE];
	bool has = session && session->ca.len &&
		   pem_fingerprint(session->ca.data + session->ca.len, session->ca.pem_len, fingerprint);

	json_put_text(out, "ca_sha256", has ? fingerprint : NULL, SIZE_MAX);
	json_put_number(out, "names", session ? names_count(session->names, NAMES_ALLOWED) : 0);
	json_put_number(out, "names_max", NP_NAMES_PER_SESSION);
	json_put_number(out, "refused_names", session ? names_count(session->names, NAMES_REFUSED) : 0);
	json_put_bool(out, "names_kept", session && session->names_fd >= 0);
}

struct inspectors_debug supervisor_debug(struct supervisor *w)
{
	return (struct inspectors_debug){
		.ctx = w,
		.ask = debug_ask,
		.done = debug_done,
		.rungs = debug_rungs,
		.session = debug_session,
		.inspectors = debug_inspectors,
	};
}
