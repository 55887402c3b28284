/* SPDX-License-Identifier: MIT */
/* Random bytes as the question of an inspector that is lost to an attacker: what is taken ends and can be shown. */
#include "link/ask_message.c"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void text_check(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			abort();
}

static void ask_check(const void *bytes, size_t size)
{
	const struct link_ask *ask = link_ask_read(bytes, size);

	if (ask && ask->shows && (ask->gone || ask->headers || ask->preview > NP_DECIDE_BODY || !ask->number))
		abort();
	if (ask && ask->taken && (ask->gone || ask->shows || !ask->number))
		abort();
	if (!ask || ask->gone || ask->shows || ask->taken)
		return;
	text_check(ask->policy, sizeof(ask->policy));
	text_check(ask->place, sizeof(ask->place));
	text_check(ask->host, sizeof(ask->host));
	text_check(ask->method, sizeof(ask->method));
	text_check(ask->url, sizeof(ask->url));
	if (!np_rung_is_valid(&ask->rung) || !ask->host[0] || !ask->port || !ask->number)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct link_ask *ask = calloc(1, sizeof(*ask));
	char *copy = malloc(size + 1), text[64];

	if (!ask || !copy)
		abort();
	memcpy(copy, data, size);
	copy[size] = '\0';
	ask_check(copy, size);
	/* Whatever text it is, its copy is one that is taken. */
	text_ascii(text, sizeof(text), copy);
	if (!text_is_ascii(text, sizeof(text)))
		abort();
	/* One of the right size, which the fuzzer would hardly hit. */
	memcpy(ask, data, size < sizeof(*ask) ? size : sizeof(*ask));
	ask->gone = ask->write = ask->tls = ask->shows = ask->whole = ask->taken = 0;
	ask->rung = (struct np_rung){ .mode = NP_PROXIED };
	ask_check(ask, sizeof(*ask));
	free(ask);
	free(copy);
	return 0;
}
