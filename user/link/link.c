/* SPDX-License-Identifier: MIT */
#include "link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

union fd_control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int link_send(int fd, enum link_type type, const void *data, size_t len, int pass_fd)
{
	struct link_message message = { .type = type, .len = (uint32_t)len };
	struct iovec parts[2] = { { &message, sizeof(message) }, { (void *)data, len } };
	union fd_control control = { 0 };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = len ? 2 : 1 };
	ssize_t n;

	if (len > LINK_BYTES_MAX)
		return -EMSGSIZE;
	if (pass_fd >= 0) {
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &pass_fd, sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int link_send_patiently(int fd, enum link_type type, const void *data, size_t len, int pass_fd, int ms)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int r = link_send(fd, type, data, len, pass_fd);

	if (r != -EAGAIN || poll(&room, 1, ms) <= 0)
		return r;
	return link_send(fd, type, data, len, pass_fd);
}

/* The descriptors of a message: the one that is wanted, and none else. */
static int fds_take(struct msghdr *msg, int *ret_fd)
{
	int kept = -1, n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (n++ == 0)
				kept = fd;
			else
				close(fd);
		}
	}
	*ret_fd = kept;
	return n > 1 ? -EPROTO : 0;
}

int link_receive(int fd, enum link_type *ret_type, char data[static LINK_BYTES_MAX], size_t *ret_len, int *ret_fd)
{
	struct link_message message;
	struct iovec parts[2] = { { &message, sizeof(message) }, { data, LINK_BYTES_MAX } };
	union fd_control control;
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	_close_ int passed = -1;
	ssize_t n;
	int r = 0;

	if (ret_fd) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	if (ret_fd)
		r = fds_take(&msg, &passed);
	if (r < 0 || (size_t)n < sizeof(message) || message.len != (size_t)n - sizeof(message) ||
	    msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	*ret_type = message.type;
	*ret_len = message.len;
	if (ret_fd)
		*ret_fd = take_fd(passed);
	return 0;
}

int link_blob(const void *data, size_t len, int *ret_fd)
{
	_close_ int fd = memfd_create("netpawl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fs_write_all(fd, data, len);

	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

int link_blob_map(int fd, size_t max, const char **ret_data, size_t *ret_len)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return -E2BIG;
	*ret_data = NULL;
	*ret_len = (size_t)st.st_size;
	if (!st.st_size)
		return 0;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret_data = p;
	return 0;
}

ssize_t link_request_next(const char *data, size_t len, struct link_request *ret, const char *ret_tails[LINK_TAILS])
{
	size_t at = sizeof(*ret);

	if (len < at)
		return -EPROTO;
	memcpy(ret, data, sizeof(*ret));
	for (unsigned i = 0; i < LINK_TAILS; i++) {
		uint32_t n = ret->tails[i];

		if (n > LINK_TAIL_MAX || n > len - at || (n && data[at + n - 1]))
			return -EPROTO;
		ret_tails[i] = n ? data + at : NULL;
		at += n;
	}
	return (ssize_t)at;
}
