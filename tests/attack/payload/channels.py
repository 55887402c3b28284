# SPDX-License-Identifier: MIT
"""What whoever shares a network namespace sees of the others in it, without a packet."""
import errno
import os
import socket
import time


def names(mark):
    """What abstract names of unix sockets say that begin so."""
    with open("/proc/net/unix") as f:
        found = sorted(line.split("@", 1)[1].strip() for line in f if f" @{mark}." in line)
    return {"text": "".join(name.split(".", 2)[2] for name in found)}


def ports(first, length):
    """What UDP ports say that are taken: a bit each."""
    with open("/proc/net/udp") as f:
        taken = {int(line.split()[1].split(":")[1], 16) for line in list(f)[1:]}
    value = sum(1 << i for i in range(8 * length) if first + i in taken)
    return {"text": value.to_bytes(length, "little").decode("latin-1")}


def seen():
    """Devices, routes, and the ends of TCP connections."""
    with open("/proc/net/dev") as f:
        devices = [line.split(":")[0].strip() for line in list(f)[2:]]
    with open("/proc/net/route") as f:
        routes = [line.split()[:3] for line in list(f)[1:]]
    with open("/proc/net/tcp") as f:
        tcp = [int(end.split(":")[1], 16) for line in list(f)[1:] for end in line.split()[1:3]]
    return {"devices": devices, "routes": routes, "tcp": tcp, "inode": os.stat("/proc/self/ns/net").st_ino}


def ask(addr, port, local, host, paths):
    """One request after another, each from the same port."""
    statuses = []
    for path in paths:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # the port is free at once
            s.settimeout(120)
            s.bind(("127.0.0.1", local))
            s.connect((addr, port))
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while chunk := s.recv(65536):
                data += chunk
        statuses.append(int(data.split()[1]) if data else 0)
    return {"statuses": statuses}


def resolve(name, family, flags):
    """With the C library's own rules for hosts without a network."""
    got = socket.getaddrinfo(name, 80, getattr(socket, family), socket.SOCK_STREAM, 0, sum(getattr(socket, f) for f in flags))
    return {"addrs": [entry[4][0] for entry in got]}


def meet(mark, first, length, stream, dgram, addrs, wait=0.4):
    """What whoever listens at these ports and at an abstract name leaves to be met: who is seen (names, ports, listeners in
    /proc/net), what is taken (bind), and who answers, by every address that is named."""
    out = {"names": names(mark)["text"], "ports": ports(first, length)["text"], "tcp": stream in seen()["tcp"]}
    out["taken"] = []
    for what, family, kind, name in (("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", stream)),
                                     ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", dgram)),
                                     ("name", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0call-{mark}")):
        with socket.socket(family, kind) as s:
            try:
                s.bind(name)
            except OSError:
                out["taken"].append(what)
    out["answers"], waiting = [], []
    for addr in addrs:
        family = socket.AF_INET6 if ":" in addr else socket.AF_INET
        for kind, port in ((socket.SOCK_STREAM, stream), (socket.SOCK_DGRAM, dgram)):
            s = socket.socket(family, kind)
            s.setblocking(False)
            try:
                s.connect((addr, port))
            except BlockingIOError:
                pass
            except OSError:
                continue
            waiting.append((s, addr, kind))
    end = time.monotonic() + wait
    while time.monotonic() < end and waiting:
        time.sleep(0.02)
        for entry in list(waiting):
            s, addr, kind = entry
            try:
                s.send(mark.encode())
                s.recv(100)
            except BlockingIOError:
                continue
            except OSError as e:
                if e.errno == errno.ENOTCONN:
                    continue
            else:
                out["answers"].append(addr)
            waiting.remove(entry)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        try:
            s.connect(f"\0call-{mark}")
            s.send(mark.encode())
            out["answers"].append("name")
        except OSError:
            pass
    return out
