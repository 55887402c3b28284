/* SPDX-License-Identifier: MIT */
/*
 * Real sandboxes in a scratch cgroup, without a daemon: what the launcher itself promises. The test program is
 * also the command that runs inside: called with a word it does what the table at the end says.
 */
#include "launch/launch.c"

#include "base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sched.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <cmocka.h>

#include "../child.h"
#include "vocab/limits.h"

extern char **environ;

static uint64_t exchanged; /* not 0: as if what is bound was another file when it was looked at */
static char self[4096];	   /* this program */
static char folder[4096];  /* where it is */
static char root[4096];	   /* where cgroup v2 is mounted */
static char cgroup[4160];  /* the scratch cgroup */
static char output[65536]; /* of the last run, with what the launcher had to say at its end */

/* -- outside ------------------------------------------------------------------------------------------------- */

struct run {
	pid_t pid; /* of the launching process */
	int out;   /* what the command writes */
};

/* In the launching process: 0 is as it was, 1 and 2 go to `out`. */
static _Noreturn void launcher_main(int out, const char *user, char *const *argv)
{
	struct identity identity;
	const struct permit permit = { .path = "/", .readonly = true };
	const struct bind bind = {
		.source = folder, .dest = folder, .readonly = true, .device = 1, .inode = exchanged
	};
	char here[4096], problem[PLAN_PROBLEM_SIZE];
	struct plan_request request = {
		.session = "unit/test",
		.argv = argv,
		.environ = environ,
		.cwd = here,
		.identity = &identity,
		.binds = &bind,
		.n_binds = 1,
		.permits = &permit,
		.n_permits = 1,
	};
	struct launch_result result;
	struct host host;
	struct plan plan;
	sigset_t mask;

	if (dup2(out, 1) < 0 || dup2(out, 2) < 0 || !getcwd(here, sizeof(here)))
		_exit(99);
	if (identity_find(user ? user : "root", &identity) < 0)
		_exit(97);
	identity.root = NP_UID_FIRST;
	if (host_look(NULL, &host) < 0 || plan_make(&request, &host, &plan, problem) < 0)
		_exit(98);
	launch_hold_signals(&mask);
	launch_run(&(struct launch_order){ .plan = &plan, .cgroup = cgroup, .mask = &mask }, &result);
	if (!result.started)
		dprintf(2, "problem: %s\n", result.problem);
	_exit(result.exit_code);
}

static void run_start(struct run *run, const char *user, char *const *argv)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	run->pid = fork();
	if (run->pid == 0)
		launcher_main(ends[1], user, argv);
	close(ends[1]);
	run->out = ends[0];
}
#define ARGV(...)     ((char *const[]){ __VA_ARGS__, NULL })
#define INSIDE(word)  ARGV(self, (char *)(word))
#define SHELL(script) ARGV((char *)"sh", (char *)"-c", (char *)(script))

