/* SPDX-License-Identifier: MIT */
/*
 * A client of the control API on one connection that stays open.
 *
 *   client SOCKET FAR-ADDR FAR-PORT DAEMON-PID FILE
 *
 * Commands: "bare" escalates a fresh session without a sandbox; "box N" one with a live sandbox whose process holds
 * N TCP connections to FAR-ADDR; both answer "TOTAL-NS DAEMON-CPU-NS APPLIED-US CUT". "append N" makes the same, and instead of
 * an escalation appends 4 KiB to FILE, on the disk, when the caches are as they are then. "start" makes and removes one
 * sandbox, "health" asks for that, "nothing" for what is not there, "sandboxes SESSION COUNT" registers sandboxes: "TOTAL-NS DAEMON-CPU-NS".
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "bench.h"

static int api = -1;
static struct sockaddr_un api_address = { .sun_family = AF_UNIX };
static struct sockaddr_in far_end = { .sin_family = AF_INET };
static char answer[64 << 10];
static char tasks[64];
static int file = -1;

/* CPU time of all threads of the daemon. */
static uint64_t daemon_cpu_ns(void)
{
	DIR *dir = opendir(tasks);
	uint64_t sum = 0;

	if (!dir)
		err(1, "%s", tasks);
	for (struct dirent *e; (e = readdir(dir));) {
		char path[64], text[64] = "";
		int fd;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.16s/schedstat", e->d_name);
		fd = openat(dirfd(dir), path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
			err(1, "%s/%s", tasks, path);
		close(fd);
		sum += strtoull(text, NULL, 10);
	}
	closedir(dir);
	return sum;
}

/* The clock stops with the answer; the CPU is read when the daemon is at rest again. */
static void span_end(struct span *s)
{
	s->wall += clock_ns(CLOCK_MONOTONIC);
	usleep(300);
	s->cpu += daemon_cpu_ns();
}

static void span_begin(struct span *s)
{
	s->cpu = -daemon_cpu_ns();
	s->wall = -clock_ns(CLOCK_MONOTONIC);
}

/* The daemon drops a connection that says nothing for a while: then a new one is opened, outside of timed parts. */
static void api_connect(void)
{
	char byte;

	if (api >= 0 && recv(api, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return;
	if (api >= 0)
		close(api);
	api = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (api < 0 || connect(api, (struct sockaddr *)&api_address, sizeof(api_address)) < 0)
		err(1, "%s", api_address.sun_path);
}

/* Sends one request; its body is in `answer` then. Returns the status, exits when the daemon is gone. */
static int ask(const char *method, const char *path, const char *body)
{
	char request[2048];
	size_t have = 0, want = 0;
	char *end = NULL, *length;
	int len = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: n\r\nContent-Length: %zu\r\n\r\n%s",
			   method, path, strlen(body), body);
	int status;

	if (len >= (int)sizeof(request) || send(api, request, (size_t)len, MSG_NOSIGNAL) != len)
		err(1, "%s %s", method, path);
	while (!want || have < want) {
		ssize_t n = recv(api, answer + have, sizeof(answer) - 1 - have, 0);

		if (n <= 0)
			err(1, "%s %s: the answer ended", method, path);
		have += (size_t)n;
		answer[have] = '\0';
		if (want || !(end = strstr(answer, "\r\n\r\n")))
			continue;
		length = strcasestr(answer, "\r\ncontent-length:");
		if (!length)
			errx(1, "%s %s: no length: %s", method, path, answer);
		want = (size_t)(end - answer) + 4 + strtoul(length + 17, NULL, 10);
	}
	status = atoi(answer + 9);
	memmove(answer, end + 4, strlen(end + 4) + 1);
	return status;
}

static void must(const char *method, const char *path, const char *body)
{
	int status = ask(method, path, body);

	if (status != 200 && status != 201)
		errx(1, "%s %s %s: %d %s", method, path, body, status, answer);
}

/* The value of a member of the answer. Our own daemon wrote it: no parser is needed. */
static const char *member(const char *name, char value[static 4096])
{
	char pattern[64];
	const char *p;
	size_t n = 0;

	snprintf(pattern, sizeof(pattern), "\"%s\":", name);
	p = strstr(answer, pattern);
	if (!p)
		errx(1, "no %s in %s", name, answer);
	p += strlen(pattern);
	p += strspn(p, " \"");
	while (p[n] && !strchr("\",}", p[n]) && n < 4095)
		n++;
	memcpy(value, p, n);
	value[n] = '\0';
	return value;
}

static void sandbox_make(const char *session, char id[static 4096], char cgroup[static 4096])
{
	char body[512];

	/* clean: our processes close what they inherit, see tenant_start() */
	snprintf(body, sizeof(body), "{\"session\":\"%s\",\"clean\":true}", session);
	must("POST", "/v1/sandboxes", body);
	member("sandbox", id);
	member("cgroup", cgroup);
}

/* A process in the sandbox with connections that it waits on. */
static pid_t tenant_start(const char *cgroup, unsigned connections)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		err(1, "fork");
	if (pid == 0) {
		int fd = -1;

		close(api);
		cgroup_join(cgroup);
		while (connections--) {
			fd = socket(AF_INET, SOCK_STREAM, 0);
			if (fd < 0 || connect(fd, (struct sockaddr *)&far_end, sizeof(far_end)) < 0)
				err(1, "connect in the sandbox");
		}
		/* The far end serves in order: when it answers the last one it is done with the others, and will not be
		 * busy with them while somebody is timed. */
		if (fd >= 0 && (write(fd, "x", 1) != 1 || read(fd, &byte, 1) != 1))
			err(1, "the far end");
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "the process in the sandbox did not start");
	close(ready[0]);
	return pid;
}

static void raise_timed(const char *session)
{
	char path[128], applied[4096], cut[4096];
	struct span s;

	snprintf(path, sizeof(path), "/v1/sessions/%s/datasets", session);
	span_begin(&s);
	must("POST", path, "{\"level\":\"SECRET\",\"dataset\":\"bench.csv\"}");
	span_end(&s);
	printf("%llu %llu %s %s\n", (unsigned long long)s.wall, (unsigned long long)s.cpu,
	       member("applied_us", applied), member("cut", cut));
}

static void append_timed(void)
{
	struct span s = { 0 };

	span_open(&s);
	append_durably(file);
	span_close(&s);
	printf("%llu %llu\n", (unsigned long long)s.wall, (unsigned long long)s.cpu);
}

/* connections < 0: without a sandbox. */
static void with_session(int connections, bool escalates)
{
	static unsigned count;
	char session[64], path[128], body[256], id[4096], cgroup[4096];
	pid_t tenant = -1;

	snprintf(session, sizeof(session), "bench/e%d-%u", (int)getpid(), count++);
	snprintf(body, sizeof(body), "{\"session\":\"%s\",\"level\":\"PUBLIC\"}", session);
	must("POST", "/v1/sessions", body);
	if (connections >= 0) {
		sandbox_make(session, id, cgroup);
		tenant = tenant_start(cgroup, (unsigned)connections);
	}
	if (escalates)
		raise_timed(session);
	else
		append_timed();
	fflush(stdout);
	if (tenant > 0) {
		kill(tenant, SIGKILL);
		waitpid(tenant, NULL, 0);
	}
	snprintf(path, sizeof(path), "/v1/sessions/%s", session);
	must("DELETE", path, "");
}

static void tell(struct span *s)
{
	span_end(s);
	printf("%llu %llu\n", (unsigned long long)s->wall, (unsigned long long)s->cpu);
	fflush(stdout);
}

static void start_one(void)
{
	char id[4096], cgroup[4096], path[4200];
	struct span s;

	span_begin(&s);
	sandbox_make("bench/start", id, cgroup);
	snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
	must("DELETE", path, "");
	tell(&s);
}

static void register_many(const char *session, unsigned n)
{
	char id[4096], cgroup[4096];
	struct span s;

	span_begin(&s);
	while (n--)
		sandbox_make(session, id, cgroup);
	tell(&s);
}

int main(int argc, char **argv)
{
	char line[256], word[128];
	unsigned n;

	if (argc != 6)
		errx(2, "usage: client SOCKET FAR-ADDR FAR-PORT DAEMON-PID FILE");
	snprintf(api_address.sun_path, sizeof(api_address.sun_path), "%s", argv[1]);
	far_end.sin_port = htons((uint16_t)atoi(argv[3]));
	snprintf(tasks, sizeof(tasks), "/proc/%d/task", atoi(argv[4]));
	inet_pton(AF_INET, argv[2], &far_end.sin_addr);
	file = append_open(argv[5]);
	api_connect();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct span s;

		api_connect();
		if (!strcmp(line, "bare\n")) {
			with_session(-1, true);
		} else if (sscanf(line, "box %u", &n) == 1 && n <= 2000) {
			with_session((int)n, true);
		} else if (sscanf(line, "append %u", &n) == 1 && n <= 2000) {
			with_session((int)n, false);
		} else if (!strcmp(line, "start\n")) {
			start_one();
		} else if (!strcmp(line, "health\n")) {
			span_begin(&s);
			must("GET", "/v1/health", "");
			tell(&s);
		} else if (!strcmp(line, "nothing\n")) {
			span_begin(&s);
			if (ask("GET", "/v1/nothing", "") != 404)
				errx(1, "there is something: %s", answer);
			tell(&s);
		} else if (sscanf(line, "boxes %127s %u", word, &n) == 2 && n <= 65536) {
			register_many(word, n);
		} else {
			errx(2, "not a command: %s", line);
		}
	}
	return 0;
}
