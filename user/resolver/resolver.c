/* SPDX-License-Identifier: MIT */
#include "resolver/resolver.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "resolver/hosts.h"
#include "resolver/nameservers.h"
#include "resolver/shares.h"
#include "vocab/limits.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

LIST_HEAD(resolution_list, resolution);

/* A name. It is idle, and may be forgotten, unless it waits for the resolvers (asking), has news that are not spread
 * (news) or are being spread (held), or a query is pending, which may be so after the time was up. */
struct entry {
	struct table_node node;
	struct resolver *resolver;
	TAILQ_ENTRY(entry) idle_link, asking_link, news_link;
	bool idle, waiting_entry, news, held;
	uint64_t deadline_ns, expires_ns;
	struct query queries[FAMILY_COUNT];
	int errors[FAMILY_COUNT]; /* once they are told */
	uint64_t until_ns[FAMILY_COUNT];
	struct resolution_list waiters;
	struct share *share; /* of whoever had it looked up, until it is idle again; NULL: nobody's */
	struct known known;
	char name[];
};
TAILQ_HEAD(entry_list, entry);

struct resolver {
	struct loop *loop;
	struct loop_task task; /* to spread the news */
	struct hosts *hosts;
	struct nameservers *nameservers; /* NULL: nobody to ask */
	struct hash_key key;
	struct entry_list idle;		 /* used last first */
	struct entry_list waiting_entry; /* by deadline */
	struct entry_list news;
	struct known local; /* what comes from no entry */
	struct table entries;
	struct shares shares;
};

/* -- names that are remembered ------------------------------------------------- */

static void entry_unshare(struct entry *e)
{
	if (!e->share)
		return;
	e->share->names--;
	share_put(&e->resolver->shares, e->share);
	e->share = NULL;
}

static void entry_rest(struct entry *e)
{
	if (e->idle || e->waiting_entry || e->news || e->held || e->queries[FAMILY_V6].pending ||
	    e->queries[FAMILY_V4].pending)
		return;
	entry_unshare(e);
	TAILQ_INSERT_HEAD(&e->resolver->idle, e, idle_link);
	e->idle = true;
}

static void entry_wake(struct entry *e)
{
	if (e->idle)
		TAILQ_REMOVE(&e->resolver->idle, e, idle_link);
	e->idle = false;
}

static void entry_free(struct entry *e)
{
	entry_unshare(e);
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		aliases_unref(e->known.aliases[f]);
	free(e);
}

static void entry_forget(struct entry *e)
{
	entry_wake(e);
	table_remove(&e->resolver->entries, &e->node);
	entry_free(e);
}

static struct entry *entry_find(const struct resolver *r, const char *name, uint64_t hash)
{
	return TABLE_FIND(&r->entries, hash, struct entry, node, it, !strcmp(it->name, name));
}

static void query_done(struct query *query, int error, const uint8_t *data, size_t len);

/* -EAGAIN when every name that there is room for is being asked for. */
static int entry_new(struct resolver *r, const char *name, size_t len, uint64_t hash, struct entry **ret)
{
	struct entry *e;

	if (r->entries.count == NP_NAMES_MAX) {
		e = TAILQ_LAST(&r->idle, entry_list);
		if (!e)
			return -EAGAIN;
		entry_forget(e);
	}
	e = table_reserve(&r->entries) == 0 ? calloc(1, sizeof(*e) + len + 1) : NULL;
	if (!e)
		return -ENOMEM;
	e->resolver = r;
	memcpy(e->name, name, len + 1);
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		e->queries[f] = (struct query){ .nameservers = r->nameservers,
						.name = e->name,
						.type = f == FAMILY_V4 ? ns_t_a : ns_t_aaaa,
						.known_all_of = query_done };
	LIST_INIT(&e->waiters);
	table_add(&r->entries, &e->node, hash);
	*ret = e;
	return 0;
}

/* -- answers ------------------------------------------------------------------- */

static void known_fail(struct known *known, int error)
{
	known->error = error;
	switch (error) {
	case -ENOENT:
		known->words = "the name does not exist";
		break;
	case -ENODATA:
		known->error = -ENOENT;
		known->words = "the name has no address";
		break;
	case -ETIMEDOUT:
		known->words = "the resolvers did not answer in time";
		break;
	case -EAGAIN:
		known->words = "too many names are being looked up";
		break;
	case -ENOMEM:
		known->words = "out of memory";
		break;
	case -EHOSTUNREACH:
		known->words = "there is no resolver to ask";
		break;
	default:
		known->error = -EREMOTEIO;
		known->words = "the resolvers gave no usable answer";
	}
}

