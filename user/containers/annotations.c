/* SPDX-License-Identifier: MIT */
#include "containers/annotations.h"

#include <errno.h>

static int annotations_bad(const char **ret_problem, const char *problem)
{
	*ret_problem = problem;
	return -EINVAL;
}

int annotations_read(const json_t *annotations, struct annotations *ret, const char **ret_problem)
{
	const json_t *session = json_object_get(annotations, ANNOTATION_SESSION);
	const json_t *level = json_object_get(annotations, ANNOTATION_LEVEL);
	struct annotations found = { 0 };

	if (annotations && !json_is_object(annotations) && !json_is_null(annotations))
		return annotations_bad(ret_problem, "\"annotations\" is no object");
	if (level && !session)
		return annotations_bad(ret_problem, ANNOTATION_LEVEL " is there, and " ANNOTATION_SESSION " is not");
	if (session && !json_is_string(session))
		return annotations_bad(ret_problem, ANNOTATION_SESSION " is no text");
	if (session && session_name_parse(json_string_value(session), &found.session, ret_problem) < 0)
		return -EINVAL;
	if (level) {
		if (!json_is_string(level) || level_parse(json_string_value(level), &found.level) < 0)
			return annotations_bad(ret_problem, ANNOTATION_LEVEL
					       " is none of PUBLIC, INTERNAL, CONFIDENTIAL and SECRET");
		found.has_level = true;
	}
	*ret = found;
	return 0;
}
