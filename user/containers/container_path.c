/* SPDX-License-Identifier: MIT */
#include "containers/container_path.h"

#include <string.h>

#include "base/cleanup.h"

/*
 * With the systemd driver a cgroup is a scope, with cgroupfs a plain directory:
 *
 *   Docker      system.slice/docker-ID.scope                       docker/ID
 *   Podman      machine.slice/libpod-ID.scope[/container]          libpod_parent/libpod-ID
 *   containerd  kubepods.slice/.../cri-containerd-ID.scope         kubepods/burstable/podUID/ID
 *   CRI-O       kubepods.slice/.../crio-ID.scope                   kubepods/burstable/podUID/crio-ID
 *
 * A monitor beside the container (libpod-conmon-ID, crio-conmon-ID) is none.
 */
static const struct {
	const char *prefix, *engine;
} kinds[] = {
	{ "docker-", "docker" },      { "libpod-", "podman" }, { "cri-containerd-", "containerd" },
	{ "nerdctl-", "containerd" }, { "crio-", "cri-o" },    { "", NULL },
};

static bool is_id(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr("0123456789abcdef", text[i]))
			return false;
	return len == CONTAINER_ID_SIZE - 1;
}

static bool part_read(const char *part, size_t len, struct container *ret)
{
	static const char scope[] = ".scope";

	if (len > strlen(scope) && !memcmp(part + len - strlen(scope), scope, strlen(scope)))
		len -= strlen(scope);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t skip = strlen(kinds[i].prefix);

		if (len < skip || memcmp(part, kinds[i].prefix, skip) != 0 || !is_id(part + skip, len - skip))
			continue;
		ret->engine = kinds[i].engine;
		memcpy(ret->id, part + skip, len - skip);
		ret->id[len - skip] = '\0';
		return true;
	}
	return false;
}

/* Of an id alone the cgroup above tells. */
static const char *engine_by_parent(const char *path, const char *part)
{
	static const char docker[] = "/docker/";

	return (size_t)(part - path) >= strlen(docker) && !memcmp(part - strlen(docker), docker, strlen(docker))
		       ? "docker"
		       : NULL;
}

bool container_of_path(const char *path, struct container *ret)
{
	bool found = false;

	for (const char *part = path, *end; *part; part = *end ? end + 1 : end) {
		end = part + strcspn(part, "/");
		if (!part_read(part, (size_t)(end - part), ret))
			continue;
		if (!ret->engine)
			ret->engine = engine_by_parent(path, part);
		ret->len = (size_t)(end - path);
		found = true;
	}
	return found;
}
