/* SPDX-License-Identifier: MIT */
/* Where a request goes, whether that is where its connection was meant to go, and whether there is room for it. */
#include <string.h>

#include "inspect/exchange.h"
#include "inspect/stage.h"

static enum np_reason place_find(struct exchange *ex)
{
	const struct client *client = ex->client;
	struct authority authority;

	/* An absolute target on a plain connection: we are the client's configured proxy. */
	bool proxied = !client->tls && !client->by_connect && leg_may_switch(&ex->at_client.turn) && ex->head.scheme;

	ex->tls = client->tls || (proxied && !strcmp(ex->head.scheme, "https"));
	if (authority_parse(ex->head.authority, strlen(ex->head.authority), ex->tls, &authority) < 0)
		return NP_R_BAD_HTTP;
	ex->host = authority.host;
	ex->port = authority.has_port || proxied ? authority.port : client->port;
	if (proxied)
		return NP_R_RULE_ALLOWS;
	if (ex->port != client->port || (client->named && !host_equal(&ex->host, &client->host)))
		return NP_R_HOST_MISMATCH;
	return NP_R_RULE_ALLOWS;
}

static enum stage_result on_start(struct exchange *ex)
{
	enum np_reason placed = place_find(ex);

	ex->report.port = ex->port;
	if (!memory_admits(ex->client))
		placed = NP_R_TOO_MANY_REQUESTS;
	if (NP_REASON_ALLOWS(placed))
		return STAGE_NEXT;
	exchange_refuse(ex, placed, NULL, NULL);
	return STAGE_OVER;
}

const struct stage stage_place = { .name = "place", .role = STAGE_ANSWERS, .start = on_start };
