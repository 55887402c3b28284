/* SPDX-License-Identifier: MIT */
#include "resolver/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "wire/dns_answer.h"
#include "resolver/nameservers.h"
#include "vocab/limits.h"

#define NS_PER_S 1000000000ull

struct item {
	TAILQ_ENTRY(item) link;
	struct records *all;
	struct query query;  /* while it is pending, the rest is not known */
	uint64_t expires_ns; /* 0: never known */
	int error;
	unsigned count;
	size_t len;
	uint8_t *data;
	char name[];
};
TAILQ_HEAD(item_list, item);

struct records {
	struct nameservers *nameservers; /* NULL: nobody to ask */
	records_ready_fn *on_known;
	void *ctx;
	struct item_list items; /* used last first; few, for each is a whole name in a rule */
	size_t count;
	bool waiting_entry; /* what is told now is told to whoever asks */
};

static const char *error_words(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "the resolvers did not answer in time";
	case -EMSGSIZE:
		return "the records are more than is passed on";
	case -EAGAIN:
		return "too many names are being looked up";
	case -ENOMEM:
		return "out of memory";
	case -EHOSTUNREACH:
		return "there is no resolver to ask";
	default:
		return "the resolvers gave no usable answer";
	}
}

static void item_free(struct item *item)
{
	TAILQ_REMOVE(&item->all->items, item, link);
	item->all->count--;
	free(item->data);
	free(item);
}

static struct item *item_find(struct records *r, const char *name, uint16_t type)
{
	struct item *item = TAILQ_FIRST(&r->items);

	while (item && (item->query.type != type || strcmp(item->name, name) != 0))
		item = TAILQ_NEXT(item, link);
	return item;
}

/* -- answers ------------------------------------------------------------------- */

static int item_keep(struct item *item, const struct record_bytes *bytes)
{
	item->data = malloc(bytes->len);
	if (!item->data)
		return -ENOMEM;
	memcpy(item->data, bytes->data, bytes->len);
	item->len = bytes->len;
	item->count = bytes->count;
	return 0;
}

static void item_answered(struct query *query, int error, const uint8_t *data, size_t len)
{
	struct item *item = (struct item *)((char *)query - offsetof(struct item, query));
	static struct record_bytes bytes;
	uint32_t ttl_s = NP_NAME_FAILED_S;

	if (error == -ECANCELED) {
		item->expires_ns = 0; /* the next one asks anew */
		return;
	}
	if (!error)
		error = answer_read_records(data, len, query->type, &bytes, &ttl_s);
	if (!error)
		error = item_keep(item, &bytes);
	if (error)
		ttl_s = NP_NAME_FAILED_S;
	if (ttl_s < NP_NAME_TTL_MIN_S)
		ttl_s = NP_NAME_TTL_MIN_S;
	if (ttl_s > NP_NAME_TTL_MAX_S)
		ttl_s = NP_NAME_TTL_MAX_S;
	item->error = error;
	item->expires_ns = loop_now_ns() + ttl_s * NS_PER_S;
	if (!item->all->waiting_entry)
		item->all->on_known(item->all->ctx, item->name, query->type);
}

/* -- questions ----------------------------------------------------------------- */

static struct item *item_new(struct records *r, const char *name, uint16_t type, int *ret_error)
{
	size_t size = strlen(name) + 1;
	struct item *item = TAILQ_LAST(&r->items, item_list);

	if (r->count == NP_RECORDS_MAX) {
		while (item && item->query.pending)
			item = TAILQ_PREV(item, item_list, link);
		*ret_error = -EAGAIN;
		if (!item)
			return NULL;
		item_free(item);
	}
	*ret_error = -ENOMEM;
	item = calloc(1, sizeof(*item) + size);
	if (!item)
		return NULL;
	memcpy(item->name, name, size);
	item->all = r;
	item->query = (struct query){
		.nameservers = r->nameservers, .name = item->name, .type = type, .known_all_of = item_answered
	};
	TAILQ_INSERT_HEAD(&r->items, item, link);
	r->count++;
	return item;
}

static void item_query(struct item *item)
{
	free(item->data);
	item->data = NULL;
	item->len = 0;
	item->count = 0;
	item->all->waiting_entry = true;
	query_send(&item->query, NULL);
	item->all->waiting_entry = false;
}

static bool known_failed(int error, struct records_known *ret)
{
	*ret = (struct records_known){ .error = error, .words = error_words(error), .ttl_s = NP_NAME_FAILED_S };
	return true;
}

bool records_get(struct records *r, const char *name, uint16_t type, struct records_known *ret)
{
	struct item *item = item_find(r, name, type);
	uint64_t now = loop_now_ns();
	int error;

	if (!r->nameservers)
		return known_failed(-EHOSTUNREACH, ret);
	if (!item)
		item = item_new(r, name, type, &error);
	if (!item)
		return known_failed(error, ret);
	TAILQ_REMOVE(&r->items, item, link);
	TAILQ_INSERT_HEAD(&r->items, item, link);
	if (!item->query.pending && now >= item->expires_ns)
		item_query(item);
	if (item->query.pending)
		return false;
	if (item->error)
		return known_failed(item->error, ret);
	*ret = (struct records_known){
		.records = { .count = item->count, .len = item->len, .data = item->data },
		.ttl_s = item->expires_ns > now ? (uint32_t)((item->expires_ns - now) / NS_PER_S) : 0,
	};
	return true;
}

struct wanted {
	struct records *records;
	records_wanted_fn *fn;
};

static bool item_is_wanted(void *ctx, const struct query *query)
{
	const struct wanted *wanted = ctx;

	return wanted->fn(wanted->records->ctx, query->name, query->type);
}

void records_cancel(struct records *r, records_wanted_fn *wanted)
{
	if (r->nameservers)
		nameservers_cancel(r->nameservers, item_is_wanted, &(struct wanted){ r, wanted });
}

/* -- life ------------------------------------------------------------------------ */

void records_tick(struct records *r)
{
	if (r->nameservers)
		nameservers_tick(r->nameservers);
}

int records_new(struct loop *loop, const char *resolvers, records_ready_fn *on_known, void *ctx, struct records **ret)
{
	struct records *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->on_known = on_known;
	r->ctx = ctx;
	TAILQ_INIT(&r->items);
	e = resolvers && *resolvers ? nameservers_new(loop, resolvers, &r->nameservers) : 0;
	if (e < 0) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void records_free(struct records *r)
{
	if (!r)
		return;
	nameservers_free(r->nameservers); /* ends what is pending */
	while (!TAILQ_EMPTY(&r->items))
		item_free(TAILQ_FIRST(&r->items));
	free(r);
}
