/* SPDX-License-Identifier: MIT */
#include "launch/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "vocab/limits.h"

/* By its directory's descriptor: a run directory's path may be longer than an address. */
static void address_make(int dir, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" NP_KEPT_SOCKET, dir);
}

int kept_listen(int dir)
{
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return -errno;
	if (unlinkat(dir, NP_KEPT_SOCKET, 0) < 0 && errno != ENOENT)
		return -errno;
	address_make(dir, &address);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, NP_KEPT_RUNS) < 0)
		return -errno;
	return take_fd(fd);
}

int kept_connect(int dir)
{
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return -errno;
	address_make(dir, &address);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

static int words_write(const struct plan *plan, struct kept_order *order)
{
	_buf_ struct buf words = BUF_INIT(NP_PLAN_MEMORY);
	_close_ int fd = -1;
	int r;

	buf_append(&words, plan->directory, strlen(plan->directory) + 1);
	for (char *const *word = plan->argv; *word; word++, order->n_words++)
		buf_append(&words, *word, strlen(*word) + 1);
	for (char *const *word = plan->environ; *word; word++, order->n_environ++)
		buf_append(&words, *word, strlen(*word) + 1);
	if (buf_error(&words))
		return buf_error(&words);
	order->bytes = (uint32_t)words.len;
	fd = memfd_create("netpawl-words", MFD_CLOEXEC);
	r = fd < 0 ? -errno : fs_write_all(fd, words.data, words.len);
	return r < 0 ? r : take_fd(fd);
}

static void ignored_note(sigset_t *ret)
{
	struct sigaction now;

	sigemptyset(ret);
	for (int signo = 1; signo < NSIG; signo++)
		if (sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			sigaddset(ret, signo);
}

int kept_order(int connection, const struct plan *plan, const sigset_t *mask, const struct stdio *stdio, int entry)
{
	struct kept_order order = { .size = sizeof(order), .mask = *mask };
	_close_ int file = words_write(plan, &order);
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(KEPT_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &order, sizeof(order) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const size_t n = entry >= 0 ? KEPT_FDS : KEPT_FDS - 1;
	int fds[KEPT_FDS];

	if (file < 0)
		return file;
	umask((mode_t)(order.umask = umask(0)));
	ignored_note(&order.ignored);
	for (int fd = 0; fd < 3; fd++)
		fds[fd] = stdio->inside[fd] >= 0 ? stdio->inside[fd] : fd;
	fds[3] = file;
	fds[4] = entry; /* the last, for an older process 1 is sent all but this */
	control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS,
					 .cmsg_len = CMSG_LEN(n * sizeof(int)) };
	memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	return sendmsg(connection, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(order) ? 0 : -errno;
}

bool report_read(const void *data, size_t len, struct init_report *ret)
{
	if (len != sizeof(*ret))
		return false;
	memcpy(ret, data, sizeof(*ret));
	if (ret->kind < REPORT_READY || ret->kind > REPORT_ENDED || ret->exit_code < 0 || ret->exit_code > 255 ||
	    ret->signal < 0 || ret->signal >= NSIG || ret->error < 0 || ret->error > 4095)
		return false;
	ret->text[sizeof(ret->text) - 1] = '\0';
	return true;
}
