/* SPDX-License-Identifier: MIT */
/* The strict reader of request bodies. */
#include "control/body.c"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds for every body: read completely and by the table, or refused with a reason that the API knows. */
static void check(int r, const json_t *root, const char *required, const struct failure *failure)
{
	if (r == 0) {
		if (!root || !json_is_object(root) || !required)
			abort();
		/* What a client wrote is what a C string holds: no NUL hides a rest. */
		if (strlen(required) != json_string_length(json_object_get(root, "level")))
			abort();
		return;
	}
	if (root || r != -EINVAL || !memchr(failure->text, '\0', sizeof(failure->text)))
		abort();
	if (failure->reason != NP_R_BAD_JSON && failure->reason != NP_R_UNKNOWN_FIELD &&
	    failure->reason != NP_R_BAD_FIELD)
		abort();
	if (!failure->text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *level = NULL, *dataset = NULL, *reason = NULL;
	const struct body_field fields[] = {
		{ "level", true, .ret_text = &level },
		{ "dataset", false, .ret_text = &dataset },
		{ "reason", false, .ret_text = &reason },
	};
	struct failure failure;
	json_t *root = NULL;

	memset(&failure, 0xff, sizeof(failure));
	check(body_read((const char *)data, size, fields, ARRAY_SIZE(fields), &root, &failure), root, level, &failure);
	json_decref(root);
	return 0;
}
