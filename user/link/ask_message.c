/* SPDX-License-Identifier: MIT */
#include "link/ask_message.h"

#include "base/chars.h"

const struct link_ask *link_ask_read(const void *data, size_t len)
{
	const struct link_ask *ask = data;

	if (len < sizeof(*ask) || len != sizeof(*ask) + ask->headers + ask->preview ||
	    ask->headers > NP_DECIDE_HEADERS || ask->preview > (ask->shows ? NP_DECIDE_BODY : NP_QUESTION_PREVIEW) ||
	    !ask->number || ask->gone > 1 || ask->write > 1 || ask->tls > 1 || ask->shows > 1 || ask->whole > 1 ||
	    ask->taken > 1 || ask->gone + ask->shows + ask->taken > 1 || (ask->shows && ask->headers))
		return NULL;
	if (ask->gone || ask->shows || ask->taken)
		return ask;
	if (!text_is_ascii(ask->policy, sizeof(ask->policy)) || !text_is_ascii(ask->place, sizeof(ask->place)) ||
	    !text_is_ascii(ask->host, sizeof(ask->host)) || !text_is_ascii(ask->method, sizeof(ask->method)) ||
	    !text_is_ascii(ask->url, sizeof(ask->url)))
		return NULL;
	return ask->host[0] && ask->url[0] && ask->port && np_rung_is_valid(&ask->rung) ? ask : NULL;
}
