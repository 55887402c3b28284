# SPDX-License-Identifier: MIT
"""Ports are everybody's: how many can one sandbox take?"""
import errno
import os
import resource
import socket


def take(kind, count, how="bind", each=900):
    """Opens sockets and takes a port with each, in as many processes as the limit on open files makes necessary. Tells
    how many there were, and what ended it; gives all back."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    pipes, pids, got, ended = [], [], 0, None
    hold_r, hold_w = os.pipe()
    while got < count and ended is None:
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(hold_w)
            kept, why = [], ""
            for _ in range(min(each, count - got)):
                try:
                    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
                    if how == "bind":
                        s.bind(("127.0.0.1", 0))
                    elif how == "send":
                        try:
                            s.sendto(b"x", ("127.0.0.1", 1))
                        except ConnectionRefusedError:
                            pass
                    kept.append(s)
                except OSError as e:
                    why = errno.errorcode[e.errno]
                    break
            os.write(w, f"{len(kept)} {why}".encode())
            os.close(w)
            os.read(hold_r, 1)  # until the end of it
            os._exit(0)
        os.close(w)
        pids.append(pid)
        n, _, why = os.read(r, 100).decode().partition(" ")
        os.close(r)
        got += int(n)
        ended = why or None
    os.close(hold_w)
    for pid in pids:
        os.waitpid(pid, 0)
    return {"taken": got, "ended": ended}


def connected(count):
    """A server and its clients in one process: both ends of count connections are open at once."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(count)
        pairs = []
        for _ in range(count):
            client = socket.create_connection(server.getsockname())
            pairs.append((client, server.accept()[0]))
        for client, accepted in pairs:
            client.send(b"x")
            assert accepted.recv(1) == b"x"
    return {"pairs": len(pairs)}


def rounds(count):
    """Sockets one after the other, in every way that a socket can end; more than may be open at once."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        for i in range(count):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if i % 3 == 0 else socket.SOCK_STREAM)
            if i % 3 == 0:
                s.bind(("127.0.0.1", 0))
            elif i % 3 == 1:
                s.connect(server.getsockname())
                server.accept()[0].close()
            elif i % 2:
                try:
                    s.connect(("127.0.0.1", 1))
                except ConnectionRefusedError:
                    pass
            s.close()
    return {"done": count}
