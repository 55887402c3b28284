# SPDX-License-Identifier: MIT
"""System calls that a sandbox must not make, each as its own function: {"call": "ok" or the name of the errno}."""
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)
NR = dict(add_key=248, keyctl=250, userfaultfd=323, unshare=272, setns=308, mount=165, umount2=166, pivot_root=155, chroot=161,
          fsopen=430, open_tree=428, move_mount=429, mount_setattr=442, bpf=321, perf_event_open=298, io_uring_setup=425,
          open_by_handle_at=304, name_to_handle_at=303, mknod=133, swapon=167, sethostname=170, settimeofday=164,
          clone3=435, kexec_load=246, init_module=175, pidfd_getfd=438, pidfd_open=434)


def call(name, *args):
    ctypes.set_errno(0)
    got = libc.syscall(NR[name], *args)
    return got, "ok" if got >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def keyring():
    """A key that every process of the user finds."""
    return {"call": call("add_key", b"user", b"np-test", b"secret", 6, ctypes.c_int(-3))[1]}  # the process's own ring


def faults():
    return {"call": call("userfaultfd", 0)[1]}


def namespaces(flag):
    return {"call": call("unshare", flag)[1]}


def mount_tmpfs(where):
    return {"call": call("mount", b"none", where.encode(), b"tmpfs", 0, None)[1]}


def mount_new():
    return {"call": call("fsopen", b"tmpfs", 0)[1]}


def mount_clone():
    return {"call": call("open_tree", -100, b"/", 1)[1]}


def root_change(where):
    return {"call": call("chroot", where.encode())[1]}


def device(where):
    return {"call": call("mknod", where.encode(), 0o020666, os.makedev(1, 3))[1]}


def perf():
    attr = (ctypes.c_char * 128)()
    ctypes.memmove(attr, (1).to_bytes(4, "little") + (128).to_bytes(4, "little"), 8)  # software, cpu-clock
    return {"call": call("perf_event_open", ctypes.byref(attr), 0, -1, -1, 0)[1]}


def handle(path):
    """A file by its number, from the mount that it is on, whatever is mounted over it."""
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_char * 128)]
    h, mount = Handle(bytes=128), ctypes.c_int()
    if call("name_to_handle_at", -100, path.encode(), ctypes.byref(h), ctypes.byref(mount), 0)[0] < 0:
        return {"call": "no handle"}
    fd = os.open("/", os.O_RDONLY)
    return {"call": call("open_by_handle_at", fd, ctypes.byref(h), os.O_RDONLY)[1]}


def host_name():
    return {"call": call("sethostname", b"localhost", 9)[1]}
