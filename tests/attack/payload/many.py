# SPDX-License-Identifier: MIT
"""Datagrams for everyone: the kernel copies them to each listener of the host that wants them. And the socket
options with which a sandbox could choose who gets its packets, or when."""
import errno
import socket
import struct


def send(family, addr, port, mark, dev=None):
    with socket.socket({4: socket.AF_INET, 6: socket.AF_INET6}[family], socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if dev and family == 4:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", b"\0" * 4, b"\0" * 4,
                                                                                 socket.if_nametoindex(dev)))
        to = (addr, port) if family == 4 else (addr, port, 0, socket.if_nametoindex(dev))
        try:
            return {"sent": s.sendto(mark.encode(), to)}
        except OSError as e:
            return {"error": errno.errorcode[e.errno]}


def option(name):
    """Sets one option and tells what the kernel said."""
    number, value = {
        "reuseport_cbpf": (51, None),
        "max_pacing_rate": (47, struct.pack("I", 1000)),
        "txtime": (61, struct.pack("iI", 1, 0)),
        "keepalive": (socket.SO_KEEPALIVE, struct.pack("i", 1)),
    }[name]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            if value is None:
                import ctypes
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0: the first socket
                value = struct.pack("HxxxxxxQ", 1, ctypes.addressof(code))
            s.setsockopt(socket.SOL_SOCKET, number, value)
            if name == "keepalive":  # an option that is allowed must also take effect
                return {"ok": s.getsockopt(socket.SOL_SOCKET, number) == 1}
            return {"ok": True}
        except OSError as e:
            return {"error": errno.errorcode[e.errno]}
