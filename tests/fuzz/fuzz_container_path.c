/* SPDX-License-Identifier: MIT */
/* Paths of cgroups: what is found is an id that stands in the path, where the container's part of it ends. */
#include "containers/container_path.c"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *path = calloc(1, size + 1);
	struct container container;
	const char *at;

	if (!path || memchr(data, '\0', size))
		return 0;
	memcpy(path, data, size);
	if (!container_of_path(path, &container))
		return 0;
	if (container.len > size || (path[container.len] && path[container.len] != '/'))
		abort();
	at = strstr(path, container.id);
	if (!is_id(container.id, strlen(container.id)) || !at || at > path + container.len)
		abort();
	return 0;
}
