/* SPDX-License-Identifier: MIT */
/* Runs a check in a child process, for what cannot be taken back. */
#pragma once

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                          \
	do {                                                                                                      \
		if (!(condition)) {                                                                               \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
			return 1;                                                                                 \
		}                                                                                                 \
	} while (0)

/* What fn returned; 128+N when signal N killed it. */
__attribute__((unused)) static int child_run(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
