/* SPDX-License-Identifier: MIT */
/* Random bytes as the state of a container. What is accepted names a process, and a session as sessions are named or none. */
#include "hook/state.c"

#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); /* ends where the text ends */
	struct session_name again;
	const char *problem = NULL;
	struct oci_state state;
	int r;

	check(copy);
	memcpy(copy, data, size);
	r = oci_state_read(copy, size, &state, &problem);
	free(copy);
	check(r == 0 || (r == -EINVAL && problem));
	if (r < 0)
		return 0;
	check(state.pid > 0 && state.id[0] && strnlen(state.id, sizeof(state.id)) < sizeof(state.id));
	check(!state.wish.has_level || (state.wish.session.text[0] && state.wish.level < LEVEL_COUNT));
	if (state.wish.session.text[0])
		check(session_name_parse(state.wish.session.text, &again, &problem) == 0 &&
		      strcmp(again.text, state.wish.session.text) == 0);
	return 0;
}
