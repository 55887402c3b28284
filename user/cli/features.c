/* SPDX-License-Identifier: MIT */
#include "cli/features.h"

#include "cli/output.h"

bool feature_get(const json_t *object, size_t i, struct feature *ret)
{
	const json_t *item = json_array_get(json_object_get(object, "features"), i);

	if (!item)
		return false;
	*ret = (struct feature){
		.name = member_text(item, "feature") ?: "?",
		.means = member_text(item, "means") ?: "?",
		.present = json_is_true(json_object_get(item, "present")),
	};
	return true;
}

size_t features_missing(const json_t *object)
{
	struct feature feature;
	size_t missing = 0;

	for (size_t i = 0; feature_get(object, i, &feature); i++)
		missing += !feature.present;
	return missing;
}
