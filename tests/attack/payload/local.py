# SPDX-License-Identifier: MIT
"""Every way over this host to a list of ports, tried one after the other in one process."""
import socket

FASTOPEN = 0x20000000  # MSG_FASTOPEN


def address(family, addr, port):
    if family == 4:
        return socket.AF_INET, (addr, port)
    host, _, dev = addr.partition("%")
    return socket.AF_INET6, (host, port, 0, socket.if_nametoindex(dev) if dev else 0)


def attempt(how, family, addr, port, data):
    af, to = address(family, addr, port)
    with socket.socket(af, socket.SOCK_DGRAM if how in ("sendto", "connected") else socket.SOCK_STREAM) as s:
        s.settimeout(0.2)
        if how == "sendto":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(data, to)
            return
        if how == "fastopen":  # the data goes with the SYN
            s.sendto(data, FASTOPEN, to)
            return
        s.connect(to)
        s.send(data)


def attempts(tries):
    """tries: [how, family, addr, port, mark]"""
    for how, family, addr, port, mark in tries:
        try:
            attempt(how, family, addr, port, mark.encode())
        except OSError:
            pass
    return {"tried": len(tries)}
