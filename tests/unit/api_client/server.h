/* SPDX-License-Identifier: MIT */
/* A daemon for one connection: a child process that reads a request and answers with given bytes. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct test_server {
	char dir[64];
	char path[96];
	pid_t pid;
};

/* Answers in the pieces given, each with its own send(); "@" stands for the request itself. */
static void test_server_answer(int fd, const char *const *pieces)
{
	char request[65536];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(request) - 1 && (n = recv(fd, request + len, sizeof(request) - 1 - len, 0)) > 0) {
		char *end, *length;

		len += (size_t)n;
		request[len] = '\0';
		end = strstr(request, "\r\n\r\n");
		length = strstr(request, "Content-Length: ");
		if (end && (!length || strlen(end + 4) >= strtoul(length + 16, NULL, 10)))
			break;
	}
	request[len] = '\0';
	for (; *pieces; pieces++) {
		const char *piece = strcmp(*pieces, "@") ? *pieces : request;

		if (send(fd, piece, strlen(piece), MSG_NOSIGNAL) < 0)
			return;
	}
}

__attribute__((unused)) static void test_server_start(struct test_server *server, const char *const *pieces)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(server->dir, "/tmp/np-cli-XXXXXX");
	if (fd < 0 || !mkdtemp(server->dir))
		abort();
	snprintf(server->path, sizeof(server->path), "%s/s", server->dir);
	strcpy(addr.sun_path, server->path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0)
		abort();
	server->pid = fork();
	if (server->pid == 0) {
		int peer = accept(fd, NULL, NULL);

		if (peer >= 0)
			test_server_answer(peer, pieces);
		_exit(0);
	}
	close(fd);
}

__attribute__((unused)) static void test_server_stop(struct test_server *server)
{
	waitpid(server->pid, NULL, 0);
	unlink(server->path);
	rmdir(server->dir);
}