/* The addresses hold as long as the first of them; that a name has none of one family, as long as the others do. */
static void entry_settle(struct entry *e, uint64_t now)
{
	const int v6 = e->errors[FAMILY_V6], v4 = e->errors[FAMILY_V4];

	e->known.error = 0;
	e->known.words = NULL;
	e->expires_ns = UINT64_MAX;
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		if (!e->errors[f] && e->until_ns[f] < e->expires_ns)
			e->expires_ns = e->until_ns[f];
	if (v6 && v4) {
		known_fail(&e->known, v4 == -ENODATA ? v6 : v4);
		e->expires_ns = now;
		if (v6 != -ECANCELED && v4 != -ECANCELED) /* else the next one asks anew */
			e->expires_ns += NP_NAME_FAILED_S * NS_PER_S;
	}
}

/* Keeps the addresses with the names that lead to them. */
static int entry_keep(struct entry *e, enum family f, const struct addresses *addresses,
		      const struct alias_names *names)
{
	struct aliases *aliases = names->len ? malloc(sizeof(*aliases) + names->len + 1) : NULL;

	if (names->len && !aliases)
		return -ENOMEM;
	if (aliases) {
		aliases->refs = 1;
		memcpy(aliases->names, names->text, names->len + 1);
	}
	aliases_unref(e->known.aliases[f]);
	e->known.aliases[f] = aliases;
	e->known.family[f] = *addresses;
	return 0;
}

static void entry_answered(struct entry *e, enum family f, int error, uint32_t ttl_s)
{
	struct resolver *r = e->resolver;
	uint64_t now = loop_now_ns();

	if (e->known.known_all_of[f] && error)
		return; /* the time was up already; only an address is still of use */
	if (ttl_s < NP_NAME_TTL_MIN_S)
		ttl_s = NP_NAME_TTL_MIN_S;
	if (ttl_s > NP_NAME_TTL_MAX_S)
		ttl_s = NP_NAME_TTL_MAX_S;
	e->known.known_all_of[f] = true;
	e->errors[f] = error;
	e->until_ns[f] = now + ttl_s * NS_PER_S;
	if (known_all(&e->known)) {
		if (e->waiting_entry)
			TAILQ_REMOVE(&r->waiting_entry, e, asking_link);
		e->waiting_entry = false;
		entry_settle(e, now);
	}
	if (!e->news)
		TAILQ_INSERT_TAIL(&r->news, e, news_link);
	e->news = true;
	loop_later(r->loop, &r->task);
}

static void query_done(struct query *query, int error, const uint8_t *data, size_t len)
{
	enum family f = query->type == ns_t_a ? FAMILY_V4 : FAMILY_V6;
	struct entry *e = (struct entry *)((char *)(query - f) - offsetof(struct entry, queries));
	struct addresses addresses;
	struct alias_names names;
	uint32_t ttl_s = 0;

	if (!error)
		error = answer_read(data, len, f, &addresses, &names, &ttl_s);
	if (!error)
		error = entry_keep(e, f, &addresses, &names);
	entry_answered(e, f, error, ttl_s);
	entry_rest(e);
}

/* on_known() may cancel lookups, and ask. */
static void entry_spread(struct entry *e)
{
	struct resolution_list todo = LIST_HEAD_INITIALIZER(todo);
	struct resolution *resolution = LIST_FIRST(&e->waiters);

	if (resolution) {
		LIST_FIRST(&todo) = resolution;
		resolution->link.le_prev = &LIST_FIRST(&todo);
		LIST_INIT(&e->waiters);
	}
	while ((resolution = LIST_FIRST(&todo))) {
		LIST_REMOVE(resolution, link);
		resolution->waiting = !known_all(&e->known);
		if (resolution->waiting)
			LIST_INSERT_HEAD(&e->waiters, resolution, link);
		resolution->on_known(resolution->ctx, &e->known);
	}
}

static void resolver_spread(void *ctx)
{
	struct resolver *r = ctx;
	struct entry *e;

	while ((e = TAILQ_FIRST(&r->news))) {
		TAILQ_REMOVE(&r->news, e, news_link);
		e->news = false;
		e->held = true;
		entry_spread(e);
		e->held = false;
		entry_rest(e);
	}
}

/* -- questions ----------------------------------------------------------------- */

