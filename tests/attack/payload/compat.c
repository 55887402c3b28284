/* SPDX-License-Identifier: MIT */
/*
 * socket(AF_PACKET or AF_VSOCK) by another system call table than the usual one: a filter that
 * knows only x86-64 numbers does not see these. compat i386|x32
 * Exit code: 0 opened, 1 refused, 3 this kernel has no such table.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
static long i386(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
}

static long x32(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr | 0x40000000), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

int main(int argc, char **argv)
{
	int is32 = argc > 1 && !strcmp(argv[1], "i386");
	long pid = is32 ? i386(20, 0, 0, 0) : x32(39, 0, 0, 0);

	if (pid != getpid()) {
		printf("no table: getpid gave %ld\n", pid);
		return 3;
	}
	long r = is32 ? i386(359, 17, 3, 0) : x32(41, 17, 3, 0);
	printf("socket(AF_PACKET) %ld\n", r);
	return r >= 0 ? 0 : 1;
}
#else
int main(void)
{
	puts("not x86-64");
	return 3;
}
#endif
