/* SPDX-License-Identifier: MIT */
/*
 * A TCP connection that no descriptor shows: it is a registered file of an io_uring.
 *   ring registered ADDR PORT   the ring is registered with the thread, its descriptor closed
 *   ring sqpoll ADDR PORT       a child of the maker has the ring's memory and nothing else
 * Says "made PID", and after each line that it reads what became of it: "moved", then what sending that line gave.
 * Exit code 3: this kernel has no io_uring.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REGISTER_RING_FDS     20
#define ENTER_REGISTERED_RING 16

static struct io_uring_params params;
static char *sq, *cq;
static struct io_uring_sqe *sqes;
static int index_of_ring = -1;

static int ring_open(void)
{
	int fd = (int)syscall(__NR_io_uring_setup, 4, &params);

	if (fd < 0)
		return -1;
	sq = mmap(0, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  IORING_OFF_SQ_RING);
	cq = mmap(0, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
		  MAP_SHARED, fd, IORING_OFF_CQ_RING);
	sqes = mmap(0, params.sq_entries * sizeof(*sqes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	return sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED ? -1 : fd;
}

/* Waits for the completion, as far as the ring's memory tells of it. */
static int ring_do(int fd, unsigned flags, struct io_uring_sqe what)
{
	unsigned tail = *(volatile unsigned *)(sq + params.sq_off.tail);
	unsigned head = *(volatile unsigned *)(cq + params.cq_off.head);
	unsigned at = tail & *(unsigned *)(sq + params.sq_off.ring_mask);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);

	sqes[at] = what;
	((unsigned *)(sq + params.sq_off.array))[at] = at;
	__atomic_store_n((unsigned *)(sq + params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	if (fd >= 0 && syscall(__NR_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS | flags, NULL, 0) < 0)
		return -errno;
	for (int i = 0; i < 3000; i++) {
		if (__atomic_load_n((unsigned *)(cq + params.cq_off.tail), __ATOMIC_ACQUIRE) != head) {
			__atomic_store_n((unsigned *)(cq + params.cq_off.head), head + 1, __ATOMIC_RELEASE);
			return cqes[head & *(unsigned *)(cq + params.cq_off.ring_mask)].res;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return -ETIMEDOUT;
}

static int ring_send(const char *text)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_SEND,
				    .flags = IOSQE_FIXED_FILE,
				    .fd = 0,
				    .addr = (uintptr_t)text,
				    .len = strlen(text) };

	return ring_do(index_of_ring, ENTER_REGISTERED_RING, sqe);
}

static void converse(void)
{
	char line[sizeof(*sqes)];

	printf("made %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return;
	printf("moved\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return;
	line[strcspn(line, "\n")] = '\0';
	/* The kernel's thread reads the memory of the ring's maker: the text must be where parent and child share it. */
	char *shared = memcpy(sqes + params.sq_entries - 1, line, sizeof(line));
	printf("sent %d\n", ring_send(shared));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int polled = argc == 4 && !strcmp(argv[1], "sqpoll"), fd, tcp = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])) };

	inet_pton(AF_INET, argv[2], &to.sin_addr);
	if (polled) {
		params.flags = IORING_SETUP_SQPOLL;
		params.sq_thread_idle = 60000;
	}
	fd = ring_open();
	if (fd < 0)
		return 3;
	if (connect(tcp, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    syscall(__NR_io_uring_register, fd, IORING_REGISTER_FILES, &tcp, 1) < 0)
		return 1;
	close(tcp);
	if (polled) {
		/* From now on the kernel's thread looks by itself. */
		if (ring_do(fd, IORING_ENTER_SQ_WAKEUP, (struct io_uring_sqe){ .opcode = IORING_OP_NOP }) < 0)
			return 1;
		pid_t child = fork();

		if (child == 0) {
			close(fd);
			converse();
			_exit(0);
		}
		waitpid(child, NULL, 0);
		return 0;
	}
	struct io_uring_rsrc_update update = { .offset = -1U, .data = (unsigned)fd };
	if (syscall(__NR_io_uring_register, fd, REGISTER_RING_FDS, &update, 1) < 0)
		return 1;
	index_of_ring = (int)update.offset;
	close(fd);
	converse();
	return 0;
}
