/* SPDX-License-Identifier: MIT */
#include "session/trail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "vocab/words.h"

#define URL_SIZE 256

struct recent {
	char method[NP_QUESTION_METHOD], url[URL_SIZE];
	unsigned reason, status;
};

struct sent {
	char host[256];
	uint64_t bytes;
};

struct trail {
	struct table_node node;
	TAILQ_ENTRY(trail) next;
	char session[NP_LABEL_SIZE];
	struct recent recent[NP_TRAIL_REQUESTS]; /* a ring */
	size_t last;				 /* how many there were */
	struct sent sent[NP_TRAIL_HOSTS];
	size_t n_sent;
};

static struct trail *trail_find(const struct trails *trails, const struct hash_key *key, const char *session)
{
	for (struct table_node *n = table_first(&trails->by_session, hash_text(key, session)); n; n = table_next(n))
		if (!strcmp(container_of(n, struct trail, node)->session, session))
			return container_of(n, struct trail, node);
	return NULL;
}

static void trail_drop(struct trails *trails, struct trail *trail)
{
	TAILQ_REMOVE(&trails->list, trail, next);
	table_remove(&trails->by_session, &trail->node);
	trails->n--;
	free(trail);
}

static struct trail *trail_make(struct trails *trails, const struct hash_key *key, const char *session)
{
	struct trail *trail = table_reserve(&trails->by_session) == 0 ? calloc(1, sizeof(*trail)) : NULL;

	if (!trail)
		return NULL;
	if (trails->n >= NP_TRAILS)
		trail_drop(trails, TAILQ_FIRST(&trails->list));
	snprintf(trail->session, sizeof(trail->session), "%s", session);
	TAILQ_INSERT_TAIL(&trails->list, trail, next);
	table_add(&trails->by_session, &trail->node, hash_text(key, session));
	trails->n++;
	return trail;
}

/* The host of "https://host:port/path" or "host:port"; an address of IPv6 is in brackets in either. */
static void host_of(const char *url, char host[static 256])
{
	const char *scheme = strstr(url, "://"), *at = scheme ? scheme + 3 : url;
	bool bracket = *at == '[';
	size_t len = strcspn(at += bracket, bracket ? "]" : ":/?#");

	snprintf(host, 256, "%.*s", (int)(len < 255 ? len : 255), at);
}

/* What has no room pushes out the host that got least: what adds up stays. */
static void sent_note(struct trail *trail, const char *host, uint64_t bytes)
{
	struct sent *least = &trail->sent[0];

	for (size_t i = 0; i < trail->n_sent; i++) {
		if (!strcmp(trail->sent[i].host, host)) {
			trail->sent[i].bytes += bytes;
			return;
		}
		if (trail->sent[i].bytes < least->bytes)
			least = &trail->sent[i];
	}
	if (trail->n_sent < NP_TRAIL_HOSTS)
		least = &trail->sent[trail->n_sent++];
	snprintf(least->host, sizeof(least->host), "%s", host);
	least->bytes = bytes;
}

void trails_note(struct trails *trails, const struct hash_key *key, const struct trail_request *request)
{
	struct trail *trail = trail_find(trails, key, request->session);
	struct recent *recent;
	char host[256];

	if (!trail)
		trail = trail_make(trails, key, request->session);
	if (!trail || !request->url)
		return;
	TAILQ_REMOVE(&trails->list, trail, next);
	TAILQ_INSERT_TAIL(&trails->list, trail, next);
	recent = &trail->recent[trail->last++ % NP_TRAIL_REQUESTS];
	*recent = (struct recent){ .reason = request->reason, .status = request->status };
	snprintf(recent->method, sizeof(recent->method), "%s", request->method ? request->method : "");
	snprintf(recent->url, sizeof(recent->url), "%s", request->url);
	host_of(request->url, host);
	if (request->sent)
		sent_note(trail, host, request->sent);
}

void trails_forget(struct trails *trails, const struct hash_key *key, const char *session)
{
	struct trail *trail = trail_find(trails, key, session);

	if (trail)
		trail_drop(trails, trail);
}

void trails_put(const struct trails *trails, const struct hash_key *key, const char *session, const char *host,
		struct buf *out)
{
	const struct trail *trail = trail_find(trails, key, session);
	uint64_t sent = 0;

	for (size_t i = 0; trail && i < trail->n_sent; i++)
		if (!strcmp(trail->sent[i].host, host))
			sent = trail->sent[i].bytes;
	json_put_number(out, "sent_to_host", sent);
	json_open_array(out, "recent");
	for (size_t i = 0; trail && i < NP_TRAIL_REQUESTS && i < trail->last; i++) { /* the last one first */
		const struct recent *recent = &trail->recent[(trail->last - 1 - i) % NP_TRAIL_REQUESTS];

		json_open_object(out, NULL);
		json_put_text(out, "method", recent->method[0] ? recent->method : NULL, SIZE_MAX);
		json_put_text(out, "url", recent->url, SIZE_MAX);
		json_put_text(out, "reason", reason_token(recent->reason), SIZE_MAX);
		json_put_number(out, "status", recent->status);
		json_close_object(out);
	}
	json_close_array(out);
}

void trails_init(struct trails *trails)
{
	TAILQ_INIT(&trails->list);
}

void trails_free(struct trails *trails)
{
	while (!TAILQ_EMPTY(&trails->list))
		trail_drop(trails, TAILQ_FIRST(&trails->list));
	table_clear(&trails->by_session);
}
