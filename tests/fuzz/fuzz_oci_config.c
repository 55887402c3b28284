/* SPDX-License-Identifier: MIT */
/* Random bytes as the configuration of a container. What is accepted has ours in it afterwards, and is what it was but for that. */
#include "hook/config.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(cleanup_json) json_t *mounts = json_pack("[{s:s}]", "destination", "/run/netpawl");
	cleanup(cleanup_json) json_t *variables = json_pack("[s]", "NETPAWL=1");
	cleanup(cleanup_json) json_t *before = NULL, *after = NULL;
	_buf_ struct buf out = BUF_INIT(1 << 20);
	char *copy = malloc(size ? size : 1); /* ends where the text ends */
	struct annotations wish;
	const char *problem = NULL;
	json_t *theirs, *ours;
	int r;

	check(copy && mounts && variables);
	memcpy(copy, data, size);
	r = oci_config_read(copy, size, &wish, &problem);
	check(r == 0 || (r == -EINVAL && problem));
	r = oci_config_add(copy, size, mounts, variables, &out, &problem);
	check(r == 0 || r == -ENOSPC || (r == -EINVAL && problem));
	before = config_load(copy, size);
	free(copy);
	if (r < 0)
		return 0;
	after = config_load(out.data, out.len);
	check(before && after);
	theirs = json_object_get(before, "mounts");
	ours = json_object_get(after, "mounts");
	check(item_is_there(ours, json_array_get(mounts, 0)));
	check(item_is_there(json_object_get(json_object_get(after, "process"), "env"), json_array_get(variables, 0)));
	if (!item_is_there(theirs, json_array_get(mounts, 0)))
		json_array_append(theirs, json_array_get(mounts, 0));
	theirs = json_object_get(json_object_get(before, "process"), "env");
	if (!item_is_there(theirs, json_array_get(variables, 0)))
		json_array_append(theirs, json_array_get(variables, 0));
	check(json_equal(before, after));
	return 0;
}
