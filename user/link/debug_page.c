/* SPDX-License-Identifier: MIT */
#include "link/debug_page.h"

#include "base/cleanup.h"

static const char *const clients[] = { "dns", "new", "waits for the CA", "handshake", "http/1.1", "http/2", "tunnel" };
static const char *const exchanges[] = { "judging",   "held",	 "resolving", "connecting",
					 "handshake", "sending", "waiting",   "receiving" };
static const char *const origins[] = { "handshake", "busy", "idle" };
static const char *const queries[] = { "waits for an address", "waits for records" };
static const char *const sandboxes[] = { "known" };
static const char *const life_names[] = { "open", "last exchange", "closing", "finished", "broken", "dead" };

_Static_assert(ARRAY_SIZE(clients) == DEBUG_CLIENT_TUNNEL + 1 &&
		       ARRAY_SIZE(exchanges) == DEBUG_EXCHANGE_RECEIVING + 1 &&
		       ARRAY_SIZE(origins) == DEBUG_ORIGIN_IDLE + 1 && ARRAY_SIZE(queries) == DEBUG_QUERY_RECORDS + 1,
	       "a name for each state");

static const struct {
	const char *const *names;
	size_t n;
} states[DEBUG_KINDS] = {
	[DEBUG_SANDBOX] = { sandboxes, ARRAY_SIZE(sandboxes) },	 [DEBUG_CLIENT] = { clients, ARRAY_SIZE(clients) },
	[DEBUG_EXCHANGE] = { exchanges, ARRAY_SIZE(exchanges) }, [DEBUG_ORIGIN] = { origins, ARRAY_SIZE(origins) },
	[DEBUG_QUERY] = { queries, ARRAY_SIZE(queries) },
};

const char *debug_state_name(enum debug_kind kind, unsigned state)
{
	return kind < DEBUG_KINDS && state < states[kind].n ? states[kind].names[state] : NULL;
}

const char *debug_life_name(unsigned life)
{
	return life < ARRAY_SIZE(life_names) ? life_names[life] : NULL;
}

static bool entry_is_sane(const struct debug_entry *entry)
{
	return debug_state_name(entry->kind, entry->state) && debug_life_name(entry->life) && entry->tls <= 1 &&
	       entry->h2 <= 1 && !entry->session[sizeof(entry->session) - 1] && !entry->host[sizeof(entry->host) - 1];
}

const struct debug_page *debug_page_read(const void *data, size_t len)
{
	const struct debug_page *page = data;

	if (len < sizeof(*page) || page->n > DEBUG_ENTRIES_MAX ||
	    len != sizeof(*page) + page->n * sizeof(page->entries[0]) || page->policy[sizeof(page->policy) - 1])
		return NULL;
	for (uint32_t i = 0; i < page->n; i++)
		if (!entry_is_sane(&page->entries[i]))
			return NULL;
	return page;
}
