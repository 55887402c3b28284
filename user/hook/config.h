/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a container (runtime-spec, config.json), as Podman gives it to hooks of its stage precreate on standard input, to take
 * it back from their output. Pure: bytes in, bytes out. What is not ours stays as it was written, to the byte.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "containers/annotations.h"

/* 0; or -EINVAL with a sentence that says what is wrong, of which every part is ours. */
int oci_config_read(const char *data, size_t len, struct annotations *ret, const char **ret_problem);
/* Appends the configuration with these mounts (objects) and variables (texts, NAME=value) at the end of its own to out. Where it has a mount at that
 * place, or a variable of that name, it keeps its own: whoever started the container has said so. 0, -EINVAL as above, -ENOMEM. */
int oci_config_add(const char *data, size_t len, const json_t *mounts, const json_t *variables, struct buf *out,
		   const char **ret_problem);
