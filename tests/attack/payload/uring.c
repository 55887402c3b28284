/* SPDX-License-Identifier: MIT */
/*
 * socket(), and connect() with send(), by io_uring: a system call filter does not see what a ring does.
 *   uring packet                   opens AF_PACKET
 *   uring connect ADDR PORT MARK   opens AF_INET, connects, sends
 * Exit code: 0 done, 1 refused, 3 this kernel has no io_uring (outside of the sandbox only that means a skip).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OP_SOCKET 45

static int ring_fd;
static struct io_uring_params params;
static char *sq, *cq;
static struct io_uring_sqe *sqes;

static int ring_open(void)
{
	ring_fd = syscall(__NR_io_uring_setup, 4, &params);
	if (ring_fd < 0)
		return -errno;
	size_t sq_size = params.sq_off.array + params.sq_entries * 4;
	size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	sq = mmap(0, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, IORING_OFF_SQ_RING);
	cq = mmap(0, cq_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, IORING_OFF_CQ_RING);
	sqes = mmap(0, params.sq_entries * sizeof(*sqes), PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, IORING_OFF_SQES);
	return sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED ? -ENOMEM : 0;
}

static int ring_do(const struct io_uring_sqe *what)
{
	unsigned tail = *(volatile unsigned *)(sq + params.sq_off.tail);
	unsigned mask = *(unsigned *)(sq + params.sq_off.ring_mask);
	unsigned head = *(volatile unsigned *)(cq + params.cq_off.head);

	sqes[tail & mask] = *what;
	((unsigned *)(sq + params.sq_off.array))[tail & mask] = tail & mask;
	__atomic_store_n((unsigned *)(sq + params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, ring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)(cq + params.cq_off.cqes) +
				   (head & *(unsigned *)(cq + params.cq_off.ring_mask));
	int res = cqe->res;
	__atomic_store_n((unsigned *)(cq + params.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return res;
}

static int ring_socket(int family, int type)
{
	struct io_uring_sqe sqe = { .opcode = OP_SOCKET, .fd = family, .off = type };

	return ring_do(&sqe);
}

static int connect_and_send(const char *addr, int port, const char *mark)
{
	int fd = ring_socket(AF_INET, SOCK_STREAM);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	printf("socket %d ", fd);
	if (fd < 0)
		return 1;
	inet_pton(AF_INET, addr, &to.sin_addr);
	struct io_uring_sqe c = { .opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&to, .off = sizeof(to) };
	int r = ring_do(&c);
	printf("connect %d ", r);
	if (r < 0)
		return 1;
	struct io_uring_sqe s = { .opcode = IORING_OP_SEND, .fd = fd, .addr = (uintptr_t)mark, .len = strlen(mark) };
	r = ring_do(&s);
	printf("send %d\n", r);
	return r < 0;
}

int main(int argc, char **argv)
{
	int r = ring_open();

	if (r < 0) {
		printf("io_uring_setup %d\n", r);
		return r == -ENOSYS ? 3 : 1;
	}
	if (argc == 5)
		return connect_and_send(argv[2], atoi(argv[3]), argv[4]);
	r = ring_socket(AF_PACKET, SOCK_RAW);
	printf("socket(AF_PACKET) %d\n", r);
	return r < 0;
}
