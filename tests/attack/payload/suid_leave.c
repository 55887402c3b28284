/* SPDX-License-Identifier: MIT */
/* Installed set-user-id root by the test: leaves the cgroup if it can, then talks to the world. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[512];
	int moved = -1, fd;

	if (argc != 5)
		return 2;
	if (setuid(0))
		printf("uid %d ", geteuid());
	snprintf(path, sizeof(path), "%s/cgroup.procs", argv[1]);
	fd = open(path, O_WRONLY);
	if (fd >= 0)
		moved = write(fd, "0", 1);
	printf("moved %d ", moved);

	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])) };
	inet_pton(AF_INET, argv[2], &to.sin_addr);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = { .tv_sec = 1 };
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	int r = connect(s, (struct sockaddr *)&to, sizeof(to));
	printf("connect %d errno %d\n", r, r ? errno : 0);
	if (!r)
		return write(s, argv[4], strlen(argv[4])) < 0;
	return 0;
}
