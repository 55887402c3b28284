/* SPDX-License-Identifier: MIT */
#include "cli/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

extern char **environ;

/* Docker writes a slash in front of the name. */
static const char format[] = "{{.Id}}\n{{.Name}}\n{{.Config.Image}}";

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What it prints, in time and in the room that there is; else nothing. */
static void output_read(int fd, char *text, size_t size)
{
	uint64_t end = now_ms() + NP_ENGINE_MS;
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < size - 1 && now_ms() < end && poll(&ready, 1, (int)(end - now_ms())) > 0) {
		n = read(fd, text + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[n == 0 ? len : 0] = '\0';
}

static int engine_run(const char *const argv[], char *text, size_t size)
{
	_close_ int near = -1, far = -1;
	posix_spawn_file_actions_t files;
	int fds[2], status = -1, r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	near = fds[0];
	far = fds[1];
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&files, far, 1);
	r = r ? r : posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	r = r ? r : posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		return -r;
	close(take_fd(far));
	output_read(near, text, size);
	if (!text[0])
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static void line_take(char **text, char *to, size_t size)
{
	char *line = strsep(text, "\n");

	snprintf(to, size, "%s", line ? line + (*line == '/') : "");
}

int engine_inspect(const char *engine, const char *name, struct engine_container *ret)
{
	const char *const argv[] = { engine, "container", "inspect", "--format", format, name, NULL };
	struct engine_container found = { 0 };
	char text[2048] = "", *rest = text;
	int r;

	if (name[0] == '-') /* no option of the engine's */
		return -ENOENT;
	r = engine_run(argv, text, sizeof(text));
	if (r < 0)
		return r == -EIO ? -ENOENT : r;
	line_take(&rest, found.id, sizeof(found.id));
	line_take(&rest, found.name, sizeof(found.name));
	line_take(&rest, found.image, sizeof(found.image));
	if (strlen(found.id) != sizeof(found.id) - 1)
		return -ENOENT;
	*ret = found;
	return 0;
}

int engine_info(const char *engine, struct engine_setup *ret)
{
	const bool podman = !strcmp(engine, "podman");
	const char *const argv[] = { engine, "info", "--format",
				     podman ? "{{.Host.CgroupManager}}\n{{.Host.CgroupsVersion}}"
					    : "{{.CgroupDriver}}\n{{.CgroupVersion}}",
				     NULL };
	char text[512] = "", *rest = text, version[16];
	int r = engine_run(argv, text, sizeof(text));

	if (r < 0)
		return r;
	line_take(&rest, ret->driver, sizeof(ret->driver));
	line_take(&rest, version, sizeof(version));
	ret->v2 = strchr(version, '2');
	return 0;
}
