// SPDX-License-Identifier: MIT
/*
 * Asks a name server for nN.bench.test over UDP. Arguments: ADDRESS.
 *
 *   ask COUNT WINDOW FIRST NAMES  COUNT queries, WINDOW at a time, for NAMES names from FIRST on, in turn.
 *                                 Answers: answered, lost, ns for all, p50 and p99 in ns
 *   flood MS                      queries for names that no policy allows, as fast as they go, nobody waits for answers.
 *                                 Answers: sent, refused
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "bench.h"

#define WINDOW_MAX 256
#define COUNT_MAX  100000
#define LOST_MS	   1000

static int fd;
static uint64_t sent_ns[65536];
static uint32_t took_ns[COUNT_MAX];

static size_t query_write(uint8_t out[static 64], unsigned id, unsigned number, const char *zone)
{
	static const uint8_t head[10] = { 1, 0, 0, 1 };
	uint8_t *p = out;
	char label[16];

	*p++ = (uint8_t)(id >> 8);
	*p++ = (uint8_t)id;
	memcpy(p, head, sizeof(head));
	p += sizeof(head);
	*p++ = (uint8_t)snprintf(label, sizeof(label), "n%u", number);
	memcpy(p, label, p[-1]);
	p += p[-1];
	*p++ = 5;
	memcpy(p, zone, 5);
	p += 5;
	memcpy(p, "\4test\0\0\1\0\1", 10);
	return (size_t)(p + 10 - out);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* False when it was refused. */
static bool query_send(unsigned id, unsigned number)
{
	uint8_t out[64];
	size_t len = query_write(out, id, number, "bench");

	sent_ns[id & 65535] = clock_ns(CLOCK_MONOTONIC);
	return send(fd, out, len, 0) == (ssize_t)len;
}

static void ask(unsigned count, unsigned window, unsigned first, unsigned names)
{
	unsigned sent = 0, answered = 0, lost = 0, waiting = 0;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), ns;

	if (count > COUNT_MAX)
		count = COUNT_MAX;
	while (recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT) >= 0)
		;
	memset(sent_ns, 0, sizeof(sent_ns));
	while (answered + lost < count) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint8_t in[512];

		while (sent < count && waiting < window) {
			bool ok = query_send(sent & 65535, first + sent % names);

			sent++;
			lost += !ok;
			waiting += ok;
		}
		if (!waiting)
			continue;
		if (poll(&p, 1, LOST_MS) <= 0) {
			lost += waiting;
			waiting = 0;
			memset(sent_ns, 0, sizeof(sent_ns));
			continue;
		}
		while (recv(fd, in, sizeof(in), MSG_DONTWAIT) >= 12) {
			unsigned id = (unsigned)in[0] << 8 | in[1];

			/* An address, or it does not count. */
			if (!sent_ns[id] || in[3] & 15 || !in[7])
				continue;
			took_ns[answered++] = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - sent_ns[id]);
			sent_ns[id] = 0;
			waiting--;
		}
	}
	ns = clock_ns(CLOCK_MONOTONIC) - start;
	qsort(took_ns, answered, sizeof(took_ns[0]), compare);
	printf("%u %u %llu %u %u\n", answered, lost, (unsigned long long)ns, answered ? took_ns[answered / 2] : 0,
	       answered ? took_ns[answered * 99ull / 100] : 0);
}

static void flood(unsigned ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull;
	unsigned sent = 0, refused = 0;

	while (clock_ns(CLOCK_MONOTONIC) < end) {
		uint8_t out[64];
		size_t len = query_write(out, sent & 65535, sent, "flood");

		if (send(fd, out, len, 0) < 0)
			refused++;
		else
			sent++;
		while (recv(fd, out, sizeof(out), MSG_DONTWAIT) >= 0)
			;
	}
	printf("%u %u\n", sent, refused);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };
	char line[128];

	if (argc != 2 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		errx(2, "usage: queries ADDRESS");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		err(1, "%s", argv[1]);
	setlinebuf(stdout);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned a, b, c, d;

		if (sscanf(line, "ask %u %u %u %u", &a, &b, &c, &d) == 4 && b && b <= WINDOW_MAX && d)
			ask(a, b, c, d);
		else if (sscanf(line, "flood %u", &a) == 1)
			flood(a);
		else
			errx(2, "what is %s", line);
	}
	return 0;
}
