/* SPDX-License-Identifier: MIT */
/* How many unread bytes a sandbox, a session and all of them together may make a worker hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct client;
struct sandbox;
struct session;
struct upstream;
struct worker;

/* Of a connection, as it was counted last. Only memory.c writes it. */
struct memory_share {
	size_t held; /* all of it */
	size_t kept; /* of that the bodies of requests */
};

/* Of a sandbox (what its clients have not read), a session (what its origins have not taken), or all. Only memory.c
 * writes it. */
struct memory_sum {
	size_t held;
	bool tight; /* a sandbox: some of its exchanges were held back for that */
};

void memory_count_client(struct client *client);
/* Another n bytes of a request's body wait with it. */
void memory_keep(struct client *client, size_t n);
void memory_count_upstream(struct upstream *up);
/* Above so many unsent bytes on one leg of the client's exchanges, the other leg is no longer read (back pressure). */
size_t memory_mark(const struct client *client);
/* The sandbox makes us hold more unread bytes than it may: an exchange that adds to them is broken off. */
bool memory_is_over(const struct client *client);
bool memory_admits(const struct client *client); /* another request */
void memory_tick(struct worker *worker, struct sandbox *sandbox);
void memory_tick_upstreams(struct session *session);
void memory_trim(void); /* to be called periodically: gives back what is not used */
