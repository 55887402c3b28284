/* SPDX-License-Identifier: MIT */
/*
 * The cost of the network to a program: connect+close, UDP send, TCP round trip, bind, unix connect.
 *
 *   loop CGROUP serve PORT                  the far end: echo on TCP, a full queue on UDP; says "ready"
 *   loop CGROUP hold ADDR COUNT             that many connections to itself, both ends open, until stdin ends
 *   loop CGROUP work ADDR FAR-ADDR PORT     commands: OPERATION COUNT, answered by "WALL-NS CPU-NS"
 *
 * CGROUP is joined first ("-": stay), so that every socket belongs to it. ADDR is a loopback address where
 * this process has listeners of its own; FAR-ADDR is where another process serves.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "bench.h"

#define COUNT_MAX  1000000
#define UDP_BATCH  64 /* fits a receive buffer; the queue is emptied outside of the timed part */
#define SERVED_MAX 2048

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6; /* its port lies where v4 has it */
	};
	socklen_t len;
};

/* A connection to ourselves, and a thread that answers on it. */
struct pair {
	int near, echo;
	size_t echo_cpu;
};

static struct address near_end, far_end;
/* A unix socket that listens, by an abstract name and by a path. */
struct unix_place {
	struct sockaddr_un name;
	socklen_t len;
	int listener;
};

static struct unix_place abstract, path;
static int listener = -1, udp_sink = -1;
static int udp_socket = -1, far_pair = -1;

/* Everything that takes turns is there, and wakeups do not cross. */
static size_t last_cpu(void)
{
	return (size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

/* Of the calling thread. */
static void one_cpu(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		warn("sched_setaffinity");
}

static struct address parse(const char *text, uint16_t port)
{
	struct address a = { .len = sizeof(struct sockaddr_in) };

	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		a.len = sizeof(a.v6);
	} else {
		errx(2, "%s: no address", text);
	}
	return a;
}

static int make(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		err(1, "socket");
	if (family != AF_UNIX && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		err(1, "SO_REUSEADDR");
	return fd;
}

static int listen_at(const struct address *a, int type)
{
	int fd = make(a->any.sa_family, type);

	if (bind(fd, &a->any, a->len) < 0)
		err(1, "bind");
	if (type == SOCK_STREAM && listen(fd, 1024) < 0)
		err(1, "listen");
	return fd;
}

static int connect_to(const struct address *a)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &a->any, a->len) < 0)
		err(1, "connect");
	return fd;
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void exchange(int fd)
{
	char byte = 'x';

	if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
		err(1, "send");
	if (recv(fd, &byte, 1, 0) != 1)
		err(1, "recv");
}

/* -- operations ------------------------------------------------------------------ */

static void near_connect(unsigned n, struct span *s)
{
	span_open(s);
	while (n--) {
		int fd = connect_to(&near_end), peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (peer < 0)
			err(1, "accept");
		/* The listener's end first: TIME_WAIT is there, and does not take a port from the next connect. */
		close(peer);
		close(fd);
	}
	span_close(s);
}

static void far_connect(unsigned n, struct span *s)
{
	int fd;

	span_open(s);
	while (n--)
		close(connect_to(&far_end));
	span_close(s);
	/* The far end serves in order: when it answers this one it is done with the others, and will not be
	 * busy with them while somebody else is timed. */
	fd = connect_to(&far_end);
	exchange(fd);
	close(fd);
}

static void send_to(const struct address *a, unsigned n)
{
	static const char data[64];

	while (n--)
		if (sendto(udp_socket, data, sizeof(data), 0, &a->any, a->len) < 0)
			err(1, "sendto");
}

static void near_udp(unsigned n, struct span *s)
{
	char data[64];

	for (unsigned batch; n; n -= batch) {
		batch = n < UDP_BATCH ? n : UDP_BATCH;
		span_open(s);
		send_to(&near_end, batch);
		span_close(s);
		while (recv(udp_sink, data, sizeof(data), MSG_DONTWAIT) > 0)
			;
	}
}

static void far_udp(unsigned n, struct span *s)
{
	span_open(s);
	send_to(&far_end, n);
	span_close(s);
}

static void *echo(void *arg)
{
	const struct pair *p = arg;
	char byte;

	one_cpu(p->echo_cpu);
	while (recv(p->echo, &byte, 1, 0) == 1 && send(p->echo, &byte, 1, MSG_NOSIGNAL) == 1)
		;
	return NULL;
}

static void pair_open(struct pair *p)
{
	pthread_t thread;

	p->near = connect_to(&near_end);
	p->echo = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	no_delay(p->near);
	no_delay(p->echo);
	if (pthread_create(&thread, NULL, echo, p))
		errx(1, "pthread_create");
	exchange(p->near);
}

static void pair_exchange(struct pair *p, unsigned n, struct span *s)
{
	if (!p->near)
		pair_open(p);
	span_open(s);
	while (n--)
		exchange(p->near);
	span_close(s);
}

static void near_rtt(unsigned n, struct span *s)
{
	static struct pair p;

	p.echo_cpu = last_cpu();
	pair_exchange(&p, n, s);
}

static void near_rtt_two_cpus(unsigned n, struct span *s)
{
	static struct pair p;

	pair_exchange(&p, n, s);
}

static void far_rtt(unsigned n, struct span *s)
{
	if (far_pair < 0) {
		far_pair = connect_to(&far_end);
		no_delay(far_pair);
		exchange(far_pair);
	}
	span_open(s);
	while (n--)
		exchange(far_pair);
	span_close(s);
}

static void near_bind(unsigned n, struct span *s)
{
	struct address a = near_end;

	a.v4.sin_port = htons(ntohs(a.v4.sin_port) + 100);
	span_open(s);
	while (n--)
		close(listen_at(&a, SOCK_DGRAM));
	span_close(s);
}