static void entry_query(struct entry *e, struct share *share, uint64_t now)
{
	entry_wake(e);
	if (share && !e->share) { /* one that is late is somebody's already */
		share->names++;
		e->share = share;
	}
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		aliases_unref(e->known.aliases[f]);
	e->known = (struct known){ 0 };
	e->deadline_ns = now + NP_RESOLVE_MS * NS_PER_MS;
	e->waiting_entry = true;
	TAILQ_INSERT_TAIL(&e->resolver->waiting_entry, e, asking_link);
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		if (!e->queries[f].pending)
			query_send(&e->queries[f], &e->queries[!f]);
}

static const struct known *resolver_fail(struct resolver *r, int error)
{
	r->local = (struct known){ .known_all_of = { true, true } };
	known_fail(&r->local, error);
	return &r->local;
}

/* Has the name looked up, on behalf of this owner: e, or a new one. NULL, and why: not now. */
static struct entry *entry_ask(struct resolver *r, struct entry *e, const char *name, uint64_t hash, uint64_t owner,
			       int *ret_error)
{
	struct share *share = NULL;

	*ret_error = share_get(&r->shares, owner, &share);
	if (*ret_error == 0 && !e)
		*ret_error = entry_new(r, name, strlen(name), hash, &e);
	if (*ret_error == 0)
		entry_query(e, share, loop_now_ns());
	share_put(&r->shares, share); /* it may be a new one that nothing came of */
	return *ret_error == 0 ? e : NULL;
}

const struct known *resolver_get(struct resolver *r, const char *name, struct resolution *resolution)
{
	struct entry *e;
	uint64_t hash;
	int error = 0;

	resolution->waiting = false;
	if (hosts_find(r->hosts, name, r->local.family)) {
		r->local.known_all_of[FAMILY_V6] = r->local.known_all_of[FAMILY_V4] = true;
		r->local.error = 0;
		r->local.words = NULL;
		return &r->local;
	}
	if (!r->nameservers)
		return resolver_fail(r, -EHOSTUNREACH);
	hash = hash_text(&r->key, name);
	e = entry_find(r, name, hash);
	if (!e || (!e->waiting_entry && loop_now_ns() >= e->expires_ns)) {
		e = entry_ask(r, e, name, hash, resolution->owner, &error);
		if (!e)
			return resolver_fail(r, error);
	} else if (e->idle) {
		entry_wake(e); /* to the front */
		entry_rest(e);
	}
	if (e->waiting_entry) {
		LIST_INSERT_HEAD(&e->waiters, resolution, link);
		resolution->waiting = true;
	}
	return &e->known;
}

void resolution_cancel(struct resolution *resolution)
{
	if (resolution->waiting)
		LIST_REMOVE(resolution, link);
	resolution->waiting = false;
}

static bool entry_is_wanted(void *ctx, const struct query *query)
{
	enum family f = query->type == ns_t_a ? FAMILY_V4 : FAMILY_V6;
	const struct entry *e = (const struct entry *)((const char *)(query - f) - offsetof(struct entry, queries));

	(void)ctx;
	return e->held || !LIST_EMPTY(&e->waiters);
}

void resolver_cancel(struct resolver *r)
{
	if (r->nameservers)
		nameservers_cancel(r->nameservers, entry_is_wanted, NULL);
}

void resolver_tick(struct resolver *r)
{
	uint64_t now = loop_now_ns();
	struct entry *e;

	if (r->nameservers)
		nameservers_tick(r->nameservers);
	while ((e = TAILQ_FIRST(&r->waiting_entry)) && e->deadline_ns <= now)
		for (enum family f = 0; f < FAMILY_COUNT; f++)
			entry_answered(e, f, -ETIMEDOUT, 0);
}

int resolver_new(struct loop *loop, const char *resolvers, const char *hosts, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int e = 0;

	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->task.fn = resolver_spread;
	r->task.data = r;
	TAILQ_INIT(&r->idle);
	TAILQ_INIT(&r->waiting_entry);
	TAILQ_INIT(&r->news);
	e = hash_key_make(&r->key);
	r->shares.key = r->key;
	if (e == 0)
		e = hosts_new(hosts, &r->hosts);
	if (e == 0 && resolvers && *resolvers)
		e = nameservers_new(loop, resolvers, &r->nameservers);
	if (e < 0) {
		resolver_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	struct table_node *n;

	if (!r)
		return;
	nameservers_free(r->nameservers);
	loop_cancel(r->loop, &r->task);
	while ((n = table_walk(&r->entries, NULL)))
		entry_forget(container_of(n, struct entry, node));
	table_clear(&r->entries);
	shares_clear(&r->shares);
	hosts_free(r->hosts);
	free(r);
}
