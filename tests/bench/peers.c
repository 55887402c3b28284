/* SPDX-License-Identifier: MIT */
/*
 * What a user would do instead, and the floor under it.
 *
 *   peers FILE CGROUP NFT-PATH NFT-LEVEL
 *   peers hello                            writes one byte and sleeps: what bwrap starts
 *
 * Commands, each answered by "WALL-NS CPU-NS", or by "skip REASON":
 *   fdatasync   append 4 KiB to FILE and make it durable
 *   nftlib      libnftables in process adds a rule that drops what the cgroup NFT-PATH sends
 *   nftcli      the same by the nft command
 *   bwrap       kill a process, start it again under bwrap --unshare-net, until it runs
 *   spawn       fork and exec, until it runs
 *   bwrapall    the same under bwrap --unshare-all
 *   cgroup      make and remove a cgroup below CGROUP
 */
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>

#ifdef WITH_NFT
#include <nftables/libnftables.h>
#endif

#include "bench.h"

static const char *self, *cgroup, *nft_path, *nft_level;
static int file = -1;
static pid_t tenant = -1;

static void answer(const struct span *s)
{
	printf("%llu %llu\n", (unsigned long long)s->wall, (unsigned long long)s->cpu);
}

static void sync_file(struct span *s)
{
	span_open(s);
	append_durably(file);
	span_close(s);
}

static int run(const char *const *argv)
{
	extern char **environ;
	int status = -1;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* -- nft ----------------------------------------------------------------------------- */

static void rule_text(char text[static 1024])
{
	snprintf(text, 1024, "add rule inet npbench out socket cgroupv2 level %s \"%s\" counter drop", nft_level,
		 nft_path);
}

#ifdef WITH_NFT
static struct nft_ctx *nft;

static bool nft_ready(void)
{
	static const char table[] = "add table inet npbench\n"
				    "add chain inet npbench out { type filter hook output priority 0; }";

	if (nft)
		return true;
	nft = nft_ctx_new(NFT_CTX_DEFAULT);
	if (nft && nft_run_cmd_from_buffer(nft, table) == 0)
		return true;
	if (nft)
		nft_ctx_free(nft);
	nft = NULL;
	return false;
}

static void nft_flush(void)
{
	nft_run_cmd_from_buffer(nft, "flush chain inet npbench out");
}

static bool nft_library(struct span *s)
{
	char rule[1024];
	int r;

	rule_text(rule);
	span_open(s);
	r = nft_run_cmd_from_buffer(nft, rule);
	span_close(s);
	nft_flush();
	return r == 0;
}
#else
static bool nft_ready(void)
{
	return false;
}

static void nft_flush(void)
{
}

static bool nft_library(struct span *s)
{
	(void)s;
	return false;
}
#endif

static bool nft_command(struct span *s)
{
	char rule[1024];
	const char *const argv[] = { "/usr/sbin/nft", rule, NULL };
	int r;

	rule_text(rule);
	s->cpu -= children_cpu_ns();
	span_open(s);
	r = run(argv);
	span_close(s);
	s->cpu += children_cpu_ns();
	nft_flush();
	return r == 0;
}

/* -- processes -------------------------------------------------------------------------- */

/* Starts argv with its stdout on a pipe and returns when it has written a byte. */
static pid_t start(const char *const *argv)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	char byte;
	int out[2], r;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		err(1, "pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	if (r == 0 && read(out[0], &byte, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		r = -1;
	}
	close(out[0]);
	return r ? -1 : pid;
}

static void finish(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool bwrap_restart(struct span *s)
{
	const char *const before[] = { "bwrap", "--ro-bind", "/", "/", "--die-with-parent", "--", self, "hello", NULL };
	const char *const after[] = { "bwrap", "--ro-bind", "/",     "/", "--unshare-net", "--die-with-parent",
				      "--",    self,	    "hello", NULL };

	tenant = start(before);
	if (tenant < 0)
		return false;
	s->cpu -= children_cpu_ns();
	span_open(s);
	finish(tenant);
	tenant = start(after);
	span_close(s);
	finish(tenant);
	s->cpu += children_cpu_ns();
	return tenant > 0;
}

static bool start_timed(const char *const *argv, struct span *s)
{
	pid_t pid;

	s->cpu -= children_cpu_ns();
	span_open(s);
	pid = start(argv);
	span_close(s);
	finish(pid);
	s->cpu += children_cpu_ns();
	return pid > 0;
}

static bool spawn_plain(struct span *s)
{
	const char *const argv[] = { self, "hello", NULL };

	return start_timed(argv, s);
}

static bool spawn_bwrap(struct span *s)
{
	const char *const argv[] = { "bwrap", "--ro-bind", "/",	    "/", "--unshare-all", "--die-with-parent",
				     "--",    self,	   "hello", NULL };

	return start_timed(argv, s);
}

static bool cgroup_cycle(struct span *s)
{
	char path[4096];
	bool ok;

	snprintf(path, sizeof(path), "%s/peer", cgroup);
	span_open(s);
	ok = mkdir(path, 0755) == 0 && rmdir(path) == 0;
	span_close(s);
	return ok;
}

static int hello(void)
{
	if (write(STDOUT_FILENO, "x", 1) != 1)
		return 1;
	sleep(30);
	return 0;
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc == 2 && !strcmp(argv[1], "hello"))
		return hello();
	if (argc != 5)
		errx(2, "see the source for its usage");
	self = realpath("/proc/self/exe", NULL);
	file = append_open(argv[1]);
	cgroup = argv[2];
	nft_path = argv[3];
	nft_level = argv[4];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct span s = { 0 };
		bool ok = true;

		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "fdatasync"))
			sync_file(&s);
		else if (!strcmp(line, "nftlib"))
			ok = nft_ready() && nft_library(&s);
		else if (!strcmp(line, "nftcli"))
			ok = nft_ready() && nft_command(&s);
		else if (!strcmp(line, "bwrap"))
			ok = bwrap_restart(&s);
		else if (!strcmp(line, "spawn"))
			ok = spawn_plain(&s);
		else if (!strcmp(line, "bwrapall"))
			ok = spawn_bwrap(&s);
		else if (!strcmp(line, "cgroup"))
			ok = cgroup_cycle(&s);
		else
			errx(2, "not a command: %s", line);
		if (ok)
			answer(&s);
		else
			printf("skip %s does not work here\n", line);
		fflush(stdout);
	}
	return 0;
}
