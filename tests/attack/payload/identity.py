# SPDX-License-Identifier: MIT
"""Connections that are gone before anybody asks whose they are, and a client that happens to have the same port."""
import errno
import socket
import struct
import time

FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def _connected(family, addr, port, local):
    """From a port of our choice; waits for it while somebody else has it."""
    end = time.monotonic() + 120
    while True:
        s = socket.socket(FAMILY[family])
        s.settimeout(60)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1" if family == 4 else "::1", local))
            s.connect((addr, port))
            return s
        except OSError as e:
            s.close()
            if e.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL) or time.monotonic() > end:
                raise


def _reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def post(path, size):
    return f"POST {path} HTTP/1.1\r\nHost: origin.test\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size


def forge(family, addr, port, local, paths, size=18000):
    """Requests that nobody waits for: sent, and the connection reset."""
    for path in paths:
        s = _connected(family, addr, port, local)
        try:
            s.sendall(post(path, size))
        except OSError:
            pass  # it was refused while it was sent
        _reset(s)
    return {"sent": len(paths)}


def ask(family, addr, port, local, paths, size=0, half=False):
    """Requests as programs make them, each on a connection of its own: what came back for each."""
    out = []
    for path in paths:
        s = _connected(family, addr, port, local)
        try:
            s.sendall(post(path, size) if size else f"GET {path} HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n".encode())
            if half:
                s.shutdown(socket.SHUT_WR)
            out.append(s.recv(65536).split(b"\r\n")[0].decode())
        except OSError as e:
            out.append(errno.errorcode.get(e.errno, str(e)))
        finally:
            _reset(s)  # the port is free at once
    return {"got": out}


def repair():
    """TCP_REPAIR lets a program choose its sequence numbers."""
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, 19, 1)
    return {"repair": s.getsockopt(socket.IPPROTO_TCP, 19)}
