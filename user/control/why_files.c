/* SPDX-License-Identifier: MIT */
#include "control/why_files.h"

#include <stdio.h>
#include <string.h>

void why_files_mark(struct why_files *files, const char *session)
{
	if (strnlen(session, NP_LABEL_SIZE) >= NP_LABEL_SIZE)
		return;
	/* Backwards: who is refused is likely to have been refused just now. */
	for (unsigned i = files->n; i-- > 0;)
		if (!strcmp(files->names[(files->first + i) % NP_WHY_STALE], session))
			return;
	if (files->n < NP_WHY_STALE)
		snprintf(files->names[(files->first + files->n++) % NP_WHY_STALE], NP_LABEL_SIZE, "%s", session);
}

void why_files_tick(struct why_files *files, const struct server_config *config)
{
	const char *session = files->names[files->first];

	if (!files->n)
		return;
	/* Before it is written: what is refused meanwhile is in the next one. */
	files->first = (files->first + 1) % NP_WHY_STALE;
	files->n--;
	why_publish(config, session);
}
