# SPDX-License-Identifier: MIT
"""What whoever shares a network namespace sees of the others in it, without a packet."""
import os
import socket


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
