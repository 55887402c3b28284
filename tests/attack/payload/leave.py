# SPDX-License-Identifier: MIT
"""A process that leaves the network namespace it was started in."""
import ctypes
import errno
import os
import socket

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def _go(how):
    libc = ctypes.CDLL(None, use_errno=True)
    if how == "unshare":
        r = libc.unshare(CLONE_NEWNET)
    elif how == "user":
        r = libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)
    else:
        r = libc.setns(os.open(how, os.O_RDONLY), CLONE_NEWNET)
    if r:
        raise OSError(ctypes.get_errno(), "cannot leave")


def leave(how, addr=None, port=0):
    """how: unshare, user (with a user namespace), or a file that names where to go. What socket() says there, and connect()."""
    _go(how)
    out = {"at": os.stat("/proc/self/ns/net").st_ino}
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                socket.socket(family, kind).close()
            except OSError as e:
                out["socket"] = errno.errorcode[e.errno]
                return out
    out["socket"] = "ok"
    if addr:
        with socket.socket() as s:
            s.settimeout(60)
            out["connect"] = errno.errorcode.get(s.connect_ex((addr, port)), "ok")
    return out
