/* SPDX-License-Identifier: MIT */
/* What we send on: the canonical name, so that origin, policy and log speak of the same. */
#include <stdio.h>
#include <string.h>

#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "vocab/words.h"

static enum stage_result on_start(struct exchange *ex)
{
	char text[NAME_SIZE + 16], addr[ADDR_TEXT_SIZE] = "";
	const char *name = ex->host.name;
	int len;

	if (ex->host.is_addr) {
		addr_format(&ex->host.addr, addr);
		name = addr;
	}
	len = snprintf(text, sizeof(text), ex->host.is_addr && strchr(addr, ':') ? "[%s]" : "%s", name);
	if (ex->port != (ex->tls ? 443 : 80))
		len += snprintf(text + len, sizeof(text) - (size_t)len, ":%u", ex->port);
	ex->canonical = head_set_authority(&ex->head, text, (size_t)len) == 0 &&
			head_set_scheme(&ex->head, ex->tls ? "https" : "http", ex->tls ? 5 : 4) == 0;
	if (ex->canonical)
		return STAGE_NEXT;
	exchange_refuse(ex, NP_R_BAD_HTTP, NULL, "the head is too large");
	return STAGE_OVER;
}

const struct stage stage_canonical = { .name = "canonical", .role = STAGE_MODIFIES, .start = on_start };
