/* SPDX-License-Identifier: MIT */
/*
 * What the test machine's shell cannot do by itself: try one way out, and say in one word what came of it.
 * `ok`, `silent` (sent, but no answer), or the name of the errno.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE      5	     /* seconds until no answer is an answer; emulated machines are slow */
#define HOLD_PATIENCE 0	     /* no bound: a connection is held until it is cut, however slow the machine */
#define ETHERTYPE     0x88b5 /* for local experiments */
#define SNIFF_MAX     4096

static const char *word(int r)
{
	if (r >= 0)
		return "ok";
	return errno == EAGAIN ? "silent" : strerrorname_np(errno);
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

static int open_socket(int type, int protocol, int seconds)
{
	const struct timeval patience = { .tv_sec = seconds };
	int fd = socket(AF_INET, type, protocol);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
	return fd;
}

/* One byte there and back. */
static int echo(int fd)
{
	char c = 'x';
	ssize_t n;

	if (send(fd, &c, 1, MSG_NOSIGNAL) < 0)
		return -1;
	n = recv(fd, &c, 1, 0);
	if (n == 0)
		errno = ECONNRESET;
	return n == 1 ? 0 : -1;
}

static int connected(int type, const char *ip, const char *port, int seconds)
{
	struct sockaddr_in a = address(ip, port);
	int fd = open_socket(type, 0, seconds);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return fd;
}

/* True in a child that stays behind; whoever waits for our output does not wait for it. */
static bool stay_behind(void)
{
	if (fork() != 0)
		return false;
	close(STDOUT_FILENO);
	return true;
}

/* -- the other side ----------------------------------------------------------- */

static void serve_tcp(int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char c;

		if (fd >= 0 && fork() == 0) {
			while (recv(fd, &c, 1, 0) == 1)
				send(fd, &c, 1, MSG_NOSIGNAL);
			_exit(0);
		}
		close(fd);
	}
}

static void serve_udp(int fd)
{
	for (;;) {
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		char c;

		if (recvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &len) == 1)
			sendto(fd, &c, 1, 0, (struct sockaddr *)&from, len);
	}
}

