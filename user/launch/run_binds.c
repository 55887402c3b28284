/* SPDX-License-Identifier: MIT */
/* What --bind names, before the plan: where its links lead, and whether the policy permits that. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api_client/api.h"
#include "base/cleanup.h"
#include "launch/plan_internal.h"
#include "launch/run.h"

size_t run_permits(struct run *run)
{
	const json_t *entry;
	size_t i, n = 0;

	json_array_foreach(json_object_get(json_object_get(run->facts, "sandbox"), "binds"), i, entry)
	{
		const char *path = member_text(entry, "path");

		if (path && n < ARRAY_SIZE(run->permits))
			run->permits[n++] = (struct permit){ path, json_is_true(json_object_get(entry, "readonly")) };
	}
	return n;
}

/*
 * The words may be for somebody who must not learn which files the host has: what the policy does not permit is refused in the
 * same words whether it is there or not, and whatever a link leads to. Only of a name in a place that is permitted, without a
 * link on the way, is it said that it is missing.
 */
static int bind_refused(struct run *run, const struct bind *bind, size_t n_permits)
{
	char problem[PLAN_PROBLEM_SIZE];
	_close_ int fd = path_is_plain(bind->source) && bind_is_permitted(run->permits, n_permits, bind)
				 ? fs_open_unlinked(AT_FDCWD, bind->source, O_PATH)
				 : -ELOOP;

	if (fd < 0 && fd != -ELOOP)
		return run_refuse(run, "--bind: %.200s cannot be mounted: %s", bind->source, strerror(-fd));
	bind_refuse(bind, problem);
	return run_refuse(run, "%s", problem);
}

/* The policy judges what the links lead to; netpawl-init looks whether that is what was mounted. */
static int bind_resolve(struct run *run, struct bind *bind, size_t n_permits)
{
	_free_ char *real = realpath(bind->source, NULL);
	struct bind led = *bind;
	/* Whoever writes in a directory on the way may have made a link of it since. */
	_close_ int fd = real ? fs_open_unlinked(AT_FDCWD, real, O_PATH) : -errno;
	struct stat st;

	led.source = real;
	if (!real || !bind_is_permitted(run->permits, n_permits, &led) || fd == -ELOOP)
		return bind_refused(run, bind, n_permits);
	if (fd < 0 || fstat(fd, &st) < 0)
		return run_refuse(run, "--bind: %.200s cannot be mounted: %s", bind->source,
				  strerror(fd < 0 ? -fd : errno));
	free((char *)bind->source);
	bind->source = take_ptr(real);
	bind->device = st.st_dev;
	bind->inode = st.st_ino;
	return CLI_OK;
}

int run_binds(struct run *run)
{
	const size_t n_permits = run_permits(run);
	int code = CLI_OK;

	for (size_t i = 0; i < run->options.bind.n && code == CLI_OK; i++)
		code = bind_resolve(run, &run->binds[i], n_permits);
	return code;
}
