# SPDX-License-Identifier: MIT
"""Kernels that lack something, for a daemon: a library that is loaded before all others."""
from lib import base

# Links on network devices, Linux 6.6: what says so is the first word of struct bpf_attr behind program and target.
NO_TCX = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <sys/syscall.h>
long syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_bpf && a[0] == BPF_LINK_CREATE) {
        const union bpf_attr *attr = (const void *)a[1];
        if (attr->link_create.attach_type == 46 || attr->link_create.attach_type == 47) {
            errno = EINVAL;
            return -1;
        }
    }
    return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""

NO_NETFILTER = r"""
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && protocol == NETLINK_NETFILTER) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return syscall(SYS_socket, domain, type, protocol);
}
"""

# In any network namespace but this one nobody can listen, while a file is there.
NO_LISTENERS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
int listen(int fd, int backlog)
{
    struct stat here;
    if (access("%(flag)s", F_OK) == 0 && stat("/proc/self/ns/net", &here) == 0 && here.st_ino != %(host)dul) {
        errno = ENOBUFS;
        return -1;
    }
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "listen"))(fd, backlog);
}
"""

# Lists of devices and addresses change each time that they are read, and what is on the device with this name is missed, while a file is there.
RESTLESS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>
ssize_t recv(int fd, void *data, size_t size, int flags)
{
    ssize_t n = ((ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv"))(fd, data, size, flags);
    unsigned left = n > 0 ? (unsigned)n : 0;
    if (!left || flags || access("%(flag)s", F_OK))
        return n;
    for (struct nlmsghdr *m = data; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
        const struct ifinfomsg *device = NLMSG_DATA(m);
        const struct ifaddrmsg *address = NLMSG_DATA(m);
        unsigned hidden = if_nametoindex("%(device)s");
        if (!(m->nlmsg_flags & NLM_F_MULTI))
            continue;
        m->nlmsg_flags |= NLM_F_DUMP_INTR;
        if ((m->nlmsg_type == RTM_NEWLINK && (unsigned)device->ifi_index == hidden) || (m->nlmsg_type == RTM_NEWADDR && address->ifa_index == hidden))
            m->nlmsg_type = NLMSG_NOOP;
    }
    return n;
}
"""


def library(where, source):
    """The path of it, for LD_PRELOAD."""
    (where / "lacks.c").write_text(source)
    base.sh("cc", "-shared", "-fPIC", "-o", where / "lacks.so", where / "lacks.c", "-ldl")
    return str(where / "lacks.so")