/* Echoes on TCP and UDP; returns when both listen, and they go on behind. */
static int cmd_serve(char **argv)
{
	struct sockaddr_in a = address(argv[0], argv[1]);
	int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(tcp, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(tcp, 16) < 0 ||
	    bind(udp, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	if (stay_behind())
		serve_tcp(tcp);
	if (stay_behind())
		serve_udp(udp);
	return 0;
}

/* Writes into a file which of two marked frames came: reads until the one that says "end". */
static int cmd_sniff(char **argv)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETHERTYPE)), out;
	bool seen = false;

	if (fd < 0)
		return -1;
	if (!stay_behind())
		return 0; /* the socket is open: whatever is sent from now on is seen */
	for (int i = 0; i < SNIFF_MAX; i++) {
		char text[64] = "";

		if (recv(fd, text, sizeof(text) - 1, 0) < 0)
			break;
		if (!strcmp(text, "end"))
			break;
		seen |= !strcmp(text, "frame");
	}
	out = open(argv[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(out, "%s\n", seen ? "seen" : "unseen");
	_exit(0);
}

/* -- ways out ------------------------------------------------------------------ */

static int cmd_tcp(char **argv)
{
	int fd = connected(SOCK_STREAM, argv[0], argv[1], PATIENCE);

	return fd < 0 ? -1 : echo(fd);
}

static int cmd_udp(char **argv)
{
	struct sockaddr_in a = address(argv[0], argv[1]);
	int fd = open_socket(SOCK_DGRAM, 0, PATIENCE);
	char c = 'x';

	if (fd < 0 || sendto(fd, &c, 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return recv(fd, &c, 1, 0) == 1 ? 0 : -1;
}

/* A path, or an abstract name. */
static struct sockaddr_un unix_address(const char *name, socklen_t *ret_len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int shift = name[0] != '/';

	strncpy(a.sun_path + shift, name, sizeof(a.sun_path) - 2);
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return a;
}

/* Unix sockets of the host; serve-unix makes them. */
static int unix_call(int type, const char *name)
{
	socklen_t len;
	struct sockaddr_un a = unix_address(name, &len);
	int fd = socket(AF_UNIX, type, 0);

	if (type == SOCK_DGRAM)
		return sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, len) < 0 ? -1 : 0;
	return connect(fd, (struct sockaddr *)&a, len);
}

static int cmd_unix(char **argv)
{
	return unix_call(SOCK_STREAM, argv[0]);
}

static int cmd_unix_send(char **argv)
{
	return unix_call(SOCK_DGRAM, argv[0]);
}

static int unix_serve(int type, const char *name)
{
	socklen_t len;
	struct sockaddr_un a = unix_address(name, &len);
	int fd = socket(AF_UNIX, type, 0);

	umask(0);
	return bind(fd, (struct sockaddr *)&a, len) < 0 || (type != SOCK_DGRAM && listen(fd, 64) < 0) ? -1 : fd;
}

/* Takes connections at NAME and datagrams at NAME-d. */
static int cmd_serve_unix(char **argv)
{
	char name[100];
	int fd;

	snprintf(name, sizeof(name), "%s-d", argv[0]);
	fd = unix_serve(SOCK_DGRAM, name);
	if (unix_serve(SOCK_STREAM, argv[0]) < 0 || fd < 0)
		return -1;
	if (stay_behind())
		for (char c; recv(fd, &c, 1, 0) >= 0;)
			;
	return 0;
}

/* A socket of our own with two names: bound by one, called by the other. Meanwhile the link may have got another target. */
static int cmd_unix_own(char **argv)
{
	char real[PATH_MAX];
	int r;

	if (unix_serve(SOCK_STREAM, argv[0]) < 0 || !realpath(argv[0], real))
		return -1;
	if (strcmp(argv[2], "-") != 0 && (unlink(argv[2]) < 0 || symlink(argv[3], argv[2]) < 0))
		return -1;
	r = unix_call(SOCK_STREAM, argv[1]);
	if (r < 0) {
		int error = errno;

		unlink(real);
		errno = error;
		return -1;
	}
	return unlink(real);
}

static int ping(int type, const char *ip)
{
	struct sockaddr_in a = address(ip, "0");
	struct icmphdr request = { .type = ICMP_ECHO, .checksum = htons(0xf7ff) };
	int fd = open_socket(type, IPPROTO_ICMP, PATIENCE);
	char answer[256];

	if (fd < 0 || sendto(fd, &request, sizeof(request), 0, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return recv(fd, answer, sizeof(answer), 0) > 0 ? 0 : -1;
}

static int cmd_ping(char **argv)
{
	return ping(SOCK_DGRAM, argv[0]);
}

static int cmd_raw(char **argv)
{
	return ping(SOCK_RAW, argv[0]);
}

/* A frame that the IP stack never saw. */
static int cmd_frame(char **argv)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE),
		.sll_ifindex = (int)if_nametoindex(argv[0]),
		.sll_halen = 6,
		.sll_addr = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM, 0);

	return fd < 0 || sendto(fd, argv[1], strlen(argv[1]), 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : 0;
}

/* The own loopback, both protocols. */
static int cmd_own(char **argv)
{
	struct sockaddr_in a = address("127.0.0.1", argv[0]);
	int tcp = open_socket(SOCK_STREAM, 0, PATIENCE), udp = open_socket(SOCK_DGRAM, 0, PATIENCE), client, server;
	int one = 1;
	char c = 'x';

	setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)); /* the last one's TIME_WAIT */
	if (bind(tcp, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(tcp, 1) < 0 ||
	    bind(udp, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	client = connected(SOCK_STREAM, "127.0.0.1", argv[0], PATIENCE);
	server = client < 0 ? -1 : accept(tcp, NULL, NULL);
	if (server < 0 || send(client, &c, 1, MSG_NOSIGNAL) < 0 || recv(server, &c, 1, 0) != 1)
		return -1;
	client = connected(SOCK_DGRAM, "127.0.0.1", argv[0], PATIENCE);
	return client < 0 || send(client, &c, 1, 0) < 0 || recv(udp, &c, 1, 0) != 1 ? -1 : 0;
}

/* Stays behind, reading: what ends the wait is written into a file. */
static void hold_on(int fd, const char *path)
{
	ssize_t n;
	int out;
	char c;

	if (!stay_behind())
		return;
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	n = recv(fd, &c, 1, 0);
	dprintf(out, "%s\n", n == 0 ? "closed" : word((int)n));
	_exit(0);
}

static int hold(int type, char **argv)
{
	int fd = connected(type, argv[0], argv[1], HOLD_PATIENCE);

	if (fd < 0 || echo(fd) < 0)
		return -1;
	hold_on(fd, argv[2]);
	return 0;
}

static int cmd_hold_tcp(char **argv)
{
	return hold(SOCK_STREAM, argv);
}

static int cmd_hold_udp(char **argv)
{
	return hold(SOCK_DGRAM, argv);
}

/* The same with a socket that is not connected: a client that waits for an answer. */
static int cmd_hold_answer(char **argv)
{
	struct sockaddr_in a = address(argv[0], argv[1]);
	int fd = open_socket(SOCK_DGRAM, 0, HOLD_PATIENCE);
	char c = 'x';

	if (fd < 0 || sendto(fd, &c, 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0 || recv(fd, &c, 1, 0) != 1)
		return -1;
	hold_on(fd, argv[2]);
	return 0;
}

/* A DNS query, answered REFUSED by the one that was asked. */
static int lookup(const char *ip, bool connects)
{
	static const char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3www\0\0\1\0";
	const struct timeval patience = { .tv_sec = PATIENCE };
	struct sockaddr_in v4 = address(ip, "53");
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(53) }, from = { 0 };
	bool six = inet_pton(AF_INET6, ip, &to.sin6_addr) == 1;
	int fd = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	const void *name = six ? (const void *)&to : (const void *)&v4;
	socklen_t len = six ? sizeof(to) : sizeof(v4), from_len = sizeof(from);
	char answer[sizeof(query)];
	int r;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connects) {
		if (connect(fd, name, len) < 0 || send(fd, query, sizeof(query), 0) < 0)
			return -1;
	} else if (sendto(fd, query, sizeof(query), 0, name, len) < 0) {
		return -1;
	}
	if (recvfrom(fd, answer, sizeof(answer), 0, (struct sockaddr *)&from, &from_len) != (ssize_t)sizeof(answer))
		return -1;
	r = (answer[3] & 15) == 5 && from_len == len && !memcmp(&from, name, len) ? 0 : -1;
	if (r == 0 && connects)
		r = getpeername(fd, (struct sockaddr *)&from, &from_len) == 0 && !memcmp(&from, name, len) ? 0 : -1;
	errno = EBADMSG;
	return r;
}

static int cmd_lookup(char **argv)
{
	return lookup(argv[0], false);
}

static int cmd_lookup_connected(char **argv)
{
	return lookup(argv[0], true);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int operands;
		int (*run)(char **argv);
	} commands[] = {
		{ "serve", 2, cmd_serve },
		{ "sniff", 1, cmd_sniff },
		{ "tcp", 2, cmd_tcp },
		{ "udp", 2, cmd_udp },
		{ "ping", 1, cmd_ping },
		{ "raw", 1, cmd_raw },
		{ "frame", 2, cmd_frame },
		{ "own", 1, cmd_own },
		{ "hold-tcp", 3, cmd_hold_tcp },
		{ "hold-udp", 3, cmd_hold_udp },
		{ "unix", 1, cmd_unix },
		{ "hold-answer", 3, cmd_hold_answer },
		{ "serve-unix", 1, cmd_serve_unix },
		{ "unix-send", 1, cmd_unix_send },
		{ "unix-own", 4, cmd_unix_own },
		{ "lookup", 1, cmd_lookup },
		{ "lookup-connected", 1, cmd_lookup_connected },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name) && argc - 2 == commands[i].operands) {
			puts(word(commands[i].run(argv + 2)));
			return 0;
		}
	puts("usage");
	return 2;
}
