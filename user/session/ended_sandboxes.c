/* SPDX-License-Identifier: MIT */
/* What is remembered of sandboxes that are over, for who asks what they did. */
#include <errno.h>
#include <string.h>

#include "session/service_internal.h"

static struct ended_sandbox *ended_find(struct service *service, const char *id)
{
	for (size_t i = 0; *id && i < NP_ENDED_KEPT; i++)
		if (!strcmp(service->ended[i].id, id))
			return &service->ended[i];
	return NULL;
}

void ended_note(struct service *service, struct sandbox *sandbox)
{
	struct ended_sandbox *ended = ended_find(service, sandbox->pub.id); /* from a try before this one */

	if (!ended) {
		ended = &service->ended[service->ended_next];
		service->ended_next = (service->ended_next + 1) % NP_ENDED_KEPT;
		strcpy(ended->id, sandbox->pub.id); /* of the same size */
	}
	sandbox_count(service, sandbox);
	ended->counts = sandbox->pub.counts;
}

int service_sandbox_ended(struct service *service, const char *id, struct sandbox_counts *ret)
{
	struct sandbox *sandbox = sandbox_by_id(service, id);
	const struct ended_sandbox *ended;

	if (sandbox && sandbox->stage != SANDBOX_RETIRED && !sandbox->left) { /* its end waits for something */
		sandbox_count(service, sandbox);
		*ret = sandbox->pub.counts;
		return 0;
	}
	ended = ended_find(service, id);
	if (!ended)
		return -ENOENT;
	*ret = ended->counts;
	return 0;
}