static void unix_connect_to(const struct unix_place *to, unsigned n, struct span *s)
{
	span_open(s);
	while (n--) {
		int fd = make(AF_UNIX, SOCK_STREAM), peer;

		if (connect(fd, (const struct sockaddr *)&to->name, to->len) < 0)
			err(1, "connect, unix");
		peer = accept4(to->listener, NULL, NULL, SOCK_CLOEXEC);
		close(fd);
		close(peer);
	}
	span_close(s);
}

static void unix_connect(unsigned n, struct span *s)
{
	unix_connect_to(&abstract, n, s);
}

static void unix_path_connect(unsigned n, struct span *s)
{
	unix_connect_to(&path, n, s);
}

static const struct {
	const char *name;
	void (*run)(unsigned n, struct span *s);
} operations[] = {
	{ "connect", near_connect },
	{ "udp", near_udp },
	{ "rtt", near_rtt },
	{ "rtt2", near_rtt_two_cpus },
	{ "far_connect", far_connect },
	{ "far_udp", far_udp },
	{ "far_rtt", far_rtt },
	{ "bind", near_bind },
	{ "unix", unix_connect },
	{ "unix_path", unix_path_connect },
};

/* -- the two roles ------------------------------------------------------------------ */

/* Connections by age. Clients that were cut off say nothing when they go: the oldest ones make room. */
static struct {
	int fds[SERVED_MAX];			/* 0: none */
	unsigned next, slot_of[4 * SERVED_MAX]; /* by descriptor */
} served;

static void served_add(int epoll, int fd)
{
	unsigned slot = served.next++ % SERVED_MAX;

	if (fd < 0 || fd >= 4 * SERVED_MAX)
		err(1, "accept");
	no_delay(fd);
	if (served.fds[slot])
		close(served.fds[slot]);
	served.fds[slot] = fd;
	served.slot_of[fd] = slot;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN, .data.fd = fd });
}

static void served_answer(int fd)
{
	char data[64];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	if (n > 0 && send(fd, data, (size_t)n, MSG_NOSIGNAL) == n)
		return;
	served.fds[served.slot_of[fd]] = 0;
	close(fd);
}

/* One event at a time, so that none is of a descriptor that was closed; and by epoll, for poll() looks at all of those that were cut off
 * each time, on a CPU that somebody who is timed may need. */
static int serve(uint16_t port)
{
	struct address any = parse("::", port);
	int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_at(&any, SOCK_STREAM);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = STDIN_FILENO };

	epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
	event.data.fd = listener;
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	listen_at(&any, SOCK_DGRAM);
	puts("ready");
	fflush(stdout);
	while (epoll_wait(epoll, &event, 1, -1) == 1 && event.data.fd != STDIN_FILENO) {
		if (event.data.fd == listener)
			served_add(epoll, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		else
			served_answer(event.data.fd);
	}
	return 0;
}

/* from: where in the name the text begins; 1 behind the NUL of an abstract one. */
static void unix_listen(struct unix_place *place, size_t from, const char *format)
{
	char text[64];

	snprintf(text, sizeof(text), format, (int)getpid());
	place->name.sun_family = AF_UNIX;
	strcpy(place->name.sun_path + from, text);
	place->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
	place->listener = make(AF_UNIX, SOCK_STREAM);
	if (bind(place->listener, (struct sockaddr *)&place->name, place->len) < 0 || listen(place->listener, 64) < 0)
		err(1, "bind, unix");
}

static int hold(const char *text, unsigned count)
{
	struct address a = parse(text, 1900);
	struct rlimit files;
	char line[8];

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	listener = listen_at(&a, SOCK_STREAM);
	while (count--) {
		connect_to(&a);
		if (accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0)
			err(1, "accept");
	}
	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 1 : 0;
}

static void work_open(const char *near_text, const char *far_text, uint16_t port)
{
	near_end = parse(near_text, port);
	far_end = parse(far_text, port);
	listener = listen_at(&near_end, SOCK_STREAM);
	udp_sink = listen_at(&near_end, SOCK_DGRAM);
	udp_socket = socket(near_end.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unix_listen(&abstract, 1, "np-bench-%d");
	unix_listen(&path, 0, "/tmp/np-bench-%d.sock");
	puts("ready");
	fflush(stdout);
}

static int work(void)
{
	char line[64], name[32];
	unsigned n;

	while (fgets(line, sizeof(line), stdin)) {
		struct span s = { 0 }, warm = { 0 };
		bool known = false;

		if (sscanf(line, "%31s %u", name, &n) != 2 || !n || n > COUNT_MAX)
			errx(2, "not a command: %s", line);
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			if (!strcmp(operations[i].name, name)) {
				operations[i].run(n / 8 + 1, &warm);
				operations[i].run(n, &s);
				known = true;
			}
		if (!known)
			errx(2, "no operation %s", name);
		printf("%llu %llu\n", (unsigned long long)s.wall, (unsigned long long)s.cpu);
		fflush(stdout);
	}
	unlink(path.name.sun_path);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "see the source for its usage");
	if (strcmp(argv[1], "-"))
		cgroup_join(argv[1]);
	one_cpu(last_cpu());
	if (!strcmp(argv[2], "serve"))
		return serve((uint16_t)atoi(argv[3]));
	if (!strcmp(argv[2], "hold") && argc == 5)
		return hold(argv[3], (unsigned)atoi(argv[4]));
	if (argc != 6)
		errx(2, "see the source for its usage");
	work_open(argv[3], argv[4], (uint16_t)atoi(argv[5]));
	return work();
}