/* Up to the end, which comes when nobody holds the other end any more. */
static int run_finish(struct run *run)
{
	size_t len = 0;
	ssize_t n;
	int status;

	while (len < sizeof(output) - 1 && (n = read(run->out, output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)n;
	output[len] = '\0';
	close(run->out);
	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int run_as(const char *user, char *const *argv)
{
	struct run run;

	run_start(&run, user, argv);
	return run_finish(&run);
}

static void run_expect_line(const struct run *run, const char *line)
{
	char got[64] = "";

	for (size_t len = 0; len < sizeof(got) - 1 && read(run->out, got + len, 1) == 1; len++)
		if (got[len] == '\n') {
			got[len] = '\0';
			break;
		}
	assert_string_equal(got, line);
}

static void assert_inside(const char *user, const char *word)
{
	int code = run_as(user, INSIDE(word));

	if (code)
		fail_msg("%s: %d: %s", word, code, output);
}

static void exit_codes(void **state)
{
	(void)state;
	assert_int_equal(run_as(NULL, SHELL("exit 0")), 0);
	assert_int_equal(run_as(NULL, SHELL("exit 3")), 3);
	assert_int_equal(run_as(NULL, SHELL("exit 255")), 255);
	assert_int_equal(run_as(NULL, SHELL("kill -TERM $$")), 128 + SIGTERM);
	assert_int_equal(run_as(NULL, SHELL("kill -KILL $$")), 128 + SIGKILL);
	assert_string_equal(output, "");
	assert_int_equal(run_as(NULL, ARGV((char *)"/etc/passwd")), LAUNCH_NOT_EXECUTABLE);
	assert_non_null(strstr(output, "problem: /etc/passwd: Permission denied"));
	assert_int_equal(run_as(NULL, ARGV((char *)"np-no-such-command")), LAUNCH_NOT_FOUND);
	assert_non_null(strstr(output, "np-no-such-command: command not found"));
}

static void hidden_places(void **state)
{
	char good[sizeof(cgroup)], path[] = "/dev/shm/np-cmd-XXXXXX", here[4096];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && write(fd, "#!/bin/sh\n", 10) == 10 && fchmod(fd, 0755) == 0);
	close(fd);
	assert_int_equal(run_as(NULL, ARGV(path)), LAUNCH_NOT_FOUND);
	unlink(path);
	assert_non_null(strstr(output, "not to be seen in the sandbox"));
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir("/dev"), 0);
	assert_int_equal(run_as(NULL, SHELL("pwd")), 0);
	assert_string_equal(output, "/workspace\n");
	assert_int_equal(chdir(cgroup), 0);
	assert_int_equal(run_as(NULL, SHELL("pwd")), 0);
	assert_string_equal(output, "/workspace\n");
	assert_int_equal(chdir(here), 0);
	strcpy(good, cgroup);
	strcpy(cgroup, "/tmp");
	assert_int_equal(run_as(NULL, SHELL("exit 0")), LAUNCH_FAILED);
	strcpy(cgroup, good);
	assert_non_null(strstr(output, "/tmp is not a cgroup v2 directory"));
}

static void what_was_exchanged_on_the_way(void **state)
{
	(void)state;
	exchanged = 1;
	assert_int_equal(run_as(NULL, SHELL("echo started")), LAUNCH_FAILED);
	exchanged = 0;
	assert_null(strstr(output, "started"));
	assert_non_null(strstr(output, "exchanged on the way"));
	assert_int_equal(run_as(NULL, SHELL("echo started")), 0);
}

static void no_way_out_of_the_cgroup(void **state)
{
	(void)state;
	assert_inside(NULL, "in_cgroup");
	assert_inside(NULL, "escape");
	assert_inside("65534:65534", "escape");
}

static void no_way_around_the_gate(void **state)
{
	(void)state;
	assert_inside(NULL, "sockets");
	assert_inside("65534:65534", "sockets");
	assert_inside(NULL, "kernel");
}

static void a_world_of_its_own(void **state)
{
	(void)state;
	assert_inside(NULL, "processes");
	assert_inside(NULL, "devices");
	assert_inside(NULL, "process_1");
	assert_int_equal(run_as("65534:65534", SHELL("id -u; id -g; id -G")), 0);
	assert_string_equal(output, "65534\n65534\n65534\n");
	assert_int_equal(run_as(NULL, SHELL("id -u")), 0);
	assert_string_equal(output, "0\n");
}

static void inherited_files(void **state)
{
	int sock = socket(AF_INET, SOCK_DGRAM, 0), dir = open(root, O_RDONLY | O_DIRECTORY), high;

	(void)state;
	high = dup2(dir, 200);
	assert_true(sock > 2 && dir > 2 && high == 200);
	assert_inside(NULL, "files");
	close(sock);
	close(dir);
	close(high);
}

static void sockets_as_input_and_output(void **state)
{
	char got[64];
	size_t len = 0;
	ssize_t n;
	int pair[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		dup2(pair[1], 0);
		launcher_main(
			pair[1], NULL,
			SHELL("test ! -S /dev/stdin && test -p /dev/stdin && test -p /dev/stdout && cat; exit 5"));
	}
	close(pair[1]);
	assert_int_equal(send(pair[0], "hello", 5, 0), 5);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	while (len < sizeof(got) && (n = recv(pair[0], got + len, sizeof(got) - len, 0)) > 0)
		len += (size_t)n;
	assert_int_equal(len, 5);
	assert_memory_equal(got, "hello", 5);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 5);
	close(pair[0]);
}

