/* SPDX-License-Identifier: MIT */
/* What whoever starts a container asks of us, in its annotations: ours count and no others. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "vocab/level.h"
#include "vocab/session_name.h"

#define ANNOTATION_SESSION "netpawl.dev/session"
#define ANNOTATION_LEVEL   "netpawl.dev/level"

struct annotations {
	struct session_name session; /* an empty text: it names none */
	bool has_level;
	enum level level;
};

/* annotations: an object, null or (NULL) nothing. 0; or -EINVAL with a sentence that says what is wrong, of which every part is
 * ours. */
int annotations_read(const json_t *annotations, struct annotations *ret, const char **ret_problem);
