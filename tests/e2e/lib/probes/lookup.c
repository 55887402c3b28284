// SPDX-License-Identifier: MIT
/* getaddrinfo() of whatever C library it is built with: one address a line. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all;
	int r = argc == 2 ? getaddrinfo(argv[1], "443", &hints, &all) : EAI_FAIL;

	if (r) {
		fprintf(stderr, "%s\n", gai_strerror(r));
		return 1;
	}
	for (struct addrinfo *a = all; a; a = a->ai_next) {
		char text[INET6_ADDRSTRLEN];
		void *addr = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr :
						       (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;

		puts(inet_ntop(a->ai_family, addr, text, sizeof(text)));
	}
	return 0;
}