static void signals_are_passed_on(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		run_start(&run, i % 2 ? "65534:65534" : NULL, INSIDE("wait_signal"));
		run_expect_line(&run, "ready");
		kill(run.pid, signals[i]);
		assert_int_equal(run_finish(&run), 100 + signals[i]);
	}
	run_start(&run, NULL, SHELL("echo ready; while :; do sleep 1; done"));
	run_expect_line(&run, "ready");
	kill(run.pid, SIGTERM);
	assert_int_equal(run_finish(&run), 128 + SIGTERM);
}

static void the_mask_is_restored(void **state)
{
	_free_ char *ours = NULL;
	char *ignored;

	(void)state;
	/* What is ignored stays ignored, as for any command: whoever started this test may ignore SIGINT. */
	assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/status", 65536, &ours), 0);
	ignored = strstr(ours, "SigIgn:");
	assert_non_null(ignored);
	*(strchr(ignored, '\n') + 1) = '\0';
	assert_int_equal(run_as(NULL, SHELL("grep '^Sig[BI]' /proc/self/status")), 0);
	assert_non_null(strstr(output, "SigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(output, ignored));
}

static void all_end_together(void **state)
{
	struct run run;

	(void)state;
	/* Orphans: the pipe ends only when the last of them is gone. */
	assert_int_equal(run_as(NULL, SHELL("sleep 1000 & (setsid sleep 1000 &) ; exit 4")), 4);
	/* The launcher is killed: the sandbox goes with it. */
	run_start(&run, NULL, SHELL("setsid sleep 1000 & echo ready; sleep 1000"));
	run_expect_line(&run, "ready");
	kill(run.pid, SIGKILL);
	assert_int_equal(run_finish(&run), 1000 + SIGKILL);
}

/* A terminal: ^C reaches the command once, from the terminal and not from us as well. */
static void terminal(void **state)
{
	struct run run;
	int status;

	(void)state;
	run.pid = forkpty(&run.out, NULL, NULL, NULL);
	if (run.pid < 0)
		skip();
	if (run.pid == 0) {
		struct termios mode;

		tcgetattr(0, &mode);
		mode.c_lflag &= ~(tcflag_t)ECHO; /* "^C" would mix with what the command writes */
		tcsetattr(0, TCSANOW, &mode);
		launcher_main(1, NULL, INSIDE("count_interrupts"));
	}
	run_expect_line(&run, "ready\r");
	for (int i = 0; i < 20; i++) { /* often, for two that come close together may become one */
		assert_int_equal(write(run.out, "\003", 1), 1);
		run_expect_line(&run, "interrupt\r");
	}
	/* Takes the same way as a second SIGINT would, behind it. */
	kill(run.pid, SIGTERM);
	run_expect_line(&run, "interrupts: 20\r");
	assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	close(run.out);
}

/* -- inside -------------------------------------------------------------------------------------------------- */

static int in_cgroup(void)
{
	_free_ char *text = NULL;

	CHECK(fs_read_at(AT_FDCWD, "/proc/self/cgroup", 65536, &text) == 0);
	CHECK(strstr(text, "0::/\n")); /* the root of its own namespace */
	return 0;
}

/* Every path that led to the root's cgroup.procs outside. */
static int escape(void)
{
	static const char *const prefixes[] = { "", "/proc/1/root", "/proc/self/root",
						"/proc/1/cwd/../../../../../.." };
	char path[8192];
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		snprintf(path, sizeof(path), "%s%s/cgroup.procs", prefixes[i], getenv("NP_TEST_ROOT"));
		fd = open(path, O_WRONLY);
		CHECK(fd < 0);
		snprintf(path, sizeof(path), "%s%s", prefixes[i], getenv("NP_TEST_CGROUP"));
		CHECK(open(path, O_RDONLY | O_DIRECTORY) < 0);
	}
	CHECK(mount("none", "/mnt", "cgroup2", 0, NULL) < 0);
	CHECK(umount2(getenv("NP_TEST_ROOT"), MNT_DETACH) < 0);
	CHECK(umount2("/sys/fs/cgroup", MNT_DETACH) < 0);
	CHECK(fsopen("cgroup2", 0) < 0);
	CHECK(open_tree(AT_FDCWD, "/sys", OPEN_TREE_CLONE) < 0);
	CHECK(unshare(CLONE_NEWCGROUP) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
	CHECK(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	fd = open("/proc/1/ns/cgroup", O_RDONLY);
	CHECK(fd < 0 || setns(fd, 0) < 0);
	CHECK(chroot("/tmp") < 0);
	return 0;
}

static int sockets(void)
{
	CHECK(socket(AF_INET, SOCK_RAW, IPPROTO_TCP) < 0);
	CHECK(socket(AF_INET6, SOCK_RAW, IPPROTO_TCP) < 0);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) < 0);
	CHECK(socket(AF_PACKET, SOCK_DGRAM, 0) < 0);
	CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) < 0);
	CHECK(socket(AF_XDP, SOCK_RAW, 0) < 0);
	CHECK(syscall(SYS_io_uring_setup, 1, NULL) < 0);
	CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	CHECK(socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
	CHECK(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	return 0;
}

/* Root's ways into the kernel that need no capability, but an owner's write permission. */
static int kernel(void)
{
	CHECK(open("/proc/sys/kernel/core_pattern", O_WRONLY) < 0);
	CHECK(open("/proc/sys/kernel/modprobe", O_WRONLY) < 0);
	CHECK(open("/sys/kernel/uevent_helper", O_WRONLY) < 0);
	CHECK(open("/sys/kernel/mm/ksm/run", O_WRONLY) < 0);
	CHECK(syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(access("/proc/self/status", R_OK) == 0);
	CHECK(access("/sys/class/net/lo", R_OK) == 0);
	return 0;
}

static int processes(void)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	unsigned count = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	closedir(dir);
	CHECK(count == 2); /* process 1 and this one */
	CHECK(getpid() <= 3 && getppid() == 1); /* the map of root was made by a process that is gone */
	return 0;
}

static int directory_count(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static int devices_seen(void)
{
	int fd;

	CHECK(access("/dev/null", W_OK) == 0 && access("/dev/urandom", R_OK) == 0);
	CHECK(access("/dev/kmsg", F_OK) < 0 && access("/dev/mem", F_OK) < 0 && access("/dev/vsock", F_OK) < 0);
	CHECK(mknod("/dev/x", S_IFCHR | 0600, makedev(1, 11)) < 0);
	CHECK(directory_count("/dev/shm") == 0);
	CHECK(directory_count("/sys/fs/cgroup") <= 0 && directory_count("/sys/fs/bpf") <= 0);
	fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	CHECK(fd >= 0);
	CHECK((fd = open("/dev/shm/x", O_CREAT | O_RDWR, 0600)) >= 0);
	return 0;
}

/* As confined as we are, and not ours to look into. */
static int process_1(void)
{
	_free_ char *text = NULL;

	CHECK(fs_read_at(AT_FDCWD, "/proc/1/status", 65536, &text) == 0);
	CHECK(strstr(text, "CapPrm:\t0000000000000000\n") && strstr(text, "CapBnd:\t0000000000000000\n"));
	CHECK(strstr(text, "Seccomp:\t2\n"));
	CHECK(open("/proc/1/mem", O_RDONLY) < 0);
	CHECK(readlink("/proc/1/fd/0", (char[64]){ 0 }, 64) < 0);
	CHECK(open("/proc/1/root", O_RDONLY) < 0);
	return 0;
}

static int files(void)
{
	CHECK(directory_count("/proc/self/fd") == 4); /* 0, 1, 2 and the directory itself */
	CHECK(fcntl(3, F_GETFD) < 0 && fcntl(200, F_GETFD) < 0);
	return 0;
}

static void on_signal(int signo)
{
	_exit(100 + signo);
}

static int wait_signal(void)
{
	for (int signo = 1; signo < SIGKILL + 10; signo++)
		if (signo != SIGSEGV && signo != SIGCHLD)
			signal(signo, on_signal);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signo)
{
	(void)signo;
	interrupts++;
	if (write(1, "interrupt\n", 10) != 10)
		_exit(1);
}

static void on_term(int signo)
{
	(void)signo;
	dprintf(1, "interrupts: %d\n", (int)interrupts);
	_exit(0);
}

static int count_interrupts(void)
{
	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_term);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}

static const struct {
	const char *word;
	int (*fn)(void);
} words[] = {
	{ "in_cgroup", in_cgroup },	{ "escape", escape },
	{ "sockets", sockets },		{ "kernel", kernel },
	{ "processes", processes },	{ "devices", devices_seen },
	{ "process_1", process_1 },	{ "files", files },
	{ "wait_signal", wait_signal }, { "count_interrupts", count_interrupts },
};

/* -- the scratch cgroup --------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	_free_ char *table = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n < 0 || fs_read_at(AT_FDCWD, "/proc/self/mountinfo", 32u << 20, &table) < 0)
		return -1;
	self[n] = '\0';
	memcpy(folder, self, sizeof(folder));
	*strrchr(folder, '/') = '\0';
	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strstr(line, " - cgroup2 ") && sscanf(line, "%*u %*u %*s %*s %4095s", root) == 1)
			break;
	snprintf(cgroup, sizeof(cgroup), "%s/np-unit-%d", root, getpid());
	setenv("NP_TEST_ROOT", root, 1);
	setenv("NP_TEST_CGROUP", cgroup, 1);
	return root[0] && mkdir(cgroup, 0755) == 0 ? 0 : -1;
}

/* A test that failed may have left its sandbox behind; what is killed takes a moment to leave. */
static int teardown(void **state)
{
	char kill_file[sizeof(cgroup) + 16];

	(void)state;
	snprintf(kill_file, sizeof(kill_file), "%s/cgroup.kill", cgroup);
	fs_write_at(AT_FDCWD, kill_file, "1");
	for (int i = 0; i < 6000; i++) {
		if (rmdir(cgroup) == 0)
			return 0;
		usleep(10000);
	}
	return -1;
}

/* The report of a try that another one may follow, and the end of the process that sent it, seen at once: the caller's
 * standard output is for the next try. */
static void a_try_that_failed_leaves_the_streams_alone(void **state)
{
	struct init_report report = { .kind = REPORT_FAILED, .exit_code = LAUNCH_FAILED, .error = EAGAIN, .text = "again" };
	struct launch_order order = { 0 };
	struct plan plan = { .argv = (char *[]){ "true", NULL } };
	struct launch_result result = { 0 };
	static struct launch l;
	int ends[2], gone[2];

	(void)state;
	order.plan = &plan;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(pipe2(gone, O_NONBLOCK), 0);
	assert_int_equal(write(ends[1], &report, sizeof(report)), sizeof(report));
	close(ends[1]);
	close(gone[1]); /* readable, as the descriptor of a process that ended is */
	l = (struct launch){ .order = &order, .result = &result, .child = gone[0], .report = ends[0], .control = -1 };
	assert_false(launch_settle(&l));
	assert_true(l.failed && result.unmade);
	close(gone[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_try_that_failed_leaves_the_streams_alone),
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(hidden_places),
		cmocka_unit_test(what_was_exchanged_on_the_way),
		cmocka_unit_test(no_way_out_of_the_cgroup),
		cmocka_unit_test(no_way_around_the_gate),
		cmocka_unit_test(a_world_of_its_own),
		cmocka_unit_test(inherited_files),
		cmocka_unit_test(sockets_as_input_and_output),
		cmocka_unit_test(signals_are_passed_on),
		cmocka_unit_test(the_mask_is_restored),
		cmocka_unit_test(all_end_together),
		cmocka_unit_test(terminal),
	};

	if (argc > 1)
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (!strcmp(argv[1], words[i].word))
				_exit(words[i].fn());
	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return 77;
	}
	alarm(900); /* what hangs has failed */
	return cmocka_run_group_tests(tests, setup, teardown);
}
